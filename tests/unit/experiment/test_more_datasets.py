"""Procedures, claims, runs, run files and one's own data."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile

import ir_measures
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.datasets import (
    load_jsonl,
    load_scifact,
    load_tau2_banking,
    load_taubench_runs,
    read_qrels,
    read_run,
    write_run,
)
from rankblend.relevance import Scope


def test_tau2_banking_has_the_published_counts(shared):
    data = load_tau2_banking(shared / "data/tau2_banking")
    assert len(data.memories) == 698
    assert len(data.queries) == 97
    assert sum(len(query.relevant) for query in data.queries) == 949
    assert len({memory["metadata"]["topic"] for memory in data.memories}) == 71


def test_scifact_is_the_split_others_call_test(shared):
    data = load_scifact(shared / "data/scifact/scifact.zip")
    assert len(data.memories) == 5_183
    assert len(data.queries) == 300
    assert sum(len(query.relevant) for query in data.queries) == 339


def test_scifact_reads_a_folder_as_it_reads_the_zip(shared, tmp_path):
    archive = shared / "data/scifact/scifact.zip"
    with zipfile.ZipFile(archive) as opened:
        for member in opened.namelist():
            target = tmp_path / member.rsplit("/", 1)[-1]
            with opened.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
    assert load_scifact(tmp_path) == load_scifact(archive)


def test_scifact_sentences_are_separate_words(shared):
    data = load_scifact(shared / "data/scifact/scifact.zip")
    assert "functional disabilities. A line scan" in data.memories[0]["text"]


def test_taubench_runs_come_in_the_order_they_could_be_learned_from(shared):
    runs = load_taubench_runs(shared / "data/taubench/gpt-4o-airline.json")
    assert len(runs) == 200
    assert sum(run.success for run in runs) == 84
    assert sum(len(run.tools) for run in runs) == 1_164
    assert [run.trial for run in runs] == sorted(run.trial for run in runs)
    assert {run.trial for run in runs} == {0, 1, 2, 3}


@pytest.mark.parametrize("load", [load_tau2_banking, load_scifact, load_taubench_runs, load_jsonl])
@pytest.mark.parametrize("content", [None, "{}", "[1]", '[{"task_id": "x"}]', "\x00\xff"])
def test_path_with_something_else_is_refused(load, content, tmp_path):
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    with pytest.raises(InvalidArgumentError, match=r"expected|cannot be read"):
        load(path)


def test_run_file_round_trip_keeps_the_order_for_every_reader(tmp_path):
    path = tmp_path / "run.txt"
    rankings = {"q1": ["b", "a", "c"], "q2": ["z"], "q3": []}
    write_run(path, rankings, name="mine")
    scores = read_run(path)
    assert [sorted(s, key=s.get, reverse=True) for s in scores.values()] == [["b", "a", "c"], ["z"]]
    theirs = list(ir_measures.read_trec_run(str(path)))
    assert {(d.query_id, d.doc_id, d.score) for d in theirs} == {
        (q, d, s) for q, documents in scores.items() for d, s in documents.items()
    }


def test_run_file_refuses_what_the_format_cannot_express(tmp_path):
    with pytest.raises(InvalidArgumentError, match="white space"):
        write_run(tmp_path / "run.txt", {"q": ["two words"]})
    assert not (tmp_path / "run.txt").exists()


def test_qrels_are_read_as_ir_measures_reads_them(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 a 2\nq1 0 b -1\n\nq2 0 a 0\n")
    theirs = {(q.query_id, q.doc_id, q.relevance) for q in ir_measures.read_trec_qrels(str(path))}
    ours = {(q, d, g) for q, gains in read_qrels(path).items() for d, g in gains.items()}
    assert ours == theirs


@pytest.mark.parametrize(
    ("read", "content", "told"),
    [
        (read_qrels, "q 0 a\nq 0 a x\n", ["line 1", "3 columns", "line 2"]),
        (read_qrels, "q 0 a 1\nq 0 a 2\n", ["line 2", "second"]),
        (read_qrels, "", ["no line"]),
        (read_run, "q Q0 a 1 nan r\nq Q0 b 2 1.0\n", ["line 1", "line 2"]),
    ],
)
def test_malformed_lines_are_all_told(read, content, told, tmp_path):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(InvalidArgumentError) as caught:
        read(path)
    assert all(part in str(caught.value) for part in told)


SAVED = {
    "plain": "{0}\n{1}\n", "windows": "{0}\r\n{1}\r\n", "marked": "\ufeff{0}\n{1}\n",
    "both": "\ufeff{0}\r\n\r\n{1}", "commented": "# from a run\n{0}\n#q2 0 b 1\n{1}\n",
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("saved", SAVED)
def test_trec_files_when_saved_in_any_usual_way_then_they_say_the_same(tmp_path, saved, packed):
    def write(name, *lines):
        content = SAVED[saved].format(*lines).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
        return tmp_path / name

    assert read_qrels(write("qrels", "q1 0 a 2", "q1 0 b\u00a0c -1")) == {
        "q1": {"a": 2, "b\u00a0c": -1}
    }
    run = write("run", "q1 Q0 a 1 1.5e0 mine and more", "q1 Q0 b\u2028c 2 +.5 mine")
    assert read_run(run) == {"q1": {"a": 1.5, "b\u2028c": 0.5}}


@pytest.mark.parametrize(
    "number", ["1_0", "\u0661", "\uff11", "0x1", "1e", "--1", "inf", "nan", "1.0.0", "one"]
)
def test_trec_files_when_a_number_is_one_to_python_only_then_it_is_refused(tmp_path, number):
    path = tmp_path / "file"
    path.write_text(f"q 0 a {number}\n", encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="line 1: the number in it is not one"):
        read_qrels(path)
    path.write_text(f"q Q0 a 1 {number} mine\n", encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="line 1: the number in it is not one"):
        read_run(path)


def test_run_file_when_ids_hold_other_white_space_then_they_come_back(tmp_path):
    write_run(tmp_path / "run", {"q\u00a01": ["a\u2003b", "c#"]})
    assert list(read_run(tmp_path / "run")["q\u00a01"]) == ["a\u2003b", "c#"]
    with pytest.raises(InvalidArgumentError, match="comment"):
        write_run(tmp_path / "run", {"#1": ["a"]})


def _own(folder, memories, queries, links=None):
    for name, lines in [("memories", memories), ("queries", queries), ("links", links)]:
        if lines is not None:
            text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
            (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_own_data_is_read_with_families_clusters_and_links(tmp_path):
    folder = _own(
        tmp_path,
        [
            {"id": "m1", "text": "alpha", "scope": "tenant:a", "at": "2024-05-01"},
            {"id": "m2", "text": "beta", "scope": "tenant:a/user:u"},
        ],
        [
            {"id": "q1", "text": "?", "scope": "tenant:a", "relevant": {"m1": 2, "m2": 0}},
            {"id": "q2", "text": "?", "scope": "tenant:a", "relevant": ["m2"], "family": "f"},
            {"id": "q3", "text": "?", "scope": "tenant:a", "relevant": []},
        ],
        [{"scope": "tenant:a", "source": "m1", "target": "m2", "kind": "next"}],
    )
    data = load_jsonl(folder)
    assert [(q.id, dict(q.relevant), q.cluster) for q in data.queries] == [
        ("q1", {"m1": 2.0, "m2": 0.0}, "q1"),
        ("q2", {"m2": 1.0}, "q2"),
    ]
    assert data.memories[0]["at"].isoformat() == "2024-05-01T00:00:00+00:00"
    assert data.links == {
        Scope.parse("tenant:a"): ({"source": "m1", "target": "m2", "kind": "next"},)
    }
    assert data.excluded == {"no relevant memory": 1}


def test_own_data_when_a_label_is_null_then_it_is_not_given(tmp_path):
    scope = "tenant:a"
    folder = _own(
        tmp_path,
        [{"id": "m1", "text": "alpha", "scope": scope, "at": None, "salience": None}],
        [
            {"id": f"q{n}", "text": "?", "scope": scope, "relevant": ["m1"], "now": None,
             "cluster": None, "family": None}
            for n in range(2)
        ],
        [{"scope": scope, "source": "m1", "target": "x", "kind": None, "weight": None}],
    )  # fmt: skip
    data = load_jsonl(folder)
    assert [(q.cluster, q.family, q.now) for q in data.queries] == [
        ("q0", "", None),
        ("q1", "", None),
    ]
    assert dict(data.memories[0]) == {"id": "m1", "text": "alpha", "scope": scope}
    assert data.links == {Scope.parse(scope): ({"source": "m1", "target": "x"},)}


def test_own_data_tells_every_problem_with_its_line(tmp_path):
    good = {"id": "m1", "text": "alpha", "scope": "tenant:a"}
    folder = _own(
        tmp_path,
        [good, "{", good, {"id": "m2", "text": "no scope"}],
        [
            {"id": "q1", "text": "?", "scope": "nonsense", "relevant": ["m9"], "now": None},
            {"id": "q2", "text": "?", "scope": "tenant:a", "relevant": {"m1": -1}},
            {"id": "q3", "text": "?", "scope": "tenant:a", "relevant": [], "extra": []},
        ],
    )
    with pytest.raises(InvalidArgumentError) as caught:
        load_jsonl(folder)
    told = str(caught.value)
    for part in [
        "memories.jsonl line 2: not JSON",
        "memories.jsonl line 3: id: stands on an earlier line",
        "memories.jsonl line 4: scope missing",
        "queries.jsonl line 1: relevant: 1 ids are in no memory, first 'm9'",
        "queries.jsonl line 1: scope level 1",
        "queries.jsonl line 2: relevant: expected finite gains",
        "queries.jsonl line 3: unknown extra",
    ]:
        assert part in told

"""Record, replay, ablate, compare, fit, report, gate and release, from one's own JSON lines."""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rankblend.experiment.recording import Recording
from rankblend.profiles import load_profile
from rankblend.rerank import EvidenceLedger

TOPICS = ("refund", "travel", "garden", "music", "bank", "school")
FILLER = ("please", "soon", "again", "today", "note", "thing", "other", "more")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Six topics with six memories each, four of them asked about."""
    rng = random.Random(0)
    folder = tmp_path_factory.mktemp("own")
    memories, queries = [], []
    for topic in TOPICS:
        for number in range(6):
            words = [topic] * (number < 3) + [f"{topic}{number}", *rng.sample(FILLER, 4)]
            memories.append(
                {
                    "id": f"{topic}-{number}", "scope": "tenant:own", "text": " ".join(words),
                    "at": f"2024-0{number + 1}-01", "confidence": round(rng.random(), 2),
                    "links": [f"{topic}-0"] if number in (4, 5) else [],
                }
            )  # fmt: skip
        queries += [
            {
                "id": f"{topic}-q{number}", "scope": "tenant:own",
                "text": f"{topic} {topic}{number} {rng.choice(FILLER)}",
                "relevant": [f"{topic}-{number}"], "cluster": topic,
                "family": "early" if number < 2 else "late",
            }
            for number in range(4)
        ]  # fmt: skip
    for name, lines in (("memories", memories), ("queries", queries)):
        text = "\n".join(map(json.dumps, lines))
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def recording(rankblend, dataset, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "own.rec"
    if not path.exists():
        made = rankblend(
            "record", "--dataset", "jsonl", str(dataset), "--out", str(path), "--embedder", "none"
        )
        assert made.code == 0, made.err
    return str(path)


def test_record_says_what_it_recorded_and_makes_the_same_file_again(
    rankblend, dataset, recording, tmp_path
):
    again = tmp_path / "again.rec"
    made = rankblend(
        "record", "--dataset", "jsonl", str(dataset), "--out", str(again), "--embedder", "none"
    )
    assert "24 queries over 36 memories recorded" in made.out
    assert "licence your own" in made.err
    assert again.read_bytes() == Path(recording).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.rec"]


def test_record_without_an_embedder_says_that_similarity_will_be_absent(
    rankblend, dataset, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "wordllama", None)  # as if it were not installed
    arguments = ["record", "--dataset", "jsonl", str(dataset), "--out"]
    made = rankblend(*arguments, str(tmp_path / "auto.rec"))
    assert made.code == 0
    assert "every similarity will be absent" in made.err
    assert "rankblend[wordllama]" in made.err
    meant = rankblend(*arguments, str(tmp_path / "none.rec"), "--embedder", "none")
    assert "similarity" not in meant.err


def test_record_as_json_is_the_manifest(rankblend, dataset, tmp_path):
    made = rankblend(
        "record", "--dataset", "jsonl", str(dataset), "--out", str(tmp_path / "x.rec"),
        "--embedder", "none", "--profile", "default", "--json",
    )  # fmt: skip
    told = json.loads(made.out)
    assert told["queries"] == 24
    assert told["embedder"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "--dataset", "locmo", "x", "--out", "y"],
        ["record", "--dataset", "locomo", "nowhere", "--out", "y"],
        ["replay", "nowhere.rec"],
        ["ablate", "nowhere.rec", "--json"],
        ["report", "nowhere.json", "--out", "x.html"],
        ["gate", "nowhere.rec", "--candidate", "rrf"],
        ["fit", "nowhere.rec", "--out", "x.toml"],
        ["release", "--recording", "n.rec", "--reranker", "relevance-rerank", "--ledger", "l"],
    ],
)
def test_wrong_input_is_named_in_one_line_and_makes_no_file(
    arguments, rankblend, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = rankblend(*arguments)
    assert result.code == 2
    assert len(result.errors) == 1
    assert result.out == ""
    assert list(tmp_path.iterdir()) == []


def test_truncated_recording_is_refused(rankblend, recording, tmp_path):
    cut = tmp_path / "cut.rec"
    cut.write_bytes(Path(recording).read_bytes()[:-500])
    result = rankblend("replay", str(cut))
    assert result.code == 2
    assert len(result.errors) == 1


def test_replay_shows_every_profile_or_why_it_did_not_run(rankblend, recording, tmp_path):
    kept = tmp_path / "kept.json"
    shown = rankblend("replay", recording, "--profile", "default", "--profile", "rrf",
                      "--measure", "RR", "--out", str(kept))  # fmt: skip
    assert "default" in shown.out
    assert "24 judged queries, 0 excluded" in shown.out
    told = json.loads(rankblend("replay", recording, "--profile", "default", "--json").out)
    assert told["profiles"][0]["profile"] == "default"
    assert 0 < told["profiles"][0]["nDCG@10"] <= 1
    assert json.loads(kept.read_text())["arms"] == ["default", "rrf"]


def test_replay_with_an_unknown_measure_is_refused(rankblend, recording):
    result = rankblend("replay", recording, "--measure", "nDGC@10")
    assert result.code == 2
    assert "nDGC@10" in result.err


def test_ablate_as_json_has_the_promised_keys(rankblend, recording):
    result = rankblend("ablate", recording, "--json", "--measure", "nDCG@10")
    told = json.loads(result.out)
    keys = {"arm", "measure", "difference", "interval", "p", "queries", "excluded"}
    assert all(keys <= row.keys() for row in told["arms"])
    ran = [row for row in told["arms"] if row["not_run"] is None]
    assert {"without keyword", "zero", "without keywords (store)"} <= {row["arm"] for row in ran}
    assert all(row["p"] > 0 and row["interval"][0] <= row["interval"][1] for row in ran)


def test_ablate_writes_a_report(rankblend, recording, tmp_path):
    page = tmp_path / "report.html"
    result = rankblend("ablate", recording, "--plans", "signals", "--out", str(page))
    assert result.code == 0
    text = page.read_text()
    assert "Leave one signal out" in text
    assert "<svg" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_ablate_with_an_unknown_plan_names_the_nearest(rankblend, recording):
    result = rankblend("ablate", recording, "--plans", "signal")
    assert result.code == 2
    assert "signals" in result.err


def test_compare_corrects_for_what_the_ledger_knows(rankblend, recording, tmp_path):
    ledger = str(tmp_path / "tried.db")
    arguments = ["compare", recording, "--measure", "nDCG@10", "--json", "--ledger", ledger]
    alone = json.loads(rankblend(*arguments, "--profile", "rrf").out)
    rankblend(*arguments, "--profile", "convex", "--profile", "symfonic")
    later = json.loads(rankblend(*arguments, "--profile", "rrf").out)
    assert (alone["tried"], later["tried"]) == (2, 4)
    assert later["family"] > alone["family"]
    assert later["arms"][0]["p"] >= alone["arms"][0]["p"]


def test_report_of_kept_results_has_the_families(rankblend, recording, tmp_path):
    kept, page = tmp_path / "kept.json", tmp_path / "report.csv"
    rankblend("replay", recording, "--profile", "default", "--profile", "rrf", "--out", str(kept))
    assert rankblend("report", str(kept), "--out", str(page)).code == 0
    with page.open(newline="") as file:
        assert {row["arm"] for row in csv.DictReader(file)} == {"rrf"}
    assert rankblend("report", str(kept), "--out", str(tmp_path / "r.md")).code == 0
    assert "| early" in (tmp_path / "r.md").read_text()


def test_report_of_something_else_is_refused(rankblend, tmp_path):
    other = tmp_path / "other.json"
    other.write_text("{}")
    result = rankblend("report", str(other), "--out", str(tmp_path / "r.md"))
    assert result.code == 2
    assert "kept by `rankblend replay --out`" in result.err


def test_gate_passes_the_profile_itself_under_another_name(rankblend, recording, tmp_path):
    same = tmp_path / "same.toml"
    same.write_text('name = "same"\nextends = ["default"]\n')
    result = rankblend("gate", recording, "--candidate", str(same), "--min-effect", "0.01")
    assert result.code == 0
    assert "passed" in result.out


def test_gate_stays_shut_for_a_worse_profile(rankblend, recording, tmp_path):
    worse = tmp_path / "worse.toml"
    worse.write_text(
        'name = "worse"\n[signals.age]\nevidence = "age_updated"\n'
        'curve = { half_life = { days = 3 } }\n[score]\ncompose = "weighted_mean"\n'
        "weights = { age = 1 }\n"
    )
    result = rankblend("gate", recording, "--candidate", str(worse), "--json")
    told = json.loads(result.out)
    assert result.code == 3
    assert told["passed"] is False
    assert told["arms"][0]["verdict"] == "regressed"


def test_fit_writes_a_profile_that_replays(rankblend, recording, tmp_path):
    fitted = tmp_path / "fitted.toml"
    result = rankblend("fit", recording, "--profile", "convex", "--out", str(fitted), "--json",
                       "--folds", "3")  # fmt: skip
    if result.code == 2:  # without vectors convex has nothing to weigh against words
        pytest.fail(result.err)
    told = json.loads(result.out)
    assert abs(sum(told["weights"].values()) - 1) < 1e-9
    replayed = json.loads(rankblend("replay", recording, "--profile", str(fitted), "--json").out)
    assert replayed["profiles"][0]["hash"] == told["hash"]


def test_replay_of_a_reranking_profile_says_that_its_baseline_was_measured(rankblend, recording):
    shown = rankblend("replay", recording, "--profile", "relevance-rerank", "--json")
    told = json.loads(shown.out)
    plain = json.loads(
        rankblend("replay", recording, "--profile", "relevance-baseline", "--json").out
    )
    reranked = json.loads(
        rankblend("replay", recording, "--profile", "relevance-rerank", "--reranked", "--json").out
    )
    assert told["profiles"][0]["nDCG@10"] == plain["profiles"][0]["nDCG@10"]
    assert told["profiles"][0]["hash"] != reranked["profiles"][0]["hash"]
    assert reranked["profiles"][0]["hash"] == load_profile("relevance-rerank").hash
    text = rankblend("replay", recording, "--profile", "relevance-rerank")
    assert "its rerank score does not serve (no reranker was given)" in text.err


def test_ablate_with_shapley_families_and_a_ledger(rankblend, recording, tmp_path):
    page = tmp_path / "r.md"
    done = rankblend("ablate", recording, "--plans", "signals,shapley", "--measure", "nDCG@10",
                     "--ledger", str(tmp_path / "tried.db"), "--out", str(page))  # fmt: skip
    assert done.code == 0, done.err
    text = page.read_text()
    assert "What each signal earns (Shapley values)" in text
    assert "Leave one signal out, by family" in text
    assert " judged |" in text
    assert "The ledger knows" in text


def test_gate_of_the_baseline_against_itself_is_refused(rankblend, recording):
    result = rankblend("gate", recording, "--candidate", "default", "--baseline", "default")
    assert result.code == 2
    assert "is the baseline itself" in result.err


def test_release_refuses_without_a_gain_and_remembers_the_measurement(
    rankblend, recording, tmp_path
):
    ledger = tmp_path / "ledger"
    result = rankblend("release", "--recording", recording, "--reranker", "relevance-rerank",
                       "--ledger", str(ledger), "--least-effect", "0.9")  # fmt: skip
    assert result.code == 3
    assert "refused: nDCG@10" in result.err
    (entry,) = EvidenceLedger(ledger).entries()
    assert entry.evidence.effect < 0.9
    assert "does not admit it" in result.out


def test_release_of_a_profile_that_does_not_rerank_is_refused(rankblend, recording, tmp_path):
    result = rankblend("release", "--recording", recording, "--reranker", "default",
                       "--ledger", str(tmp_path))  # fmt: skip
    assert result.code == 2
    assert "reranking" in result.err


@pytest.mark.slow
def test_record_when_interrupted_leaves_no_file_and_goes_on(command, shared, tmp_path):
    """A real process, Ctrl-C once the first batch is on disk, then the same command again."""
    source, out = str(shared / "data/bfcl_memory"), tmp_path / "bfcl.rec"
    record = [*command, "record", "--dataset", "bfcl", source, "--out", str(out),
               "--embedder", "none", "--profile", "default"]  # fmt: skip
    running = subprocess.Popen(record, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    partial = tmp_path / "bfcl.rec.partial"
    while running.poll() is None and not list(partial.glob("*.arrow")):
        pass
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert running.returncode == 130
    assert not out.exists()
    kept = len(list(partial.glob("*.arrow")))
    assert kept >= 1
    done = subprocess.run(record, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(Recording.open(out)) == 143
    assert [path.name for path in tmp_path.iterdir()] == ["bfcl.rec"]

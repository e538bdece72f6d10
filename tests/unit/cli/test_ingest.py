"""``rankblend ingest``: what is read, what is refused and how it is said."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rankblend.recall import Memory, stored_embedder


def test_ingest_when_lines_are_good_then_they_are_written_and_counted(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines(
        "good.jsonl",
        {"text": "one", "scope": "tenant:a", "id": "m1", "salience": 0.5, "links": ["m2"]},
        "",
        {"text": "two", "scope": "tenant:a/user:1", "id": "m2", "layer": "episodic"},
        {"type": "link", "scope": "tenant:a", "source": "m1", "target": "thing"},
    )
    db = tmp_path / "m.db"
    done = rankblend("ingest", source, "--db", db, "--embedder", "none")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"2 memories and 1 link written to {db} (2 in all, without vectors)\n"
    with Memory.open(db) as memory:
        assert memory.get("m1", scope="tenant:a").salience == 0.5
        assert memory.get("m2", scope="tenant:a/user:1").layer == "episodic"


def test_ingest_when_run_twice_then_memories_are_revised_not_doubled(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines("one.jsonl", {"text": "one", "scope": "tenant:a", "id": "m1"})
    for _ in range(2):
        done = rankblend("ingest", source, "--db", tmp_path / "m.db", "--embedder", "none")
    assert "1 memory written" in done.out
    assert "(1 in all" in done.out


def test_ingest_when_lines_are_malformed_then_each_is_named_by_its_number(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines(
        "bad.jsonl",
        {"text": "fine", "scope": "tenant:a"},
        '{"text": "cut off',
        "",
        "[1, 2]",
        {"type": "mystery"},
        {"text": "", "scope": "tenant:a"},
    )
    done = rankblend("ingest", source, "--db", tmp_path / "m.db")
    assert done.code == 2
    assert done.out == ""
    places = [line.split(": ", 2)[1] for line in done.errors]
    assert places == [f"{source}:{n}" for n in (2, 4, 5, 6)]
    assert not (tmp_path / "m.db").exists()


def test_ingest_when_values_are_wrong_then_every_problem_has_its_line_and_nothing_is_written(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines(
        "wrong.jsonl",
        {"text": "fine", "scope": "tenant:a"},
        "",
        {"text": " ", "scope": "tenant", "salience": 7},
        {"type": "link", "scope": "tenant:a", "source": "x", "target": "", "weight": 0},
        {"text": "saliance is no argument", "scope": "tenant:a", "saliance": 1},
    )
    done = rankblend("ingest", source, "--db", tmp_path / "m.db")
    assert done.code == 2
    found = [line.removeprefix(f"error: {source}:").split(": ")[:2] for line in done.errors]
    assert sorted(found) == [
        ["3", "salience"],
        ["3", "scope"],
        ["3", "text"],
        ["4", "target"],
        ["4", "weight"],
        ["5", "saliance"],
    ]
    assert not (tmp_path / "m.db").exists()


def test_ingest_when_hundreds_of_lines_are_wrong_then_twenty_are_shown_and_the_rest_counted(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    lines = [{"text": "x", "scope": "tenant:a", "salience": 2}] * 600
    done = rankblend("ingest", write_lines("w.jsonl", *lines), "--db", tmp_path / "m.db")
    assert done.code == 2
    assert len(done.errors) == 21
    assert done.errors[-1] == "error: … and 580 more"


def test_ingest_when_a_line_names_no_scope_then_it_asks_for_one_and_takes_the_option(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines("s.jsonl", {"text": "a", "scope": "user:2"}, {"text": "b"}, {"text": "c"})
    db = tmp_path / "m.db"
    done = rankblend("ingest", source, "--db", db)
    assert done.code == 2
    assert [line.split("; ")[0] for line in done.errors] == [
        f"error: {source}:{number}: names no scope" for number in (2, 3)
    ]
    assert "--scope" in done.errors[0]
    done = rankblend("ingest", source, "--db", db, "--scope", "user:1", "--embedder", "none")
    assert done.code == 0
    with Memory.open(db) as memory:
        assert len(memory.recall("", scope="user:1")) == 2
        assert len(memory.recall("", scope="user:2")) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["nowhere", "--dataset", "locomo"], "nowhere: no such file"),
        ([".", "--dataset", "locom"], 'unknown data set "locom": did you mean "locomo"?'),
        (["."], "cannot be read"),
    ],
)
def test_ingest_when_the_source_cannot_be_read_then_it_says_so(
    rankblend: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rankblend("ingest", *arguments, "--db", "m.db")
    assert done.code == 2
    assert len(done.errors) == 1
    assert said in done.errors[0]
    assert not Path("m.db").exists()


def test_ingest_when_the_embedder_is_unknown_then_the_choices_are_shown(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines("one.jsonl", {"text": "one", "scope": "tenant:a"})
    done = rankblend("ingest", source, "--db", tmp_path / "m.db", "--embedder", "word2vec")
    assert done.code == 2
    assert "wordllama" in done.errors[0]


def test_ingest_when_the_folder_of_the_file_is_missing_then_it_says_so(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines("one.jsonl", {"text": "one", "scope": "tenant:a"})
    done = rankblend("ingest", source, "--db", tmp_path / "no" / "m.db", "--embedder", "none")
    assert done.code == 2
    assert "does not exist" in done.errors[0]


def test_ingest_when_given_locomo_then_turns_become_memories_that_can_be_recalled(
    rankblend: Any, shared: Path, tmp_path: Path
) -> None:
    full = shared / "data" / "locomo" / "locomo10.json"
    if not full.is_file():
        pytest.skip("needs ../shared/data/locomo/locomo10.json")
    first = json.loads(full.read_text(encoding="utf-8"))[0]
    kept = ("speaker_a", "speaker_b", "session_1", "session_1_date_time")
    short = {
        "sample_id": "conv",
        "conversation": {name: first["conversation"][name] for name in kept},
        "qa": [],
    }
    source, db = tmp_path / "short.json", tmp_path / "m.db"
    source.write_text(json.dumps([short]), encoding="utf-8")
    done = rankblend(
        "ingest", source, "--db", db, "--dataset", "locomo", "--embedder", "none"
    )  # fmt: skip
    turns = len(first["conversation"]["session_1"])
    assert done.code == 0
    assert f"{turns} memories written" in done.out
    assert "CC BY-NC" in done.err
    scope = "dataset:locomo/conversation:conv"
    found = rankblend("recall", "support group", "--db", db, "--scope", scope, "--reach", "subtree")
    assert found.code == 0
    assert "support group" in found.out


def test_ingest_when_the_file_is_no_locomo_then_it_says_what_it_expected(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines("x.jsonl", {"text": "one", "scope": "tenant:a"})
    done = rankblend("ingest", source, "--db", tmp_path / "m.db", "--dataset", "locomo")
    assert done.code == 2
    assert "this is not LoCoMo" in done.errors[0]


@pytest.mark.slow
def test_ingest_when_interrupted_while_embedding_then_nothing_is_written_and_the_exit_code_is_130(
    command: list[str], environment: Mapping[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("wordllama")
    source, new, old, total = tmp_path / "big.jsonl", tmp_path / "n.db", tmp_path / "o.db", 30_000
    with source.open("w", encoding="utf-8") as file:
        for number in range(total):
            text = f"number {number} " * 20
            file.write(f'{{"id": "m{number}", "text": "{text}", "scope": "user:1"}}\n')
    with Memory.open(old) as memory:
        memory.remember("here before", scope="user:1")
    for db in (new, old):
        screen, terminal = pty.openpty()
        process = subprocess.Popen(
            [*command, "ingest", str(source), "--db", str(db), "--embedder", "wordllama"],
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
            env={**environment, "TERM": "xterm"},
        )
        os.close(terminal)
        shown = _read_until(screen, lambda text: re.search(r"[1-9]\d*/30000", text) is not None)
        process.send_signal(signal.SIGINT)
        shown += _read_until(screen, lambda text: False)
        out, _ = process.communicate(timeout=60)
        os.close(screen)
        assert process.returncode == 130
        assert out == ""
        assert "interrupted; nothing half-written was kept" in shown
        assert "Traceback" not in shown
    assert not new.exists()
    with Memory.open(old) as memory:
        assert len(memory) == 1
    assert stored_embedder(old) is None


def test_ingest_when_a_link_or_embedding_fails_then_no_file_is_left(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines(
        "v.jsonl",
        {"type": "rankblend", "format": 1, "embedder": "other/2", "dimension": 2},
        {"text": "one", "scope": "tenant:a", "vector": [1, 0]},
    )
    db = tmp_path / "m.db"
    done = rankblend("ingest", source, "--db", db, "--embedder", "wordllama")
    assert done.code == 1
    assert "other/2" in done.errors[0]
    assert list(tmp_path.glob("m.db*")) == []


def test_ingest_when_an_export_of_an_unknown_embedder_is_read_then_it_is_moved_as_it_is(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines(
        "v.jsonl",
        {"type": "rankblend", "format": 1, "embedder": "other/2", "dimension": 2},
        {"text": "one", "scope": "tenant:a", "vector": [1, 0]},
        {"text": "two", "scope": "tenant:a"},
    )
    db = tmp_path / "m.db"
    for _ in range(2):
        done = rankblend("ingest", source, "--db", db)
        assert done.code == 0
        assert "without vectors" not in done.out
    assert stored_embedder(db) == "other/2"


def _read_until(screen: int, enough: Callable[[str], bool]) -> str:
    """What a terminal shows, until it is enough or the program has ended."""
    shown = b""
    while not enough(shown.decode("utf-8", "replace")):
        try:
            piece = os.read(screen, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    return shown.decode("utf-8", "replace")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "\ufeff\r\n"])
def test_ingest_when_there_is_nothing_in_the_file_then_no_database_is_made(
    rankblend: Any, tmp_path: Path, content: str
) -> None:
    source, db = tmp_path / "empty.jsonl", tmp_path / "m.db"
    source.write_text(content, encoding="utf-8", newline="")
    done = rankblend("ingest", source, "--db", db, "--embedder", "none")
    assert done.code == 2
    assert "there is nothing in it" in done.errors[0]
    assert not db.exists()


def test_ingest_when_the_source_is_a_dash_then_standard_input_is_read(
    program: Any, tmp_path: Path
) -> None:
    db = tmp_path / "m.db"
    line = '{"text": "one\u2028line", "scope": "tenant:acme", "id": "a"}'
    given = ["ingest", "-", "--db", db, "--embedder", "none"]
    done = program(*given, input=f"\ufeff{line}\r\n{line}\r\n")
    assert (done.code, done.err) == (0, "")
    done = program(*given, input="not JSON\n")
    assert done.code == 2
    assert ":1: expected a JSON object" in done.errors[0]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
def test_ingest_when_a_text_holds_another_separator_then_it_is_one_line(
    rankblend: Any, tmp_path: Path, separator: str, packed: bool
) -> None:
    source, db = tmp_path / "s.jsonl", tmp_path / "m.db"
    content = f'{{"text": "a{separator}b", "scope": "tenant:acme", "id": "x"}}\r\n'.encode(
        "utf-8-sig"
    )
    source.write_bytes(gzip.compress(content) if packed else content)
    assert rankblend("ingest", source, "--db", db, "--embedder", "none").code == 0
    with Memory.open(db) as memory:
        assert memory.get("x", scope="tenant:acme").text == f"a{separator}b"

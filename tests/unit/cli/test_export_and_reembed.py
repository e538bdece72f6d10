"""``rankblend export`` and ``rankblend reembed``."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rankblend.embedders import from_callable
from rankblend.reasonlets import (
    Capture,
    Graph,
    Node,
    Outcome,
    Provenance,
    ReasonletMemory,
    SqliteReasonletStore,
    SyncReasonletMemory,
)
from rankblend.recall import Memory

SCOPE = "tenant:acme"


def fill(db: Path) -> None:
    with Memory.open(db) as memory:
        memory.remember("tea is at four", scope=SCOPE, id="tea", at="2026-01-01T00:00:00+00:00")
        memory.remember(
            "tea is at five",
            scope=SCOPE,
            id="tea",
            at="2026-02-01T00:00:00+00:00",
            salience=0.25,
            vector=[3.0, 4.0],
            metadata={"room": "é"},
            links=["kitchen"],
        )
        memory.link("kitchen", "tea", scope=SCOPE, kind="serves", weight=0.5)
        memory.reinforce("tea", scope=SCOPE)


def test_export_when_read_back_then_the_second_export_is_equal(
    rankblend: Any, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    fill(first)
    done = rankblend("export", "--db", first, "--out", tmp_path / "first.jsonl")
    assert (done.code, done.out) == (0, "")
    assert "lines written" in done.err
    done = rankblend(
        "ingest", tmp_path / "first.jsonl", "--db", second, "--embedder", "none"
    )  # fmt: skip
    assert done.code == 0
    assert rankblend("export", "--db", second, "--out", tmp_path / "second.jsonl").code == 0
    before, after = (
        (tmp_path / name).read_text(encoding="utf-8") for name in ("first.jsonl", "second.jsonl")
    )
    assert before == after
    kinds = [json.loads(line)["type"] for line in before.splitlines()]
    assert kinds == ["rankblend", "memory", "memory", "link"]


@pytest.mark.parametrize("out", [".", "nowhere/x.jsonl"])
def test_export_when_the_target_is_no_file_then_it_says_so(
    rankblend: Any, notes: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(notes.parent)
    done = rankblend("export", "--db", notes, "--out", out)
    assert done.code == 2
    assert "--out: expected a file in an existing folder" in done.errors[0]


@pytest.mark.parametrize(
    "arguments", [["export", "--out", "x.jsonl"], ["reembed", "--embedder", "wordllama"]]
)
def test_command_when_the_file_is_missing_then_none_is_made(
    rankblend: Any, tmp_path: Path, arguments: list[str]
) -> None:
    db = tmp_path / "none.db"
    done = rankblend(*arguments, "--db", db)
    assert done.code == 2
    assert "no such file" in done.errors[0]
    assert not db.exists()


@pytest.mark.slow
@pytest.mark.parametrize("there", [False, True])
def test_export_when_interrupted_then_no_file_appears(
    environment: Mapping[str, str], tmp_path: Path, there: bool
) -> None:
    db, out = tmp_path / "m.db", tmp_path / "out.jsonl"
    with Memory.open(db) as memory:
        memory.remember_many(
            {"id": f"m{number}", "scope": SCOPE, "text": "word " * 200} for number in range(2000)
        )
    if there:
        out.write_text("as before", encoding="utf-8")
    # Ctrl-C comes with the thousandth line.
    code = (
        "import itertools, json, signal, sys\n"
        "dumps, count = json.dumps, itertools.count(1)\n"
        "def until_then(*values, **options):\n"
        "    if next(count) == 1000: signal.raise_signal(signal.SIGINT)\n"
        "    return dumps(*values, **options)\n"
        "json.dumps = until_then\n"
        "from rankblend.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "export", "--db", str(db), "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted; nothing half-written was kept\n"
    left = {path.name for path in tmp_path.iterdir()} - {"m.db", "m.db-wal", "m.db-shm"}
    assert left == ({"out.jsonl"} if there else set())
    if there:
        assert out.read_text(encoding="utf-8") == "as before"


@pytest.mark.slow
def test_export_when_a_pipe_is_interrupted_then_the_pipe_stays(
    command: list[str], environment: Mapping[str, str], tmp_path: Path
) -> None:
    db, out = tmp_path / "m.db", tmp_path / "pipe"
    with Memory.open(db) as memory:
        memory.remember_many(
            {"id": f"m{number}", "scope": SCOPE, "text": "word " * 200} for number in range(2000)
        )
    os.mkfifo(out)
    process = subprocess.Popen(
        [*command, "export", "--db", str(db), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    # The export writes into a pipe that nobody empties: it stands still in the middle.
    with out.open("rb", buffering=0) as pipe:
        assert pipe.read(10) == b'{"type": "'
        process.send_signal(signal.SIGINT)
        while pipe.read(65_536):  # what was already on its way
            pass
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "interrupted; nothing half-written was kept\n"
    assert stat.S_ISFIFO(out.stat().st_mode)


def test_reembed_then_similarity_is_there(rankblend: Any, notes: Path) -> None:
    arguments = ("recall", "money back", "--db", notes, "--scope", SCOPE, "--json")
    before = json.loads(rankblend(*arguments, "--profile", "crewai").out)
    assert all("similarity" not in match["signals"] for match in before["matches"])
    done = rankblend("reembed", "--db", notes, "--embedder", "wordllama")
    assert (done.code, done.out) == (0, "3 memories embedded anew\n")
    after = json.loads(rankblend(*arguments, "--profile", "crewai").out)
    assert all("similarity" in match["signals"] for match in after["matches"])


@pytest.mark.parametrize(
    ("embedder", "said"),
    [("none", "expected an embedder, not none"), ("onnx:a.onnx:b.json", "no such file: 'a.onnx'")],
)
def test_reembed_when_the_embedder_cannot_be_used_then_nothing_changes(
    rankblend: Any, notes: Path, embedder: str, said: str
) -> None:
    done = rankblend("reembed", "--db", notes, "--embedder", embedder)
    assert done.code == 2
    assert said in done.err
    with Memory.open(notes) as memory:
        assert len(memory) == 3


def test_reembed_when_the_file_holds_procedures_too_then_all_of_it_is_moved_and_embedded_anew(
    rankblend: Any, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    fill(first)
    with SyncReasonletMemory(
        ReasonletMemory(
            from_callable(lambda texts: [[1.0, 2.0]] * len(texts), name="two"),
            SqliteReasonletStore.open(first),
        )
    ) as procedures:
        graph, agent = Graph([Node("look", "tool")]), Provenance("agent")
        procedures.remember(Capture(SCOPE, "When is tea?", graph, Outcome(True), agent))
    done = rankblend("reembed", "--db", first, "--embedder", "wordllama")
    assert (done.code, done.out) == (0, "1 memory and 1 procedure embedded anew\n")
    assert rankblend("export", "--db", first, "--out", tmp_path / "all.jsonl").code == 0
    done = rankblend("ingest", tmp_path / "all.jsonl", "--db", second)
    assert done.out.startswith("2 memories and 1 link and 1 procedure written")
    for db in (first, second):
        asked = ("When is tea?", "--db", db, "--scope", SCOPE)
        done = rankblend("reasonlets", "recall", *asked, "--json")
        (match,) = json.loads(done.out)
        assert match["score"]["similarity"] == pytest.approx(1.0)
        done = rankblend("reasonlets", "recall", *asked, "--embedder", "wordllama:64")
        assert done.code == 2
        assert "length" in done.errors[0]

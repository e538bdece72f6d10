"""Several processes on one file of procedures, and processes that are killed in the middle."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from processes import read_only

import rankblend
from rankblend.reasonlets import SqliteReasonletStore
from rankblend.stores.procedures import Entry

OLD = Path(__file__).resolve().parents[1] / "fixtures" / "0.1.0"
SOURCES = Path(rankblend.__file__).resolve().parents[1]
PROCESSES, TASKS, ROUNDS = 4, 8, 5

WORKER = """
import asyncio, sys
from rankblend.embedders import from_callable
from rankblend.reasonlets import *

path, parent, rounds, tasks, me = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
SCOPE = "tenant:acme"

def capture(name, parent=None):
    made = Graph([Node(name, "tool")])
    return Capture(SCOPE, "How?", made, Outcome(True), Provenance("worker"), parent_id=parent)

async def work(memory, task):
    for turn in range(rounds):
        name = f"{me}-{task}-{turn}"
        version = await memory.remember(capture(name, parent))
        print("version", version.version, version.execution, flush=True)
        ran = await memory.record_execution(
            SCOPE, parent, outcome=Outcome(False), provenance=Provenance("worker")
        )
        print("run", ran.id, ran.execution, flush=True)
        await memory.record_feedback(
            SCOPE, ran.execution, utility=1, correctness=1, reusability=1, worked=turn % 2 == 0
        )
        print("feedback", ran.id, ran.execution, flush=True)
        matches = await memory.recall("How?", scope=SCOPE, top=50)
        assert len(matches) == 50 or version.id in {m.reasonlet.id for m in matches}

async def main():
    store = SqliteReasonletStore.open(path, busy_timeout=120)
    embed = from_callable(lambda texts: [[1.0, 0.0]] * len(texts), name="one vector")
    async with ReasonletMemory(embed, store) as memory:
        if parent == "-":
            print((await memory.remember(capture("root"))).id)
        else:
            await asyncio.gather(*(work(memory, task) for task in range(tasks)))

asyncio.run(main())
"""


def worker(path: Path, parent: str, *numbers: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), parent, *map(str, numbers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )


def root(path: Path) -> str:
    out, errors = worker(path, "-", 0, 0, 0).communicate(timeout=120)
    assert out, errors
    return out.strip()


def entries(path: Path) -> dict[str, Entry]:
    async def main() -> dict[str, Entry]:
        store = SqliteReasonletStore.open(path)
        found = await store.dump()
        await store.aclose()
        return {entry.reasonlet.id: entry for entry in found}

    return asyncio.run(main())


def check_counters(found: dict[str, Entry]) -> None:
    """Every counter is what the stored runs add up to."""
    for entry in found.values():
        verdicts = [
            (stored.feedback and stored.feedback.worked, stored.run.outcome.success)
            for stored in entry.runs
        ]
        worked = [agent if human is None else human for human, agent in verdicts]
        judged = [human is not None for human, _ in verdicts]
        told = entry.reasonlet.metrics
        assert (told.runs, told.successes) == (len(worked), sum(worked))
        assert (told.judged_runs, told.judged_successes) == (
            sum(judged), sum(human is True for human, _ in verdicts)
        )  # fmt: skip


@pytest.mark.slow
def test_processes_when_many_tasks_write_then_no_run_is_lost_and_no_number_used_twice(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"
    parent = root(path)
    running = [worker(path, parent, ROUNDS, TASKS, me) for me in range(PROCESSES)]
    said = []
    for process in running:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        said += [line.split() for line in out.splitlines()]
    writes = PROCESSES * TASKS * ROUNDS
    assert Counter(kind for kind, _, _ in said) == dict.fromkeys(
        ("version", "run", "feedback"), writes
    )
    found = entries(path)
    check_counters(found)
    numbers = sorted(int(entry.reasonlet.version[2:]) for entry in found.values())
    assert numbers == list(range(writes + 1))
    metrics = found[parent].reasonlet.metrics
    worked = PROCESSES * TASKS * -(-ROUNDS // 2)
    assert (metrics.runs, metrics.judged_runs) == (1 + writes, writes)
    assert (metrics.successes, metrics.judged_successes) == (1 + worked, worked)
    executions = {stored.id for entry in found.values() for stored in entry.runs}
    assert {execution for _, _, execution in said} <= executions
    assert len(executions) == 1 + 2 * writes


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 7, 40])
def test_process_when_killed_then_what_it_acknowledged_is_there_and_counters_agree(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "r.db"
    parent = root(path)
    process = worker(path, parent, 1000, TASKS, 0)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().split() for _ in range(lines)]
    process.kill()
    process.communicate()
    found = entries(path)
    check_counters(found)
    runs = {stored.id: stored for entry in found.values() for stored in entry.runs}
    for kind, _, execution in acknowledged:
        assert execution in runs
        assert kind != "feedback" or runs[execution].feedback is not None
    numbers = sorted(int(entry.reasonlet.version[2:]) for entry in found.values())
    assert numbers == list(range(len(numbers)))
    out, errors = worker(path, parent, 1, 2, 1).communicate(timeout=120)  # and on it goes
    assert len(out.splitlines()) == 6, errors


READER = """
import sys
from rankblend.embedders import from_callable
from rankblend.reasonlets import *

embed = from_callable(lambda texts: [[1.0] * 16] * len(texts), name="one vector")
store = SqliteReasonletStore.open(sys.argv[1])
with SyncReasonletMemory(ReasonletMemory(embed, store)) as memory:
    found = memory.statistics()
    print(found.active + found.pending, found.stored_runs)
    try:
        memory.prune(keep=0)
    except ReasonletUnavailableError as error:
        print(error.detail)
    print(memory.statistics() == found)
"""


@pytest.mark.parametrize("version", ["0.1.0", "now"])
def test_file_when_it_cannot_be_written_then_procedures_are_read_and_writes_are_refused(
    tmp_path: Path, version: str
) -> None:
    """A file of an earlier version is read, too: it is brought up to date in memory only."""
    path = tmp_path / "locked" / "r.db"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress((OLD / "memory.db.gz").read_bytes()))
    if version == "now":
        entries(path)
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    done = subprocess.run(
        [*read_only(path.parent), sys.executable, "-c", READER, str(path)],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )  # fmt: skip
    kept = (OLD / "procedures.jsonl").read_text("utf-8")
    counts = " ".join(str(kept.count(f'"type": "{kind}"')) for kind in ("reasonlet", "run"))
    assert done.stdout.splitlines() == [counts, "CatalogReadOnlyError", "True"], done.stderr
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before

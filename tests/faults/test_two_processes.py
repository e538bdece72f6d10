"""Several processes on one file: one writer waits or is told, readers go on and see the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from processes import PATIENCE, child, finished, said, tell
from scenario import START, USER, agree, hashed, image, opened, steps

import rankblend as rb
from rankblend.errors import CatalogBusyError, EmbedderMismatchError
from rankblend.relevance import Scope
from rankblend.stores import Key


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        for _ in steps(memory):
            pass
    return path


@contextmanager
def holder(path: Path) -> Iterator[Popen[str]]:
    """Another process that holds the file for writing until it is sent a line."""
    process = child("hold", path)
    assert said(process) == "holding"
    try:
        yield process
    finally:
        process.communicate("\n\n", timeout=PATIENCE)


def test_write_when_another_process_writes_too_long_then_busy_and_reads_go_on(
    written: Path, tmp_path: Path
) -> None:
    with opened(written, busy_timeout=0.05) as memory, holder(written):
        before = image(memory)
        with pytest.raises(CatalogBusyError, match="longer busy_timeout") as busy:
            memory.remember("refund of today", scope=USER, id="new")
        assert "refund" not in str(busy.value)
        assert image(memory) == before
        agree(memory, tmp_path)
        with opened(written) as another:
            assert image(another) == before
        # The result is not lost because its use could not be counted.
        found = memory.recall("refund number", scope=USER, reinforce=True)
        assert "n0" in found.ids
        assert "uses were not counted" in found.trace.notes[-1]


def test_close_when_another_process_writes_then_it_does_not_wait(written: Path) -> None:
    with holder(written):
        memory = opened(written, busy_timeout=10_000.0)
        memory._engine.catalog.discard_cache("keywords")  # so that there is something to keep
        memory.close()
    with opened(written) as memory:
        assert memory.get("other", scope=USER).text == "refund of the other"


def test_write_when_another_process_writes_then_it_waits_and_keeps_no_reader_waiting(
    written: Path, tmp_path: Path
) -> None:
    with opened(written, busy_timeout=60.0) as memory, holder(written) as process:
        catalog = memory._engine.catalog
        started = threading.Event()
        writer = catalog._database._writer
        assert writer is not None
        writer.set_trace_callback(lambda _: started.set())
        failed: list[BaseException] = []

        def write() -> None:
            try:
                memory.remember("refund of mine", scope=USER, id="mine", salience=0.9)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        assert started.wait(60)
        # The write is under way and cannot end, and yet this thread reads the file.
        assert catalog.get(Key(Scope.parse(USER), "n0")) is not None
        assert len(catalog) == 8
        assert thread.is_alive()
        tell(process)
        thread.join(60)
        assert failed == []
        assert said(process) == "released"
        assert {"other", "mine"} <= set(memory.recall("refund of", scope=USER, top=50).ids)
        agree(memory, tmp_path)


def test_recall_when_another_process_wrote_then_it_is_seen_at_once(
    written: Path, tmp_path: Path
) -> None:
    with opened(written) as mine, opened(written) as theirs:
        theirs.remember("refund number n9", scope=USER, id="n9", links=["n0"])
        assert "n9" in mine.recall("n9", scope=USER).ids
        mine.forget("n9", scope=USER)
        assert "n9" not in theirs.recall("n9", scope=USER).ids
        theirs.link("n0", "n3", scope=USER, kind="equivalent", verified=True)
        mine.reinforce("n0", scope=USER)
        agree(mine, tmp_path)
        agree(theirs, tmp_path)


def test_recall_when_another_process_embedded_anew_then_told_and_the_words_still_answer(
    written: Path,
) -> None:
    with opened(written) as mine, opened(written) as theirs:
        theirs.reembed(hashed(4))
        found = mine.recall("refund number", scope=USER)
        assert "n0" in found.ids
        assert [(f.store, f.kind) for f in found.trace.failures] == [
            ("embedder", "EmbedderMismatchError")
        ]
        with pytest.raises(EmbedderMismatchError, match="reembed"):
            mine.remember("refund", scope=USER, id="new")


def write_together(path: Path, times: int) -> None:
    """Two processes create, write, forget and recall in one file, and all of it is there."""
    processes = [child("write_many", path, name, times) for name in "ab"]
    for process in processes:
        finished(process)
    with opened(path) as memory:
        kept = {f"{name}{n}" for name in "ab" for n in range(times) if n % 4 != 2}
        held = {record.id for record in memory._engine.catalog.iter_records()}
        assert held == kept | {"shared"}
        revisions = memory._engine.catalog.revisions(Key(Scope.parse(USER), "shared"))
        assert len(revisions) == 2 * times
        agree(memory, path.parent)
    assert sorted(each.name for each in path.parent.iterdir()) == ["export.jsonl", "m.db"]


def test_two_processes_when_both_create_and_write_then_nothing_is_lost(tmp_path: Path) -> None:
    write_together(tmp_path / "m.db", 4)


@pytest.mark.slow
def test_two_processes_when_both_write_for_long_then_nothing_is_lost(tmp_path: Path) -> None:
    write_together(tmp_path / "m.db", 100)


def read_beside(path: Path, *, readers: int, rounds: int) -> None:
    """Readers of other processes see only whole pairs, while writers are killed again and again."""
    opened(path).close()
    reading = [child("read_many", path) for _ in range(readers)]
    assert [said(process) for process in reading] == ["reading"] * readers
    held = 0
    for _ in range(rounds):
        writer = child("write_pairs", path, held)
        for _ in range(3):
            held = int(said(writer))
        writer.kill()
        rest = writer.communicate(timeout=PATIENCE)[0].split()
        held = int(rest[-1]) if rest else held
    for process in reading:
        tell(process)
    for process in reading:
        seen, recalls = map(int, finished(process)[-1].split())
        assert recalls >= 1
        assert seen <= 2 * held + 2
    with opened(path) as memory:
        assert len(memory) in (2 * held, 2 * held + 2)
        agree(memory, path.parent)


def test_readers_when_a_writer_is_killed_then_they_see_whole_writes(tmp_path: Path) -> None:
    read_beside(tmp_path / "m.db", readers=1, rounds=1)


@pytest.mark.slow
def test_readers_when_writers_are_killed_again_and_again_then_they_see_whole_writes(
    tmp_path: Path,
) -> None:
    read_beside(tmp_path / "m.db", readers=2, rounds=12)


def test_as_of_when_another_process_writes_into_the_past_then_it_is_seen(written: Path) -> None:
    with opened(written) as mine, opened(written) as theirs:
        then = START.replace(day=2)
        assert "late" not in mine.recall("refund late", scope=USER, as_of=then).ids
        theirs.remember("refund late", scope=USER, id="late", at=START)
        assert "late" in mine.recall("refund late", scope=USER, as_of=then).ids
        assert isinstance(mine, rb.Memory)

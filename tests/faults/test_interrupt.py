"""Interrupted by Ctrl-C: all or nothing was written, and the memory goes on as if nothing were."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from processes import Forks
from scenario import START, USER, agree, hashed, image, opened, steps

import rankblend as rb

PACKAGE = str(Path(rb.__file__).parent)

ACTS: dict[str, Callable[[rb.Memory], object]] = {
    "remember": lambda m: m.remember("refund of today", scope=USER, id="today", links=["n0"]),
    "remember_many": lambda m: m.remember_many(
        {"text": f"refund number n{n} anew", "scope": USER, "id": f"n{n}"} for n in range(12)
    ),
    "forget": lambda m: m.forget(["n0", "n3"], scope=USER),
    "reinforce": lambda m: m.reinforce(["n0", "n3"], scope=USER),
    "link": lambda m: m.link("n0", "order", scope=USER, kind="equivalent", verified=True),
    "unlink": lambda m: m.unlink("n4", "n5", scope=USER, kind="equivalent"),
    "reembed": lambda m: m.reembed(hashed(4)),
    "recall": lambda m: m.recall("refund number", scope=USER),
    "as_of": lambda m: m.recall("refund number", scope=USER, as_of=START),
}


@contextmanager
def interrupted(at: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt before the ``at``-th line of rankblend that is run, as a signal may.

    The list that is given counts the lines.
    """
    passed = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            return trace if frame.f_code.co_filename.startswith(PACKAGE) else None
        if event == "line":
            passed[0] += 1
            if passed[0] == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield passed
    finally:
        sys.settrace(before)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[], rb.Memory]]:
    memories: list[rb.Memory] = []

    def make() -> rb.Memory:
        memory = opened(":memory:")
        memories.append(memory)
        for _ in steps(memory):
            pass
        memory.recall("refund", scope=USER)
        return memory

    yield make
    for memory in memories:
        memory.close()


def lines_of(act: str, made: Callable[[], rb.Memory]) -> tuple[int, list[str]]:
    """How many lines an act runs once everything is imported, and what it leaves."""
    ACTS[act](made())
    memory = made()
    with interrupted(0) as lines:
        ACTS[act](memory)
    return lines[0], image(memory)


def check_interrupted(
    act: str, at: int, after: list[str], made: Callable[[], rb.Memory], folder: Path
) -> None:
    memory = made()
    before = image(memory)
    with interrupted(at), pytest.raises(KeyboardInterrupt):
        ACTS[act](memory)
    assert image(memory) in (before, after)
    # Whoever interrupts it knows which embedder the file is of when it is opened the next time.
    memory._embedder = hashed(8 if '"dimension": 8' in image(memory)[0] else 4)
    agree(memory, folder)
    memory.remember("refund goes on", scope=USER, id="on")
    agree(memory, folder)


@pytest.mark.parametrize("act", ACTS)
def test_interrupted_when_it_goes_on_then_all_or_nothing_and_every_store_agrees(
    made: Callable[[], rb.Memory], tmp_path: Path, act: str
) -> None:
    lines, after = lines_of(act, made)
    for at in np.linspace(1, 0.95 * lines, 2).astype(int).tolist():
        check_interrupted(act, at, after, made, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
def test_interrupted_at_many_lines_when_it_goes_on_then_every_store_agrees(
    made: Callable[[], rb.Memory], tmp_path: Path, act: str
) -> None:
    lines, after = lines_of(act, made)
    for at in np.linspace(1, 0.98 * lines, 60).astype(int).tolist():
        check_interrupted(act, at, after, made, tmp_path)


@pytest.mark.parametrize("at", [0.4, 0.9])
def test_interrupted_when_closed_next_then_what_was_kept_for_opening_agrees(
    tmp_path: Path, at: float, made: Callable[[], rb.Memory]
) -> None:
    path = tmp_path / "m.db"
    lines, _ = lines_of("remember_many", made)
    memory = opened(path)
    for _ in steps(memory):
        pass
    with interrupted(int(at * lines)), pytest.raises(KeyboardInterrupt):
        ACTS["remember_many"](memory)
    memory.close()
    with opened(path) as memory:
        agree(memory, tmp_path)


@pytest.mark.parametrize("at", [0.3, 0.9])
def test_interrupted_when_opening_then_the_file_opens_again(tmp_path: Path, at: float) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        for _ in steps(memory):
            pass
        before = image(memory)
    opened(path).close()
    with interrupted(0) as lines:
        opened(path).close()
    with interrupted(int(at * lines[0])), pytest.raises(KeyboardInterrupt):
        opened(path).close()
    with opened(path) as memory:
        assert image(memory) == before
        agree(memory, tmp_path)


def check_signalled(forks: Forks, folder: Path, after: int) -> None:
    path = folder / "m.db"
    lines, _ = forks.run("write_in_bulk", path, kill_after=after, by=signal.SIGINT)
    said = [line for line in lines if line.startswith("interrupted")]
    batches = sum(line.isdigit() for line in lines)
    assert len(said) == 1, lines
    with opened(path) as memory:
        held = sum(record.id.startswith("bulk") for record in memory._engine.catalog.iter_records())
        assert held in (100 * batches, 100 * batches + 100)
        assert memory.get("on", scope=USER).text == "refund goes on"
        agree(memory, folder)
    for left in folder.glob("m.db*"):
        left.unlink()


def test_bulk_when_a_signal_interrupts_it_then_whole_batches_are_there_and_it_goes_on(
    tmp_path: Path, forks: Forks
) -> None:
    for after in (1, 3):
        check_signalled(forks, tmp_path, after)


@pytest.mark.slow
def test_bulk_when_signals_interrupt_it_again_and_again_then_whole_batches_are_there(
    tmp_path: Path, forks: Forks, rng: np.random.Generator
) -> None:
    for after in rng.integers(1, 9, 60).tolist():
        check_signalled(forks, tmp_path, after)

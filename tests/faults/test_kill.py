"""Killed while writing: all that was acknowledged is there, nothing is there by half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from processes import Forks
from scenario import USER, agree, image, opened, steps


@pytest.fixture(scope="module")
def images() -> list[list[str]]:
    """What the memory holds before the first step and after each one."""
    with opened(":memory:") as memory:
        return [image(memory), *(image(memory) for _ in steps(memory))]


def points(forks: Forks, folder: Path, by: str) -> int:
    """How many statements (or instructions) all steps take, opening and closing included."""
    lines, killed = forks.run("write_all", folder / "count.db", 0, by)
    assert not killed
    return int(lines[-1].split()[1])


def check_after_kill(path: Path, lines: list[str], images: list[list[str]]) -> None:
    """All that was acknowledged, at most the step in hand besides, and everything agrees."""
    acknowledged = sum(line.isdigit() for line in lines)
    with opened(path) as memory:
        assert image(memory) in images[acknowledged : acknowledged + 2]
        memory.remember("refund goes on", scope=USER, id="on")
        assert "on" in memory.recall("refund goes on", scope=USER, top=50).ids
        agree(memory, path.parent)
    for left in path.parent.glob(f"*{path.name}*"):
        left.unlink()


def check_killed_at(
    moments: list[int], by: str, forks: Forks, folder: Path, images: list[list[str]]
) -> None:
    for kill_at in moments:
        path = folder / "m.db"
        lines, killed = forks.run("write_all", path, kill_at, by)
        assert killed
        check_after_kill(path, lines, images)


def test_killed_before_some_statements_when_reopened_then_all_acknowledged_and_nothing_half(
    forks: Forks, tmp_path: Path, images: list[list[str]]
) -> None:
    last = points(forks, tmp_path, "statement")
    assert last > 150
    moments = np.linspace(1, last, 4).astype(int).tolist()
    check_killed_at(moments, "statement", forks, tmp_path, images)


@pytest.mark.slow
def test_killed_before_every_statement_when_reopened_then_all_acknowledged_and_nothing_half(
    forks: Forks, tmp_path: Path, images: list[list[str]]
) -> None:
    last = points(forks, tmp_path, "statement")
    check_killed_at(list(range(1, last + 1)), "statement", forks, tmp_path, images)


@pytest.mark.slow
def test_killed_amid_hundreds_of_statements_when_reopened_then_nothing_is_half(
    forks: Forks, tmp_path: Path, images: list[list[str]], rng: np.random.Generator
) -> None:
    last = points(forks, tmp_path, "instruction")
    moments = rng.choice(np.arange(1, last + 1), size=150, replace=False).tolist()
    check_killed_at(moments, "instruction", forks, tmp_path, images)


def check_pairs(path: Path, lines: list[str]) -> None:
    """Each pair acknowledged is there, the one in hand whole or not at all."""
    acknowledged = int(lines[-1]) if lines else 0
    with opened(path) as memory:
        memory._engine.catalog.check()
        assert len(memory) in (2 * acknowledged, 2 * acknowledged + 2)
        ids = {record.id for record in memory._engine.catalog.iter_records()}
        assert ids == {f"{side}{n}" for side in ("left", "right") for n in range(len(memory) // 2)}
        found = memory.recall("left right", scope="tenant:acme", top=10**6, strict=True)
        assert found.trace.pool >= min(len(memory), 50)
    for left in path.parent.glob(f"*{path.name}*"):
        left.unlink()


@pytest.mark.parametrize("lines", [0, 1, 20])
def test_killed_from_outside_when_reopened_then_nothing_acknowledged_is_lost(
    forks: Forks, tmp_path: Path, lines: int
) -> None:
    acknowledged, killed = forks.run("write_pairs", tmp_path / "m.db", kill_after=lines)
    assert killed
    check_pairs(tmp_path / "m.db", acknowledged)


@pytest.mark.slow
def test_killed_from_outside_hundreds_of_times_when_reopened_then_nothing_acknowledged_is_lost(
    forks: Forks, tmp_path: Path, rng: np.random.Generator
) -> None:
    for lines in rng.integers(0, 20, 150).tolist():
        acknowledged, killed = forks.run("write_pairs", tmp_path / "m.db", kill_after=lines)
        assert killed
        check_pairs(tmp_path / "m.db", acknowledged)


@pytest.mark.slow
def test_killed_again_and_again_in_one_file_when_reopened_then_it_only_grows(
    forks: Forks, tmp_path: Path, rng: np.random.Generator
) -> None:
    path = tmp_path / "m.db"
    held = 0
    for lines in rng.integers(1, 12, 60).tolist():
        acknowledged, killed = forks.run("write_pairs", path, held, kill_after=lines)
        assert killed
        last = int(acknowledged[-1])
        with opened(path) as memory:
            assert len(memory) in (2 * last, 2 * last + 2)
            held = len(memory) // 2
    with opened(path) as memory:
        agree(memory, tmp_path)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_log_when_its_end_was_never_on_the_disk_then_the_writes_before_it_are_whole(
    forks: Forks, tmp_path: Path, images: list[list[str]], kept: float
) -> None:
    # What a power cut may leave of a file system that does not keep its promises.
    path = tmp_path / "m.db"
    forks.run("write_all", path, points(forks, tmp_path, "statement") - 30)
    path.with_name("m.db-shm").unlink()
    with path.with_name("m.db-wal").open("r+b") as log:
        size = log.seek(0, 2)
        log.truncate(int(size * kept))
    with opened(path) as memory:
        assert image(memory) in images
        agree(memory, tmp_path)

"""A child that is forked while other threads are at work starts afresh, or is told so: never stuck."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import child, finished


@pytest.mark.parametrize("where", ["file", ":memory:"])
@pytest.mark.parametrize("busy", ["recalling", "writing", "both", "slow store", "as of"])
def test_memory_when_forked_while_threads_are_busy_then_the_child_goes_on_by_itself(
    tmp_path: Path, where: str, busy: str
) -> None:
    path = tmp_path / "m.db" if where == "file" else where
    lines = finished(child("fork_memory", path, busy))
    assert lines[:-1] == ["done"] * 6, lines
    # The parent noticed nothing, and what the children wrote into its file is there.
    assert lines[-1] == ("parent 6" if where == "file" else "parent 0")


@pytest.mark.parametrize("where", ["file", ":memory:"])
def test_memory_of_procedures_when_forked_then_the_child_goes_on_by_itself(
    tmp_path: Path, where: str
) -> None:
    path = tmp_path / "r.db" if where == "file" else where
    assert finished(child("fork_procedures", path)) == ["done"] * 6


def test_waiting_for_threads_when_forked_then_the_child_makes_its_own(tmp_path: Path) -> None:
    assert finished(child("fork_waiting", tmp_path)) == ["done"]


def test_memory_when_forked_inside_a_write_then_the_child_is_told_at_once(tmp_path: Path) -> None:
    assert finished(child("fork_inside_a_write", tmp_path / "m.db")) == [
        "StoreClosedError", "done", "parent a",
    ]  # fmt: skip

"""A clock that goes backwards, or was wrong for a while: what was written last is what is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from scenario import START, USER, agree, opened, steps

import rankblend as rb
from rankblend.errors import InvalidArgumentError

HOUR, YEAR = timedelta(hours=1), timedelta(days=365)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.parametrize("back", [timedelta(seconds=1), HOUR, 100 * YEAR])
def test_remember_when_the_clock_went_backwards_then_the_last_text_is_the_current_one(
    tmp_path: Path, back: timedelta
) -> None:
    clock = Clock()
    path = tmp_path / "m.db"
    with opened(path, clock=clock) as memory:
        memory.remember("tea is at four", scope=USER, id="tea")
        clock.now -= back
        memory.remember("tea is at five", scope=USER, id="tea")
        assert memory.get("tea", scope=USER).text == "tea is at five"
        memory.remember_many(
            {"text": text, "scope": USER, "id": "tea"} for text in ("tea is at six", "no more tea")
        )
        assert [m.memory.text for m in memory.recall("tea", scope=USER)] == ["no more tea"]
    with opened(path, clock=clock) as memory:
        assert memory.get("tea", scope=USER).text == "no more tea"
        revisions = memory._engine.catalog.iter_records()
        assert [record.text for record in revisions] == ["no more tea"]
        memory.export(tmp_path / "all.jsonl")
        kept = (tmp_path / "all.jsonl").read_text(encoding="utf-8")
        assert all(f"tea is at {hour}" in kept for hour in ("four", "five", "six"))


def test_remember_when_it_says_since_when_then_the_past_is_written_and_the_present_stays(
    tmp_path: Path,
) -> None:
    with opened(":memory:", clock=Clock()) as memory:
        memory.remember("tea is at four", scope=USER, id="tea")
        memory.remember("tea is at three", scope=USER, id="tea", at=START - HOUR)
        assert memory.get("tea", scope=USER).text == "tea is at four"
        then = memory.recall("tea", scope=USER, as_of=START - HOUR / 2)
        assert [match.memory.text for match in then] == ["tea is at three"]


@pytest.mark.parametrize("profile", rb.profile_names())
def test_recall_when_the_clock_went_backwards_then_nothing_is_older_than_new(
    profile: str, tmp_path: Path
) -> None:
    clock = Clock()
    with opened(":memory:", clock=clock) as memory:
        for _ in steps(memory):
            pass
        present = memory.recall("refund number", scope=USER, profile=profile)
        clock.now -= YEAR
        found = memory.recall("refund number", scope=USER, profile=profile, strict=True)
        assert set(found.ids) == set(present.ids)
        for match in found:
            assert 0 <= match.score <= 1
            assert all(0 <= value <= 1 for value in match.signals.present().values())
            assert match.signals.recency in (None, 1.0)
        agree(memory, tmp_path)


def test_reinforce_when_the_clock_went_backwards_then_it_counts_and_the_last_use_stays() -> None:
    clock = Clock()
    with opened(":memory:", clock=clock) as memory:
        memory.remember("refund", scope=USER, id="a")
        memory.reinforce("a", scope=USER)
        clock.now -= YEAR
        memory.reinforce("a", scope=USER)
        assert (memory.get("a", scope=USER).uses, memory.get("a", scope=USER).used) == (2, START)


def test_expiry_when_the_clock_went_backwards_then_it_is_that_of_the_time_asked() -> None:
    clock = Clock()
    with opened(":memory:", clock=clock) as memory:
        memory.remember("refund", scope=USER, id="a", expires=START + HOUR)
        clock.now = START + 2 * HOUR
        assert memory.recall("refund", scope=USER).ids == ()
        clock.now = START
        assert memory.recall("refund", scope=USER).ids == ("a",)


BROKEN: dict[str, Callable[[], object]] = {
    "no time": lambda: None,
    "seconds": lambda: 1.0,
    "naive": lambda: datetime(2026, 1, 1),  # noqa: DTZ001
}


@pytest.mark.parametrize("broken", BROKEN)
def test_memory_when_the_clock_tells_no_time_then_refused_and_nothing_is_written(
    broken: str,
) -> None:
    calls: list[Callable[[rb.Memory], object]] = [
        lambda m: m.remember("refund", scope=USER),
        lambda m: m.recall("refund", scope=USER),
        lambda m: m.reinforce("a", scope=USER),
    ]
    with opened(":memory:", clock=BROKEN[broken]) as memory:
        for call in calls:
            with pytest.raises(InvalidArgumentError, match="clock: expected it to return an aware"):
                call(memory)
        assert len(memory) == 0

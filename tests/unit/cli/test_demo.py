"""``rankblend demo``: one screen that shows what the package does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rankblend.demo import QUESTION, SCOPE, TrackRecord, open_demo
from rankblend.profiles import profile_names
from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Reason, Record, StoreQuery

SECTIONS = (
    r"why #\d+ stands there",
    "absence is not zero",
    "three ways to count the distance",
    "default against crewai",
)


def test_demo_then_one_screen_shows_every_section(program: Any) -> None:
    done = program("demo", env={"COLUMNS": "120"})
    assert done.code == 0
    assert "Traceback" not in done.err
    lines = done.out.splitlines()
    assert len(lines) <= 60
    assert all(len(line) <= 120 for line in lines)
    assert QUESTION in lines[0]
    assert str(SCOPE) in lines[1]
    places = [re.search(section, done.out) for section in SECTIONS]
    assert None not in places
    assert [place.start() for place in places] == sorted(place.start() for place in places)
    assert sum(1 for line in lines if re.match(r" ?\d+ +0\.\d{3} ", line)) == 10
    assert done.out.rstrip().splitlines()[-1].startswith("one weight would swap the first two: ")


def test_demo_when_the_terminal_is_narrow_then_every_line_fits(
    rankblend: Any, width: Callable[[int], None]
) -> None:
    width(80)
    done = rankblend("demo")
    assert done.code == 0
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "Ana: I want my money" in done.out


@pytest.mark.parametrize(
    "profile",
    [
        name if name in ("crewai", "hindsight") else pytest.param(name, marks=pytest.mark.slow)
        for name in profile_names()
    ],
)
def test_demo_when_another_preset_ranks_then_it_still_has_something_to_say(
    rankblend: Any, profile: str
) -> None:
    done = rankblend("demo", "--profile", profile)
    assert done.code == 0
    rival = "default" if profile == "crewai" else "crewai"
    assert f"{profile} against {rival}" in done.out


def test_demo_when_the_profile_is_unknown_then_the_nearest_is_named(rankblend: Any) -> None:
    done = rankblend("demo", "--profile", "crewia")
    assert done.code == 2
    assert 'did you mean "crewai"?' in done.errors[0]


def test_demo_memory_when_opened_then_it_has_what_the_screen_says() -> None:
    with open_demo() as memory:
        records = list(memory._engine.catalog.iter_records())
        assert len(records) == len(memory) == 53
        assert len({str(record.scope.root) for record in records}) == 3
        assert {record.layer for record in records} == {
            "semantic", "episodic", "procedural", "working",
        }  # fmt: skip
        assert len(memory._engine.stores) == 6
        shown = memory.recall(QUESTION, scope=SCOPE, top=len(memory))
        assert {str(match.memory.scope.root) for match in shown} == {"tenant:northwind"}
        assert "bruno" not in " ".join(match.memory.text.casefold() for match in shown)


def test_track_record_when_one_id_is_at_two_scopes_equally_near_then_writing_order_plays_no_part() -> (
    None
):
    user = Scope.parse("user:7")
    scopes = [user / "session:1", user / "session:2"]
    records = [
        Record(Key(scope, "p"), "Refund", metadata={"runs": runs})
        for scope, runs in zip(scopes, (3, 5), strict=True)
    ]
    query = StoreQuery("refund", [user], reach=Reach.SUBTREE)
    for written in (records, records[::-1]):
        store = TrackRecord()
        store.add(written)
        # Both are at distance 0: the least path decides.
        assert store.observe(query, ["p"]).columns["runs"].tolist() == [3.0]
        assert store.observe(query, ["p"]).reason("age_last_run").tolist() == [
            Reason.NOT_APPLICABLE
        ]

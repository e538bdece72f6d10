"""What goes wrong elsewhere with age, use and importance beside relevance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError

Open = Callable[..., rb.Memory]
Recipe = Callable[[str], rb.RankingProfile]
SCOPE = "tenant:acme"
MEAN = '[score]\ncompose = "weighted_mean"\n'


def test_default_when_the_relevant_memory_is_a_year_old_then_it_is_still_first(
    opened: Open, ago: Any
) -> None:
    """Not as in kirodotdev/KiroCrew#12154: decay nobody sees, and recall 0 on a corpus of 242 days."""
    memory = opened()
    memory.remember("the refund policy", scope=SCOPE, id="old", at=ago.days(400))
    memory.remember_many(
        {"text": f"note {n} of today", "scope": SCOPE, "id": f"new{n}"} for n in range(30)
    )
    assert memory.recall("refund policy", scope=SCOPE).ids[0] == "old"
    explained = memory.recall("refund policy", scope=SCOPE, profile="symfonic").explain("old")
    assert "400.0 d" in {row.name: row.evidence for row in explained.rows}["recency"]


def test_floor_when_fresh_memories_fall_under_it_then_old_ones_above_it_are_returned(
    opened: Open, recipe: Recipe, ago: Any
) -> None:
    """Not as in kirodotdev/KiroCrew#1622: cut by decayed rank, then filtered by cosine to nothing."""
    memory = opened({"refund": (1, 0, 0, 0), "policy": (0.9, 0.1, 0, 0)})
    memory.remember("policy", scope=SCOPE, id="old", at=ago.days(100))
    memory.remember_many({"text": f"x{n}", "scope": SCOPE, "id": f"x{n}"} for n in range(20))
    profile = recipe(
        MEAN
        + "weights = { similarity = 0.2, recency = 0.8 }\n[floors]\nsimilarity = { min = 0.5 }\n"
    )
    assert memory.recall("refund", scope=SCOPE, profile=profile, top=3).ids == ("old",)


def test_fusion_when_recency_is_added_then_it_does_not_swamp_it(
    opened: Open, recipe: Recipe, ago: Any
) -> None:
    """Not as in MihaiBuilds/memory-vault#163: .15 of recency beside fused ranks of .016.

    The outer ``zero`` matters: what no list has is not fused at all, and must not win by age alone.
    """
    profile = recipe(
        MEAN + 'missing = "zero"\n' + "weights = { fused = 1, recency = 0.15 }\n"
        '[nodes.fused]\ncompose = "reciprocal_rank_fusion"\nof = ["keyword"]\n'
    )
    memory = opened()
    memory.remember("refund refund policy", scope=SCOPE, id="relevant", at=ago.days(60))
    memory.remember("garden", scope=SCOPE, id="fresh", at=ago.now, links=["relevant"])
    assert memory.recall("refund policy", scope=SCOPE, profile=profile).ids[0] == "relevant"


@pytest.mark.parametrize("at", ["2026", "2026-01", "2026-01-01", "2026-01-01T00:00:00"])
def test_remember_when_a_time_says_no_more_than_a_year_or_a_day_then_refused(
    opened: Open, at: str
) -> None:
    """Not as in vectorize-io/hindsight#3893: a year alone is read as its first of January."""
    with pytest.raises(InvalidArgumentError, match="at: expected"):
        opened().remember("refund", scope=SCOPE, at=at)


def test_reranking_when_there_is_no_reranker_then_the_baseline_order_stays(
    opened: Open, ago: Any
) -> None:
    """Not as in vectorize-io/hindsight#957: a reranker that passes through leaves newest first."""
    memory = opened()
    for n, text in enumerate(("refund policy", "refund", "policy of gardens", "tea")):
        memory.remember(text, scope=SCOPE, id=f"m{n}", at=ago.days(30 - n))
    found = memory.recall("refund policy", scope=SCOPE, profile="relevance-rerank")
    assert (
        found.ids == memory.recall("refund policy", scope=SCOPE, profile="relevance-baseline").ids
    )
    assert found.trace.reranking.startswith("baseline")


def test_recall_when_the_present_is_given_then_the_clock_plays_no_part(
    opened: Open, ago: Any
) -> None:
    """Not as in vectorize-io/hindsight#1788: replays whose recency is measured from today."""
    answers = []
    for clock in (ago.now, ago.now + timedelta(days=900)):
        memory = opened(clock=lambda clock=clock: clock)
        memory.remember("refund", scope=SCOPE, id="a", at=ago.days(20))
        memory.remember("a refund", scope=SCOPE, id="b", at=ago.days(2))
        found = memory.recall("refund", scope=SCOPE, profile="symfonic", now=ago.now)
        answers.append([(match.memory.id, match.score) for match in found])
    assert answers[0] == answers[1]


def test_recency_when_a_memory_is_of_the_future_then_it_is_one(opened: Open, ago: Any) -> None:
    """Not as in DeytaHQ/khora#1230: future dates have a recency above 1."""
    memory = opened()
    memory.remember("refund", scope=SCOPE, id="a", at=ago.days(-365))
    found = memory.recall("refund", scope=SCOPE, profile="symfonic")[0]
    assert found.signals.present()["recency"] == 1.0
    assert found.score <= 1.0


def test_recall_when_zones_differ_then_moments_are_compared(opened: Open, ago: Any) -> None:
    """Not as in crewAIInc/crewAI#7529: aware times crash the composite score."""
    memory = opened()
    for hours in (-11, 0, 13):
        zone = timezone(timedelta(hours=hours))
        memory.remember(
            f"refund {hours}", scope=SCOPE, id=str(hours), at=ago.days(9).astimezone(zone)
        )
    found = memory.recall("refund", scope=SCOPE, profile="crewai", now=ago.now.astimezone(zone))
    assert len({match.signals.present()["recency"] for match in found}) == 1
    with pytest.raises(InvalidArgumentError, match="naive"):
        memory.recall("refund", scope=SCOPE, now=datetime(2026, 3, 1))  # noqa: DTZ001


def test_recency_when_its_weight_is_zero_then_age_changes_no_bit(opened: Open, ago: Any) -> None:
    """A strict no-op, as MemPalace/mempalace#1425 asks for."""
    scores = []
    for days in (0, 500):
        memory = opened()
        memory.remember("refund of tea", scope=SCOPE, id="a", salience=0.3, at=ago.days(days))
        found = memory.recall("refund", scope=SCOPE, profile="symfonic", weights={"recency": 0})
        scores.append(found[0].score)
    assert scores[0] == scores[1]


def test_default_when_a_bulk_import_is_all_important_then_what_matches_is_first(
    opened: Open,
) -> None:
    """Not as in bobmatnyc/trusty-tools#635: importance 1.0 drowns what is on topic."""
    memory = opened()
    memory.remember_many(
        {"text": f"policy of gardens {n}", "scope": SCOPE, "id": f"bulk{n:03}", "salience": 1.0}
        for n in range(300)
    )
    memory.remember("the refund policy for orders", scope=SCOPE, id="on topic")
    assert memory.recall("refund policy orders", scope=SCOPE).ids[0] == "on topic"


def test_frequency_when_one_was_used_more_then_it_is_first(opened: Open) -> None:
    """Not as in getzep/graphiti#1342: sorted by mentions, ascending."""
    memory = opened()
    for name, uses in (("rarely", 1), ("often", 9)):
        memory.remember(f"{name} refund", scope=SCOPE, id=name)
        for _ in range(uses):
            memory.reinforce(name, scope=SCOPE)
    assert memory.recall("refund", scope=SCOPE, profile="symfonic").ids == ("often", "rarely")


def test_recall_when_repeated_then_what_was_returned_does_not_rise(opened: Open) -> None:
    """Not as in caura-ai/caura#411: returned, counted, boosted, returned; scrypster/muninndb#682
    asks that only what is asked to reinforces."""
    memory = opened()
    memory.remember_many({"text": f"refund {n}", "scope": SCOPE, "id": f"m{n}"} for n in range(4))
    first = memory.recall("refund", scope=SCOPE, profile="symfonic", top=2).plain()
    for _ in range(5):
        assert memory.recall("refund", scope=SCOPE, profile="symfonic", top=2).plain() == first
    found = memory.recall("refund", scope=SCOPE, profile="symfonic", top=2, reinforce=True)
    assert [memory.get(i, scope=SCOPE).uses for i in ("m0", "m1", "m2", "m3")] == [
        int(f"m{n}" in found.ids) for n in range(4)
    ]

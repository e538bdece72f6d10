"""Bugs of the systems whose recipes are shipped, seen in symfonic-core 9.12.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rankblend as rb

Open = Callable[..., rb.Memory]
Recipe = Callable[[str], rb.RankingProfile]
TENANT, USER = "tenant:acme", "tenant:acme/user:7/session:9"
SAYS = {"refund": (1, 0, 0, 0), "exact": (1, 0, 0, 0), "close": (0.6, 0.8, 0, 0)}


def blend(mode: str, more: str = "") -> str:
    return f'[score]\ncompose = "weighted_mean"\nweights = {{ similarity = 1 }}\n[scope]\nmode = "{mode}"\n{more}'


def test_backfill_when_an_ancestor_matches_better_then_it_is_no_blend(
    opened: Open, recipe: Recipe
) -> None:
    """There, backfill was accepted and behaved as blend."""
    memory = opened(SAYS)
    memory.remember("exact", scope=TENANT, id="above")
    memory.remember("x", scope=USER, id="own")
    order = {
        mode: memory.recall("refund", scope=USER, profile=recipe(blend(mode))).ids
        for mode in ("blend", "backfill")
    }
    assert order == {"blend": ("above", "own"), "backfill": ("own", "above")}


def test_vector_hit_when_it_is_a_year_old_then_neither_fresh_nor_without_use_by_default(
    opened: Open, ago: Any
) -> None:
    """There, what was absent became a value: a hit of the index counted as written now."""
    memory = opened(SAYS)
    memory.remember("exact", scope=TENANT, id="a", at=ago.days(365))
    present = memory.recall("refund", scope=TENANT, profile="symfonic")[0].signals.present()
    assert present["recency"] == pytest.approx(0.5 ** (365 / 7))
    assert "salience" not in present


def test_graph_hit_when_it_has_no_vector_then_similarity_is_absent_and_not_zero(
    opened: Open, recipe: Recipe
) -> None:
    """There, a hit of the graph without an embedding had similarity 0.0."""
    memory = opened(SAYS)
    memory.remember_many(
        [{"text": "met on Tuesday", "scope": TENANT, "id": "linked", "links": ["Ana Smith"]}],
        embed=False,
    )
    found = memory.recall("Ana Smith", scope=TENANT, profile="default")
    row = next(row for row in found.explain("linked").rows if row.name == "similarity")
    assert (row.value, row.why) == (None, "not applicable")


def test_floor_when_a_perfect_match_is_two_levels_up_then_it_is_kept(
    opened: Open, recipe: Recipe
) -> None:
    """There, the floor acted after the gate, and .15 was under the floor of .2."""
    memory = opened(SAYS)
    memory.remember("exact", scope=TENANT, id="above")
    found = memory.recall(
        "refund", scope=USER, profile=recipe(blend("blend", "[floors]\nmin_score = 0.9\n"))
    )
    assert found.ids == ("above",)
    assert found[0].rank_score == pytest.approx(0.25)


def test_floor_when_of_a_signal_or_of_the_score_then_each_means_one_thing(
    opened: Open, recipe: Recipe
) -> None:
    """There, one number was a floor of the cosine in one mode and of the composite in another."""
    memory = opened(SAYS)
    memory.remember("close", scope=TENANT, id="a", salience=1.0)
    score = '[score]\ncompose = "weighted_mean"\nweights = { similarity = 1, salience = 1 }\n'
    shown = {
        floor: memory.recall("refund", scope=TENANT, profile=recipe(f"{score}[floors]\n{floor}")).ids
        for floor in ("min_score = 0.7", "similarity = { min = 0.7 }", "min_score = 0.9")
    }  # fmt: skip
    assert list(shown.values()) == [("a",), (), ()]  # the cosine is .6, the score .8


def test_metadata_when_remembered_then_a_match_brings_it(opened: Open) -> None:
    """There, the entries of the engine lost their metadata."""
    memory = opened()
    memory.remember("refund", scope=TENANT, id="a", metadata={"source": "mail", "page": 3})
    match = memory.recall("refund", scope=TENANT)[0]
    assert dict(match.memory.metadata) == {"source": "mail", "page": 3}


def test_weights_when_configured_then_they_rank(opened: Open, recipe: Recipe, ago: Any) -> None:
    """There, weights were dead on the hot path: two weeks old came before twelve minutes old."""
    memory = opened(
        profile=recipe(
            '[score]\ncompose = "weighted_mean"\nweights = { keyword = 0.1, recency = 0.9 }\n'
        )
    )
    memory.remember("refund refund refund", scope=TENANT, id="two weeks", at=ago.days(14))
    memory.remember("one refund of several", scope=TENANT, id="minutes", at=ago.days(12 / 1440))
    assert memory.recall("refund", scope=TENANT).ids == ("minutes", "two weeks")
    words_first = memory.recall("refund", scope=TENANT, weights={"recency": 0})
    assert words_first.ids == ("two weeks", "minutes")


def test_writes_when_the_same_id_is_at_other_scopes_then_only_the_named_one_changes(
    opened: Open,
) -> None:
    """There, update, delete and count in memory looked at the tenant only, not at the path."""
    memory = opened(SAYS)
    for scope in (TENANT, USER, "tenant:acme/user:8"):
        memory.remember("exact", scope=scope, id="a")
        memory.link("a", "Ana", scope=scope)
    memory.remember("close", scope=USER, id="a")
    assert memory.unlink("a", "Ana", scope=USER) == 1
    assert memory.forget("a", scope="tenant:acme/user:8") == 1
    assert memory.get("a", scope=TENANT).text == "exact"
    assert memory.get("a", scope=USER).text == "close"
    assert [edge["scope"] for *_, edge in memory.to_networkx(scope=USER).edges(data=True)] == [
        TENANT
    ]

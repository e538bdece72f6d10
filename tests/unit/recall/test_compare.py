"""What moves between two recipes, and the least change of one weight that swaps two memories."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.profiles import Select, SignalRecipe
from rankblend.recall import Candidates, EvidenceColumn, rank_candidates
from rankblend.recall._compare import smallest_swap
from rankblend.relevance import Neutral, Node, Renormalize, Shrink, Zero
from rankblend.stores import Key
from rankblend.testing import hashed_embedder

Open = Callable[..., rb.Memory]
Told = Callable[..., Any]
Profile = Callable[..., rb.RankingProfile]
USER = "tenant:acme/user:7"

TWO = """
[signals.similarity]
evidence = "cosine"
curve = "clip"
[signals.salience]
evidence = "salience"
curve = "identity"
[score]
compose = "weighted_mean"
weights = { similarity = 0.5, salience = 0.5 }
"""


def pair(opened: Open, told: Told, recipe: rb.RankingProfile) -> rb.Memory:
    """a: similarity .8, salience .2; b: similarity .5, salience .4."""
    store = told({"a": {"cosine": 0.8}, "b": {"cosine": 0.5}}, proposes=["a", "b"])
    memory = opened(stores=[store], profile=recipe)
    memory.remember("text a", scope=USER, id="a", salience=0.2)
    memory.remember("text b", scope=USER, id="b", salience=0.4)
    return memory


def test_compare_when_weights_change_then_every_move_is_told(memory: rb.Memory) -> None:
    for identifier, text, salience in (
        ("a", "refund policy", 0.1), ("b", "refund of an order that came late", 0.9), ("c", "refund", None),
    ):  # fmt: skip
        memory.remember(text, scope=USER, id=identifier, salience=salience)
    before = memory.recall("refund", scope=USER, top=2)
    after = memory.recall("refund", scope=USER, top=2, weights={"salience": 0.0})
    assert before.ids == ("b", "a")
    assert after.ids == ("c", "a")
    moves = {
        move.id: (move.before, move.after, move.change) for move in before.compare(after).moves
    }
    assert moves == {"c": (None, 1, None), "a": (2, 2, 0), "b": (1, None, None)}
    assert [move.id for move in before.compare(after).moves] == ["c", "a", "b"]
    plain = json.loads(json.dumps(before.compare(after).plain()))
    assert plain["before"]["hash"] != plain["after"]["hash"]
    assert plain["moves"][0] == {"id": "c", "before": None, "after": 1, "change": None}


def test_compare_when_nothing_changed_then_nothing_moves(memory: rb.Memory) -> None:
    memory.remember("refund", scope=USER, id="a")
    result = memory.recall("refund", scope=USER)
    assert [move.change for move in result.compare(result).moves] == [0]


def test_compare_when_scopes_differ_then_it_is_refused(opened: Open) -> None:
    memory = opened(allow_subtree=True)
    here = memory.recall("refund", scope=USER)
    for there in (
        memory.recall("refund", scope="tenant:acme"),
        memory.recall("refund", scope=USER, reach="subtree"),
    ):
        with pytest.raises(InvalidArgumentError, match="at the same scopes"):
            here.compare(there)


def test_swap_when_one_weight_decides_then_its_exact_value_is_found(
    opened: Open, told: Told, profile: Profile
) -> None:
    result = pair(opened, told, profile(TWO)).recall("x", scope=USER)
    assert result.ids == ("a", "b")
    swap = result.swap("a", "b")
    # .8w + .1 = .5w + .2 at w = 1/3: 1/6 away; salience would have to rise to .75, 1/4 away.
    assert swap is not None
    assert (swap.path, swap.weight) == ("score.weights.similarity", 0.5)
    assert swap.needed == pytest.approx(1 / 3, abs=1e-12)
    assert str(swap) == "score.weights.similarity: 0.5 → 0.3333"
    assert result.compare(result).swap("a", "b") == swap


def test_swap_when_the_second_is_ahead_already_then_nothing_needs_to_change(
    opened: Open, told: Told, profile: Profile
) -> None:
    swap = pair(opened, told, profile(TWO)).recall("x", scope=USER).swap("b", "a")
    assert swap is not None
    assert swap.needed == swap.weight


def test_swap_when_nothing_could_do_it_then_none(
    opened: Open, told: Told, profile: Profile
) -> None:
    store = told({"a": {"cosine": 0.8}, "b": {"cosine": 0.5}}, proposes=["a", "b"])
    memory = opened(stores=[store], profile=profile(TWO))
    memory.remember("text a", scope=USER, id="a", salience=0.9)
    memory.remember("text b", scope=USER, id="b", salience=0.4)
    assert memory.recall("x", scope=USER).swap("a", "b") is None


def test_swap_when_one_of_the_two_was_not_scored_then_it_is_refused(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = pair(opened, told, profile(TWO))
    memory.remember("text a", scope="tenant:acme", id="copy")
    memory.recall("x", scope=USER)
    for first, second in (("a", "nobody"), ("nobody", "a"), ("a", "copy")):
        with pytest.raises(InvalidArgumentError, match="was not scored in this recall"):
            memory.recall("x", scope=USER).swap(first, second)
    with pytest.raises(InvalidArgumentError, match="the ids of two memories"):
        memory.recall("x", scope=USER).swap("a", "a")


def test_swap_when_the_weight_is_nested_then_its_path_names_the_node(
    opened: Open, told: Told, profile: Profile
) -> None:
    nested = profile(
        TWO.replace("{ similarity = 0.5, salience = 0.5 }", "{ inner = 1.0 }")
        + "[nodes.inner]\ncompose = 'weighted_mean'\nweights = { similarity = 0.5, salience = 0.5 }\n"
    )
    swap = pair(opened, told, nested).recall("x", scope=USER).swap("a", "b")
    assert swap is not None
    assert swap.path == "nodes.inner.weights.similarity"
    assert swap.needed == pytest.approx(1 / 3, abs=1e-12)


@pytest.mark.parametrize("name", rb.profile_names())
def test_swap_when_asked_of_any_shipped_profile_then_it_answers(name: str) -> None:
    with rb.Memory.open(":memory:", embedder=hashed_embedder(16), profile=name) as memory:
        memory.remember("refund policy approval", scope=USER, id="a", salience=0.4, links=["c"])
        memory.remember(
            "refund policy of an order", scope=USER, id="b", salience=0.9, confidence=0.9
        )
        memory.remember("refund", scope=USER, id="c", review="confirmed")
        memory.reinforce("b", scope=USER)
        result = memory.recall("refund policy", scope=USER, prefer={"layer": "semantic"})
        for second in result.ids[1:2]:
            swap = result.swap(result.ids[0], second)
            assert swap is None or type(swap.needed) is float


signal = st.one_of(st.just(math.nan), st.floats(0, 1).map(lambda v: round(v, 3)))
WEIGHTED = ("salience", "confidence", "review")
POLICIES = (Renormalize(), Zero(), Neutral(0.4), Shrink(0.2, 0.5))


@st.composite
def pools(draw: st.DrawFn) -> tuple[rb.RankingProfile, Candidates]:
    """A weighted mean of three ready signals under some policy and blend, and a few candidates."""
    weights = draw(st.tuples(*[st.floats(0.05, 2).map(lambda v: round(v, 2))] * 3))
    recipe = rb.RankingProfile(
        "drawn",
        Node(
            "weighted_mean",
            list(zip(WEIGHTED, weights, strict=True)),
            missing=draw(st.sampled_from(POLICIES)),
        ),
        signals={name: SignalRecipe((name,)) for name in WEIGHTED},
        scope=rb.ScopeBlend(draw(st.sampled_from(("off", "blend", "backfill")))),
        select=Select(top=99),
    )
    n = draw(st.integers(2, 4))
    scopes = [rb.Scope.parse(draw(st.sampled_from(("tenant:acme", USER)))) for _ in range(n)]
    columns = {name: np.array(draw(st.lists(signal, min_size=n, max_size=n))) for name in WEIGHTED}
    reasons = np.zeros(n, np.int8)
    return recipe, Candidates(
        tuple(Key(scope, f"m{row}") for row, scope in enumerate(scopes)),
        np.array([2 - len(scope) for scope in scopes]),
        ("semantic",) * n,
        {name: (EvidenceColumn("told", values, reasons),) for name, values in columns.items()},
        np.arange(n),
    )


def check_swap(pool: tuple[rb.RankingProfile, Candidates]) -> None:
    recipe, candidates = pool
    ranking = rank_candidates(recipe, candidates)
    first, second = (candidates.ids[int(ranking.rows[row])] for row in ranking.shown[[0, -1]])
    swap = smallest_swap(ranking, first, second)
    if swap is None:
        return

    changed = swap.path.removeprefix("score.weights.")

    def lead(weight: float, name: str = changed) -> float:
        """How far the second is ahead, and whether the order says the same."""
        again = rank_candidates(recipe.with_weights({name: weight}), candidates)
        ids = [candidates.ids[int(again.rows[row])] for row in again.shown]
        ranks = dict(zip(candidates.ids, again.rank_scores.tolist(), strict=True))
        ahead = ranks[second] - ranks[first]
        assert (ids.index(second) < ids.index(first)) == (ahead > 0) or ahead == 0
        return ahead

    assert lead(swap.weight) <= 0
    assert lead(swap.needed) > 0
    # Any smaller change of this weight, by a billionth of itself or by half, is not enough.
    for share in (1 - 1e-9, 0.5):
        assert lead(swap.weight + (swap.needed - swap.weight) * share) <= 1e-15
    # Nor is a smaller change of another one.
    distance = abs(swap.needed - swap.weight)
    for name, weight in recipe.score.weights:
        for share in (-0.999, -0.5, 0.5, 0.999):
            assert lead(max(weight + share * distance, 0.0), name) <= 1e-15


@settings(max_examples=20)
@given(pools())
def test_swap_when_the_weight_is_applied_then_the_order_swaps_and_not_before(
    pool: tuple[rb.RankingProfile, Candidates],
) -> None:
    check_swap(pool)


@pytest.mark.slow
@settings(max_examples=150)
@given(pools())
def test_swap_when_many_pools_are_tried_then_the_order_swaps_and_not_before(
    pool: tuple[rb.RankingProfile, Candidates],
) -> None:
    check_swap(pool)


def test_swap_when_applied_through_a_recall_then_the_two_change_places(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = pair(opened, told, profile(TWO))
    swap = memory.recall("x", scope=USER).swap("a", "b")
    assert swap is not None
    swapped = memory.recall("x", scope=USER, weights={"similarity": swap.needed})
    assert swapped.ids == ("b", "a")
    almost = memory.recall("x", scope=USER, weights={"similarity": swap.needed + 1e-9})
    assert almost.ids == ("a", "b")

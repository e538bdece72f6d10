"""What goes wrong elsewhere with signals that are missing, or that only some memories have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rankblend as rb

Open = Callable[..., rb.Memory]
Recipe = Callable[[str], rb.RankingProfile]
SCOPE = "tenant:acme"
SAYS = {"refund": (1, 0, 0, 0), "money back": (0.8, 0.6, 0, 0)}
BOTH = '[score]\ncompose = "weighted_mean"\nweights = { keyword = 0.5, similarity = 0.5 }\n'


def test_score_when_others_have_more_signals_then_it_stays(opened: Open, recipe: Recipe) -> None:
    """Not as in mem0ai/mem0#5484: a divisor for the whole set halves what has the vector only."""
    vector = '[score]\ncompose = "weighted_mean"\nweights = { similarity = 1, salience = 1 }\n'
    memory = opened(SAYS)
    memory.remember("money back", scope=SCOPE, id="vector only")
    alone = memory.recall("refund", scope=SCOPE, profile=recipe(vector))[0]
    memory.remember("refund", scope=SCOPE, id="both", salience=1.0)
    beside = memory.recall("refund", scope=SCOPE, profile=recipe(vector))
    assert beside.ids == ("both", "vector only")
    assert beside[1].score == alone.score == pytest.approx(0.8)


def test_recall_when_a_memory_is_found_one_way_only_then_it_is_in_the_result(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in mem0ai/mem0#5742: found by words or by an entity alone, and dropped."""
    memory = opened(SAYS)
    memory.remember("money back", scope=SCOPE, id="by vector")
    memory.remember_many(
        [
            {"text": "a refund", "scope": SCOPE, "id": "by words"},
            {"text": "met on Tuesday", "scope": SCOPE, "id": "by entity", "links": ["Ana Smith"]},
        ],
        embed=False,
    )
    asked = "refund for Ana Smith"
    says_more = memory.recall(asked, scope=SCOPE)
    assert set(says_more.ids) == {"by vector", "by words", "by entity"}
    assert all(match.score > 0.0 for match in says_more if match.memory.id != "by vector")


def test_recency_when_a_memory_was_never_used_then_it_counts_from_its_creation(
    opened: Open, ago: object
) -> None:
    """Not as in vectorize-io/hindsight#2192: recency neutral although another date is there."""
    memory = opened({})
    for name, days in (("old", 300), ("new", 3)):
        memory.remember(f"{name} refund", scope=SCOPE, id=name, at=ago.days(days))  # type: ignore[attr-defined]
    found = memory.recall("refund", scope=SCOPE, profile="generative-agents", top=9)
    recency = {m.memory.id: m.signals.present()["recency"] for m in found}
    assert recency["new"] == 1.0
    assert recency["old"] == 0.0


def test_policy_when_one_signal_alone_is_high_then_shrink_lets_agreement_win(
    opened: Open, recipe: Recipe
) -> None:
    """The remedy for rohitg00/agentmemory#1205: plain renormalization lets a lone signal win."""
    weights = "weights = { similarity = 1, salience = 1 }\n"
    plain = recipe(f'[score]\ncompose = "weighted_mean"\n{weights}')
    pulled = recipe(
        f'[score]\ncompose = "weighted_mean"\nmissing = {{ shrink = {{ prior = 0.2, strength = 0.5 }} }}\n{weights}'
    )
    memory = opened(SAYS)
    memory.remember_many(
        [{"text": "alone", "scope": SCOPE, "id": "lone", "salience": 0.85}], embed=False
    )
    memory.remember("money back", scope=SCOPE, id="agreed", salience=0.85)
    assert memory.recall("refund", scope=SCOPE, profile=plain).ids == ("lone", "agreed")
    assert memory.recall("refund", scope=SCOPE, profile=pulled).ids == ("agreed", "lone")


def test_score_when_one_store_of_three_can_answer_then_it_is_not_capped_at_a_third(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in tinyhumansai/openhuman#5179: what one arm of three finds never passes 1/3.

    Rank fusion rewards agreement by design; there a neutral fill stands for the lists that cannot
    answer. A weighted mean leaves them out.
    """
    memory = opened(SAYS)
    memory.remember_many([{"text": "refund", "scope": SCOPE, "id": "words"}], embed=False)
    inputs = "{ keyword = 1, similarity = 1, salience = 1 }"
    scores = {}
    for compose in ("weighted_mean", "reciprocal_rank_fusion"):
        profile = recipe(
            f'[score]\ncompose = "{compose}"\nmissing = {{ neutral = 0.5 }}\nweights = {inputs}\n'
        )
        scores[compose] = memory.recall("refund", scope=SCOPE, profile=profile)[0].score
    assert scores["reciprocal_rank_fusion"] == pytest.approx((1.0 + 0.5 + 0.5) / 3)
    assert scores["weighted_mean"] > 1 / 3
    mean = recipe(f'[score]\ncompose = "weighted_mean"\nweights = {inputs}\n')
    alone = memory.recall("refund", scope=SCOPE, profile=mean)[0]
    assert alone.score == alone.signals.present()["keyword"]


def test_score_when_most_weight_is_on_what_a_memory_never_has_then_the_rest_counts_whole(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in vellum-ai/vellum-assistant#25516 and mozilla-ai/cq#279: what is missing counts 0."""
    memory = opened(SAYS)
    memory.remember("money back", scope=SCOPE, id="a", layer="procedural")
    profile = recipe(
        '[score]\ncompose = "weighted_mean"\nweights = { similarity = 0.55, salience = 0.45 }\n'
    )
    assert memory.recall("refund", scope=SCOPE, profile=profile)[0].score == pytest.approx(0.8)


def test_floor_when_a_memory_has_no_vector_then_absence_is_neither_bypass_nor_perfect(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in BetterDB-inc/monitor#249: a missing distance passes every threshold, or is 0."""
    memory = opened(SAYS)
    memory.remember_many([{"text": "refund", "scope": SCOPE, "id": "none"}], embed=False)
    for absent, expected in (("drop", ()), ("pass", ("none",))):
        profile = recipe(BOTH + f'[floors]\nsimilarity = {{ min = 0.3, absent = "{absent}" }}\n')
        found = memory.recall("refund", scope=SCOPE, profile=profile)
        assert found.ids == expected
        assert all("similarity" not in match.signals.present() for match in found)

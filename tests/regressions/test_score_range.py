"""What goes wrong elsewhere with the direction, the range and the meaning of a score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rankblend as rb

Open = Callable[..., rb.Memory]
Recipe = Callable[[str], rb.RankingProfile]
SCOPE = "tenant:acme"
SAYS = {"refund": (1, 0, 0, 0), "near": (0.9, 0.1, 0, 0), "middle": (0.6, 0.8, 0, 0),
        "far": (0, 1, 0, 0), "opposite": (-1, 0, 0, 0)}  # fmt: skip
SIMILAR = '[score]\ncompose = "weighted_mean"\nweights = { similarity = 1 }\n'
BOTH = '[score]\ncompose = "weighted_mean"\nweights = { keyword = 0.7, similarity = 0.3 }\n'


def compass(opened: Open) -> rb.Memory:
    memory = opened(SAYS)
    memory.remember_many(
        {"text": text, "scope": SCOPE, "id": text} for text in ("near", "middle", "far", "opposite")
    )
    return memory


def test_floor_when_on_similarity_then_the_nearest_passes_and_the_farthest_falls(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in mem0ai/mem0#4453 and langchain-ai/langchain#32045: a threshold read as a distance."""
    profile = recipe(SIMILAR + "[floors]\nsimilarity = { min = 0.5 }\n")
    assert compass(opened).recall("refund", scope=SCOPE, profile=profile).ids == ("near", "middle")


def test_score_when_memories_differ_in_nearness_then_so_do_scores_and_none_is_negative(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in mem0ai/mem0#4999 (all 1.0), mem0ai/mem0#3248 (ascending, above 1) and
    langchain-ai/langchain#10864 (negative)."""
    found = compass(opened).recall("refund", scope=SCOPE, profile=recipe(SIMILAR))
    scores = {match.memory.id: match.score for match in found}
    assert 1.0 > scores["near"] > scores["middle"] > scores["far"] == scores["opposite"] == 0.0
    assert found.ids[:2] == ("near", "middle")


def test_score_when_a_better_memory_is_added_then_it_stays(opened: Open, recipe: Recipe) -> None:
    """Not a function of rank or of the pool, as in codecoradev/uteke#831, RamaAditya49/titen#227
    (rank 1 always .816667) and mtrnix/metronix-memory#453 (rank 1 always .750)."""
    memory = opened(SAYS)
    memory.remember("middle", scope=SCOPE, id="middle")
    profile = recipe(SIMILAR)
    alone = memory.recall("refund", scope=SCOPE, profile=profile)[0].score
    memory.remember("near", scope=SCOPE, id="near")
    beside = memory.recall("refund", scope=SCOPE, profile=profile)
    assert beside.ids == ("near", "middle")
    assert beside[1].score == alone == pytest.approx(0.6)
    # The best of a bad lot is bad: abstaining is possible.
    assert memory.recall("nothing like it", scope=SCOPE, profile=profile)[0].score == 0.0


def test_min_score_when_one_matches_and_many_do_not_then_it_tells_them_apart(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in MemTensor/MemOS#2277: all near 1.2, a least score that filters nothing, top 50 → 1."""
    memory = opened()
    memory.remember_many(
        {"text": f"{word} number {n}", "scope": SCOPE, "id": f"{word}{n}"}
        for word in ("refund", "garden") for n in range(10)
    )  # fmt: skip
    keyword = '[score]\ncompose = "weighted_mean"\nweights = { keyword = 1 }\n'
    profile = recipe(keyword + "[floors]\nmin_score = 0.01\n[select]\ntop = 50\n")
    found = memory.recall("refund", scope=SCOPE, profile=profile).ids
    assert sorted(found) == [f"refund{n}" for n in range(10)]


@pytest.mark.parametrize("profile", ["rrf", "convex", "default", "symfonic"])
def test_score_when_only_words_match_then_it_is_there_and_explained(
    opened: Open, profile: str
) -> None:
    """Not as in langchain-ai/langchain#16445: no score from BM25 or from an ensemble."""
    memory = opened()
    memory.remember_many(
        {"text": text, "scope": SCOPE, "id": text}
        for text in ("refund now", "refund of a garden tool")
    )
    found = memory.recall("refund now", scope=SCOPE, profile=profile)
    assert found.ids[0] == "refund now"
    assert 1.0 >= found[0].score > found[1].score >= 0.0
    assert all(match.contributions for match in found)


def test_pool_curve_when_memories_are_of_several_layers_then_they_share_one_scale(
    opened: Open,
) -> None:
    """Not as in topoteretes/cognee#2030: distances normalised inside each collection, then merged."""
    memory = opened(SAYS)
    memory.remember("near", scope=SCOPE, id="near", layer="semantic")
    memory.remember("far", scope=SCOPE, id="far", layer="episodic")
    memory.remember("middle", scope=f"{SCOPE}/user:7", id="middle", layer="procedural")
    found = memory.recall("refund", scope=f"{SCOPE}/user:7", profile="generative-agents")
    relevance = {m.memory.id: m.signals.present()["relevance"] for m in found}
    assert relevance["near"] == 1.0
    assert relevance["far"] == 0.0
    assert 0.0 < relevance["middle"] < 1.0


def test_score_when_only_words_can_answer_then_their_weight_and_curve_still_apply(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in CortexReach/memory-lancedb-pro#978: BM25-only hits skip weighting and become 1.0."""
    memory = opened(SAYS)
    memory.remember_many([{"text": "refund of orders", "scope": SCOPE, "id": "words"}], embed=False)
    found = memory.recall("refund", scope=SCOPE, profile=recipe(BOTH))[0]
    keyword = found.signals.present()["keyword"]
    assert "similarity" not in found.signals.present()
    assert found.score == pytest.approx(keyword)
    assert 0.0 < keyword < 0.9


def test_proximity_when_the_query_changes_then_it_does_too(opened: Open, recipe: Recipe) -> None:
    """Not as in mtrnix/metronix-memory#453: a graph that answers the same whatever is asked."""
    memory = opened()
    memory.remember_many(
        {"text": f"all about {name}", "scope": SCOPE, "id": name, "links": [f"{name} Smith"]}
        for name in ("Ana", "Ben")
    )
    profile = recipe(
        '[score]\ncompose = "weighted_mean"\nweights = { proximity = 1, keyword = 1 }\n'
    )
    near: dict[str, Any] = {
        name: memory.recall(f"{name} Smith", scope=SCOPE, profile=profile)[0].memory.id
        for name in ("Ana", "Ben")
    }
    assert near == {"Ana": "Ana", "Ben": "Ben"}

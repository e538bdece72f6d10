"""What goes wrong elsewhere with fusion, rerankers and the order of ties."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import rankblend as rb
from rankblend.relevance import EVIDENCE, apply_curve, parse_curve

Open = Callable[..., rb.Memory]
Recipe = Callable[[str], rb.RankingProfile]
SCOPE = "tenant:acme"


@pytest.mark.parametrize(("keyword", "similarity", "first"), [(1, 3, "vector"), (3, 1, "words")])
def test_fusion_when_lists_are_weighted_then_the_weights_decide(
    opened: Open, recipe: Recipe, keyword: int, similarity: int, first: str
) -> None:
    """Not as in run-llama/llama_index#21444: rank fusion that ignores the retrievers' weights."""
    memory = opened(
        {"refund": (1, 0, 0, 0), "money back": (1, 0, 0, 0), "refund now": (0, 1, 0, 0)}
    )
    memory.remember("money back", scope=SCOPE, id="vector")
    memory.remember("refund now", scope=SCOPE, id="words")
    profile = recipe(
        '[score]\ncompose = "reciprocal_rank_fusion"\n'
        f"weights = {{ keyword = {keyword}, similarity = {similarity} }}\n"
    )
    assert memory.recall("refund", scope=SCOPE, profile=profile).ids[0] == first


def test_contributions_when_many_are_returned_then_each_belongs_to_its_own_memory(
    opened: Open,
) -> None:
    """Not as in getzep/graphiti#1897: results and scores that are misaligned after sorting."""
    words = ("refund", "order", "policy", "tea", "garden")
    choose = random.Random(7)
    texts = [" ".join(choose.choices(words, k=4)) + f" {n}" for n in range(40)]
    memory = opened()
    for n, text in enumerate(texts):
        memory.remember(text, scope=SCOPE, id=f"m{n}", salience=n / 40)
    found = memory.recall("refund order", scope=SCOPE, profile="symfonic", top=40)
    for match in found:
        number = int(match.memory.id[1:])
        share = len({"refund", "order"} & set(texts[number].split())) / 2
        assert match.memory.text == texts[number]
        assert match.signals.present()["salience"] == number / 40
        assert match.signals.present()["cue"] == share
        assert sum(match.contributions.values()) == pytest.approx(match.score, abs=1e-12)


def test_rerank_score_when_there_is_one_candidate_then_it_is_not_one() -> None:
    """Not as in rohitg00/agentmemory#724: a softmax over one logit is always 1.0."""
    logistic = parse_curve({"logistic": {"k": 1, "m": 0}})
    signal = apply_curve(logistic, [np.array([-2.0])], [EVIDENCE["rerank_score"]])
    assert signal[0] == pytest.approx(0.1192, abs=1e-4)


def test_floor_when_it_names_a_signal_then_no_other_score_is_held_to_it(
    opened: Open, recipe: Recipe
) -> None:
    """Not as in getzep/graphiti#1817: the cross-encoder's least score applied to fused ranks."""
    memory = opened({"refund": (1, 0, 0, 0), "refund now": (0.8, 0.6, 0, 0)})
    memory.remember("refund now", scope=SCOPE, id="a")
    profile = recipe(
        '[score]\ncompose = "weighted_mean"\nweights = { keyword = 1, similarity = 0.01 }\n'
        "[floors]\nsimilarity = { min = 0.7 }\n"
    )
    found = memory.recall("refund", scope=SCOPE, profile=profile)
    assert found.ids == ("a",)
    assert found[0].score < 0.7


def test_ties_when_written_in_any_order_then_the_same_order_every_time(opened: Open) -> None:
    """Not as in mem0ai/mem0#6626 (closing #5205), scrypster/muninndb#698, RamaAditya49/titen#226,
    salishforge/memforge#180 and yoanbernabeu/grepai#303: ties that change from run to run."""
    ids = [f"m{n:03}" for n in range(150)]
    orders = set()
    for seed in range(3):
        shuffled = random.Random(seed).sample(ids, len(ids))
        memory = opened({})
        for start in range(0, len(ids), 30):
            memory.remember_many(
                {"text": f"refund {name}x", "scope": SCOPE, "id": name}
                for name in shuffled[start : start + 30]
            )
        orders.add(memory.recall("refund", scope=SCOPE, top=50).ids)
    assert orders == {tuple(ids[:50])}

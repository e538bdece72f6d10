"""Measuring a memory on a data set."""

from __future__ import annotations

import math

import pytest
from attrs import evolve

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.datasets import Dataset, JudgedQuery, load_locomo
from rankblend.experiment.evaluate import evaluate, remember_dataset
from rankblend.relevance import Node

SCOPE = rb.Scope.parse("dataset:tiny")


def _tiny() -> Dataset:
    texts = {"a": "green apples", "b": "green pears", "c": "red cherries", "d": "blue plums"}
    return Dataset(
        "tiny",
        "none",
        tuple({"id": i, "text": text, "scope": SCOPE} for i, text in texts.items()),
        {SCOPE: ({"source": "a", "target": "fruit"},)},
        (
            JudgedQuery("q1", "green pears", SCOPE, {"a": 1.0}, cluster="x"),
            JudgedQuery("q2", "cherries", SCOPE, {"c": 1.0}, cluster="y"),
            JudgedQuery("q3", "zebras", SCOPE, {"d": 1.0}, cluster="y"),
        ),
        reach="ancestors",
    )


def _keyword_only() -> rb.RankingProfile:
    return evolve(rb.load_profile("default"), score=Node.of("weighted_mean", "keyword"))


def test_measures_are_those_of_the_ranks_our_order_gives():
    with rb.Memory.open(":memory:") as memory:
        remember_dataset(memory, _tiny())
        result = evaluate(memory, _tiny(), _keyword_only(), measures=["nDCG@10", "RR"])
    assert result.queries == ("q1", "q2", "q3")
    assert result.clusters == ("x", "y", "y")
    # q1: b before a, so a at rank 2: 1 / log2(3); q2: rank 1; q3: nothing found, so 0.
    assert result.measures["nDCG@10"].tolist() == pytest.approx([1 / math.log2(3), 1.0, 0.0])
    assert result.measures["RR"].tolist() == pytest.approx([0.5, 1.0, 0.0])


def test_ties_keep_our_order_by_id():
    data = _tiny()
    with rb.Memory.open(":memory:") as memory:
        remember_dataset(memory, data)
        green = Dataset(
            "t", "none", (), {}, (JudgedQuery("q", "green", SCOPE, {"a": 1.0}),), reach="ancestors"
        )
        result = evaluate(memory, green, _keyword_only(), measures=["RR"])
    assert result.measures["RR"].tolist() == [1.0]  # a and b tie; a comes first by id


def test_unknown_measure_is_refused():
    with rb.Memory.open(":memory:") as memory, pytest.raises(InvalidArgumentError):
        evaluate(memory, _tiny(), "default", measures=["goodness@10"])


def test_measuring_does_not_reinforce():
    with rb.Memory.open(":memory:") as memory:
        remember_dataset(memory, _tiny())
        evaluate(memory, _tiny(), "default")
        assert all(memory.get(i, scope=SCOPE).uses == 0 for i in "abcd")


@pytest.mark.slow
def test_keyword_only_on_locomo_is_at_least_the_published_bm25(shared):
    """nDCG@10 .436 for BM25 with another stop list; ours must not fall behind it."""
    data = load_locomo(shared / "data/locomo/locomo10.json")
    with rb.Memory.open(":memory:", allow_subtree=True) as memory:
        remember_dataset(memory, data)
        result = evaluate(memory, data, _keyword_only(), measures=["nDCG@10"])
    assert result.measures["nDCG@10"].mean() > 0.436

"""Fitted weights: found where they matter, reported only on clusters they were not learned on."""

from __future__ import annotations

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.fit import fit_weights, grouped_folds
from rankblend.experiment.measures import Judgments, parse_measure

QUERIES, CLUSTERS = 60, 12
IDS = [f"q{i}" for i in range(QUERIES)]
LABELS = [f"c{i % CLUSTERS}" for i in range(QUERIES)]
NDCG = parse_measure("nDCG@10")


def make_evaluator(rng, strengths, *, pool=30, relevant=3, seen=None):
    """Scores signals that tell relevant memories apart as strongly as stated."""
    hits = np.zeros((QUERIES, pool))
    hits[:, :relevant] = 1.0
    signals = np.stack(
        [strength * hits + rng.normal(0, 1, hits.shape) for strength in strengths], axis=-1
    )
    judgments = Judgments(tuple(IDS), tuple({f"m{i}": 1.0 for i in range(relevant)} for _ in IDS))

    def evaluate(profiles):
        if seen is not None:
            seen.append(len(profiles))
        rows = []
        for profile in profiles:
            scores = signals @ np.array([weight for _, weight in profile.score.weights])
            order = np.argsort(-scores, axis=1, kind="stable")[:, :10]
            grades = np.where(np.take_along_axis(hits, order, 1) > 0, 1.0, np.nan)
            rows.append(NDCG.of_grades(grades, judgments))
        return np.array(rows)

    return evaluate


def fit(evaluate, profile=None, **arguments):
    return fit_weights(
        profile or rb.load_profile("crewai"), evaluate, queries=IDS, clusters=LABELS,
        measure="nDCG@10", dataset="toy", **arguments,
    )  # fmt: skip


def test_weights_when_one_signal_is_noise_then_the_others_get_the_weight(rng):
    found = fit(make_evaluator(rng, [2.0, 1.0, 0.0]))
    weights = list(found.weights.values())
    assert sum(weights) == pytest.approx(1.0)
    assert min(weights) >= 0.0
    assert weights[0] > weights[1] > weights[2]
    means = dict(zip(found.held_out.arms, found.held_out.mean("nDCG@10"), strict=True))
    assert means["fitted"] > means["uniform"]
    row = next(r for r in found.comparison if (r.arm, r.baseline) == ("fitted", "uniform"))
    assert row.interval.low > 0
    assert found.comparison.unit == "cluster"


def test_weights_when_nothing_can_be_learned_then_held_out_is_not_what_was_seen(rng):
    found = fit(make_evaluator(rng, [0.0, 0.0, 0.0]))
    held = found.held_out.mean("nDCG@10")[0]
    assert found.seen > held  # the best of many on noise looks good where it was chosen


def test_held_out_when_reported_then_from_weights_that_never_saw_the_cluster(rng):
    evaluate = make_evaluator(rng, [1.0, 1.0, 0.5])
    found = fit(evaluate, folds=4)
    fold = grouped_folds(LABELS, folds=4)
    profile = rb.load_profile("crewai")
    for number, weights in enumerate(found.folds):
        (values,) = evaluate([profile.with_weights(weights)])
        here = fold == number
        assert found.held_out.values["nDCG@10"][0, here].tolist() == values[here].tolist()


def test_profile_when_fitted_then_it_tells_where_its_weights_come_from_and_can_be_written(rng):
    found = fit(make_evaluator(rng, [2.0, 1.0, 0.0]))
    for said in ("toy", "60 queries", "12 clusters", "nDCG@10", "Held out", "seed 0"):
        assert said in found.profile.source
    assert dict(found.profile.score.weights) == dict(found.weights)
    assert rb.profiles.read_profile(rb.profiles.dump_profile(found.profile)) == found.profile


def test_evaluations_when_folds_share_weightings_then_each_is_made_once(rng):
    batches: list[int] = []
    found = fit(make_evaluator(rng, [2.0, 1.0, 0.0], seen=batches))
    assert sum(batches) == found.tried
    assert batches[0] == 34  # uniform, given and 32 random ones in one batch


def test_weights_when_the_profile_promises_a_sum_then_it_is_kept(rng):
    found = fit(make_evaluator(rng, [1.0, 2.0, 0.0]), rb.load_profile("mnemosyne"))
    assert sum(found.weights.values()) == pytest.approx(1.0, abs=1e-9)


def test_weights_when_only_some_are_fitted_then_the_others_stay(rng):
    profile = rb.load_profile("crewai")
    before = dict(profile.score.weights)
    found = fit(make_evaluator(rng, [1.0, 2.0, 0.0]), inputs=["similarity", "recency"])
    after = dict(found.profile.score.weights)
    assert after["importance"] == before["importance"]
    assert after["similarity"] + after["recency"] == pytest.approx(0.8)


def test_queries_when_unjudged_then_excluded_not_zero(rng):
    inner = make_evaluator(rng, [2.0, 1.0, 0.0])

    def evaluate(profiles):
        values = inner(profiles)
        values[:, 0] = np.nan
        return values

    found = fit(evaluate)
    assert found.comparison.contrasts[0].excluded == 1
    assert np.isnan(found.held_out.values["nDCG@10"][:, 0]).all()


def test_arguments_when_wrong_then_refused(rng):
    evaluate = make_evaluator(rng, [1.0, 1.0, 1.0])
    with pytest.raises(InvalidArgumentError, match="nobody"):
        fit(evaluate, inputs=["nobody", "similarity"])
    with pytest.raises(InvalidArgumentError, match="at least two"):
        fit(evaluate, inputs=["similarity"])
    with pytest.raises(InvalidArgumentError, match="no query"):
        fit(lambda profiles: np.full((len(profiles), QUERIES), np.nan))
    with pytest.raises(InvalidArgumentError, match="at least 2"):
        grouped_folds(["a"] * 9)


def test_folds_when_clusters_differ_in_size_then_none_is_split_and_folds_are_even(rng):
    labels = [f"c{i}" for i in range(20) for _ in range(int(rng.integers(1, 30)))]
    fold = grouped_folds(labels, folds=4)
    homes = {c: {f for o, f in zip(labels, fold, strict=True) if o == c} for c in set(labels)}
    assert all(len(home) == 1 for home in homes.values())
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= 30
    assert len(set(grouped_folds(["a", "b", "c"], folds=10).tolist())) == 3

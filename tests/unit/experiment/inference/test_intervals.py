"""Bootstrap intervals of paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rankblend.errors import InvalidArrayError
from rankblend.experiment.inference import paired_interval


def test_mean_is_the_mean_over_queries_and_lies_inside(rng):
    differences = rng.normal(0.1, 1.0, 200)
    interval = paired_interval(differences)
    assert interval.mean == pytest.approx(differences.mean())
    assert interval.low < interval.mean < interval.high
    assert interval.clusters == 200


def test_interval_without_clusters_agrees_with_scipy(rng):
    differences = rng.normal(0.2, 0.5, 150)
    ours = paired_interval(differences, resamples=20_000)
    theirs = stats.bootstrap(
        (differences,), np.mean, n_resamples=20_000, method="percentile", rng=rng
    ).confidence_interval
    # Two bootstraps of 20,000 samples: Monte-Carlo error of an end is about .001 here.
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_clusters_that_agree_within_widen_the_interval(rng):
    effect = rng.normal(0, 1, 10)
    differences = np.repeat(effect, 30)  # 300 queries, but only 10 independent values
    labels = np.repeat([f"c{i}" for i in range(10)], 30)
    naive, clustered = paired_interval(differences), paired_interval(differences, labels)
    assert clustered.clusters == 10
    assert clustered.high - clustered.low > 3 * (naive.high - naive.low)


def test_clusters_of_unequal_size_keep_the_mean_over_queries():
    interval = paired_interval(np.array([1.0, 1.0, 1.0, 0.0]), ["a", "a", "a", "b"])
    assert interval.mean == 0.75  # (1 + 1 + 1 + 0) / 4
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_same_seed_gives_the_same_interval(rng):
    differences = rng.normal(size=50)
    assert paired_interval(differences, seed=3) == paired_interval(differences, seed=3)


@pytest.mark.parametrize("wrong", [np.array([]), np.array([np.nan]), np.ones((2, 2))])
def test_differences_that_are_none_are_refused(wrong):
    with pytest.raises(InvalidArrayError):
        paired_interval(wrong)


def test_another_number_of_clusters_is_refused():
    with pytest.raises(InvalidArrayError):
        paired_interval(np.zeros(3), ["a", "b"])


def test_ends_when_there_is_one_unit_then_words_in_place_of_infinities():
    assert paired_interval(np.array([0.1, 0.3]), ["a", "a"]).ends == "one unit: nothing can be said"
    assert paired_interval(np.array([0.25, 0.25])).ends == "[+0.2500, +0.2500]"

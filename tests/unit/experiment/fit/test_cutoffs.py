"""Floors from known hits and misses."""

from __future__ import annotations

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.fit import tune_cutoff, with_cutoff


def world(rng, n=400):
    hits = rng.random(n) < 0.3
    values = np.clip(np.where(hits, 0.7, 0.3) + rng.normal(0, 0.12, n), 0, 1)
    return values, hits, [f"c{i % 10}" for i in range(n)]


def _by_hand(values, hits, floor):
    kept = values >= floor
    recall, precision = hits[kept].sum() / hits.sum(), hits[kept].mean() if kept.any() else 1.0
    return 2 * recall * precision / (recall + precision)


def test_cutoff_when_tuned_for_f1_then_no_other_floor_is_better(rng):
    values, hits, clusters = world(rng)
    found = tune_cutoff(values, hits, clusters)
    best = max(_by_hand(values, hits, floor) for floor in [0.0, *values])
    assert found.seen.f1 == pytest.approx(best)
    assert _by_hand(values, hits, found.value) == pytest.approx(best)
    assert 0.4 < found.value < 0.6
    assert (found.hits, found.misses) == (hits.sum(), (~hits).sum())
    assert found.held_out.f1 <= found.seen.f1


def test_cutoff_when_a_recall_is_asked_for_then_kept(rng):
    values, hits, clusters = world(rng)
    loose = tune_cutoff(values, hits, clusters, objective="balance", least_recall=0.99)
    assert loose.seen.recall >= 0.99
    assert loose.value < tune_cutoff(values, hits, clusters, objective="balance").value
    assert tune_cutoff(values, hits, clusters, least_recall=1.0).seen.recall == 1.0


def test_cutoff_when_values_are_perfect_then_half_way_between():
    values = [0.1, 0.2, 0.8, 0.9]
    found = tune_cutoff(values, [False, False, True, True], ["a", "b", "a", "b"])
    assert found.value == 0.5
    assert found.seen.f1 == found.held_out.f1 == 1.0


def test_cutoff_when_values_are_absent_then_they_pass_or_drop_as_said():
    values = np.array([0.1, np.nan, 0.9, np.nan])
    hits, clusters = [False, True, True, True], ["a", "b", "a", "b"]
    assert tune_cutoff(values, hits, clusters, absent="pass").seen.recall == 1.0
    assert tune_cutoff(values, hits, clusters, absent="drop").seen.recall == 1 / 3


def test_profile_when_given_the_floor_then_it_has_it(rng):
    found = tune_cutoff(*world(rng))
    profile = with_cutoff(rb.load_profile("default"), found, signal="similarity", name="tuned")
    assert profile.floors.signals["similarity"].min == found.value
    assert with_cutoff(rb.load_profile("crewai"), found).floors.min_score == found.value
    with pytest.raises(rb.errors.ProfileError):
        with_cutoff(rb.load_profile("rrf"), found)  # relative to the pool


def test_arguments_when_wrong_then_all_of_it_is_reported():
    with pytest.raises(InvalidArgumentError) as caught:
        tune_cutoff([0.5, 2.0], [True, True], ["a", "b"], least_recall=2.0)
    assert len(caught.value.problems) == 3

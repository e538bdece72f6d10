"""Shapley values against their definition, and from a subset plan."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.experiment.plans import subsets
from rankblend.experiment.results import Results
from rankblend.experiment.shapley import shapley_of_subsets, shapley_values


def _by_orders(worth: np.ndarray) -> np.ndarray:
    """What each player adds, averaged over all orders in which players can come."""
    players = len(worth).bit_length() - 1
    values = np.zeros((players, worth.shape[1]))
    orders = list(itertools.permutations(range(players)))
    for order in orders:
        present = 0
        for player in order:
            values[player] += worth[present | 1 << player] - worth[present]
            present |= 1 << player
    return values / len(orders)


@pytest.mark.parametrize("players", [1, 2, 3, 5])
def test_values_when_computed_from_subsets_then_the_mean_over_all_orders(players, rng):
    worth = rng.random((2**players, 7))
    np.testing.assert_allclose(shapley_of_subsets(worth), _by_orders(worth), atol=1e-14)


def test_values_when_there_are_twelve_players_then_they_sum_to_the_whole(rng):
    worth = rng.random((2**12, 20))
    values = shapley_of_subsets(worth)
    np.testing.assert_allclose(values.sum(axis=0), worth[-1] - worth[0], atol=1e-12)


def test_values_when_players_are_alike_or_useless_then_equal_or_zero(rng):
    # v counts players 0 and 1; player 2 adds nothing.
    worth = np.array([[bin(k & 0b011).count("1") / 2] for k in range(8)])
    np.testing.assert_allclose(shapley_of_subsets(worth).ravel(), [0.5, 0.5, 0.0])


def test_values_when_rows_are_no_power_of_two_then_refused():
    with pytest.raises(InvalidArgumentError):
        shapley_of_subsets(np.zeros((3, 1)))


def _results(plan, rng, *, not_run=()):
    arms = [arm.name for arm in plan.plan.all_arms]
    values = rng.random((len(arms), 12))
    judged = np.array([True] * 10 + [False] * 2)
    values[:, ~judged] = np.nan
    return Results(
        tuple(arms), tuple(arm.hash for arm in plan.plan.all_arms),
        tuple(f"q{i}" for i in range(12)), tuple(f"c{i % 4}" for i in range(12)), ("",) * 12,
        {"nDCG@10": values}, judged, np.zeros(values.shape, np.bool_),
        dict.fromkeys(not_run, "failed"),
    )  # fmt: skip


def test_shapley_when_a_plan_was_run_then_per_query_it_sums_to_the_profile_with_all(rng):
    plan = subsets(rb.load_profile("default"), ["keyword", "similarity", "proximity"])
    results = _results(plan, rng)
    shapley = shapley_values(plan, results, measure="nDCG@10")
    whole = results.values["nDCG@10"][0, :10]
    np.testing.assert_allclose(shapley.values.sum(axis=0), whole, atol=1e-12)
    assert shapley.excluded == 2
    assert shapley.unit == "cluster"
    # keyword is bit 0: alone, with similarity (3), with proximity (5), with both (7).
    v = {name: results.values["nDCG@10"][results.arm(name), :10] for name in plan.arms}
    alone = v["keyword"] / 3
    pairs = (v["keyword + similarity"] - v["similarity"]) / 6
    pairs = pairs + (v["keyword + proximity"] - v["proximity"]) / 6
    last = (v["default"] - v["similarity + proximity"]) / 3
    np.testing.assert_allclose(shapley.values[0], alone + pairs + last, atol=1e-12)
    assert shapley.intervals[0].mean == pytest.approx(shapley.values[0].mean())


def test_shapley_when_an_arm_did_not_run_or_is_lacking_then_refused(rng):
    plan = subsets(rb.load_profile("default"), ["keyword", "similarity"])
    with pytest.raises(InvalidArgumentError, match="did not run"):
        shapley_values(plan, _results(plan, rng, not_run=["keyword"]), measure="nDCG@10")
    with pytest.raises(UnknownNameError):
        shapley_values(plan, _results(plan, rng), measure="RR")

"""The sign-flip test: against scipy, exact cases by hand, its error rate under the null."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from rankblend.errors import InvalidArgumentError, InvalidArrayError
from rankblend.experiment.inference import group_units, sign_flip_test, smallest_p


def test_p_when_all_flips_are_enumerated_then_the_share_counted_by_hand():
    # Of 8 sign vectors of (1, 2, 4), |sum| ≥ 7 for (+++) and (---): p = 2/8.
    test = sign_flip_test(np.array([1.0, 2.0, 4.0]), group_units(3))
    assert test.exact
    assert test.p.tolist() == test.p_family.tolist() == [2 / 8]
    assert test.flips == 8


def test_p_when_enumerated_then_equals_scipy_exactly(rng):
    differences = rng.normal(0.3, 1.0, 12)
    ours = sign_flip_test(differences, group_units(12), resamples=5_000)
    theirs = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert ours.exact
    assert ours.p[0] == pytest.approx(theirs.pvalue, abs=1e-12)


def test_p_when_flips_are_drawn_then_equals_scipy_within_monte_carlo_error(rng):
    differences = rng.normal(0.15, 1.0, 100)
    ours = sign_flip_test(differences, group_units(100), resamples=20_000)
    theirs = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=rng
    ).pvalue
    assert not ours.exact
    # Both are shares of 20,000: four standard errors of their difference.
    assert ours.p[0] == pytest.approx(theirs, abs=4 * np.sqrt(2 * theirs * (1 - theirs) / 20_000))


def test_p_family_when_enumerated_then_equals_a_readable_loop(rng):
    rows = rng.normal(0.2, [[1.0], [5.0], [0.1]], size=(3, 9))
    clusters = list("aabbcdefg")
    units = group_units(9, clusters)
    test = sign_flip_test(rows, units)
    sums = units.sums(rows)

    def t_values(table: np.ndarray) -> np.ndarray:
        return np.abs(stats.ttest_1samp(table, 0.0, axis=1).statistic)

    observed = t_values(sums)
    single, family, total = np.zeros(3), np.zeros(3), 0
    for signs in itertools.product([1.0, -1.0], repeat=len(units)):
        flipped = t_values(sums * signs)
        single += flipped >= observed - 1e-9
        family += flipped.max() >= observed - 1e-9
        total += 1
    np.testing.assert_allclose(test.p, single / total)
    np.testing.assert_allclose(test.p_family, family / total)


def test_p_when_nothing_differs_then_one_and_it_does_not_disturb_others(rng):
    rows = np.stack([rng.normal(1.0, 1.0, 10), np.zeros(10)])
    test = sign_flip_test(rows, group_units(10))
    alone = sign_flip_test(rows[0], group_units(10))
    assert test.p_family[1] == 1.0
    assert test.p_family[0] == alone.p[0]


@pytest.mark.parametrize("queries", [1, 5, 400])
def test_p_when_every_query_is_far_better_then_the_smallest_and_never_zero(queries):
    test = sign_flip_test(np.full(queries, 1.0), group_units(queries), resamples=999)
    assert test.p[0] == test.smallest == smallest_p(queries, resamples=999) > 0.0


def test_smallest_p_when_there_are_ten_clusters_then_one_in_512():
    assert smallest_p(10) == 2 / 2**10
    assert smallest_p(1) == 1.0
    assert smallest_p(500, resamples=10_000) == 1 / 10_001


def test_unit_when_it_is_the_cluster_then_p_is_not_that_of_queries(rng):
    effect = rng.normal(0.3, 1.0, 8)
    differences = np.repeat(effect, 50)
    clusters = np.repeat([f"c{i}" for i in range(8)], 50)
    by_query = sign_flip_test(differences, group_units(400))
    by_cluster = sign_flip_test(differences, group_units(400, clusters))
    assert by_query.p[0] < 0.01 < by_cluster.p[0]


def test_seed_when_the_same_then_the_same_p(rng):
    rows = rng.normal(0.1, 1.0, (4, 60))
    first, second = (sign_flip_test(rows, group_units(60), seed=3) for _ in range(2))
    assert first.p_family.tolist() == second.p_family.tolist()
    assert (first.p_family >= first.p).all()


def test_others_when_tried_before_then_p_is_corrected_for_them_too(rng):
    row, others = rng.normal(0.35, 1.0, 60), rng.normal(0.0, 1.0, (200, 60))
    units = group_units(60)
    alone = sign_flip_test(row, units)
    corrected = sign_flip_test(row, units, others=others)
    together = sign_flip_test(np.concatenate([row[None], others]), units)
    assert corrected.p[0] == alone.p[0]
    assert corrected.p_family[0] == together.p_family[0] > alone.p_family[0]


def test_arguments_when_wrong_then_refused(rng):
    units = group_units(5)
    with pytest.raises(InvalidArrayError):
        sign_flip_test(np.array([1.0, np.nan, 0, 0, 0]), units)
    with pytest.raises(InvalidArrayError):
        sign_flip_test(np.ones(5), units, others=np.ones((2, 4)))
    with pytest.raises(InvalidArgumentError):
        sign_flip_test(np.ones(5), units, resamples=0)
    with pytest.raises(InvalidArrayError):
        group_units(5, ["a"])


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [None, 12])
def test_family_wise_error_when_nothing_is_true_then_near_nominal(rng, clusters):
    """500 experiments of 20 correlated arms without any effect: α = .05 ± 3 standard errors."""
    experiments, arms, queries = 500, 20, 120
    labels = None if clusters is None else [f"c{i % clusters}" for i in range(queries)]
    units = group_units(queries, labels)
    wrong = naive = 0
    for number in range(experiments):
        shared = rng.normal(size=(1, queries)) if clusters is None else (
            rng.normal(size=(1, clusters))[:, np.arange(queries) % clusters])  # fmt: skip
        rows = 0.6 * shared + rng.normal(size=(arms, queries)) * rng.uniform(0.1, 3.0, (arms, 1))
        rows *= rng.random((arms, queries)) < 0.5  # half of the queries are ties
        test = sign_flip_test(rows, units, resamples=999, seed=number)
        wrong += bool((test.p_family <= 0.05).any())
        naive += bool((test.p <= 0.05).any())
    standard_error = np.sqrt(0.05 * 0.95 / experiments)
    assert wrong / experiments == pytest.approx(0.05, abs=3 * standard_error)
    assert naive / experiments > 0.2  # what happens without the correction

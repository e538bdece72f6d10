from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidArrayError
from rankblend.kernels import curves

INF, NAN = math.inf, math.nan
MOST = sys.float_info.max

ONE_COLUMN: dict[str, Callable[[Any], Any]] = {
    "clip": curves.clip,
    "identity": curves.identity,
    "half_life": partial(curves.half_life, seconds=60.0),
    "linear": partial(curves.linear, seconds=60.0, floor=0.1),
    "log_saturation": partial(curves.log_saturation, n_max=100.0),
    "reciprocal": curves.reciprocal,
    "logistic": curves.logistic,
    "saturation": partial(curves.saturation, c=6.0),
    "power": partial(curves.power, p=0.5),
    "over_max": curves.over_max,
    "min_max": curves.min_max,
    "rank": curves.rank,
    "z_logistic": curves.z_logistic,
    "first_present": curves.first_present,
}
every_curve = pytest.mark.parametrize("curve", ONE_COLUMN.values(), ids=ONE_COLUMN)


def same(actual: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=0.0, equal_nan=True)


@every_curve
def test_any_curve_when_empty_then_empty_float64(curve: Callable[[Any], Any]) -> None:
    result = curve(np.array([]))
    assert result.shape == (0,)
    assert result.dtype == np.float64


@every_curve
def test_any_curve_when_all_absent_then_all_absent(curve: Callable[[Any], Any]) -> None:
    assert np.isnan(curve(np.full(3, NAN))).all()


@every_curve
def test_any_curve_when_given_read_only_input_then_a_new_array(curve: Callable[[Any], Any]) -> None:
    values = np.array([0.5, NAN, 0.25])
    values.flags.writeable = False
    result = curve(values)
    assert not np.shares_memory(result, values)
    assert result.flags.writeable


@every_curve
@pytest.mark.parametrize("values", [np.zeros((2, 2)), np.float64(1.0), ["a", "b"], object()])
def test_any_curve_when_not_a_column_of_numbers_then_refused(
    curve: Callable[[Any], Any], values: Any
) -> None:
    with pytest.raises(InvalidArrayError):
        curve(values)


def test_clip_when_outside_then_at_the_ends() -> None:
    same(curves.clip(np.array([-INF, -0.5, 0.5, 1.5, INF])), [0.0, 0.0, 0.5, 1.0, 1.0])


def test_clip_when_negative_zero_then_zero_with_the_same_bits_as_zero() -> None:
    assert math.copysign(1.0, curves.clip(np.array([-0.0]))[0]) == 1.0


def test_identity_when_outside_the_unit_interval_then_unchanged() -> None:
    same(curves.identity(np.array([-2.0, INF])), [-2.0, INF])


def test_half_life_when_two_half_lives_then_a_quarter() -> None:
    ages = np.array([-INF, -3.0, 0.0, 30.0, 60.0, 15.0, INF])
    expected = [1.0, 1.0, 1.0, 0.5, 0.25, 1 / math.sqrt(2), 0.0]
    same(curves.half_life(ages, seconds=30.0), expected)


def test_half_life_when_the_half_life_is_tiny_then_no_overflow() -> None:
    same(curves.half_life(np.array([0.0, 1e300]), seconds=5e-324), [1.0, 0.0])


def test_linear_when_beyond_the_span_then_exactly_the_floor() -> None:
    # halfway: 0.1 + 0.9·0.5 = 0.55
    ages = np.array([-10.0, 0.0, 50.0, 100.0, 1e308, INF])
    result = curves.linear(ages, seconds=100.0, floor=0.1)
    same(result, [1.0, 1.0, 0.55, 0.1, 0.1, 0.1])
    assert result[3] == 0.1


def test_linear_when_no_floor_is_given_then_zero_at_the_end() -> None:
    same(curves.linear(np.array([25.0, 100.0]), seconds=100.0), [0.75, 0.0])


def test_log_saturation_when_at_most_and_beyond_then_one() -> None:
    counts = np.array([0.0, 1.0, 9.0, 100.0, 1000.0, INF])
    expected = [0.0, math.log(2) / math.log(101), math.log(10) / math.log(101), 1.0, 1.0, 1.0]
    same(curves.log_saturation(counts, n_max=100.0), expected)


@pytest.mark.parametrize(
    "curve",
    [
        partial(curves.log_saturation, n_max=10.0),
        curves.reciprocal,
        partial(curves.saturation, c=1.0),
        curves.over_max,
        partial(curves.power, p=2.0),
    ],
)
def test_curves_of_sizes_when_negative_then_refused_with_the_row(
    curve: Callable[[Any], Any],
) -> None:
    with pytest.raises(InvalidArrayError) as caught:
        curve(np.array([NAN, 1.0, -1.0]))
    assert caught.value.expected == "numbers ≥ 0 or NaN"
    assert caught.value.got == "-1 in row 2"


def test_reciprocal_when_not_reached_then_zero_but_when_absent_then_absent() -> None:
    same(curves.reciprocal(np.array([0.0, 1.0, 3.0, INF, NAN])), [1.0, 0.5, 0.25, 0.0, NAN])


def test_logistic_when_at_the_middle_then_a_half() -> None:
    # k = 2, m = 3: at 4, 1 / (1 + e^-2)
    expected = [0.5, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))]
    same(curves.logistic(np.array([3.0, 4.0, 2.0]), k=2.0, m=3.0), expected)


def test_logistic_when_extreme_then_the_ends_without_overflow() -> None:
    values = np.array([-INF, -MOST, MOST, INF])
    same(curves.logistic(values, k=MOST, m=-1.0), [0.0, 0.0, 1.0, 1.0])
    same(curves.logistic(values, k=1.0, m=MOST), [0.0, 0.0, 0.5, 1.0])


def test_saturation_when_zero_then_zero_and_when_c_then_a_half() -> None:
    values = np.array([0.0, -0.0, 3.0, 6.0, MOST, INF])
    same(curves.saturation(values, c=6.0), [0.0, 0.0, 1 / 3, 0.5, 1.0, 1.0])


def test_saturation_when_x_and_c_are_huge_then_still_x_over_x_plus_c() -> None:
    same(curves.saturation(np.array([MOST]), c=MOST), [0.5])
    same(curves.saturation(np.array([5e-324]), c=MOST), [0.0])


def test_over_max_when_something_is_absent_then_it_does_not_count() -> None:
    same(curves.over_max(np.array([1.0, NAN, 4.0, 0.0])), [0.25, NAN, 1.0, 0.0])


def test_over_max_when_the_max_is_zero_then_zero() -> None:
    same(curves.over_max(np.array([0.0, NAN, -0.0])), [0.0, NAN, 0.0])


def test_over_max_when_infinite_then_one_and_the_rest_by_the_finite_max() -> None:
    same(curves.over_max(np.array([INF, 2.0, 4.0])), [1.0, 0.5, 1.0])
    same(curves.over_max(np.array([INF])), [1.0])


def test_power_when_a_half_then_the_exact_root() -> None:
    values = np.array([0.0, 0.25, 2.0, INF])
    assert curves.power(values, p=0.5).tolist() == [0.0, 0.5, math.sqrt(2.0), INF]
    same(curves.power(np.array([3.0, MOST]), p=2.0), [9.0, INF])


def test_min_max_when_spread_then_zero_to_one() -> None:
    same(curves.min_max(np.array([2.0, 3.0, NAN, 4.0])), [0.0, 0.5, NAN, 1.0])


def test_min_max_when_the_span_overflows_then_still_right() -> None:
    same(curves.min_max(np.array([-MOST, 0.0, MOST])), [0.0, 0.5, 1.0])


def test_min_max_when_subnormal_then_still_right() -> None:
    same(curves.min_max(np.array([0.0, 5e-324])), [0.0, 1.0])


def test_min_max_when_infinite_then_the_ends_and_the_rest_among_themselves() -> None:
    same(curves.min_max(np.array([-INF, 1.0, 3.0, 2.0, INF])), [0.0, 0.0, 1.0, 0.5, 1.0])
    same(curves.min_max(np.array([INF, -INF])), [1.0, 0.0])


def test_z_logistic_when_two_values_then_one_deviation_to_either_side() -> None:
    # mean 3, deviation 1: z = ∓1
    low, high = 1 / (1 + math.exp(1)), 1 / (1 + math.exp(-1))
    same(curves.z_logistic(np.array([2.0, 4.0])), [low, high])


def test_z_logistic_when_the_squares_would_overflow_then_still_right() -> None:
    low, high = 1 / (1 + math.exp(1)), 1 / (1 + math.exp(-1))
    same(curves.z_logistic(np.array([-MOST, MOST])), [low, high])
    same(curves.z_logistic(np.array([0.0, 5e-324])), [low, high])


def test_z_logistic_when_zero_is_natural_then_zeros_stay_and_count() -> None:
    # mean 2, deviation 2: z = -1 becomes 0, z = +1 stays
    result = curves.z_logistic(np.array([0.0, 4.0]), natural_zero=True)
    same(result, [0.0, 1 / (1 + math.exp(-1))])


@pytest.mark.parametrize("curve", [curves.over_max, curves.min_max, curves.rank, curves.z_logistic])
def test_pool_curves_when_a_large_pool_is_permuted_then_the_same_bits(
    curve: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    values = rng.exponential(3.0, 301)
    expected = curve(values)
    for _ in range(20):
        order = rng.permutation(301)
        assert curve(values[order]).tolist() == expected[order].tolist()


def test_rank_when_tied_then_the_best_rank_is_shared() -> None:
    # ranks 3, 1, 1, 4 of n = 4: (4-3+1)/4, 1, 1, 1/4
    same(curves.rank(np.array([3.0, 9.0, 9.0, NAN, 1.0])), [0.5, 1.0, 1.0, NAN, 0.25])


def test_rank_when_infinite_then_ranked_like_any_value() -> None:
    same(curves.rank(np.array([INF, 0.0, -INF, NAN])), [1.0, 2 / 3, 1 / 3, NAN])


def test_rank_when_zero_is_natural_then_zeros_stay_zero() -> None:
    same(curves.rank(np.array([0.0, 2.0, 0.0, 5.0]), natural_zero=True), [0.0, 0.75, 0.0, 1.0])


RELATIVE = [curves.min_max, curves.rank, curves.z_logistic]


@pytest.mark.parametrize("curve", RELATIVE)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (5.0, {}, 1.0),
        (0.0, {}, 1.0),
        (0.0, {"minimum": 0.0}, 0.0),
        (-1.0, {"minimum": -1.0}, 0.0),
        (0.0, {"minimum": -1.0}, 1.0),
        (0.0, {"minimum": -1.0, "natural_zero": True}, 0.0),
        (2.0, {"minimum": 0.0, "natural_zero": True}, 1.0),
        (INF, {"minimum": 0.0}, 1.0),
    ],
)
def test_pool_curves_when_constant_then_zero_at_the_minimum_else_one(
    curve: Callable[..., Any], n: int, value: float, options: dict[str, Any], expected: float
) -> None:
    column = np.append(np.full(n, value), NAN)
    same(curve(column, **options), [expected] * n + [NAN])


def test_first_present_when_the_first_is_absent_then_the_next() -> None:
    first, second = np.array([0.9, NAN, 0.0, NAN]), np.array([0.1, 0.4, 0.7, NAN])
    same(curves.first_present(first, second), [0.9, 0.4, 0.0, NAN])


def test_first_present_when_columns_do_not_fit_then_refused() -> None:
    with pytest.raises(InvalidArrayError):
        curves.first_present(np.zeros(2), np.zeros(3))
    with pytest.raises(InvalidArgumentError):
        curves.first_present()


def rate(
    own: tuple[float, ...],
    *parent: float,
    prior_weight: float = 5.0,
    agent_verdict_weight: float = 0.5,
) -> tuple[float, bool]:
    rates, lifted = curves.smoothed_rate(
        *(np.array([count]) for count in own),
        *(np.array([count]) for count in parent),
        prior_weight=prior_weight,
        agent_verdict_weight=agent_verdict_weight,
    )
    assert lifted.dtype == np.bool_
    return float(rates[0]), bool(lifted[0])


def test_smoothed_rate_when_some_runs_are_judged_then_the_others_count_half() -> None:
    # (1 + 0.5·6 + 5·0.5) / (4 + 0.5·6 + 5) = 6.5 / 12
    assert rate((10, 7, 4, 1)) == (pytest.approx(6.5 / 12, rel=1e-15), False)


def test_smoothed_rate_when_it_never_ran_then_the_prior() -> None:
    assert rate((0, 0, 0, 0)) == (0.5, False)


def test_smoothed_rate_when_the_parent_is_proven_then_its_rate_is_the_prior() -> None:
    # parent (0.5·20 + 2.5) / (10 + 5) = 5/6; own (0.5 + 5·5/6) / (0.5 + 5)
    expected = (0.5 + 25 / 6) / 5.5
    assert rate((1, 1, 0, 0), 20, 20, 0, 0) == (pytest.approx(expected, rel=1e-15), True)


@pytest.mark.parametrize("parent", [(20, 2, 0, 0), (10, 5, 0, 0), (0, 0, 0, 0)])
def test_smoothed_rate_when_the_parent_is_not_better_than_half_then_it_does_not_lift(
    parent: tuple[float, ...],
) -> None:
    assert rate((1, 1, 0, 0), *parent) == rate((1, 1, 0, 0))


@pytest.mark.parametrize(
    ("weight", "parent"),
    # 0.2·(2·7 − 9) − 1 = 0 and 0.4·(2·7 − 9) − 2 = 0, though the divided rate is 0.5000000000000001
    [(0.2, (10, 7, 1, 0)), (0.4, (11, 7, 2, 0)), (0.3, (20, 10, 6, 3))],
)
def test_smoothed_rate_when_the_parents_counts_balance_then_never_lifted_by_a_rounding(
    weight: float, parent: tuple[float, ...]
) -> None:
    assert rate((1, 1, 0, 0), *parent, agent_verdict_weight=weight)[1] is False


@pytest.mark.parametrize("gone", range(4))
def test_smoothed_rate_when_a_parent_count_is_absent_then_no_parent(gone: int) -> None:
    parent = [20.0, 20.0, 0.0, 0.0]
    parent[gone] = NAN
    assert rate((1, 1, 0, 0), *parent) == rate((1, 1, 0, 0))


@pytest.mark.parametrize("gone", range(4))
def test_smoothed_rate_when_an_own_count_is_absent_then_absent_and_not_lifted(gone: int) -> None:
    own = [4.0, 3.0, 2.0, 1.0]
    own[gone] = NAN
    value, lifted = rate(tuple(own), 20, 20, 0, 0)
    assert math.isnan(value)
    assert lifted is False


@pytest.mark.parametrize(
    "own",
    [
        (1, 2, 0, 0),  # more successes than runs
        (2, 1, 3, 1),  # more judged than run
        (2, 2, 1, 2),  # more judged successes than judged
        (2, 0, 1, 1),  # a judged success that is no success
        (2, 2, 2, 0),  # an unjudged success without an unjudged run
        (-1, 0, 0, 0),
        (INF, 1, 0, 0),
        (2.0**54, 0, 0, 0),
    ],
)
def test_smoothed_rate_when_the_counts_contradict_then_refused(own: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArrayError):
        rate(own)
    with pytest.raises(InvalidArrayError):
        rate((1, 1, 0, 0), *own)


def test_smoothed_rate_when_columns_are_missing_or_of_other_length_then_refused() -> None:
    one, two, weights = np.ones(1), np.ones(2), {"prior_weight": 5.0, "agent_verdict_weight": 0.5}
    with pytest.raises(InvalidArrayError):
        curves.smoothed_rate(one, one, one, two, **weights)
    with pytest.raises(InvalidArrayError):
        curves.smoothed_rate(one, one, one, one, two, two, two, two, **weights)
    with pytest.raises(InvalidArrayError):
        curves.smoothed_rate(one, one, one, one, one, one, **weights)


@pytest.mark.parametrize(
    ("curve", "name", "value"),
    [
        (curves.half_life, "seconds", 0.0),
        (curves.half_life, "seconds", INF),
        (curves.half_life, "seconds", NAN),
        (curves.linear, "seconds", -1.0),
        (partial(curves.linear, seconds=1.0), "floor", 1.5),
        (partial(curves.linear, seconds=1.0), "floor", NAN),
        (curves.log_saturation, "n_max", 0.0),
        (curves.logistic, "k", 0.0),
        (curves.logistic, "m", INF),
        (curves.saturation, "c", -6.0),
        (curves.power, "p", 0.0),
    ],
)
def test_any_curve_when_a_parameter_is_out_of_range_then_refused_by_name(
    curve: Callable[..., Any], name: str, value: float
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{name}: expected a finite number"):
        curve(np.zeros(1), **{name: value})


@pytest.mark.parametrize("weights", [(0.0, 0.5), (INF, 0.5), (5.0, -0.1), (5.0, 1.1)])
def test_smoothed_rate_when_a_weight_is_out_of_range_then_refused(
    weights: tuple[float, float],
) -> None:
    with pytest.raises(InvalidArgumentError):
        rate((1, 1, 0, 0), prior_weight=weights[0], agent_verdict_weight=weights[1])


@pytest.mark.parametrize("name", ONE_COLUMN)
@pytest.mark.parametrize("values", [["0.5"], [None], [object()], [[1.0], [1.0, 2.0]], [1j]])
def test_curve_when_entries_are_no_numbers_then_refused(name: str, values: list[Any]) -> None:
    with pytest.raises(InvalidArrayError, match="an array of numbers"):
        ONE_COLUMN[name](values)

"""Curves against plain arithmetic: fractions where they are exact, loops elsewhere."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.kernels import curves

HALF = Fraction(1, 2)
NAN = math.nan
numbers = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float)
pools = st.lists(numbers | st.just(NAN), max_size=15)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int, int]:
    judged, agents = draw(st.integers(0, 30)), draw(st.integers(0, 30))
    good, agents_good = draw(st.integers(0, judged)), draw(st.integers(0, agents))
    return judged + agents, good + agents_good, judged, good


def exact_rate(
    counts: tuple[int, int, int, int], prior: Fraction, prior_weight: Fraction, w: Fraction
) -> Fraction:
    runs, successes, judged, judged_successes = counts
    weighted_runs = judged + w * (runs - judged)
    weighted_successes = judged_successes + w * (successes - judged_successes)
    return (weighted_successes + prior_weight * prior) / (weighted_runs + prior_weight)


@given(
    rows=st.lists(st.tuples(counts(), counts() | st.none()), max_size=6),
    prior_weight=st.fractions(Fraction(1, 8), 20, max_denominator=8),
    w=st.sampled_from([Fraction(n, 8) for n in range(9)]),
)
def test_smoothed_rate_when_compared_with_fractions_then_equal_and_lifted_alike(
    rows: list[Any], prior_weight: Fraction, w: Fraction
) -> None:
    expected, lifted = [], []
    for own, parent in rows:
        inherited = HALF if parent is None else exact_rate(parent, HALF, prior_weight, w)
        lifted.append(inherited > HALF)
        expected.append(float(exact_rate(own, max(inherited, HALF), prior_weight, w)))
    table = [(*own, *(parent or (NAN,) * 4)) for own, parent in rows]
    columns = np.array(table, np.float64).reshape(-1, 8).T
    rates, uses_parent = curves.smoothed_rate(
        *columns, prior_weight=float(prior_weight), agent_verdict_weight=float(w)
    )
    np.testing.assert_allclose(rates, expected, rtol=0, atol=4e-16)
    assert uses_parent.tolist() == lifted


@given(pool=pools)
def test_rank_when_counted_one_by_one_then_n_minus_best_rank_plus_one_over_n(
    pool: list[float],
) -> None:
    present = [value for value in pool if not math.isnan(value)]
    expected = []
    for value in pool:
        best_rank = 1 + sum(other > value for other in present)
        expected.append(NAN if math.isnan(value) else (len(present) - best_rank + 1) / len(present))
    np.testing.assert_array_equal(curves.rank(np.array(pool, np.float64)), expected)


@given(pool=pools)
def test_min_max_when_compared_with_the_formula_then_equal(pool: list[float]) -> None:
    present = [value for value in pool if not math.isnan(value)]
    if len(set(present)) < 2:
        return
    low, high = min(present), max(present)
    expected = [(value - low) / (high - low) for value in pool]
    np.testing.assert_allclose(curves.min_max(np.array(pool)), expected, rtol=1e-15, atol=0)


@given(pool=st.lists(st.integers(-1000, 1000).map(float) | st.just(NAN), max_size=15))
def test_z_logistic_when_compared_with_the_statistics_module_then_equal(
    pool: list[float],
) -> None:
    present = [value for value in pool if not math.isnan(value)]
    if len(set(present)) < 2:
        return
    mean, deviation = statistics.fmean(present), statistics.pstdev(present)
    expected = [1 / (1 + math.exp(-(value - mean) / deviation)) for value in pool]
    np.testing.assert_allclose(curves.z_logistic(np.array(pool)), expected, rtol=1e-12)


FORMULAS: list[tuple[Any, Any]] = [
    (partial(curves.half_life, seconds=7.0), lambda x: 0.5 ** (x / 7.0)),
    (partial(curves.linear, seconds=7.0, floor=0.1), lambda x: max(0.1, 1 - 0.9 * min(x / 7, 1))),
    (partial(curves.log_saturation, n_max=30.0), lambda x: min(math.log(1 + x) / math.log(31), 1)),
    (curves.reciprocal, lambda x: 1 / (1 + x)),
    (partial(curves.logistic, k=0.5, m=3.0), lambda x: 1 / (1 + math.exp(-0.5 * (x - 3.0)))),
    (partial(curves.saturation, c=6.0), lambda x: x / (x + 6.0)),
    (partial(curves.power, p=0.3), lambda x: x**0.3),
    (partial(curves.power, p=0.5), math.sqrt),
]


@given(values=st.lists(st.floats(0.0, 500.0, allow_subnormal=False), max_size=9))
def test_pointwise_curves_when_compared_with_the_formula_then_equal(values: list[float]) -> None:
    for fast, slow in FORMULAS:
        expected = [slow(value) for value in values]
        np.testing.assert_allclose(fast(np.array(values)), expected, rtol=1e-12, atol=1e-15)

"""Curves: pure functions from columns of evidence to values, mostly in [0, 1].

Every column is float64 of shape (n,), one entry per candidate; NaN means absent and stays NaN.
Durations are seconds. A new array is returned, inputs are never changed; an empty column gives an
empty column. Pointwise curves look at one entry at a time; ``over_max``, ``min_max``, ``rank`` and
``z_logistic`` are relative to the pool, which is the present entries of the column, and depend
neither on the order of the pool nor on what is absent. A column that is not numbers of shape (n,) or
has entries below the least stated is an InvalidArrayError, a bad parameter an InvalidArgumentError.

Source: the derivation table of the specification; edges it leaves open are stated per function.
"""

from __future__ import annotations

import math
import sys
from math import inf

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError

__all__ = [
    "clip",
    "first_present",
    "half_life",
    "identity",
    "linear",
    "log_saturation",
    "logistic",
    "min_max",
    "over_max",
    "power",
    "rank",
    "reciprocal",
    "saturation",
    "smoothed_rate",
    "z_logistic",
]

FloatArray = NDArray[np.float64]
LEAST, MOST = math.ulp(0.0), sys.float_info.max  # the positive finite numbers
MOST_RUNS = 2.0**53  # every count up to here is exact in float64


def clip(values: FloatArray) -> FloatArray:
    """min(max(x, 0), 1): a negative cosine is no similarity.

    Example:
        >>> clip(np.array([-0.2, 0.5, np.inf, np.nan])).tolist()
        [0.0, 0.5, 1.0, nan]
    """
    # Adding 0.0 turns -0.0 into 0.0, so that equal signals are also equal bit for bit.
    return np.minimum(np.maximum(_column("values", values), 0.0), 1.0) + 0.0


def identity(values: FloatArray) -> FloatArray:
    """The values themselves, for evidence that already is a signal."""
    return _column("values", values).copy()


def half_life(ages: FloatArray, *, seconds: float) -> FloatArray:
    """0.5^(age / half-life): 1 for what is new, halved with every half-life that passes.

    Args:
        ages: Seconds, shape (n,); a negative age (the future) counts as 0, infinity gives 0.
        seconds: The half-life, finite and > 0.

    Example:
        >>> half_life(np.array([-5.0, 0.0, 60.0, 120.0]), seconds=60.0).tolist()
        [1.0, 1.0, 0.5, 0.25]
    """
    _positive("seconds", seconds)
    with np.errstate(over="ignore"):
        return np.exp2(np.maximum(_column("ages", ages), 0.0) / -seconds)


def linear(ages: FloatArray, *, seconds: float, floor: float = 0.0) -> FloatArray:
    """From 1 at age 0 in a straight line down to ``floor`` at ``seconds``, and level after that.

    floor + (1 − floor)·(1 − min(max(age, 0) / seconds, 1)), exact at both ends.

    Args:
        ages: Seconds, shape (n,); a negative age counts as 0.
        seconds: The age at which the floor is reached, finite and > 0.
        floor: In [0, 1].
    """
    _positive("seconds", seconds)
    _within("floor", floor, 0.0, 1.0)
    with np.errstate(over="ignore"):
        spent = np.minimum(np.maximum(_column("ages", ages) / seconds, 0.0), 1.0)
    return floor + (1.0 - floor) * (1.0 - spent)


def log_saturation(counts: FloatArray, *, n_max: float) -> FloatArray:
    """min(ln(1 + n) / ln(1 + n_max), 1) for n ≥ 0 and a finite n_max > 0: further uses count less."""
    _positive("n_max", n_max)
    logs = np.log1p(_column("counts", counts, low=0.0) + 0.0)
    with np.errstate(over="ignore"):
        return np.minimum(logs / math.log1p(n_max), 1.0)


def reciprocal(hops: FloatArray) -> FloatArray:
    """1 / (1 + hops) for hops ≥ 0: a seed is 1, its neighbour 1/2.

    Infinity is 0.0, "the store did answer, and it was not reached"; NaN is absent, "not in the
    graph, or no seeds".
    """
    return 1.0 / (1.0 + _column("hops", hops, low=0.0))


def logistic(values: FloatArray, *, k: float = 1.0, m: float = 0.0) -> FloatArray:
    """1 / (1 + e^(−k(x − m))), for scores without bounds; never overflows.

    Args:
        values: Shape (n,); −infinity gives 0, infinity 1, m gives 1/2.
        k: Steepness, finite and > 0.
        m: The middle, finite.
    """
    _positive("k", k)
    _within("m", m, -MOST, MOST)
    with np.errstate(over="ignore"):
        steps = k * (_column("values", values) - m)
    small = np.exp(-np.abs(steps))
    return np.where(steps >= 0.0, 1.0, small) / (1.0 + small)


def saturation(values: FloatArray, *, c: float) -> FloatArray:
    """The share x / (x + c) for x ≥ 0 and a finite c > 0: 0 stays 0, c is 1/2, infinity 1.

    Computed as 1 / (1 + c/x): each of these steps is monotone in floating point and none overflows,
    so a greater score never loses by a rounding.
    """
    _positive("c", c)
    values = _column("values", values, low=0.0) + 0.0
    with np.errstate(over="ignore", divide="ignore"):
        return 1.0 / (1.0 + c / values)


def over_max(values: FloatArray) -> FloatArray:
    """The share x / max of the pool for x ≥ 0, and 0 throughout where that max is 0.

    An infinite entry is 1; the others are divided by the greatest finite one.

    Example:
        >>> over_max(np.array([1.0, np.nan, 4.0, 0.0])).tolist()
        [0.25, nan, 1.0, 0.0]
    """
    values = _column("values", values, low=0.0)
    finite = values[np.isfinite(values)]
    top = finite.max() if finite.size else 0.0
    scaled = values / top if top > 0.0 else np.where(np.isnan(values), np.nan, 0.0)
    return np.where(np.isposinf(values), 1.0, scaled) + 0.0


def power(values: FloatArray, *, p: float) -> FloatArray:
    """x^p for x ≥ 0 and a finite p > 0; p = 1/2 is the correctly rounded square root."""
    _positive("p", p)
    values = _column("values", values, low=0.0) + 0.0
    with np.errstate(over="ignore"):
        return np.sqrt(values) if p == 0.5 else np.power(values, p)


def min_max(values: FloatArray, *, minimum: float = -inf, natural_zero: bool = False) -> FloatArray:
    """(x − min) / (max − min) within the pool.

    Args:
        values: Shape (n,). Infinite entries take the ends, 1 and 0, and the finite ones are scaled
            among themselves.
        minimum: The least value this evidence can have, as declared. A constant pool at it is 0,
            any other constant pool (a single candidate, too) is 1.
        natural_zero: 0 means "does not match at all" and stays 0.

    Example:
        >>> min_max(np.array([2.0, 3.0, np.nan, 4.0])).tolist()
        [0.0, 0.5, nan, 1.0]
    """
    return _within_pool(_column("values", values), minimum, natural_zero=natural_zero)


def rank(values: FloatArray, *, minimum: float = -inf, natural_zero: bool = False) -> FloatArray:
    """(n − r + 1) / n with r the rank from 1: the share of the pool that is not better.

    Equal values share their best rank, so a constant pool is 1 (0 at the declared minimum). The
    last of n has 1/n, not 0: being last is no observed zero. Arguments as for ``min_max``;
    infinities are ranked like any other value.

    Example:
        >>> rank(np.array([3.0, 9.0, 9.0, np.nan, 1.0])).tolist()
        [0.5, 1.0, 1.0, nan, 0.25]
    """
    values = _column("values", values)
    pool = np.sort(values[~np.isnan(values)])
    if pool.size == 0:
        return values.copy()
    ranked = np.searchsorted(pool, values, side="right") / pool.size
    if pool[0] == pool[-1]:
        ranked[:] = _constant(pool[0], minimum, natural_zero=natural_zero)
    elif natural_zero:
        ranked[values <= 0.0] = 0.0
    return np.where(np.isnan(values), np.nan, ranked)


def z_logistic(
    values: FloatArray, *, minimum: float = -inf, natural_zero: bool = False
) -> FloatArray:
    """1 / (1 + e^(−z)), z = (x − mean) / standard deviation of the pool (divided by n).

    Arguments, infinities and constant pools as for ``min_max``. Where 0 is natural it stays 0, and
    zeros count in the mean and the deviation.
    """
    return _within_pool(_column("values", values), minimum, natural_zero=natural_zero, z=True)


def smoothed_rate(
    runs: FloatArray,
    successes: FloatArray,
    judged_runs: FloatArray,
    judged_successes: FloatArray,
    *parent: FloatArray,
    prior_weight: float,
    agent_verdict_weight: float,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Success rate, with verdicts nobody judged counting for less, pulled toward a prior.

    With w the agent's weight: W_runs = judged + w·(runs − judged), W_successes likewise, and the
    rate is (W_successes + prior_weight·prior) / (W_runs + prior_weight). The prior is 1/2, or the
    parent's own rate (same formula with prior 1/2, one level only) where that is above 1/2.

    Args:
        runs: Counts up to 2^53, shape (n,), as all of them; NaN in any of the own four is absent.
        successes: At most ``runs``, among the judged and among the unjudged.
        judged_runs: At most ``runs``.
        judged_successes: At most ``judged_runs``.
        *parent: The same four of the parent, or nothing; NaN in any of them is no parent.
        prior_weight: How many runs the prior is worth, finite and > 0.
        agent_verdict_weight: In [0, 1].

    Returns:
        The rates in [0, 1] or NaN, and whether the parent's rate was the prior (bool, shape (n,)).

    Source: Mnemosyne. "Above 1/2" is decided on the counts: balanced ones never lift by a rounding.
    """
    _positive("prior_weight", prior_weight)
    _within("agent_verdict_weight", agent_verdict_weight, 0.0, 1.0)
    own, *above = _counts(runs, successes, judged_runs, judged_successes, *parent)

    def rate(prior: FloatArray | float, *counts: FloatArray) -> FloatArray:
        weighted, good = (counts[at] + agent_verdict_weight * counts[at + 2] for at in (0, 1))
        return (good + prior_weight * prior) / (weighted + prior_weight)

    prior, lifted = np.full(own.shape[1], 0.5), np.zeros(own.shape[1], np.bool_)
    if above and not np.isnan(lift := above[0]).all():
        margin = (2.0 * lift[1] - lift[0]) + agent_verdict_weight * (2.0 * lift[3] - lift[2])
        lifted = (margin > 0.0) & ~np.isnan(own[0])
        prior = np.where(lifted, np.maximum(rate(0.5, *lift), 0.5), 0.5)
    return np.minimum(np.maximum(rate(prior, *own), 0.0), 1.0), lifted


def first_present(*columns: FloatArray) -> FloatArray:
    """Per candidate the first of several columns that is present, NaN where all are absent.

    Example:
        >>> first_present(np.array([0.9, np.nan]), np.array([0.1, 0.4])).tolist()
        [0.9, 0.4]
    """
    if not columns:
        raise InvalidArgumentError("first_present: expected at least one column, got none")
    chosen = identity(columns[0])
    for values in columns[1:]:
        column = _column("columns", values)
        if column.shape != chosen.shape:
            raise InvalidArrayError("columns", f"shape {chosen.shape}", f"shape {column.shape}")
        chosen = np.where(np.isnan(chosen), column, chosen)
    return chosen


def _within_pool(
    values: FloatArray, minimum: float, *, natural_zero: bool, z: bool = False
) -> FloatArray:
    """The rules ``min_max`` and ``z_logistic`` share: infinities, constants, natural zero."""
    scaled = np.where(np.isposinf(values), 1.0, np.where(np.isneginf(values), 0.0, values))
    finite = np.isfinite(values)
    pool = values[finite]
    if pool.size == 0:
        return scaled
    low, high = float(pool.min()), float(pool.max())
    if low == high:
        scaled[finite] = _constant(low, minimum, natural_zero=natural_zero)
        return scaled
    # Halved first where the span itself would overflow; never otherwise, halving loses subnormals.
    half = 1.0 if math.isfinite(high - low) else 0.5
    parts = (pool * half - low * half) / (high * half - low * half)
    if z:
        # z does not change under a linear map, so it is taken of the scaled values, whose squares
        # neither overflow nor vanish; fsum is exact, hence the same for every order of the pool.
        mean = math.fsum(parts) / parts.size
        deviation = math.sqrt(math.fsum((parts - mean) ** 2) / parts.size)
        parts = logistic((parts - mean) / deviation)
    scaled[finite] = parts
    if natural_zero:
        scaled[values <= 0.0] = 0.0
    return scaled


def _constant(value: float, minimum: float, *, natural_zero: bool) -> float:
    return 0.0 if value <= minimum or (natural_zero and value <= 0.0) else 1.0


def _counts(*columns: FloatArray) -> FloatArray:
    """(levels, 4, n): judged runs, successes of them, the same unjudged; NaN where any is."""
    given = [_column("parent" if at > 3 else "runs", column) for at, column in enumerate(columns)]
    if len(given) not in (4, 8) or len({column.shape for column in given}) > 1:
        raise InvalidArrayError("counts", "four columns of one length, or eight", "others")
    counts = np.array(given).reshape(len(given) // 4, 4, -1)
    absent = np.logical_or.reduce(np.isnan(counts), axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        parts = np.concatenate([counts[:, 2:], counts[:, :2] - counts[:, 2:]], axis=1)
    good = parts[:, 1::2]
    fine = ((good >= 0.0) & (good <= parts[:, ::2])).all(axis=1) & (counts[:, 0] <= MOST_RUNS)
    if (wrong := ~(fine | absent[:, 0]) | (counts < 0.0).any(axis=1)).any():
        level, row = np.argwhere(wrong)[0]
        expected = "0 ≤ successes ≤ runs, judged ≤ all, up to 2^53"
        raise InvalidArrayError(("runs", "parent")[level], expected, f"others in row {row}")
    return np.where(absent, np.nan, parts)


def _column(name: str, values: FloatArray, *, low: float = -inf) -> FloatArray:
    try:
        # No text that looks like a number, and no None.
        column = np.asarray(values).astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        raise InvalidArrayError(name, "an array of numbers", type(values).__name__) from None
    if column.ndim != 1:
        raise InvalidArrayError(name, "shape (n,)", f"shape {column.shape}")
    if low > -inf and (below := column < low).any():
        row = int(np.argmax(below))
        raise InvalidArrayError(name, f"numbers ≥ {low:g} or NaN", f"{column[row]:g} in row {row}")
    return column


def _positive(name: str, value: float) -> None:
    _within(name, value, LEAST, MOST)


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        wanted = "> 0" if low == LEAST else f"in [{low:g}, {high:g}]"
        raise InvalidArgumentError(f"{name}: expected a finite number {wanted}, got {value!r}")

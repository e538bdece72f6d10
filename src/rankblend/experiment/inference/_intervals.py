"""Bootstrap intervals of mean paired differences, and how great a difference is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend import limits
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference._units import Units, check_differences, group_units

TIE = 1e-12
"""Differences up to this are ties: measures of equal rankings may differ in their last bit."""


def effect_sizes(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's d for paired data: mean difference over the standard deviation of the differences.

    It is taken over queries, so that it is comparable between data sets, whatever their clusters.

    Args:
        differences: float64, shape (r, q).

    Returns:
        float64, shape (r,): 0 where no query differs; infinite, with the sign of the difference,
        where all differ by the same; NaN for a single query that does.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988 (d_z).
    """
    rows = check_differences(differences)
    means = rows.mean(axis=1)
    if rows.shape[1] < 2:
        return np.where(means == 0.0, 0.0, np.nan)
    spread = rows.std(axis=1, ddof=1)
    flat = spread <= TIE
    safe = np.where(flat, 1.0, spread)
    return np.where(
        flat, np.where(np.abs(means) <= TIE, 0.0, np.copysign(np.inf, means)), means / safe
    )


def wins_ties_losses(differences: NDArray[np.float64]) -> NDArray[np.int64]:
    """int64, shape (r, 3): queries on which the arm does better, as well (within `TIE`), worse."""
    rows = check_differences(differences)
    wins, losses = (rows > TIE).sum(axis=1), (rows < -TIE).sum(axis=1)
    return np.stack([wins, rows.shape[1] - wins - losses, losses], axis=1)


def standard_errors(differences: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    """Cluster-robust standard errors of the mean over queries.

    √(G / (G − 1) · Σ (S − m·n)²) / q over the units' sums S and sizes n, m the mean; with queries as
    units the usual s / √q.

    Args:
        differences: float64, shape (r, q).
        units: G of them.

    Returns:
        float64, shape (r,); NaN with a single unit.

    Source: Liang and Zeger, Longitudinal data analysis using generalized linear models, 1986, for
    the mean, with the usual small-sample factor.
    """
    rows = check_differences(differences)
    count = len(units)
    if count < 2:
        return np.full(len(rows), np.nan)
    residuals = units.sums(rows) - rows.mean(axis=1)[:, None] * units.sizes
    total = (residuals * residuals).sum(axis=1)
    errors: NDArray[np.float64] = np.sqrt(total * count / (count - 1)) / rows.shape[1]
    return errors


def minimum_detectable(
    differences: NDArray[np.float64], units: Units, *, alpha: float = 0.05, power: float = 0.8
) -> NDArray[np.float64]:
    """The least true mean difference that this many units would find with the given power.

    (t₁₋α⸝₂ + t_power) · standard error, t with G − 1 degrees of freedom: of one two-sided test at
    α. A difference that was not found and lies below this was not shown to be none.

    Args:
        differences: float64, shape (r, q): their spread is taken as that to come.
        units: G of them.
        alpha: In (0, 1).
        power: In (0, 1).

    Returns:
        float64, shape (r,); NaN with a single unit.

    Source: Bloom, Minimum detectable effects, Evaluation Review 19, 1995.
    """
    if not (0.0 < alpha < 1.0 and 0.0 < power < 1.0):
        raise InvalidArgumentError("alpha, power: expected numbers in (0, 1)")
    errors = standard_errors(differences, units)
    if len(units) < 2:
        return errors
    from scipy.special import stdtrit

    freedom = len(units) - 1
    factor = float(stdtrit(freedom, 1.0 - alpha / 2.0) + stdtrit(freedom, power))
    return errors * (factor if math.isfinite(factor) else math.nan)


_CHUNK = 2_000  # bootstrap samples at a time: 2,000 × 1,500 units are 24 MB


@frozen
class Interval:
    """A mean with a bootstrap interval.

    Attributes:
        mean: Mean over the queries.
        low, high: Ends of the interval.
        clusters: How many independent units were resampled.
    """

    mean: float
    low: float
    high: float
    clusters: int

    @property
    def ends(self) -> str:
        """Both, to four decimals; or that one unit tells nothing about others."""
        if self.clusters < 2:
            return "one unit: nothing can be said"
        return f"[{self.low:+.4f}, {self.high:+.4f}]"

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def paired_interval(
    differences: NDArray[np.float64],
    clusters: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """A percentile bootstrap interval for a mean paired difference.

    Whole clusters are drawn with replacement, because queries about one conversation share its
    difficulty; the statistic is the mean over all queries drawn.

    Args:
        differences: float64, shape (q,): one paired difference a query.
        clusters: The cluster of each query; None when every query is its own.
        confidence: In (0, 1).
        resamples: How many bootstrap samples, ≥ 1.
        seed: Of the random generator.

    Returns:
        The mean and its interval; from −∞ to ∞ for a single cluster, which tells nothing about
        others.

    Raises:
        InvalidArrayError: No differences, or another number of clusters.
        InvalidArgumentError: ``confidence`` or ``resamples`` out of range.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13; resampling of
    clusters: Field and Welsh, Bootstrapping clustered data, JRSS B 69, 2007.
    """
    rows = check_differences(np.asarray(differences, np.float64)[None])
    units = group_units(rows.shape[1], clusters)
    return bootstrap_intervals(rows, units, confidence=confidence, resamples=resamples, seed=seed)[
        0
    ]


def bootstrap_intervals(
    differences: NDArray[np.float64],
    units: Units,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Interval, ...]:
    """`paired_interval` of many rows at once, all from the same draws.

    Args:
        differences: float64, shape (rows, q).
        units: Of the q queries.
        confidence: In (0, 1).
        resamples: How many bootstrap samples, ≥ 1.
        seed: Of the random generator.

    With few units percentile intervals are too narrow: with 10 they cover about 90 % where 95 % is
    asked for. The permutation test does not have this weakness.
    """
    problems = limits.beyond(resamples=resamples, seed=seed)
    if not 0.0 < confidence < 1.0:
        problems.append(f"confidence: expected a number in (0, 1), got {confidence!r}")
    if problems:
        raise InvalidArgumentError(problems)
    rows = check_differences(differences)
    if len(units) == 1:
        return tuple(Interval(float(mean), -math.inf, math.inf, 1) for mean in rows.mean(axis=1))
    sums, count = units.sums(rows), len(units)
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, rows.shape[0]))
    for start in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - start)
        drawn = generator.multinomial(count, np.full(count, 1 / count), size=size)
        means[start : start + size] = (drawn @ sums.T) / (drawn @ units.sizes)[:, None]
    tail = (1.0 - confidence) / 2.0
    ends = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return tuple(
        Interval(float(mean), float(low), float(high), count)
        for mean, low, high in zip(rows.mean(axis=1), *ends, strict=True)
    )

"""Bootstrap intervals of mean paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference.units import Units, check_differences, group_units

__all__ = ["Interval", "bootstrap_intervals", "paired_interval"]

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
    problems = []
    if not 0.0 < confidence < 1.0:
        problems.append(f"confidence: expected a number in (0, 1), got {confidence!r}")
    if resamples < 1:
        problems.append(f"resamples: expected at least 1, got {resamples!r}")
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

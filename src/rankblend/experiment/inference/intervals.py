"""How sure a difference between two profiles is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError

__all__ = ["Interval", "paired_interval"]


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
        The mean and its interval; a single cluster gives a degenerate interval, which `clusters`
        reveals.

    Raises:
        InvalidArrayError: No differences, or another number of clusters.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13; resampling of
    clusters: Field and Welsh, Bootstrapping clustered data, JRSS B 69, 2007.
    """
    differences = np.asarray(differences, np.float64)
    if differences.ndim != 1 or not differences.size or not np.isfinite(differences).all():
        raise InvalidArrayError("differences", "finite, shape (q,), q ≥ 1", f"{differences.shape}")
    if clusters is not None and len(clusters) != differences.size:
        raise InvalidArrayError("clusters", f"{differences.size} labels", f"{len(clusters)}")
    labels = np.arange(differences.size) if clusters is None else np.asarray(clusters)
    _, index = np.unique(labels, return_inverse=True)
    sizes = np.bincount(index).astype(np.float64)
    sums = np.bincount(index, weights=differences)
    drawn = np.random.default_rng(seed).multinomial(
        sizes.size, np.full(sizes.size, 1 / sizes.size), size=resamples
    )
    means = (drawn @ sums) / (drawn @ sizes)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high), int(sizes.size))

"""Dividing queries into folds, whole clusters at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError

__all__ = ["grouped_folds"]


def grouped_folds(clusters: Sequence[str], *, folds: int = 5, seed: int = 0) -> NDArray[np.int64]:
    """The fold of each query; no cluster is in two of them.

    Clusters go one by one, greatest first, to the fold with the fewest queries, equals in an order
    drawn by the seed. With no more clusters than folds each cluster is a fold.

    Args:
        clusters: The cluster of each of q queries.
        folds: How many, ≥ 2.
        seed: Of the order among clusters of equal size.

    Returns:
        int64, shape (q,), in [0, min(folds, clusters)).

    Raises:
        InvalidArgumentError: Fewer than two folds or clusters.
    """
    names, index = np.unique(np.asarray(clusters, np.str_), return_inverse=True)
    problems = []
    if folds < 2:
        problems.append(f"folds: expected at least 2, got {folds!r}")
    if names.size < 2:
        problems.append(f"clusters: expected at least 2 to hold some out, got {names.size}")
    if problems:
        raise InvalidArgumentError(problems)
    sizes = np.bincount(index)
    shuffled = np.random.default_rng(seed).permutation(names.size)
    filled = np.zeros(min(folds, names.size), np.int64)
    fold_of = np.zeros(names.size, np.int64)
    for cluster in sorted(shuffled.tolist(), key=lambda c: -sizes[c]):
        fold_of[cluster] = filled.argmin()
        filled[fold_of[cluster]] += sizes[cluster]
    return fold_of[index]

"""Votes of ranked lists within one query's pool.

A list is a column of values with the mask of its members. Only the order of the members' values
matters; nothing here depends on the order of the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_ranks", "reciprocal_rank_votes"]

FloatArray = NDArray[np.float64]


def best_ranks(values: FloatArray, members: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Ranks from 1 by value descending; equal values share the best rank.

    Sharing is what keeps a vote a function of the values: breaking the tie by id or position would
    give one of two equal memories the greater vote, whoever was stored first.

    Args:
        values: Shape (n,), float64; only the members' are read.
        members: Shape (n,), bool.

    Returns:
        Shape (n,), int64: 1 + the number of members with a greater value; 0 for non-members.
    """
    ranks = np.zeros(len(values), dtype=np.int64)
    listed = values[members]
    ascending = np.sort(listed)
    ranks[members] = 1 + len(listed) - np.searchsorted(ascending, listed, side="right")
    return ranks


def reciprocal_rank_votes(
    values: FloatArray, members: NDArray[np.bool_], *, k: float
) -> FloatArray:
    """(k + 1) / (k + rank), the vote of a list relative to its greatest; 0 for non-members.

    Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods" (SIGIR 2009), where the vote is 1 / (k + rank) with k = 60.
    We differ by the constant factor, which makes the greatest possible vote 1.

    Args:
        values: Shape (n,), float64.
        members: Shape (n,), bool.
        k: Finite, > 0.

    Returns:
        Shape (n,), in [0, 1].
    """
    votes = np.zeros(len(values))
    ranks = best_ranks(values, members)
    votes[members] = (k + 1.0) / (k + ranks[members])
    return votes

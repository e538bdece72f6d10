"""Ranks of judged memories under many weightings at once, without sorting anything.

A measure looks at where the judged memories stand, down to its cutoff. Most of them stand below it
under most weightings: a lower bound of the score at the cutoff tells. Of the others the ranks are
the number of memories that come before, which are counted.

Scores are made of the same operations in the same order as in `kernels.compose`, only for K
weightings side by side instead of one, so they have the same bits; what compares them here decides
as a recall does, so nothing is left to a tolerance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankblend.experiment.replay.batches import WeightBatch
from rankblend.experiment.replay.tables import QueryTable
from rankblend.kernels.blend import BELOW_TIPS
from rankblend.recall.ranking import FLOOR_TOLERANCE
from rankblend.relevance.blend import ScopeBlendMode
from rankblend.relevance.missing import COVERAGE_TOLERANCE, Require

__all__ = ["Placed", "Workspace", "place_judged"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TINY = math.ulp(0.0)
_NORMAL = 1e-290  # products down to here are no subnormal numbers, which a library may flush to 0
_BYTE = 255  # bytes are summed in bytes, up to here without overflow
_CELLS = 200_000  # compared at once
_GROUPS = 3  # groups of memories per rank, from whose maxima the bound at the cutoff is taken
_DROPPED = -1.0  # in place of the score of what no order has


class Placed(NamedTuple):
    """Judged memories of one query that stand at the cutoff or above.

    Attributes:
        judged: int64, shape (p,): which of the judged memories.
        arms: int64, shape (p,): under which weighting.
        ranks: int64, shape (p,): from 1.
        ranked: int64, shape (K,): how many memories each weighting ranks at all.
    """

    judged: IntArray
    arms: IntArray
    ranks: IntArray
    ranked: IntArray


class Workspace:
    """Memory for the scores of one query, used again for the next.

    Arrays of this size come from the system page by page whenever they are asked for; that took
    more time than filling them.
    """

    def __init__(self) -> None:
        self._arrays = [np.empty(0) for _ in range(3)]

    def matrix(self, number: int, rows: int, columns: int) -> FloatArray:
        """One of three arrays, shape (rows, columns), with whatever is in it."""
        if self._arrays[number].size < rows * columns:
            self._arrays[number] = np.empty(2 * rows * columns)
        return self._arrays[number][: rows * columns].reshape(rows, columns)


def place_judged(
    table: QueryTable, batch: WeightBatch, part: slice, depth: int, work: Workspace
) -> Placed:
    """Where the judged memories of one query stand.

    Args:
        table: The query.
        batch: The arms.
        part: Which K of them.
        depth: The last rank of interest, ≥ 1.
        work: Memory to work in.
    """
    m, k = table.values.shape[1], batch.weights[:, part].shape[1]
    none = np.empty(0, np.int64)
    if not m:
        return Placed(none, none, none, np.zeros(k, np.int64))
    scores, dropped = _scores(table, batch, part, work)
    ranked = np.full(k, m)
    if dropped is not None:
        scores[dropped] = _DROPPED
        ranked -= np.count_nonzero(dropped, axis=0)
    if not len(table.judged):
        return Placed(none, none, none, ranked)
    folded = _folded(table, batch, scores)
    first = scores if folded is None else folded
    own = first[table.judged]
    judged, arms = np.nonzero(own >= np.maximum(_bound(first, depth), 0.0))
    ranks = np.empty(len(judged), np.int64)
    step = max(_CELLS // m, 1)
    for start in range(0, len(judged), step):
        piece = slice(start, start + step)
        ranks[piece] = _ranks(table, scores, folded, table.judged[judged[piece]], arms[piece])
    near = ranks <= depth
    return Placed(judged[near], arms[near], ranks[near], ranked)


def _scores(
    table: QueryTable, batch: WeightBatch, part: slice, work: Workspace
) -> tuple[FloatArray, NDArray[np.bool_] | None]:
    """Scores, shape (m, K), and which of them are dropped; None when none can be."""
    weights, whole, pull = batch.weights[:, part], batch.whole[part], batch.pull[part]
    scores = _weighted_sum(table, batch, weights, work)
    if batch.prior is not None:
        np.add(scores, pull * batch.prior, out=scores)
    policy = batch.run.root.missing
    present = None
    if not batch.by_all or batch.standing is not None or isinstance(policy, Require):
        present = _present_weight(table, batch, part, work)
    # The least double in place of 0: nothing was added above it, so the quotient is 0.
    if batch.by_all or present is None:
        np.divide(scores, np.fmax(whole + pull, _TINY), out=scores)
    else:
        divisor = present if batch.prior is None else present + pull
        np.divide(scores, np.fmax(divisor, _TINY, out=work.matrix(2, *scores.shape)), out=scores)
    if batch.standing is not None and present is not None:
        scores[np.broadcast_to(present == 0.0, scores.shape)] = batch.standing
    dropped = None
    if isinstance(policy, Require) and present is not None:
        covered = np.broadcast_to(np.where(whole > 0.0, present / whole, present), scores.shape)
        dropped = covered < policy.coverage - COVERAGE_TOLERANCE
        scores[dropped] = 0.0
    least = batch.run.profile.floors.min_score
    if least is not None:
        below = scores < least - FLOOR_TOLERANCE
        dropped = below if dropped is None else dropped | below
    return scores, dropped


def _weighted_sum(
    table: QueryTable, batch: WeightBatch, weights: FloatArray, work: Workspace
) -> FloatArray:
    """Σ wᵢvᵢ, input by input.

    A matrix product with an inner dimension of 1 rounds each product once, as multiplying does, and
    is several times faster than numpy's broadcasting. Only where products could be subnormal, which
    a library may treat as 0, are they multiplied.
    """
    plain = table.least * batch.least > _NORMAL
    shape = (table.values.shape[1], weights.shape[1])
    scores, product = work.matrix(0, *shape), work.matrix(1, *shape)
    out = scores
    for column, weight in zip(table.values, weights, strict=True):
        if plain:
            np.dot(column[:, None], weight[None, :], out=out)
        else:
            np.multiply(column[:, None], weight, out=out)
        if out is product:
            np.add(scores, product, out=scores)
        out = product
    return scores


def _present_weight(
    table: QueryTable, batch: WeightBatch, part: slice, work: Workspace
) -> FloatArray:
    """The weight of what is present, shape (m, K), or (K,) where everything is."""
    if table.complete:
        return batch.whole[part]
    if batch.pattern_weights is not None:
        patterns = batch.pattern_weights[:, part]
        out = work.matrix(1, table.values.shape[1], patterns.shape[1])
        return np.take(patterns, table.patterns, axis=0, out=out, mode="clip")
    weights = batch.weights[:, part]
    present = np.zeros((table.values.shape[1], weights.shape[1]))
    for at, weight in enumerate(weights):
        present += np.multiply(table.present[at][:, None], weight)
    return present


def _folded(table: QueryTable, batch: WeightBatch, scores: FloatArray) -> FloatArray | None:
    """Rank scores, or None where the score alone orders; what is dropped stays below all."""
    scope = batch.run.profile.scope
    if scope.mode is ScopeBlendMode.OFF or table.distances[0] == table.distances[-1]:
        return None
    folded = scores * scope.gates(table.distances)[:, None] + 0.0
    if scope.mode is ScopeBlendMode.BACKFILL:
        tips = table.distances[:, None] == 0
        folded = np.where(tips, 0.5 + 0.5 * folded, np.minimum(0.5 * folded, BELOW_TIPS))
    folded[scores < 0.0] = _DROPPED
    return folded


def _bound(first: FloatArray, depth: int) -> FloatArray:
    """What is less has ``depth`` memories before it: shape (K,), −1 where there is no telling.

    Of the maxima of disjoint groups of memories, ``depth`` reach the depth-th greatest of them.
    """
    m = len(first)
    groups = min(_GROUPS * depth, m)
    if groups <= depth:
        return np.full(first.shape[1], _DROPPED)
    size = m // groups
    maxima = np.maximum.reduce(first[: size * groups].reshape(size, groups, -1), axis=0)
    bound: FloatArray = np.partition(maxima, groups - depth, axis=0)[groups - depth]
    return bound


def _ranks(
    table: QueryTable,
    scores: FloatArray,
    folded: FloatArray | None,
    rows: IntArray,
    arms: IntArray,
) -> IntArray:
    """Rank of row ``rows[i]`` under weighting ``arms[i]``, shape (p,)."""
    first = scores if folded is None else folded
    columns = first[:, arms]
    own = first[rows, arms]
    ranks = 1 + _count(columns > own)
    equal = columns == own
    if np.count_nonzero(equal) > len(rows):
        tied = np.flatnonzero(_count(equal) > 1)
        rows, arms = rows[tied], arms[tied]
        before = np.arange(len(first))[:, None] < rows  # rows are in the order of ties
        if folded is not None:
            # Nearer ones come first. Of one distance the score decides: a gate does not reverse
            # two scores, but may round them to one rank score.
            same = table.distances[:, None] == table.distances[rows]
            mine, theirs = scores[rows, arms], scores[:, arms]
            before = np.where(same, (theirs > mine) | ((theirs == mine) & before), before)
        ranks[tied] += _count(equal[:, tied] & before)
    return ranks


def _count(mask: NDArray[np.bool_]) -> IntArray:
    """How many of each column, shape (m, p) to int64 (p,)."""
    found = np.zeros(mask.shape[1], np.int64)
    for start in range(0, len(mask), _BYTE):
        piece = mask[start : start + _BYTE].view(np.uint8)
        found += np.add.reduce(piece, axis=0, dtype=np.uint8)
    return found

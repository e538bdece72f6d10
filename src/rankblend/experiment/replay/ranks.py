"""Ranks of judged memories under many weightings at once, without sorting anything.

A measure looks at where the judged memories stand, down to its cutoff. Most of them stand below it
under most weightings: a lower bound of the score at the cutoff tells. Of the others the ranks are
the number of memories that come before, which are counted.

Comparisons are made between matrix products first. Those closer than what rounding can have done
are decided by scores made as a recall makes them, with the same bits, and by the same tie-breaks;
so nothing is left to a tolerance.

Source: the filter is that of exact geometric predicates: Shewchuk, Adaptive precision
floating-point arithmetic and fast robust geometric predicates, 1997.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankblend.experiment.replay.batches import WeightBatch
from rankblend.experiment.replay.scores import (
    Part,
    Workspace,
    error_bound,
    exact_scores,
    is_normal,
    product_scores,
)
from rankblend.experiment.replay.tables import QueryTable
from rankblend.kernels.blend import BELOW_TIPS
from rankblend.relevance.blend import ScopeBlendMode
from rankblend.relevance.missing import Require

__all__ = ["Placed", "place_judged"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    if not (work.filters and _can_filter(table, batch)):
        return _exactly(table, batch, part, depth, work)
    found, unsure = _filtered(table, batch, part, depth, work)
    work.note(len(unsure), len(found.ranked))
    if not len(unsure):
        return found
    rest = _exactly(table, batch, part.start + unsure, depth, work)
    sure = np.isin(found.arms, unsure, invert=True)
    return Placed(
        np.concatenate([found.judged[sure], rest.judged]),
        np.concatenate([found.arms[sure], unsure[rest.arms]]),
        np.concatenate([found.ranks[sure], rest.ranks]),
        found.ranked,
    )


def _can_filter(table: QueryTable, batch: WeightBatch) -> bool:
    """Whether the score alone orders, is a plain quotient, and drops nothing."""
    policy, profile = batch.run.root.missing, batch.run.profile
    return (
        len(table.judged) > 0
        and batch.standing is None
        and not isinstance(policy, Require)
        and profile.floors.min_score is None
        and (profile.scope.mode is ScopeBlendMode.OFF or _one_distance(table))
        and is_normal(table, batch)
    )


def _filtered(
    table: QueryTable, batch: WeightBatch, part: slice, depth: int, work: Workspace
) -> tuple[Placed, IntArray]:
    """`place_judged` by products; and the arms, within ``part``, for which they cannot tell."""
    scores, margin = product_scores(table, batch, part, work), error_bound(batch)
    own = scores[table.judged]
    judged, arms = np.nonzero(own >= _bound(scores, depth) - margin)
    ranks = np.empty(len(judged), np.int64)
    sure = np.empty(len(judged), np.bool_)
    step = max(_CELLS // len(scores), 1)
    for start in range(0, len(judged), step):
        piece = slice(start, start + step)
        chosen = arms[piece]
        columns = work.matrix(1, len(scores), len(chosen))
        np.take(scores, chosen, axis=1, out=columns, mode="clip")
        value = own[judged[piece], chosen]
        above = _count(columns > value + margin)
        ranks[piece] = above + 1
        sure[piece] = _count(columns >= value - margin) == above + 1  # none near but itself
    near = ranks <= depth
    open_ = near & ~sure
    unsure = np.unique(arms[open_]) if open_.any() else np.empty(0, np.int64)
    ranked = np.full(scores.shape[1], len(scores))
    return Placed(judged[near], arms[near], ranks[near], ranked), unsure


def _exactly(
    table: QueryTable, batch: WeightBatch, part: Part, depth: int, work: Workspace
) -> Placed:
    """`place_judged` by the scores of a recall."""
    m, k = table.values.shape[1], batch.weights[:, part].shape[1]
    none = np.empty(0, np.int64)
    if not m:
        return Placed(none, none, none, np.zeros(k, np.int64))
    scores, dropped = exact_scores(table, batch, part, work)
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


def _folded(table: QueryTable, batch: WeightBatch, scores: FloatArray) -> FloatArray | None:
    """Rank scores, or None where the score alone orders; what is dropped stays below all."""
    scope = batch.run.profile.scope
    if scope.mode is ScopeBlendMode.OFF or _one_distance(table):
        return None
    folded = scores * scope.gates(table.distances)[:, None] + 0.0
    if scope.mode is ScopeBlendMode.BACKFILL:
        tips = table.distances[:, None] == 0
        folded = np.where(tips, 0.5 + 0.5 * folded, np.minimum(0.5 * folded, BELOW_TIPS))
    folded[scores < 0.0] = _DROPPED
    return folded


def _one_distance(table: QueryTable) -> bool:
    return bool(table.distances[0] == table.distances[-1])  # they ascend


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

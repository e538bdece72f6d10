"""Ranks of judged memories under many weightings at once, without sorting anything.

A measure looks at where the judged memories stand, down to its cutoff. Most of them stand below it
under most weightings: a lower bound of the score at the cutoff tells. Of the others the ranks are
the number of memories that come before, which are counted.

Comparisons are made between scores in single precision first. Those closer than what rounding can
have done are decided by scores made as a recall makes them, with the same bits, and by the same
tie-breaks; so nothing is left to a tolerance.

Source: the filter is that of exact geometric predicates: Shewchuk, Adaptive precision
floating-point arithmetic and fast robust geometric predicates, 1997.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankblend.experiment.replay.batches import WeightBatch
from rankblend.experiment.replay.scores import Workspace, error_bound, exact_scores, quotients
from rankblend.experiment.replay.stacks import Stack
from rankblend.kernels.blend import BELOW_TIPS
from rankblend.relevance.blend import ScopeBlendMode

__all__ = ["Placed", "place_judged"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CELLS = 131_072  # scores of single precision made at once: two such arrays fit into a cache
_GROUPS = 3  # groups of memories per rank, at least, from whose maxima the bound is taken
_DROPPED = -1.0  # in place of the score of what no order has
_BYTE = 255  # marks are counted in bytes, up to here without overflow
_PAIRS = np.uint64(0x00FF00FF00FF00FF)  # every second byte of a word
_SUM = np.uint64(0x0001000100010001)  # times this, the highest two bytes are the sum of all pairs
_EIGHT, _LAST = np.uint64(8), np.uint64(48)


class Placed(NamedTuple):
    """Judged memories that stand at the cutoff or above.

    Attributes:
        judged: int64, shape (p,): which of the judged memories of the stack.
        arms: int64, shape (p,): under which of the K weightings.
        ranks: int64, shape (p,): from 1.
        ranked: int64, shape (K, G): how many memories each weighting ranks at all.
    """

    judged: IntArray
    arms: IntArray
    ranks: IntArray
    ranked: IntArray


class _Found(NamedTuple):
    """Ranks of judged memories, shape (p,) each; a pair is ``arm · G + query``."""

    pairs: IntArray
    judged: IntArray
    ranks: IntArray


def place_judged(
    stack: Stack, batch: WeightBatch, part: slice, depth: int, work: Workspace
) -> Placed:
    """Where the judged memories of some queries stand.

    Args:
        stack: The queries.
        batch: The arms.
        part: Which K of them.
        depth: The last rank of interest, ≥ 1.
        work: Memory to work in.
    """
    size = (part.stop - part.start) * len(stack)
    ranked = np.tile(stack.sizes, part.stop - part.start)
    found: list[_Found] = []
    left = np.arange(size)
    if work.filters and batch.terms is not None and _by_score(stack, batch):
        found, left = _filtered(stack, batch.terms[part], depth, work)
        work.note(len(left), size)
    step = max(_CELLS // (2 * stack.width), 1)  # of double precision
    for start in range(0, len(left), step):
        pairs = left[start : start + step]
        exact, ranked[pairs] = _exactly(stack, batch, part.start, pairs, depth, work)
        found.append(exact)
    pairs, judged, ranks = (np.concatenate(each) for each in zip(*found, strict=True))
    return Placed(judged, pairs // len(stack), ranks, ranked.reshape(-1, len(stack)))


def _by_score(stack: Stack, batch: WeightBatch) -> bool:
    """Whether the score alone orders."""
    return stack.one_distance or batch.run.profile.scope.mode is ScopeBlendMode.OFF


def _filtered(
    stack: Stack, terms: NDArray[np.float32], depth: int, work: Workspace
) -> tuple[list[_Found], IntArray]:
    """Ranks by single precision; and the pairs for which it cannot tell."""
    found: list[_Found] = []
    unsure = np.zeros(len(terms) * len(stack), np.bool_)
    step = max(_CELLS // stack.padding.size, 1)
    for start in range(0, len(terms), step):
        near, too_near = _compared(stack, terms[start : start + step], depth, work)
        near = near._replace(pairs=near.pairs + start * len(stack))
        unsure[near.pairs[too_near]] = True
        found.append(near)
    if unsure.any():
        for number, each in enumerate(found):
            sure = ~unsure[each.pairs]
            found[number] = _Found(*(column[sure] for column in each))
    return found, np.flatnonzero(unsure)


def _compared(
    stack: Stack, terms: NDArray[np.float32], depth: int, work: Workspace
) -> tuple[_Found, NDArray[np.bool_]]:
    """The ranks to ``depth`` that `quotients` give; and where another score is too near."""
    scores, margin = quotients(stack, terms, work), error_bound(terms.shape[1])
    queries = stack.judged_queries
    bound = (_bound(scores, depth, work) - margin).reshape(len(terms), -1)
    cells = queries * stack.width + stack.judged_rows
    own = np.take(scores.reshape(len(terms), -1), cells, axis=1, mode="clip")
    at = np.flatnonzero(own >= np.take(bound, queries, axis=1, mode="clip"))
    arms, judged = np.divmod(at, max(len(queries), 1))
    pairs, value = arms * len(stack) + queries[judged], own.ravel()[at]
    ranks, within = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
    step = max(_CELLS // stack.width, 1)
    for start in range(0, len(at), step):
        piece = slice(start, start + step)
        mine = value[piece, None]
        rows = work.matrix(1, len(mine), stack.width, np.float32)
        marks = work.matrix(2, len(mine), stack.width, np.bool_)
        np.take(scores, pairs[piece], axis=0, out=rows, mode="clip")
        ranks[piece] = _count(np.greater(rows, mine + margin, out=marks)) + 1
        within[piece] = _count(np.greater_equal(rows, mine - margin, out=marks))
    near = ranks <= depth
    return _Found(pairs[near], judged[near], ranks[near]), (within > ranks)[near]


def _exactly(
    stack: Stack, batch: WeightBatch, first_arm: int, pairs: IntArray, depth: int, work: Workspace
) -> tuple[_Found, IntArray]:
    """Ranks by the scores of a recall; and how many memories each pair ranks at all."""
    arms, queries = np.divmod(pairs, len(stack))
    scores, dropped = exact_scores(stack, batch, queries, arms + first_arm, work)
    scores[dropped] = _DROPPED
    ranked = stack.width - np.count_nonzero(dropped, axis=1)
    folded = _folded(stack, batch, queries, scores)
    ordering = scores if folded is None else folded
    at, judged = _judged_of(stack, queries)
    rows = stack.judged_rows[judged]
    near = ordering[at, rows] >= np.maximum(_bound(ordering, depth, work), 0.0)[at]
    at, judged, rows = at[near], judged[near], rows[near]
    ranks = np.empty(len(at), np.int64)
    step = max(_CELLS // (2 * stack.width), 1)
    for start in range(0, len(at), step):
        piece = slice(start, start + step)
        ranks[piece] = _ranks(scores, folded, stack.distances[queries[at[piece]]],
                              at[piece], rows[piece])  # fmt: skip
    near = ranks <= depth
    return _Found(pairs[at[near]], judged[near], ranks[near]), ranked


def _judged_of(stack: Stack, queries: IntArray) -> tuple[IntArray, IntArray]:
    """All judged memories of some queries: at which of ``queries``, and which ones."""
    counts = stack.judged_counts
    starts, lengths = (np.cumsum(counts) - counts)[queries], counts[queries]
    at = np.repeat(np.arange(len(queries)), lengths)
    within = np.arange(len(at)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return at, starts[at] + within


def _folded(
    stack: Stack, batch: WeightBatch, queries: IntArray, scores: FloatArray
) -> FloatArray | None:
    """Rank scores, or None where the score alone orders; what is dropped stays below all."""
    if _by_score(stack, batch):
        return None
    scope = batch.run.profile.scope
    gates = scope.gates(stack.distances.ravel()).reshape(stack.distances.shape)
    folded = scores * gates[queries] + 0.0
    if scope.mode is ScopeBlendMode.BACKFILL:
        tips = stack.distances[queries] == 0
        folded = np.where(tips, 0.5 + 0.5 * folded, np.minimum(0.5 * folded, BELOW_TIPS))
    folded[scores < 0.0] = _DROPPED
    return folded


def _bound(scores: NDArray[Any], depth: int, work: Workspace) -> NDArray[Any]:
    """What is less has ``depth`` memories of its row before it: shape (p,), −1 for no telling.

    Of the maxima of disjoint groups of memories, ``depth`` reach the depth-th greatest of them.
    """
    rows, width = scores.shape
    if width <= depth:
        return np.full(rows, _DROPPED, scores.dtype)
    maxima = work.matrix(1, rows, width // 2, scores.dtype.type)
    source, half = scores, width // 2
    while half >= _GROUPS * depth:  # the first with those half-way on; of an odd number but one
        source = np.maximum(source[:, :half], source[:, half : 2 * half], out=maxima[:, :half])
        width, half = half, half // 2
    if source is scores:
        source = scores.copy()
    source.partition(width - depth, axis=1)
    bound: NDArray[Any] = source[:, width - depth].copy()
    return bound


def _ranks(
    scores: FloatArray, folded: FloatArray | None, distances: IntArray, at: IntArray, rows: IntArray
) -> IntArray:
    """Rank of candidate ``rows[i]`` among the scores ``at[i]``, shape (p,).

    Args:
        scores: Shape (n, M).
        folded: What orders in their place, if anything.
        distances: Shape (p, M).
        at: Shape (p,).
        rows: Shape (p,).
    """
    ordering = scores if folded is None else folded
    others, own = ordering[at], ordering[at, rows, None]
    ranks = 1 + _count(others > own)
    equal = others == own
    if np.count_nonzero(equal) > len(rows):
        tied = np.flatnonzero(_count(equal) > 1)
        at, rows = at[tied], rows[tied]
        before = np.arange(scores.shape[1]) < rows[:, None]  # rows are in the order of ties
        if folded is not None:
            # Nearer ones come first. Of one distance the score decides: a gate does not reverse
            # two scores, but may round them to one rank score.
            far = distances[tied]
            same = far == np.take_along_axis(far, rows[:, None], axis=1)
            mine, theirs = scores[at, rows, None], scores[at]
            before = np.where(same, (theirs > mine) | ((theirs == mine) & before), before)
        ranks[tied] += _count(equal[tied] & before)
    return ranks


def _count(marks: NDArray[np.bool_]) -> IntArray:
    """How many of each row, shape (p, M), M a multiple of eight, to int64 (p,): a word at a time."""
    words, found = marks.view(np.uint64), np.zeros(len(marks), np.int64)
    for start in range(0, words.shape[1], _BYTE):
        sums = np.add.reduce(words[:, start : start + _BYTE], axis=1)
        sums = (sums & _PAIRS) + ((sums >> _EIGHT) & _PAIRS)
        found += ((sums * _SUM) >> _LAST).view(np.int64)
    return found

"""Scores of queries under many weightings: exactly as a recall has them, or nearly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.experiment.replay.batches import WeightBatch
from rankblend.experiment.replay.stacks import Stack
from rankblend.recall.ranking import FLOOR_TOLERANCE
from rankblend.relevance.missing import COVERAGE_TOLERANCE, Require

__all__ = ["Workspace", "error_bound", "exact_scores", "quotients"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TINY = math.ulp(0.0)
_TRIED, _WORTH = 1_000, 0.3  # pairs after which the filter is judged; share it may leave open


class Workspace:
    """Memory for the scores of some queries, used again for the next.

    Arrays of this size come from the system page by page whenever they are asked for; that took
    more time than filling them.

    Attributes:
        filters: Whether comparing near scores first is worth it: where many scores tie, as with few
            distinct values, it decides little.
    """

    def __init__(self) -> None:
        self._arrays = [np.empty(0, np.uint8) for _ in range(3)]
        self._unsure = self._tried = 0
        self.filters = True

    def note(self, unsure: int, tried: int) -> None:
        """Tell how many pairs of a query and an arm the filter could not decide."""
        self._unsure, self._tried = self._unsure + unsure, self._tried + tried
        self.filters = self._tried < _TRIED or self._unsure < _WORTH * self._tried

    def matrix(
        self, number: int, rows: int, columns: int, dtype: type[Any] = np.float64
    ) -> NDArray[Any]:
        """One of three arrays, shape (rows, columns), with whatever is in it."""
        size = rows * columns * np.dtype(dtype).itemsize
        if self._arrays[number].size < size:
            self._arrays[number] = np.empty(2 * size, np.uint8)
        found: NDArray[Any] = self._arrays[number][:size].view(dtype)
        return found.reshape(rows, columns)


def exact_scores(
    stack: Stack, batch: WeightBatch, queries: IntArray, arms: IntArray, work: Workspace
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The scores that a recall would have, to the bit.

    The operations are those of `kernels.compose`, in the same order.

    Args:
        stack: The queries.
        batch: The arms.
        queries: int64, shape (p,): positions in the stack.
        arms: int64, shape (p,): the arm of each, its position in the batch.
        work: Memory to work in.

    Returns:
        Shape (p, M); and bool, shape (p, M), which of them are dropped, padding among them.
    """
    scores = work.matrix(0, len(queries), stack.width)
    other = work.matrix(1, len(queries), stack.width)
    out = scores
    for values, weights in zip(stack.values, batch.weights, strict=True):
        np.take(values, queries, axis=0, out=out, mode="clip")
        np.multiply(out, weights[arms, None], out=out)
        if out is other:
            np.add(scores, other, out=scores)
        out = other
    whole, pull = batch.whole[arms, None], batch.pull[arms, None]
    if batch.prior is not None:
        np.add(scores, pull * batch.prior, out=scores)
    policy = batch.run.root.missing
    needed = not batch.by_all or batch.standing is not None or isinstance(policy, Require)
    present = whole
    if needed and not stack.complete:
        present = _present_weight(stack, batch, queries, arms)
    divisor = whole if batch.by_all else present
    if batch.prior is not None:
        divisor = divisor + pull
    # The least double in place of 0: nothing was added above it, so the quotient is 0.
    np.divide(scores, np.fmax(divisor, _TINY), out=scores)
    if batch.standing is not None:
        scores[np.broadcast_to(present == 0.0, scores.shape)] = batch.standing
    dropped = stack.padding[queries]
    if isinstance(policy, Require):
        covered = np.where(whole > 0.0, present / whole, present)
        lacking = np.broadcast_to(covered < policy.coverage - COVERAGE_TOLERANCE, scores.shape)
        scores[lacking] = 0.0
        dropped |= lacking
    least = batch.run.profile.floors.min_score
    if least is not None:
        dropped |= scores < least - FLOOR_TOLERANCE
    return scores, dropped


def _present_weight(
    stack: Stack, batch: WeightBatch, queries: IntArray, arms: IntArray
) -> FloatArray:
    """The weight of what is present, shape (p, M)."""
    if batch.pattern_weights is not None:
        places = stack.patterns[queries]
        places += (arms * batch.pattern_weights.shape[1])[:, None]
        return np.take(batch.pattern_weights, places, mode="clip")
    present = np.zeros((len(queries), stack.width))
    for here, weights in zip(stack.present, batch.weights, strict=True):
        present += np.multiply(here[queries], weights[arms, None])
    return present


def quotients(stack: Stack, terms: NDArray[np.float32], work: Workspace) -> NDArray[np.float32]:
    """Nearly the scores of all queries under k arms, by single precision; −1 in the padding.

    Args:
        stack: The queries.
        terms: Of the arms, shape (k, t).
        work: Memory to work in.

    Returns:
        float32, shape (k·G, M): arm by arm, query by query.
    """
    size = len(terms), stack.padding.size
    scores = work.matrix(0, *size, np.float32)
    weights = work.matrix(1, *size, np.float32)
    np.dot(terms, stack.above, out=scores)
    np.dot(terms, stack.below, out=weights)
    np.divide(scores, weights, out=scores)
    return scores.reshape(-1, stack.width)


def error_bound(terms: int) -> np.float32:
    """By how much more than this two `quotients` must differ to be ordered as the exact scores.

    Let u = 2⁻²⁴ and t the number of ``terms``. A sum of t products of numbers ≥ 0, in any order, with
    fused operations or without, lies within a factor (1 ± u)ᵗ of the true one; rounding its factors
    to single precision adds two. Below the line the products are exact, so that it is t + 1 there;
    one more is left for the constant that is added, which is less than 2⁻³⁹ of the weight, and one
    for the division. So the quotient, at most 1, is within (2t + 5)u of the true one, and within
    (2t + 6)u of the score in double precision, whose own error is some 2⁻²⁹ of that. Products too
    small for normal numbers, which a library may take as 0, are less than 2⁻¹²⁶, which is 2⁻⁶⁵ of
    any weight there is (`WeightBatch.terms`). Two scores have twice the error; the rest of the
    bound is room for adding it in single precision, and for products of errors.
    """
    return np.float32((4 * terms + 20) * 2.0**-24)

"""Scores of one query under many weightings: exactly as a recall has them, or as a product."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankblend.experiment.replay.batches import WeightBatch
from rankblend.experiment.replay.tables import QueryTable
from rankblend.recall.ranking import FLOOR_TOLERANCE
from rankblend.relevance.missing import COVERAGE_TOLERANCE, Require

__all__ = ["Part", "Workspace", "error_bound", "exact_scores", "is_normal", "product_scores"]

FloatArray = NDArray[np.float64]
Part = slice | NDArray[np.int64]
"""Some arms of a batch, by position."""

_TINY = math.ulp(0.0)
_TRIED, _WORTH = 1_000, 0.3  # arms after which the filter is judged; share it may leave open
_NORMAL = 1e-290  # products down to here are no subnormal numbers, which a library may flush to 0


class Workspace:
    """Memory for the scores of one query, used again for the next.

    Arrays of this size come from the system page by page whenever they are asked for; that took
    more time than filling them.

    Attributes:
        filters: Whether comparing products first is worth it: where many scores tie, as with few
            distinct values, it decides little.
    """

    def __init__(self) -> None:
        self._arrays = [np.empty(0) for _ in range(3)]
        self._unsure = self._tried = 0
        self.filters = True

    def note(self, unsure: int, tried: int) -> None:
        """Tell how many arms the filter could not decide."""
        self._unsure, self._tried = self._unsure + unsure, self._tried + tried
        self.filters = self._tried < _TRIED or self._unsure < _WORTH * self._tried

    def matrix(self, number: int, rows: int, columns: int) -> FloatArray:
        """One of three arrays, shape (rows, columns), with whatever is in it."""
        if self._arrays[number].size < rows * columns:
            self._arrays[number] = np.empty(2 * rows * columns)
        return self._arrays[number][: rows * columns].reshape(rows, columns)


def is_normal(table: QueryTable, batch: WeightBatch) -> bool:
    """Whether no product of a weight and a value is a subnormal number."""
    return table.least * batch.least > _NORMAL


def exact_scores(
    table: QueryTable, batch: WeightBatch, part: Part, work: Workspace
) -> tuple[FloatArray, NDArray[np.bool_] | None]:
    """The scores that a recall would have, to the bit.

    The operations are those of `kernels.compose`, in the same order.

    Returns:
        Shape (m, K); and bool, shape (m, K), which of them are dropped, None when none can be.
    """
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
    plain = is_normal(table, batch)
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
    table: QueryTable, batch: WeightBatch, part: Part, work: Workspace
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


def product_scores(
    table: QueryTable, batch: WeightBatch, part: Part, work: Workspace
) -> FloatArray:
    """Σwv / Σw as one matrix product, shape (m, K): rounded in another order than a recall's.

    For batches whose policy has no prior and no standing value.
    """
    weights = batch.weights[:, part]
    shape = (table.values.shape[1], weights.shape[1])
    scores = np.dot(table.values.T, weights, out=work.matrix(0, *shape))
    if batch.by_all or table.complete:
        return np.divide(scores, np.fmax(batch.whole[part], _TINY), out=scores)
    if batch.divisors is None:
        divisors = np.fmax(_present_weight(table, batch, part, work), _TINY)
    else:
        out = work.matrix(1, *shape)
        divisors = np.take(batch.divisors[:, part], table.patterns, axis=0, out=out, mode="clip")
    return np.divide(scores, divisors, out=scores)


def error_bound(batch: WeightBatch) -> float:
    """By how much more than this two `product_scores` must differ to be ordered as the exact ones.

    Let u = 2⁻⁵³. A sum of s products of numbers ≥ 0, in any order, with fused operations or
    without, lies within a factor (1 ± u)ˢ of the true one, and so does the exact form's; both are
    divided by the same number and rounded once more. So the two forms of one score, at most 1,
    differ by less than (2s + 3)u, and the difference of two scores by less than (4s + 6)u, as long
    as no product is subnormal (`is_normal`). The bound leaves room for adding it in float64.
    """
    return (4 * len(batch.weights) + 16) * 2.0**-53

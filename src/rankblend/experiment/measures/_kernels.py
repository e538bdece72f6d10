"""Measures of rankings as array arithmetic: many rankings of many queries in one call.

Every kernel reads ``grades``: float64, shape (…, k), the grades of what was returned in rank order;
NaN where a result was not judged, and behind the last result. Leading axes are rankings and
queries; what is known about a query (its ideal, its number of relevant memories) is broadcast
against them. Results have shape (…). Nothing returned scores 0.

Definitions are those of trec_eval as ir-measures names them: a result is relevant from grade
``rel`` on, an unjudged one is not relevant, a grade below 0 gains nothing, and a query without
anything relevant scores 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def dcg(grades: FloatArray, *, cutoff: int | None = None, exponential: bool = False) -> FloatArray:
    """Discounted cumulative gain: Σ gain(gradeᵣ) / log₂(1 + r) over the ranks r ≤ cutoff.

    Args:
        grades: float64, shape (…, k), in rank order; NaN gains nothing.
        cutoff: Ranks looked at, ≥ 1; None for all.
        exponential: Gain 2^grade − 1 in place of the grade.

    Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20,
    2002, with the discount at rank 1 as trec_eval has it; exponential gains: Burges et al.,
    Learning to rank using gradient descent, ICML 2005.
    """
    top = grades[..., :cutoff]
    gains = np.where(top > 0.0, top, 0.0)  # NaN > 0 is False
    if exponential:
        gains = np.exp2(gains) - 1.0
    discounts: FloatArray = 1.0 / np.log2(np.arange(2.0, top.shape[-1] + 2.0))
    return _total(gains * discounts)


def ndcg(
    grades: FloatArray,
    ideal: ArrayLike,
    *,
    cutoff: int | None = None,
    exponential: bool = False,
) -> FloatArray:
    """`dcg` over the best that the judged memories of the query allow; 0 where that is 0.

    Args:
        grades: As for `dcg`.
        ideal: float64, broadcast to (…): the DCG of all judged memories of the query, best first,
            at the same cutoff; returned or not.
        cutoff: As for `dcg`.
        exponential: As for `dcg`.
    """
    return _share(dcg(grades, cutoff=cutoff, exponential=exponential), ideal)


def precision(grades: FloatArray, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """Relevant results among the first ``cutoff``, over ``cutoff`` however many were returned."""
    return _count(_hits(grades, cutoff, rel)) / float(cutoff)


def recall(
    grades: FloatArray, relevant: ArrayLike, *, cutoff: int | None = None, rel: float = 1.0
) -> FloatArray:
    """Relevant results up to the cutoff, over ``relevant``: all that the query has, shape (…)."""
    return _share(_count(_hits(grades, cutoff, rel)), relevant)


def success(grades: FloatArray, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """1 where something relevant was returned up to the cutoff, else 0."""
    return np.asarray(_hits(grades, cutoff, rel).any(axis=-1), np.float64)


def reciprocal_rank(
    grades: FloatArray, *, cutoff: int | None = None, rel: float = 1.0
) -> FloatArray:
    """1 / rank of the first relevant result up to the cutoff; 0 without one."""
    hits = _hits(grades, cutoff, rel)
    if not hits.shape[-1]:
        return np.zeros(hits.shape[:-1])
    return np.where(hits.any(axis=-1), 1.0 / (hits.argmax(axis=-1) + 1.0), 0.0)


def average_precision(
    grades: FloatArray, relevant: ArrayLike, *, cutoff: int | None = None, rel: float = 1.0
) -> FloatArray:
    """Sum of the precision at each relevant result up to the cutoff, over ``relevant``."""
    hits = _hits(grades, cutoff, rel)
    ranks = np.arange(1.0, hits.shape[-1] + 1.0)
    return _share(_total(hits * (np.cumsum(hits, axis=-1) / ranks)), relevant)


def judged_share(
    grades: FloatArray, returned: ArrayLike, *, cutoff: int | None = None
) -> FloatArray:
    """Share of the results up to the cutoff that have a judgment, whatever it says.

    Args:
        grades: As for `dcg`.
        returned: int, broadcast to (…): how many results there are; a list shorter than the cutoff
            is judged by what it has.
        cutoff: As for `dcg`.
    """
    judged = _count(~np.isnan(grades[..., :cutoff]))
    count = np.asarray(returned, np.float64)
    return _share(judged, count if cutoff is None else np.minimum(count, cutoff))


def _total(terms: FloatArray) -> FloatArray:
    """The sum over the ranks, one after the other.

    So a ranking has the same bits however many empty ranks stand behind it and whatever it is
    measured beside; other orders of summation depend on the shape of the array.
    """
    total = np.zeros(terms.shape[:-1])
    for rank in range(terms.shape[-1]):
        total += terms[..., rank]
    return total


def _hits(grades: FloatArray, cutoff: int | None, rel: float) -> NDArray[np.bool_]:
    return grades[..., :cutoff] >= rel


def _count(marks: NDArray[np.bool_]) -> FloatArray:
    return np.asarray(np.count_nonzero(marks, axis=-1), np.float64)


def _share(part: FloatArray, whole: ArrayLike) -> FloatArray:
    total = np.broadcast_to(np.asarray(whole, np.float64), np.shape(part))
    return np.divide(part, total, out=np.zeros(np.shape(part)), where=total > 0.0)

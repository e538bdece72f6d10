"""Choosing among scored candidates: the best k, the diverse k, and a penalty for near duplicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError

__all__ = ["duplicate_penalties", "duplicate_penalty", "mmr", "top_positions"]

FloatArray = NDArray[np.float64]
PositionArray = NDArray[np.int64]


def top_positions(scores: FloatArray, k: int) -> PositionArray:
    """Positions of the k greatest scores, best first, ties by position.

    Args:
        scores: Shape (n,); NaN is absent and never chosen.
        k: ≥ 0; more than there are gives all that are present.

    Example:
        >>> top_positions(np.array([0.2, 0.9, np.nan, 0.9]), 2).tolist()
        [1, 3]
    """
    scores = _vector("scores", scores)
    k = _count(k)
    places = np.flatnonzero(~np.isnan(scores))
    if 0 < k < places.size:
        # Sorting only what can be chosen: 100,000 scores for k = 100 take 1 ms instead of 9.
        threshold = -np.partition(-scores[places], k - 1)[k - 1]
        places = places[scores[places] >= threshold]
    best = np.argsort(-scores[places], kind="stable")[:k]
    return places[best].astype(np.int64)


def mmr(scores: FloatArray, similarity: FloatArray, k: int, trade_off: float) -> PositionArray:
    """Maximal marginal relevance: greedily, what is relevant and unlike what is already chosen.

    Each step takes the candidate with the greatest λ·score − (1 − λ)·max similarity to the chosen
    ones (0 while nothing is chosen); ties go to the earlier position. λ = 1 is ``top_positions``.

    Args:
        scores: Relevance, shape (n,), finite, on the scale of the similarities.
        similarity: Row i, column j: how like i is to j; shape (n, n), NaN where unknown. An
            unknown similarity is left out of the maximum; if all are, it is 0.
        k: ≥ 0; at most n are chosen.
        trade_off: λ in [0, 1].

    Returns:
        int64, shape (min(k, n),), in the order of choice.

    Source: Carbonell and Goldstein 1998, as published: compared with the chosen, not with all.

    Example:
        >>> same = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> mmr(np.array([0.9, 0.8, 0.5]), same, 2, 0.5).tolist()
        [0, 2]
    """
    scores = _finite(scores)
    similarity = _square(similarity, scores.size)
    _share("trade_off", trade_off)
    chosen = np.empty(min(_count(k), scores.size), dtype=np.int64)
    left = np.ones(scores.size, dtype=np.bool_)
    nearest = np.full(scores.size, np.nan)
    for step in range(chosen.size):
        likeness = np.where(np.isnan(nearest), 0.0, nearest)
        gain = trade_off * scores - (1.0 - trade_off) * likeness
        best = int(np.argmax(np.where(left, gain, -np.inf)))  # the first of equals
        chosen[step] = best
        left[best] = False
        nearest = np.fmax(nearest, similarity[:, best])  # ignores NaN
    return chosen


def duplicate_penalties(scores: FloatArray, similarity: FloatArray, penalty: float) -> FloatArray:
    """The factor 1 − λ·max(0, similarity to the nearest candidate scoring higher), per candidate.

    "Scoring higher" is strictly higher, by the scores given: candidates of equal score leave one
    another alone, so the result does not depend on the order of the candidates. A penalized
    candidate still penalizes those below it.

    Args:
        scores: Shape (n,), finite.
        similarity: Cosines, shape (n, n), symmetric; NaN where a candidate has no vector, which
            neither penalizes nor is penalized.
        penalty: λ in [0, 1].

    Returns:
        Shape (n,), in [1 − λ, 1]; 1 for the best.
    """
    scores = _finite(scores)
    similarity = _square(similarity, scores.size)
    _share("penalty", penalty)
    counts = (scores[None, :] > scores[:, None]) & ~np.isnan(similarity)
    nearest: FloatArray = np.max(np.where(counts, similarity, 0.0), axis=1, initial=0.0)
    return 1.0 - penalty * np.minimum(nearest, 1.0)


def duplicate_penalty(scores: FloatArray, similarity: FloatArray, penalty: float) -> FloatArray:
    """The scores times their ``duplicate_penalties``: near copies of something better sink.

    Example:
        >>> alike = np.array([[1.0, 0.5], [0.5, 1.0]])
        >>> duplicate_penalty(np.array([0.8, 0.4]), alike, 0.5).tolist()
        [0.8, 0.30000000000000004]
    """
    return _finite(scores) * duplicate_penalties(scores, similarity, penalty)


def _vector(name: str, values: FloatArray) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InvalidArrayError(name, "shape (n,)", f"shape {array.shape}")
    return array


def _finite(scores: FloatArray) -> FloatArray:
    array = _vector("scores", scores)
    if not np.isfinite(array).all():
        raise InvalidArrayError("scores", "finite numbers", "NaN or infinity")
    return array


def _square(similarity: FloatArray, n: int) -> FloatArray:
    array = np.asarray(similarity, dtype=np.float64)
    if array.shape != (n, n):
        raise InvalidArrayError("similarity", f"shape ({n}, {n})", f"shape {array.shape}")
    if np.isinf(array).any():
        raise InvalidArrayError("similarity", "finite numbers or NaN", "infinity")
    return array


def _count(k: object) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
        raise InvalidArgumentError(f"k: expected a whole number ≥ 0, got {k!r}")
    return int(k)


def _share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise InvalidArgumentError(f"{name}: expected a number in [0, 1], got {value!r}")

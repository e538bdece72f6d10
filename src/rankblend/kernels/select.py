"""Choosing among scored candidates: the best k, the diverse k, and a penalty for near duplicates."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError

__all__ = ["duplicate_penalties", "kth_greatest", "leading", "mmr"]

FloatArray = NDArray[np.float64]
ItemArray = NDArray[np.int64]

# Every so many values make the sample from which a first guess at the threshold is taken.
_STRIDE = 16
# Below so many, comparing names directly beats having all names ranked.
_FEW_NAMES = 2048


def leading(
    items: ItemArray,
    keys: Sequence[FloatArray],
    limit: int,
    names: Sequence[str],
    *,
    ranks: Callable[[], NDArray[np.integer]] | None = None,
    present: bool = False,
) -> ItemArray:
    """The ``limit`` first of some items: greatest value first, equal ones by name.

    Only what can be chosen is sorted, and only where values tie at the boundary are names compared.

    Args:
        items: Distinct numbers ≥ 0, int64, shape (n,), in any order.
        keys: The values of the items, each float64 of shape (n,): the first one decides, then the
            next one among equals. NaN is absent and comes last, like −∞.
        limit: ≥ 0.
        names: The name of item i at i; distinct, compared by code point.
        ranks: For when many items tie: gives integers, shape (m,), the place of each of the items
            below m in the order of their names.
        present: Leave out the items whose first key is absent (or −∞).

    Returns:
        int64, shape (min(limit, n),) or less with ``present``, best first; the order of ``items`` plays no part.

    Raises:
        InvalidArgumentError: The limit is no whole number ≥ 0.
        InvalidArrayError: A key has not one value per item.

    Example:
        >>> items, values = np.array([3, 0, 2, 1]), np.array([0.5, 0.5, np.nan, 0.9])
        >>> leading(items, [values], 3, ["b", "z", "c", "a"]).tolist()
        [1, 3, 0]
    """
    limit = _count("limit", limit)
    columns = [_present(_vector("key", key)) for key in keys]
    if any(len(column) != len(items) for column in columns):
        raise InvalidArrayError("key", f"{len(items)} values", "another number")
    if not limit:
        return np.empty(0, dtype=np.int64)
    chosen, missing = [], limit
    tied: ItemArray | None = None  # all: what is not allocated need not be cleared
    for column in columns:
        values = column if tied is None else column[tied]
        if len(values) <= missing:
            break
        least = kth_greatest(values, missing)
        above, level = np.flatnonzero(values > least), np.flatnonzero(values == least)
        if present and least == -np.inf:  # fewer are present than are wanted
            level = level[:0]
        chosen.append(above if tied is None else tied[above])
        tied = level if tied is None else tied[level]
        missing -= len(above)
    if tied is None:
        tied = np.arange(len(items))
    chosen.append(_first_by_name(items, tied, missing, names, ranks))
    best = np.concatenate(chosen)
    if present and columns:
        best = best[columns[0][best] > -np.inf]
    found: ItemArray = items[_in_order(best, columns, items, names)]
    return found


def kth_greatest(values: FloatArray, k: int) -> float:
    """The k-th greatest value: ``sorted(values)[-k]``, 1 ≤ k ≤ n, no NaN.

    A full partition of 100k values takes .76 ms. The values that reach the right rank in a sample
    are few and, unless the order of the values is unfortunate, contain the answer: .1 ms.
    """
    sample = values[::_STRIDE]
    rank = 2 * k // _STRIDE + 8
    if rank < len(sample):
        guess = np.partition(sample, len(sample) - rank)[len(sample) - rank]
        above = values[values > guess]
        if len(above) >= k:
            values = above
        elif np.count_nonzero(values == guess) >= k - len(above):
            return float(guess)
    return float(np.partition(values, len(values) - k)[len(values) - k])


def mmr(scores: FloatArray, similarity: FloatArray, k: int, trade_off: float) -> ItemArray:
    """Maximal marginal relevance: greedily, what is relevant and unlike what is already chosen.

    Each step takes the candidate with the greatest λ·score − (1 − λ)·max similarity to the chosen
    ones (0 while nothing is chosen); ties go to the earlier position. λ = 1 orders by score alone.

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
    chosen = np.empty(min(_count("k", k), scores.size), dtype=np.int64)
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

    Example:
        >>> alike = np.array([[1.0, 0.5], [0.5, 1.0]])
        >>> duplicate_penalties(np.array([0.8, 0.4]), alike, 0.5).tolist()
        [1.0, 0.75]
    """
    scores = _finite(scores)
    similarity = _square(similarity, scores.size)
    _share("penalty", penalty)
    counts = (scores[None, :] > scores[:, None]) & ~np.isnan(similarity)
    nearest: FloatArray = np.max(np.where(counts, similarity, 0.0), axis=1, initial=0.0)
    return 1.0 - penalty * np.minimum(nearest, 1.0)


def _present(values: FloatArray) -> FloatArray:
    absent = np.isnan(values)
    return np.where(absent, -np.inf, values) if absent.any() else values


def _in_order(
    places: ItemArray, columns: Sequence[FloatArray], items: ItemArray, names: Sequence[str]
) -> ItemArray:
    """Some positions of ``items``, sorted; names are looked at only where values tie."""
    keys = [-column[places] for column in reversed(columns)]
    if keys:
        order = np.lexsort(keys)
        alike = [key[order[1:]] == key[order[:-1]] for key in keys]
        if not np.logical_and.reduce(alike).any():
            return places[order]
    named = _by_name(items[places], names)
    if not keys:
        return places[named]
    # the sort is stable: equal ones stay in the order of their names
    return places[named][np.lexsort([key[named] for key in keys])]


def _by_name(items: ItemArray, names: Sequence[str]) -> list[int]:
    """Positions that put the items in the order of their names."""
    own = [names[item] for item in items.tolist()]
    return sorted(range(len(own)), key=own.__getitem__)


def _first_by_name(
    items: ItemArray,
    places: ItemArray,
    count: int,
    names: Sequence[str],
    ranks: Callable[[], NDArray[np.integer]] | None,
) -> ItemArray:
    """Of some positions of ``items`` those of the ``count`` least names, in no order."""
    if len(places) <= count:
        return places
    if ranks is not None and len(places) > _FEW_NAMES:
        known = ranks()
        low = items[places] < len(known)
        ranked, others = places[low], places[~low]
        if len(ranked) > count:
            before = -known[items[ranked]].astype(np.float64)
            ranked = ranked[before >= kth_greatest(before, count)]
        places = np.concatenate([ranked, others])
    own = [names[item] for item in items[places].tolist()]
    return places[heapq.nsmallest(count, range(len(own)), key=own.__getitem__)]


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


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidArgumentError(f"{name}: expected a whole number ≥ 0, got {value!r}")
    return int(value)


def _share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise InvalidArgumentError(f"{name}: expected a number in [0, 1], got {value!r}")

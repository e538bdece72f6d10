"""The order of a ranking: total, and the same on every run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError

__all__ = ["rank_order"]

FloatArray = NDArray[np.float64]


def rank_order(
    rank_scores: FloatArray,
    distances: NDArray[np.int64],
    scores: FloatArray,
    ties: Sequence[FloatArray],
    ids: Sequence[str],
    *,
    blend: bool,
) -> NDArray[np.int64]:
    """Positions of the candidates, best first.

    Rank score descending; then, with blending on, distance ascending; then score descending; then
    each tie-break signal descending, absent last; then id ascending by code point. Memories with
    one id, which can only come from different scopes, keep their order.

    Args:
        rank_scores: float64, shape (n,), no NaN.
        distances: Levels, shape (n,); without meaning when ``blend`` is false.
        scores: float64, shape (n,), no NaN.
        ties: Signals in the order in which they decide, each float64 of shape (n,), NaN = absent.
        ids: n texts.
        blend: Whether the scope blend is on.

    Returns:
        int64, shape (n,): a permutation; empty for no candidates.

    Raises:
        InvalidArrayError: Lengths that differ, or NaN where there must be a score.

    Example:
        >>> one = np.ones(3)
        >>> rank_order(one, np.array([1, 0, 0]), one, [], ["a", "c", "b"], blend=True).tolist()
        [2, 1, 0]
    """
    if not isinstance(blend, bool | np.bool_):  # a ScopeBlend is always true
        raise InvalidArgumentError(f"blend: expected True or False, got {type(blend).__name__}")
    n = len(ids)
    columns = {"rank_scores": rank_scores, "distances": distances, "scores": scores}
    columns |= {f"ties[{position}]": tie for position, tie in enumerate(ties)}
    for name, column in columns.items():
        if np.shape(column) != (n,):
            raise InvalidArrayError(name, f"shape ({n},) as there are ids", f"{np.shape(column)}")
        if not name.startswith("ties") and np.isnan(column).any():
            raise InvalidArrayError(name, "a number in every row", "NaN")

    id_places = np.empty(n, np.int64)
    id_places[sorted(range(n), key=ids.__getitem__)] = np.arange(n)  # text sorts by code point
    # np.lexsort sorts by its last key first; NaN, which is absent, becomes the worst value.
    keys: list[NDArray[np.generic]] = [id_places]
    keys += [np.where(np.isnan(tie), np.inf, -np.asarray(tie)) for tie in reversed(ties)]
    keys.append(-np.asarray(scores))
    if blend:
        keys.append(np.asarray(distances))
    keys.append(-np.asarray(rank_scores))
    return np.lexsort(keys).astype(np.int64)

"""The order of a ranking: total, and the same on every run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError

FloatArray = NDArray[np.float64]


def rank_order(
    rank_scores: FloatArray,
    distances: NDArray[np.int64],
    scores: FloatArray,
    ties: Sequence[FloatArray],
    ids: Sequence[str] | None,
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
        ids: n texts; None where the candidates are in the order of their ids already.
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
    n = len(rank_scores) if ids is None else len(ids)
    columns = {"rank_scores": rank_scores, "distances": distances, "scores": scores}
    columns |= {f"ties[{position}]": tie for position, tie in enumerate(ties)}
    for name, column in columns.items():
        try:
            given = np.asarray(column)
        except ValueError:  # ragged rows
            raise InvalidArrayError(name, f"numbers of shape ({n},)", "no array") from None
        if given.shape != (n,):
            raise InvalidArrayError(name, f"shape ({n},) as there are ids", f"{given.shape}")
        if given.size and given.dtype.kind not in "fi":
            raise InvalidArrayError(name, "floats or signed whole numbers", f"dtype {given.dtype}")
        if not name.startswith("ties") and np.isnan(column).any():
            raise InvalidArrayError(name, "a number in every row", "NaN")

    order = np.argsort(-np.asarray(rank_scores), kind="stable")
    ranked = np.asarray(rank_scores)[order]
    order = order.astype(np.int64, copy=False)
    same = ranked[1:] == ranked[:-1]
    if not same.any():  # nothing else has a say
        return order
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    tied = order[places]
    # np.lexsort sorts by its last key first; NaN, which is absent, becomes the worst value.
    keys: list[NDArray[np.generic]] = [
        np.where(np.isnan(tie[tied]), np.inf, -tie[tied]) for tie in map(np.asarray, reversed(ties))
    ]
    keys.append(-np.asarray(scores)[tied])
    if blend:
        keys.append(np.asarray(distances)[tied])
    keys.append(-ranked[places])
    by_keys = np.lexsort(keys)
    if ids is None:  # what ties in everything has kept its order
        order[places] = tied[by_keys]
        return order
    equal = np.zeros(len(tied) + 1, dtype=np.bool_)  # whether row i − 1 and row i tie in everything
    equal[1:-1] = True
    for key in keys:
        equal[1:-1] &= key[by_keys[1:]] == key[by_keys[:-1]]
    tied = tied[by_keys]
    edges = np.flatnonzero(equal[1:] != equal[:-1]).tolist()
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        run = tied[first : last + 1].tolist()  # text sorts by code point
        tied[first : last + 1] = sorted(run, key=ids.__getitem__)
    order[places] = tied
    return order

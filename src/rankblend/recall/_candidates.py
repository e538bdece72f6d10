"""Candidates of queries and what every store observed about them; all that ranking needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.stores import Key, Keys, Reason


@frozen(eq=False)
class EvidenceColumn:
    """What one store said about every candidate under one evidence name.

    Args:
        store: The store's name.
        values: float64, shape (n,); NaN where absent.
        reasons: int8, shape (n,), of `Reason`.
    """

    store: str
    values: NDArray[np.float64]
    reasons: NDArray[np.int8]

    def __attrs_post_init__(self) -> None:
        if self.values.shape != self.reasons.shape:
            raise InvalidArrayError(
                "reasons", f"shape {self.values.shape}", f"{self.reasons.shape}"
            )

    @classmethod
    def absent(cls, store: str, n: int, reason: Reason) -> EvidenceColumn:
        """A column with nothing in it, for one reason."""
        return cls(store, np.full(n, np.nan), np.full(n, reason, np.int8))


@frozen(eq=False)
class Candidates:
    """The candidates of one query, in pool order; or of several, one query behind the other.

    Args:
        keys: n keys, those of one query distinct.
        distances: int64, shape (n,): scope distance of each, ≥ 0.
        layers: The layer of each.
        evidence: Evidence name → the columns of the stores that emit it.
        groups: int64, shape (n,): candidates with one label are equivalent.
        vectors: float32, shape (n, d), unit rows, NaN rows where there is none; None when no
            profile step needs similarities between candidates.
        tokens: int64, shape (n,): length of each text; None when there is no token cap.
        digests: int64, shape (n,), of the normalized texts, and
        verified: pairs of ids joined by verified links: what the groups were made of, with which a
            recording makes those of a smaller pool. None and empty where nobody kept them.
        offsets: Where each of q queries begins, and n: int64, shape (q + 1,); None for one query.
    """

    keys: Sequence[Key]
    distances: NDArray[np.int64]
    layers: tuple[str, ...]
    evidence: Mapping[str, tuple[EvidenceColumn, ...]]
    groups: NDArray[np.int64]
    vectors: NDArray[np.float32] | None = None
    tokens: NDArray[np.int64] | None = None
    digests: NDArray[np.int64] | None = None
    verified: tuple[tuple[str, str], ...] = ()
    offsets: NDArray[np.int64] | None = None
    ids: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        keys = self.keys
        ids = keys.ids if isinstance(keys, Keys) else [key.id for key in keys]
        object.__setattr__(self, "ids", tuple(ids))
        for part in self.parts:
            if len(set(self.ids[part])) < part.stop - part.start:
                raise InvalidArrayError("keys", "distinct ids", "one more than once")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def parts(self) -> list[slice]:
        """Where the candidates of each query are."""
        if self.offsets is None:
            return [slice(0, len(self.ids))]
        return [slice(start, stop) for start, stop in pairwise(self.offsets.tolist())]


def group_equivalents(
    ids: Sequence[str],
    digests: NDArray[np.int64] | Sequence[int],
    verified: Sequence[tuple[str, str]] = (),
) -> NDArray[np.int64]:
    """Label candidates so that equivalent ones share a label.

    Equivalent are memories with the same normalized text (the same digest) and memories joined by
    a verified ``equivalent`` link whose two ends are both candidates, transitively. Similar
    embeddings never make two memories equivalent.

    Args:
        ids: n distinct ids.
        digests: n digests of the normalized texts.
        verified: Pairs of ids.

    Returns:
        int64, shape (n,): for each candidate the least position in its group.
    """
    if not verified and len(set(np.asarray(digests).tolist())) == len(ids):
        return np.arange(len(ids))
    _, first, which = np.unique(digests, return_index=True, return_inverse=True)
    labels: NDArray[np.int64] = first[which].astype(np.int64)
    if not verified:
        return labels
    parent = labels.tolist()

    def find(position: int) -> int:
        while parent[position] != position:
            parent[position] = parent[parent[position]]
            position = parent[position]
        return position

    position_of = {identifier: position for position, identifier in enumerate(ids)}
    for a, b in verified:
        if a in position_of and b in position_of:
            low, high = sorted((find(position_of[a]), find(position_of[b])))
            parent[high] = low
    return np.array([find(position) for position in range(len(ids))], np.int64)

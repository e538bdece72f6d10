"""The active procedures by the direction of their questions: exact search, one scope or a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.reasonlets.store._protocol import Search
from rankblend.relevance import Scope
from rankblend.stores import Key, Record, StoreQuery
from rankblend.stores.vectors import VectorStore


@frozen(eq=False)
class Indexed:
    """An active procedure as the index knows it.

    Attributes:
        id, scope: Which one.
        serial: A small integer of its own, never given out again.
        intent: What a search may ask for.
        vector: float32, shape (d,), unit length.
    """

    id: str
    scope: Scope
    serial: int
    intent: str
    vector: NDArray[np.float32]


class ActiveIndex:
    """A `VectorStore` over the active procedures, and their intents for filtering."""

    def __init__(self) -> None:
        self._vectors = VectorStore()
        self._scopes: dict[str, Scope] = {}
        self._codes: dict[str, int] = {}
        self._intents = np.zeros(0, np.int32)  # by serial; 0: none

    def __len__(self) -> int:
        """How many procedures it holds."""
        return len(self._scopes)

    @property
    def ids(self) -> AbstractSet[str]:
        """The procedures it holds."""
        return self._scopes.keys()

    def put(self, items: Sequence[Indexed]) -> None:
        """Add procedures, or replace them."""
        if not items:
            return
        self._reserve(1 + max(item.serial for item in items))
        for item in items:
            self._scopes[item.id] = item.scope
            self._intents[item.serial] = self._codes.setdefault(item.intent, len(self._codes) + 1)
        self._vectors.add(
            [
                Record(Key(item.scope, item.id), "", item.serial, vector=item.vector)
                for item in items
            ]
        )

    def drop(self, ids: Iterable[str]) -> None:
        """Take procedures out; unknown ones are ignored."""
        known = [(self._scopes.pop(id_), id_) for id_ in ids if id_ in self._scopes]
        self._vectors.remove([Key(scope, id_) for scope, id_ in known])

    def nearest(self, search: Search) -> list[tuple[str, float]]:
        """Ids with their cosines, best first, ties by id; at most ``search.limit``."""
        admitted = None
        if search.intent is not None:
            code = self._codes.get(search.intent)
            if code is None:
                return []
            admitted = self._intents == code
        query = StoreQuery("", (search.scope,), vector=search.vector, admitted=admitted)
        level = None if search.ancestors else 0
        ids, cosines = self._vectors.nearest(query, search.limit, level=level)
        return list(zip(ids, cosines.tolist(), strict=True))

    def _reserve(self, size: int) -> None:
        if size > len(self._intents):
            grown = np.zeros(max(size, 2 * len(self._intents)), np.int32)
            grown[: len(self._intents)] = self._intents
            self._intents = grown

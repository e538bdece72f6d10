"""Nodes and scopes by number: names are text at the edge and int32 inside."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from rankblend.relevance.scope import Scope
from rankblend.stores.protocol import Reach, StoreQuery

__all__ = ["NodeTable", "ScopeTable"]

# Below this many nodes, sorting their names directly beats keeping all names ranked.
_FEW = 2048


class NodeTable:
    """Names ↔ numbers. A number is never given back until the graph is compacted."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._order = np.empty(0, dtype=np.int32)
        self._ranks = np.empty(0, dtype=np.int32)
        self._scratch = np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """The node's number, a new one for a new name."""
        known = self._numbers.setdefault(name, len(self.names))
        if known == len(self.names):
            self.names.append(name)
        return known

    def find(self, name: str) -> int:
        """The node's number, or −1."""
        return self._numbers.get(name, -1)

    def find_all(self, names: Sequence[str]) -> NDArray[np.int64]:
        """`find` for each name."""
        return np.fromiter(map(self._numbers.get, names, repeat(-1)), np.int64, len(names))

    def ranks(self) -> NDArray[np.int32]:
        """Each node's position among all names in code point order, shape (nodes,)."""
        known = len(self._order)
        if known < len(self.names):
            name = self.names.__getitem__
            fresh = sorted(range(known, len(self.names)), key=name)
            places = [bisect_left(self._order, name(node), key=name) for node in fresh]
            self._order = np.insert(self._order, places, fresh).astype(np.int32)
            self._ranks = np.empty(len(self.names), dtype=np.int32)
            self._ranks[self._order] = np.arange(len(self.names), dtype=np.int32)
        return self._ranks

    def by_name(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions that put the nodes in the order of their names."""
        if len(nodes) > _FEW:
            return np.argsort(self.ranks()[nodes])
        names = [self.names[node] for node in nodes.tolist()]
        return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)

    def strongest(
        self, nodes: NDArray[np.int64], values: NDArray[np.float64], count: int
    ) -> NDArray[np.int64]:
        """Positions of the ``count`` greatest values, in no particular order, ties by name."""
        if len(nodes) <= count:
            return np.arange(len(nodes))
        bound = np.partition(values, len(values) - count)[len(values) - count]
        above = np.flatnonzero(values > bound)
        level = np.flatnonzero(values == bound)
        level = level[self.by_name(nodes[level])[: count - len(above)]]
        return np.concatenate([above, level])

    def scratch(self) -> NDArray[np.int32]:
        """A zeroed int32 per node for whoever holds the store's lock, to be left zeroed."""
        if len(self._scratch) < len(self.names):
            self._scratch = np.zeros(2 * len(self.names), dtype=np.int32)
        return self._scratch


class ScopeTable:
    """Scopes ↔ numbers, and which of them a query sees."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self._numbers: dict[str, int] = {}
        self._sorted: list[tuple[str, int]] = []

    def number(self, scope: Scope) -> int:
        """The scope's number, a new one for a new scope."""
        known = self._numbers.setdefault(scope.path, len(self.scopes))
        if known == len(self.scopes):
            self.scopes.append(scope)
        return known

    def find(self, scope: Scope) -> int:
        """The scope's number, or −1."""
        return self._numbers.get(scope.path, -1)

    def distances(self, query: StoreQuery) -> NDArray[np.int16]:
        """Levels up to every scope, −1 where the query does not see it; shape (scopes,)."""
        out = np.full(len(self.scopes), -1, dtype=np.int16)
        for path, distance in query.path_distances.items():
            number = self._numbers.get(path)
            if number is not None:
                out[number] = distance
        if query.reach is Reach.SUBTREE:
            if len(self._sorted) < len(self.scopes):
                fresh = range(len(self._sorted), len(self.scopes))
                self._sorted += [(self.scopes[number].path, number) for number in fresh]
                self._sorted.sort()
            for own in query.scopes:
                # a path ends with "/" and "0" follows "/": exactly the paths that start with it
                low = bisect_left(self._sorted, (own.path, -1))
                high = bisect_left(self._sorted, (own.path[:-1] + "0", -1))
                out[[number for _, number in self._sorted[low:high]]] = 0
        return out

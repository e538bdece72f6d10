"""Verified links that make two memories one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rankblend.relevance.scope import Scope
from rankblend.stores.protocol import Edge, Key, Record, StoreQuery

__all__ = ["EQUIVALENT", "Equivalents"]

EQUIVALENT = "equivalent"


class Equivalents:
    """Which memories are linked as verified equivalents; an unverified link does nothing."""

    def __init__(self) -> None:
        self._links: dict[Key, tuple[str, ...]] = {}
        self._edges: dict[tuple[str, str, str, str], tuple[Scope, str, str]] = {}

    def put(self, records: Iterable[Record]) -> None:
        """Take the links of memories, replacing what they linked before."""
        for record in records:
            targets = tuple(
                link.target for link in record.links if link.kind == EQUIVALENT and link.verified
            )
            if targets:
                self._links[record.key] = targets
            else:
                self._links.pop(record.key, None)

    def remove(self, keys: Iterable[Key]) -> None:
        """Drop the links of memories."""
        for key in keys:
            self._links.pop(key, None)

    def put_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges written apart from memories."""
        for edge in edges:
            self._edges.pop(edge.identity, None)
            if edge.kind == EQUIVALENT and edge.verified:
                self._edges[edge.identity] = (edge.scope, edge.source, edge.target)

    def remove_edges(self, edges: Iterable[Edge]) -> None:
        """Drop edges."""
        for edge in edges:
            self._edges.pop(edge.identity, None)

    def pairs(self, query: StoreQuery, keys: Sequence[Key]) -> list[tuple[str, str]]:
        """Pairs of ids that visible, verified links join; both ends are among the keys."""
        ids = {key.id for key in keys}
        found = [
            (key.id, target) for key in keys for target in self._links.get(key, ()) if target in ids
        ]
        found += [
            (source, target)
            for scope, source, target in self._edges.values()
            if source in ids and target in ids and query.distance(scope) >= 0
        ]
        return found

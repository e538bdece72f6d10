"""Verified links that make two memories one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rankblend.relevance.scope import Scope
from rankblend.stores.protocol import Edge, Key, Keys, Record, StoreQuery

__all__ = ["EQUIVALENT", "Equivalents"]

EQUIVALENT = "equivalent"


class Equivalents:
    """Which memories are linked as verified equivalents; an unverified link does nothing."""

    def __init__(self) -> None:
        self._links: dict[str, dict[Key, tuple[str, ...]]] = {}  # by id: quicker to look up
        self._edges: dict[tuple[str, str, str, str], tuple[Scope, str, str]] = {}

    def put(self, records: Iterable[Record]) -> None:
        """Take the links of memories, replacing what they linked before."""
        for record in records:
            targets = tuple(
                link.target for link in record.links if link.kind == EQUIVALENT and link.verified
            )
            if targets:
                self._links.setdefault(record.id, {})[record.key] = targets
            elif record.id in self._links:
                self.remove([record.key])

    def remove(self, keys: Iterable[Key]) -> None:
        """Drop the links of memories."""
        for key in keys:
            held = self._links.get(key.id, {})
            held.pop(key, None)
            if not held:
                self._links.pop(key.id, None)

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
        if not self._links and not self._edges:
            return []
        own = keys.ids if isinstance(keys, Keys) else [key.id for key in keys]
        ids = set(own)
        found = [
            (identifier, target)
            for at, identifier in enumerate(own)
            if identifier in self._links
            for target in self._links[identifier].get(keys[at], ())
            if target in ids
        ]
        found += [
            (source, target)
            for scope, source, target in self._edges.values()
            if source in ids and target in ids and query.distance(scope) >= 0
        ]
        return found

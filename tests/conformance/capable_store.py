"""A store of somebody else's that can do everything, written against public names only.

It looks at every memory for every question, so that it is easily seen to be right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import networkx as nx
import numpy as np

import rankblend as rb
from rankblend.stores import Contents, Edge, Key, Observation, Reason, Record, StoreQuery

rb.register_evidence(
    rb.Evidence(
        "joins_test", "count", 0.0, float("inf"), natural_zero=True, meaning="visible links"
    )
)


class Capable:
    """Evidence: how many of the question's words a text has, the cosine, and the visible links."""

    name = "capable"
    emits: tuple[str, ...] = ("coverage", "cosine", "joins_test")
    seeded = False

    def __init__(self) -> None:
        self.held: dict[Key, Record] = {}
        self.joined: dict[tuple[str, str, str, str], Edge] = {}
        self.calls: list[str] = []  # what was called, for those who want to know

    # what `Store` and `SupportsWrite` ask for

    def __len__(self) -> int:
        return len(self.held)

    def add(self, records: Sequence[Record]) -> None:
        self.calls.append("add")
        self.held.update((record.key, record) for record in records)

    def remove(self, keys: Sequence[Key]) -> None:
        self.calls.append("remove")
        for key in keys:
            self.held.pop(key, None)

    def seen(self, query: StoreQuery) -> dict[str, Record]:
        """By id: of several with one id the nearest."""
        found = [record for record in self.held.values() if query.admits(record)]
        found.sort(key=lambda r: (query.rank_of_scope(r.scope), r.scope.path), reverse=True)
        return {record.id: record for record in found}

    def coverage(self, query: StoreQuery, record: Record) -> float:
        words = set(query.text.casefold().split())
        return len(words & set(record.text.casefold().split())) / len(words) if words else np.nan

    def cosine(self, query: StoreQuery, record: Record) -> float:
        if query.vector is None or record.vector is None:
            return np.nan
        one, other = query.vector.astype(np.float64), record.vector.astype(np.float64)
        return float(np.clip(one @ other / np.linalg.norm(other), -1.0, 1.0))

    def joins(self, query: StoreQuery, record: Record) -> float:
        edges = [e for e in self.joined.values() if query.distance(e.scope) >= 0]
        return float(sum(record.id in (edge.source, edge.target) for edge in edges))

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> list[str]:
        found = [
            (-self.coverage(query, record), record.id)
            for record in self.seen(query).values()
            if level in (None, query.distance(record.scope)) and self.coverage(query, record) > 0
        ]
        return [identifier for _, identifier in sorted(found)[:limit]]

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = self.seen(query)
        values = np.full((3, len(ids)), np.nan)
        for at, identifier in enumerate(ids):
            if identifier in seen:
                record = seen[identifier]
                values[:, at] = (
                    self.coverage(query, record),
                    self.cosine(query, record),
                    self.joins(query, record),
                )
        known = np.array([identifier in seen for identifier in ids], np.bool_)
        absent = np.where(known, Reason.NOT_APPLICABLE, Reason.UNKNOWN).astype(np.int8)
        reasons = [np.where(np.isnan(row), absent, np.int8(Reason.PRESENT)) for row in values]
        return Observation(
            dict(zip(self.emits, values, strict=True)), dict(zip(self.emits, reasons, strict=True))
        )

    def close(self) -> None:
        self.calls.append("close")

    # the capabilities

    def propose_many(
        self, queries: Sequence[StoreQuery], limit: int, *, level: int | None = None
    ) -> list[Sequence[str]]:
        return [self.propose(query, limit, level=level) for query in queries]

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterable[Observation]:
        return (self.observe(query, asked) for query, asked in zip(queries, ids, strict=True))

    def add_edges(self, edges: Sequence[Edge]) -> None:
        self.calls.append("add_edges")
        self.joined.update((edge.identity, edge) for edge in edges)

    def remove_edges(self, edges: Sequence[Edge]) -> None:
        self.calls.append("remove_edges")
        for edge in edges:
            self.joined.pop(edge.identity, None)

    def edges(self) -> Iterable[Edge]:
        return list(self.joined.values())

    def load_contents(self, contents: Contents) -> None:
        self.calls.append("load_contents")
        self.held = {record.key: record for record in contents.iter_records()}
        self.joined = {edge.identity: edge for edge in contents.iter_edges()}

    def fresh(self) -> Self:
        self.calls.append("fresh")
        return type(self)()

    def snapshot(self) -> bytes:
        self.calls.append("snapshot")
        held = [
            [str(one.scope), one.id, one.serial, one.text,
             None if one.vector is None else one.vector.tolist()]
            for one in self.held.values()
        ]  # fmt: skip
        joined = [[str(e.scope), e.source, e.target, e.kind] for e in self.joined.values()]
        return json.dumps({"capable": 1, "held": held, "joined": joined}).encode()

    def restore(self, data: bytes, *, rows: object = None) -> bool:
        self.calls.append("restore")
        try:
            kept = json.loads(data)
        except ValueError:
            return False
        if not isinstance(kept, dict) or kept.get("capable") != 1:
            return False
        self.held = {}
        for scope, identifier, serial, text, vector in kept["held"]:
            key = Key(rb.Scope.parse(scope), identifier)
            given = None if vector is None else np.array(vector, np.float32)
            self.held[key] = Record(key, text, serial, vector=given)
        edges = [Edge(*each[:3], kind=each[3]) for each in kept["joined"]]
        self.joined = {edge.identity: edge for edge in edges}
        return True

    @property
    def dimension(self) -> int | None:
        lengths = (len(one.vector) for one in self.held.values() if one.vector is not None)
        return next(lengths, None)

    def vectors_of(self, query: StoreQuery, ids: Sequence[str]) -> np.ndarray:
        self.calls.append("vectors_of")
        seen = self.seen(query)
        vectors = np.full((len(ids), self.dimension or 0), np.nan, np.float32)
        for at, identifier in enumerate(ids):
            if identifier in seen and seen[identifier].vector is not None:
                vectors[at] = seen[identifier].vector / np.linalg.norm(seen[identifier].vector)
        return vectors

    def trace(self, query: StoreQuery) -> Mapping[str, Any]:
        return {"capped": ()}

    def to_networkx(self, query: StoreQuery | None = None) -> nx.MultiDiGraph:
        graph = nx.MultiDiGraph()
        for edge in self.joined.values():
            if query is None or query.distance(edge.scope) >= 0:
                graph.add_edge(edge.source, edge.target, key=edge.kind)
        return graph

"""Everything a graph store holds, and the writes to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.stores.graph.adjacency import Adjacency
from rankblend.stores.graph.edges import EdgeTable
from rankblend.stores.graph.memories import MemoryTable
from rankblend.stores.graph.nodes import NodeTable, ScopeTable
from rankblend.stores.protocol import Edge, Key, Record
from rankblend.stores.rows import ScopedRows

__all__ = ["GraphTables"]

_COMPACT_FROM = 4096


class GraphTables:
    """Nodes, scopes, kinds, memories and edges by number.

    Attributes:
        version: Grows with every write.
        epoch: Grows when rows are renumbered.
        attributes: (scope, node) → attributes that came from a networkx graph.
    """

    def __init__(self) -> None:
        self.version = 0
        self.epoch = 0
        self.scopes = ScopeTable()
        self.kinds = NodeTable()
        self._reset(NodeTable(), MemoryTable(), EdgeTable(), {})

    def _reset(
        self,
        nodes: NodeTable,
        memories: MemoryTable,
        edges: EdgeTable,
        attributes: dict[tuple[int, int], dict[str, Any]],
    ) -> None:
        self.nodes, self.memories, self.edges = nodes, memories, edges
        self.attributes = attributes
        self.adjacency = Adjacency(edges)

    def add_records(self, records: Iterable[Record]) -> None:
        """Add memories with their links, replacing those with the same key."""
        placed = [
            ((self.scopes.number(record.scope), self.nodes.number(record.id)), record)
            for record in records
        ]
        self.memories.put({place: record.serial for place, record in placed})
        for (scope, node), record in placed:
            slot = self.memories.find(scope, node)
            owned = self.memories.owned(slot)
            links = self._links(record)
            if self._same(owned, links):
                continue
            self.edges.kill(owned)
            self.memories.own(slot, len(self.edges), len(links))
            self.edges.extend(
                [
                    (node, target, kind, scope, weight, slot, verified)
                    for (target, kind), (weight, verified) in links.items()
                ]
            )
        self._written()

    def add_rows(self, rows: ScopedRows) -> None:
        """Add memories, without their links; 100k take .2 s."""
        scopes = [self.scopes.number(scope) for scope in rows.scopes]
        number = self.nodes.number
        self.memories.put(
            {
                (scopes[code], number(identifier)): serial
                for code, identifier, serial in zip(
                    rows.scope_codes.tolist(), rows.ids, rows.serials.tolist(), strict=True
                )
            }
        )
        self._written()

    def remove_records(self, keys: Iterable[Key]) -> None:
        """Drop memories and their links; unknown keys are ignored."""
        for key in keys:
            slot = self.memories.find(self.scopes.find(key.scope), self.nodes.find(key.id))
            if slot >= 0:
                self.edges.kill(self.memories.owned(slot))
                self.memories.remove(slot)
        self._written()

    def add_edges(
        self, edges: Sequence[Edge], extra: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Add edges of their own, replacing those with the same scope, ends and kind."""
        latest = {
            (self.scopes.number(edge.scope), *self._ends(edge)): (edge, place)
            for place, edge in enumerate(edges)
        }
        self.edges.kill(self._find(list(latest)))
        start = len(self.edges)
        self.edges.extend(
            [
                (source, target, kind, scope, float(edge.weight), -1, bool(edge.verified))
                for (scope, source, target, kind), (edge, _) in latest.items()
            ]
        )
        for row, (_, place) in enumerate(latest.values(), start=start):
            if extra is not None and extra[place]:
                self.edges.extra[row] = dict(extra[place])
        self._written()

    def remove_edges(self, edges: Sequence[Edge]) -> None:
        """Drop edges of their own by scope, ends and kind; unknown ones are ignored."""
        keys = []
        for edge in edges:
            scope = self.scopes.find(edge.scope)
            ends = (self.nodes.find(edge.source), self.nodes.find(edge.target))
            kind = self.kinds.find(edge.kind)
            if min(scope, *ends, kind) >= 0:
                keys.append((scope, *ends, kind))
        self.edges.kill(self._find(keys))
        self._written()

    def _ends(self, edge: Edge) -> tuple[int, int, int]:
        number = self.nodes.number
        return number(edge.source), number(edge.target), self.kinds.number(edge.kind)

    def _links(self, record: Record) -> dict[tuple[int, int], tuple[float, bool]]:
        """The record's links by target and kind; of two alike the stronger stays."""
        links: dict[tuple[int, int], tuple[float, bool]] = {}
        for link in record.links:
            place = self.nodes.number(link.target), self.kinds.number(link.kind)
            strength = float(link.weight), bool(link.verified)
            links[place] = max(strength, links.get(place, strength))
        return links

    def _same(
        self, rows: NDArray[np.int64], links: dict[tuple[int, int], tuple[float, bool]]
    ) -> bool:
        """Whether the rows say what the links say: then nothing need change."""
        if len(rows) != len(links):
            return False
        edges = self.edges
        held = {
            (int(edges.target.values[row]), int(edges.kind.values[row])): (
                float(edges.weight.values[row]), bool(edges.verified.values[row]),
            )
            for row in rows.tolist()
        }  # fmt: skip
        return held == links

    def _find(self, keys: Sequence[tuple[int, int, int, int]]) -> NDArray[np.int64]:
        """The living rows of edges of their own with these (scope, source, target, kind)."""
        if not keys or not len(self.edges):
            return np.empty(0, dtype=np.int64)
        wanted = np.array(keys, dtype=np.int64)
        edges = self.edges
        sources, scopes = np.unique(wanted[:, 1]), np.unique(wanted[:, 0])
        rows = self.adjacency.half_edges(sources, scopes)[2]
        loops = wanted[wanted[:, 1] == wanted[:, 2]]
        if len(loops):  # kept, but in no adjacency
            looped = np.flatnonzero(edges.source.values == edges.target.values)
            rows = np.concatenate([rows, looped])
        rows = rows[np.isin(edges.target.values[rows], wanted[:, 2])]
        rows = rows[np.isin(edges.source.values[rows], sources)]
        rows = np.unique(rows[edges.alive.values[rows] & (edges.owner.values[rows] < 0)])
        held = (edges.scope, edges.source, edges.target, edges.kind)
        wanted_set = set(map(tuple, wanted.tolist()))
        places = zip(*(column.values[rows].tolist() for column in held), strict=True)
        return rows[np.fromiter((place in wanted_set for place in places), np.bool_, len(rows))]

    def _written(self) -> None:
        self.version += 1
        if self.edges.dead > max(_COMPACT_FROM, len(self.edges) // 2):
            self._compact()

    def _compact(self) -> None:
        """Drop dead rows and the names nothing uses any more; every number may change."""
        old_nodes, old_memories, old_edges = self.nodes, self.memories, self.edges
        rows = np.flatnonzero(old_edges.alive.values)
        used = np.zeros(len(old_nodes), dtype=np.bool_)
        used[old_edges.source.values[rows]] = True
        used[old_edges.target.values[rows]] = True
        slots = np.fromiter(old_memories.slots(), np.int64, len(old_memories))
        used[old_memories.node.values[slots]] = True
        used[[node for _, node in self.attributes]] = True
        nodes, numbers = NodeTable(), np.full(len(old_nodes), -1, dtype=np.int32)
        for node in np.flatnonzero(used).tolist():
            numbers[node] = nodes.number(old_nodes.names[node])
        edges = old_edges.select(rows, numbers)
        memories = MemoryTable()
        new_slots = np.full(len(old_memories.node), -1, dtype=np.int32)
        scopes, ids = old_memories.scope.values[slots], numbers[old_memories.node.values[slots]]
        serials = old_memories.serial.values[slots]
        places = zip(scopes.tolist(), ids.tolist(), strict=True)
        new_slots[slots] = memories.put(dict(zip(places, serials.tolist(), strict=True)))
        moved = np.cumsum(old_edges.alive.values) - 1  # a living row's new number
        for slot in slots.tolist():
            new = int(new_slots[slot])
            owned = old_memories.owned(slot)
            memories.own(new, int(moved[owned[0]]) if len(owned) else 0, len(owned))
        owner = edges.owner.values
        owner[owner >= 0] = new_slots[owner[owner >= 0]]
        attributes = {(s, int(numbers[n])): kept for (s, n), kept in self.attributes.items()}
        self._reset(nodes, memories, edges, attributes)
        self.epoch += 1

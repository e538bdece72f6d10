"""Everything a graph store holds, and the writes to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.stores._arrays import Growing
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores._rows import ScopedRows, SerialIndex
from rankblend.stores._scopes import ScopeTable
from rankblend.stores.graph._edges import Adjacency, EdgeTable

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


_NONE, _SEVERAL = -1, -2


class MemoryTable:
    """Memories by slot. A slot stays with its key; a removed memory's slot is dead.

    Attributes:
        node, scope: int32, shape (slots,).
        serial: int64: index into ``StoreQuery.admitted``.
        first, count: int64: the edge rows it owns are ``first … first + count − 1``.
        alive: bool.
    """

    def __init__(self) -> None:
        self.node = Growing(np.empty(0, np.int32))
        self.scope = Growing(np.empty(0, np.int32))
        self.serial = Growing(np.empty(0, np.int64))
        self.first = Growing(np.empty(0, np.int64))
        self.count = Growing(np.empty(0, np.int64))
        self.alive = Growing(np.empty(0, np.bool_))
        self._slots: dict[tuple[int, int], int] = {}
        self._by_serial = SerialIndex()
        self._holder = Growing(np.empty(0, np.int32))  # node → its slot, none, or several
        self.several: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, scope: int, node: int) -> int:
        """The slot of a living memory, or −1."""
        return self._slots.get((scope, node), -1)

    def put(self, serials: Mapping[tuple[int, int], int]) -> NDArray[np.int64]:
        """A slot for each memory, those that have one keep it; int64, in the order given.

        Args:
            serials: Scope and node of each → its serial.
        """
        self._add({place: serial for place, serial in serials.items() if place not in self._slots})
        slots = np.array([self._slots[place] for place in serials], dtype=np.int64)
        self.serial.values[slots] = list(serials.values())
        self._by_serial.enter(self.serial.values, slots)
        return slots

    def with_serials(self, serials: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of living memories by their serials ≥ 0, −1 where there is none."""
        return self._by_serial.find(serials, self.serial.values, self.alive.values)

    def _add(self, serials: Mapping[tuple[int, int], int]) -> None:
        """Slots for memories that have none."""
        places = np.array(list(serials), dtype=np.int64).reshape(-1, 2)
        slots = np.arange(len(self.node), len(self.node) + len(places))
        nothing = np.zeros(len(places), dtype=np.int64)
        self.scope.extend(places[:, 0])
        self.node.extend(places[:, 1])
        self.serial.extend(list(serials.values()))
        self.first.extend(nothing)
        self.count.extend(nothing)
        self.alive.extend(~nothing.astype(np.bool_))
        self._slots.update(zip(serials, slots.tolist(), strict=True))
        self._hold_new(places[:, 1], slots)

    def remove(self, slot: int) -> None:
        """The memory is gone."""
        node = int(self.node.values[slot])
        del self._slots[int(self.scope.values[slot]), node]
        self.alive.values[slot] = False
        self._hold(node, [other for other in self.at(node) if other != slot])

    def own(self, slot: int, first: int, count: int) -> None:
        """Set the edge rows a memory owns."""
        self.first.values[slot], self.count.values[slot] = first, count

    def owned(self, slot: int) -> NDArray[np.int64]:
        """The edge rows a memory owns."""
        first = int(self.first.values[slot])
        return np.arange(first, first + int(self.count.values[slot]))

    def at(self, node: int) -> list[int]:
        """The slots of the memories with this id, at whatever scopes."""
        holder = int(self._holder.values[node]) if node < len(self._holder) else _NONE
        if holder == _SEVERAL:
            return self.several[node]
        return [] if holder == _NONE else [holder]

    def holders(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slot at each node, −1 for none, −2 for several; shape of ``nodes``."""
        known = nodes < len(self._holder)
        out = np.full(len(nodes), _NONE, dtype=np.int64)
        out[known] = self._holder.values[nodes[known]]
        return out

    def slots(self) -> Iterator[int]:
        """The slots of all living memories."""
        return iter(self._slots.values())

    def _hold_new(self, nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Enter slots at their nodes, most of which no memory had so far."""
        missing = int(nodes.max(initial=-1)) + 1 - len(self._holder)
        if missing > 0:
            self._holder.extend(np.full(missing, _NONE))
        _, which, counts = np.unique(nodes, return_inverse=True, return_counts=True)
        alone = (counts[which] == 1) & (self._holder.values[nodes] == _NONE)
        self._holder.values[nodes[alone]] = slots[alone]
        for node, slot in zip(nodes[~alone].tolist(), slots[~alone].tolist(), strict=True):
            self._hold(node, [*self.at(node), slot])

    def _hold(self, node: int, slots: list[int]) -> None:
        self.several.pop(node, None)
        if len(slots) > 1:
            self.several[node] = slots
        self._holder.values[node] = (
            _NONE if not slots else slots[0] if len(slots) == 1 else _SEVERAL
        )


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
            ((self.scopes.enter(record.scope), self.nodes.number(record.id)), record)
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
        scopes = [self.scopes.enter(scope) for scope in rows.scopes]
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
            scope = self.scopes.code(key.scope.path)
            slot = -1 if scope is None else self.memories.find(scope, self.nodes.find(key.id))
            if slot >= 0:
                self.edges.kill(self.memories.owned(slot))
                self.memories.remove(slot)
        self._written()

    def add_edges(
        self, edges: Sequence[Edge], extra: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Add edges of their own, replacing those with the same scope, ends and kind."""
        latest = {
            (self.scopes.enter(edge.scope), *self._ends(edge)): (edge, place)
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
            scope = self.scopes.code(edge.scope.path)
            ends = (self.nodes.find(edge.source), self.nodes.find(edge.target))
            kind = self.kinds.find(edge.kind)
            if scope is not None and min(*ends, kind) >= 0:
                keys.append((scope, *ends, kind))
        self.edges.kill(self._find(keys))
        self._written()

    def own_edges(self) -> Iterator[Edge]:
        """The edges that no memory's link made; names of nodes, kind and scope only."""
        held, nodes, kinds = self.edges, self.nodes.names, self.kinds.names
        for row in np.flatnonzero(held.alive.values & (held.owner.values < 0)).tolist():
            yield Edge(
                self.scopes.scopes[held.scope.values[row]],
                nodes[held.source.values[row]],
                nodes[held.target.values[row]],
                kinds[held.kind.values[row]],
            )

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

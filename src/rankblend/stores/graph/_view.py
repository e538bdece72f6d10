"""What one query sees of the graph: visible edges, visible memories, nothing else.

Everything a walk, a count or a cut looks at comes through here, so that what another tenant wrote
cannot influence an answer, not even by using up a cap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankblend.stores._protocol import StoreQuery
from rankblend.stores.graph._tables import GraphTables

_GLANCE = 16


class View:
    """The subgraph visible to one query; valid for one version of the tables.

    An edge is visible iff its writer's scope is and, when a memory owns it, that memory is seen. A
    memory is seen iff the query admits it and no nearer memory with the same id is admitted too.
    A node that is no seen memory is just a name, visible through its visible edges.

    Attributes:
        distances: int16, shape (scopes,): levels up, −1 invisible.
    """

    def __init__(self, tables: GraphTables, query: StoreQuery) -> None:
        self.tables = tables
        self.query = query
        self.distances = tables.scopes.distances(query)
        self._sees: NDArray[np.bool_] = self.distances >= 0
        self._scopes = np.flatnonzero(self._sees)
        self._nearest: dict[int, int] = {}

    def seen(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slot of the memory the query sees at each node, −1 where it sees none."""
        slots = self.tables.memories.holders(nodes)
        out = np.full(len(nodes), -1, dtype=np.int64)
        single = np.flatnonzero(slots >= 0)
        admitted = single[self._admitted(slots[single])]
        out[admitted] = slots[admitted]
        for place in np.flatnonzero(slots < -1).tolist():
            out[place] = self._nearest_slot(int(nodes[place]))
        return out

    def half_edges(
        self, nodes: NDArray[np.int64], *, most: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Visible half-edges: positions into ``nodes``, other ends, weights; whose were cut."""
        adjacency = self.tables.adjacency
        owner, other, edge, cut = adjacency.half_edges(nodes, self._scopes, most=most)
        kept = self.visible(edge)
        return owner[kept], other[kept], self.tables.edges.weight.values[edge[kept]], cut

    def open(
        self, nodes: NDArray[np.int64], limit: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Visible half-edges of the nodes that have at most ``limit``, and which have more.

        Looks no further into a hub than it must to know.
        """
        owner, other, weight, cut = self.half_edges(nodes, most=limit + 1)
        hub = np.bincount(owner, minlength=len(nodes)) > limit
        again = np.flatnonzero(cut & ~hub)  # much of what was looked at is invisible
        kept = ~(hub | cut)[owner]
        owner, other, weight = owner[kept], other[kept], weight[kept]
        if len(again):
            who, more, weights, _ = self.half_edges(nodes[again])
            hub[again] = np.bincount(who, minlength=len(again)) > limit
            kept = ~hub[again[who]]
            owner = np.concatenate([owner, again[who[kept]]])
            other = np.concatenate([other, more[kept]])
            weight = np.concatenate([weight, weights[kept]])
        return hub, owner, other, weight

    def in_graph(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which nodes have a visible edge to another node."""
        found = np.zeros(len(nodes), dtype=np.bool_)
        owner, _, _, cut = self.half_edges(nodes, most=_GLANCE)
        found[owner] = True
        open_ = np.flatnonzero(cut & ~found)
        if len(open_):
            found[open_[self.half_edges(nodes[open_])[0]]] = True
        return found

    def visible(self, edges: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which edge rows the query sees."""
        table = self.tables.edges
        out: NDArray[np.bool_] = table.alive.values[edges]
        out &= self._sees[table.scope.values[edges]]
        owners = table.owner.values[edges].astype(np.int64)
        owned = np.flatnonzero(out & (owners >= 0))
        if len(owned) and (self.query.admitted is not None or self.tables.memories.several):
            out[owned] = self.shown(owners[owned])
        return out

    def edge_mask(self) -> NDArray[np.bool_]:
        """`visible` for every edge row between two different nodes."""
        table = self.tables.edges
        mask: NDArray[np.bool_] = self._sees.take(table.scope.values)  # half the time of [ ]
        mask &= table.alive.values
        mask &= table.source.values != table.target.values
        memories = self.tables.memories
        if self.query.admitted is not None or memories.several:
            # the last place is that of owner −1: of edges nobody owns
            seen = np.append(self.shown(np.arange(len(memories.node))), True)
            mask &= seen.take(table.owner.values)
        return mask

    def distance(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Levels up to each memory."""
        scopes = self.tables.memories.scope.values[slots]
        distances: NDArray[np.int64] = self.distances[scopes].astype(np.int64)
        return distances

    def shown(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which memories the query sees."""
        memories = self.tables.memories
        seen = self._admitted(slots)
        if memories.several:
            nodes = memories.node.values[slots].astype(np.int64)
            for place in np.flatnonzero(seen & (memories.holders(nodes) < -1)).tolist():
                seen[place] = self._nearest_slot(int(nodes[place])) == slots[place]
        return seen

    def _admitted(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """`StoreQuery.admits` for many memories."""
        memories = self.tables.memories
        out: NDArray[np.bool_] = self._sees[memories.scope.values[slots]]
        admitted = self.query.admitted
        if admitted is not None:
            serials = memories.serial.values[slots]
            out &= (serials >= 0) & (serials < len(admitted))
            if len(admitted):
                out &= admitted.take(serials, mode="clip")
        return out

    def _nearest_slot(self, node: int) -> int:
        """Of several memories with one id, the slot of the one the query sees, or −1."""
        if node not in self._nearest:
            slots = np.array(self.tables.memories.several[node], dtype=np.int64)
            slots = slots[self._admitted(slots)]
            self._nearest[node] = min(slots.tolist(), key=self._nearness, default=-1)
        return self._nearest[node]

    def _nearness(self, slot: int) -> tuple[tuple[int, int], str]:
        """Nearest first, then the first-named scope's, then by path, whatever was written first."""
        scope = self.tables.scopes.scopes[self.tables.memories.scope.values[slot]]
        return self.query.rank_of_scope(scope), scope.path

"""Who is next to whom: half-edges sorted by node and scope, in levels that grow geometrically.

A level covers a range of edge rows and never changes; new edges form a new, small level, and a level
is merged into the one before when that is at most four times as large. So an edge is sorted a
logarithmic number of times, and a write never makes the next question rebuild the whole graph.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankblend.kernels.spread import concat_ranges
from rankblend.stores.graph.edges import EdgeTable

__all__ = ["Adjacency", "Level"]

_MERGE = 4
# A row longer than this is searched by scope when the query sees few scopes, else read in full.
_LONG = 128
_FEW_SCOPES = 16


class Level:
    """The half-edges of the edge rows ``start … stop − 1``.

    Attributes:
        key: int64, shape (h,), sorted: node << 32 | scope.
        other: int32, shape (h,): the node at the other end.
        edge: int32, shape (h,): the edge row.
    """

    def __init__(self, edges: EdgeTable, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        source = edges.source.values[start:stop]
        target = edges.target.values[start:stop]
        # an edge from a node to itself leads nowhere
        rows = np.flatnonzero((source != target) & edges.alive.values[start:stop])
        scope = edges.scope.values[start:stop][rows].astype(np.int64)
        node = np.concatenate([source[rows], target[rows]]).astype(np.int64)
        key = node << 32 | np.concatenate([scope, scope])
        order = np.argsort(key)
        self.key = key[order]
        self.other = np.concatenate([target[rows], source[rows]])[order]
        self.edge = (start + np.concatenate([rows, rows])[order]).astype(np.int32)
        self._nodes, first = np.unique(self.key >> 32, return_index=True)
        self._bounds = np.append(first, len(self.key))
        self._scopes = len(np.unique(scope))

    def __len__(self) -> int:
        return self.stop - self.start

    def ranges(
        self, nodes: NDArray[np.int64], scopes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Where the half-edges of the nodes lie: positions into ``nodes``, starts and stops.

        What other scopes wrote may be in the ranges; what the given scopes wrote is.
        """
        at = np.minimum(np.searchsorted(self._nodes, nodes), max(len(self._nodes) - 1, 0))
        who = np.flatnonzero(self._nodes[at] == nodes) if len(self._nodes) else at[:0]
        starts, stops = self._bounds[at[who]], self._bounds[at[who] + 1]
        long = stops - starts > _LONG
        if self._scopes > 1 and len(scopes) <= _FEW_SCOPES and long.any():
            keys = (nodes[who[long]][:, None] << 32 | scopes[None, :]).ravel()
            who = np.concatenate([who[~long], np.repeat(who[long], len(scopes))])
            starts = np.concatenate([starts[~long], np.searchsorted(self.key, keys)])
            stops = np.concatenate([stops[~long], np.searchsorted(self.key, keys + 1)])
        return who, starts, stops


class Adjacency:
    """The levels over one edge table, brought up to date when asked."""

    def __init__(self, edges: EdgeTable) -> None:
        self._edges = edges
        self._levels: list[Level] = []

    def refresh(self) -> None:
        """Cover all edge rows."""
        stop = len(self._edges)
        start = self._levels[-1].stop if self._levels else 0
        if start == stop:
            return
        while self._levels and len(self._levels[-1]) <= _MERGE * (stop - start):
            start = self._levels.pop().start
        self._levels.append(Level(self._edges, start, stop))

    def half_edges(
        self, nodes: NDArray[np.int64], scopes: NDArray[np.int64], *, most: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Half-edges of the nodes, dead and invisible ones included.

        Args:
            nodes: Node numbers, shape (k,).
            scopes: Scopes whose edges are wanted.
            most: At most this many of each range; None for all.

        Returns:
            Positions into ``nodes``, other ends, edge rows, all shape (h,); and bool, shape (k,):
            whose half-edges were cut at ``most``.
        """
        self.refresh()
        cut = np.zeros(len(nodes), dtype=np.bool_)
        parts = []
        for level in self._levels:
            who, starts, stops = level.ranges(nodes, scopes)
            if most is not None:
                cut[who[stops - starts > most]] = True
                stops = np.minimum(stops, starts + most)
            positions, owners = concat_ranges(starts, stops)
            parts.append((who[owners], level.other[positions], level.edge[positions]))
        if not parts:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing, nothing, cut
        owner, other, edge = (np.concatenate(column) for column in zip(*parts, strict=True))
        return owner, other.astype(np.int64), edge.astype(np.int64), cut

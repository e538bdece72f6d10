"""The edges of a graph: their columns, and who is next to whom.

A level covers a range of edge rows and never changes; new edges form a new, small level, and a level
is merged into the one before when that is at most four times as large. So an edge is sorted a
logarithmic number of times, and a write never makes the next question rebuild the whole graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.spread import concat_ranges
from rankblend.stores._arrays import Growing
from rankblend.stores._record import Edge, Record


def edge_problems(
    where: str, source: object, target: object, kind: object, weight: object
) -> list[str]:
    """What is wrong with the parts of an edge or link, one line each; empty when nothing is."""
    problems = [
        f"{where}.{name}: expected text that is not blank"
        for name, value in (("source", source), ("target", target), ("kind", kind))
        if not isinstance(value, str) or not value.strip()
    ]
    number = isinstance(weight, int | float | np.floating) and not isinstance(weight, bool)
    if not number or not (math.isfinite(float(weight)) and 0 < float(weight) <= 1):  # type: ignore[arg-type]
        problems.append(f"{where}.weight: expected a finite number in (0, 1]")
    return problems


def check_links(records: Iterable[Record]) -> None:
    """Refuse records with a link that is no edge.

    Raises:
        InvalidArgumentError: All problems at once, ``records[i].links[j].weight: …``.
    """
    _refuse(
        problem
        for place, record in enumerate(records)
        for number, link in enumerate(record.links)
        for problem in edge_problems(
            f"records[{place}].links[{number}]", record.id, link.target, link.kind, link.weight
        )
    )


def check_edges(edges: Iterable[Edge]) -> None:
    """Refuse edges that are none.

    Raises:
        InvalidArgumentError: All problems at once, ``edges[i].weight: …``.
    """
    _refuse(
        problem
        for place, edge in enumerate(edges)
        for problem in edge_problems(
            f"edges[{place}]", edge.source, edge.target, edge.kind, edge.weight
        )
    )


def _refuse(problems: Iterable[str]) -> None:
    found = list(problems)
    if found:
        raise InvalidArgumentError(found)


class EdgeTable:
    """All edges as columns. A row never changes except that it dies; replacing appends.

    Attributes:
        source, target, kind, scope: int32 numbers of the nodes, kind and scope, shape (e,).
        weight: float64, shape (e,).
        owner: int32: the memory slot the edge belongs to, −1 for an edge of its own.
        verified, alive: bool.
        extra: Edge → further attributes, for edges that came from a networkx graph.
    """

    def __init__(self) -> None:
        self.source = Growing(np.empty(0, np.int32))
        self.target = Growing(np.empty(0, np.int32))
        self.kind = Growing(np.empty(0, np.int32))
        self.scope = Growing(np.empty(0, np.int32))
        self.weight = Growing(np.empty(0, np.float64))
        self.owner = Growing(np.empty(0, np.int32))
        self.verified = Growing(np.empty(0, np.bool_))
        self.alive = Growing(np.empty(0, np.bool_))
        self.extra: dict[int, Mapping[str, Any]] = {}
        self.dead = 0

    def __len__(self) -> int:
        return len(self.source)

    def extend(self, rows: Sequence[tuple[int, int, int, int, float, int, bool]]) -> None:
        """Append (source, target, kind, scope, weight, owner, verified) rows."""
        if not rows:
            return
        names = ("source", "target", "kind", "scope", "weight", "owner", "verified")
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            getattr(self, name).extend(values)
        self.alive.extend(np.ones(len(rows), dtype=np.bool_))

    def kill(self, rows: NDArray[np.int64]) -> None:
        """Take rows out of every answer at once."""
        self.dead += int(np.count_nonzero(self.alive.values[rows]))
        self.alive.values[rows] = False
        for row in rows.tolist() if self.extra else ():
            self.extra.pop(row, None)

    def select(self, rows: NDArray[np.int64], nodes: NDArray[np.int32]) -> EdgeTable:
        """A new table of these rows, with node numbers and nothing else mapped by ``nodes``."""
        table = EdgeTable()
        for name in ("kind", "scope", "weight", "owner", "verified", "alive"):
            getattr(table, name).extend(getattr(self, name).values[rows])
        table.source.extend(nodes[self.source.values[rows]])
        table.target.extend(nodes[self.target.values[rows]])
        if self.extra:
            table.extra = {
                new: self.extra[old] for new, old in enumerate(rows.tolist()) if old in self.extra
            }
        return table


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

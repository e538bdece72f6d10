"""All a graph says about one query, computed when first asked for and then looked up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.kernels.spread import concat_ranges, personalized_pagerank
from rankblend.stores._protocol import Reason, StoreQuery
from rankblend.stores._rows import NumberedIds
from rankblend.stores.graph._names import NameIndex
from rankblend.stores.graph._subgraph import Snapshot, SnapshotCache
from rankblend.stores.graph._tables import GraphTables
from rankblend.stores.graph._view import View
from rankblend.stores.graph._walk import Limits, Seeds, Walk, gather_seeds

# Of what a seed brings itself: it is subtracted, so it must be better than what it is taken from.
_OWN_TOLERANCE = 1e-12


@frozen(eq=False)
class Ranks:
    """PageRank from some seeds.

    ``p`` is the stationary distribution of a walk over the visible subgraph, edges taken in both
    directions in proportion to their weight, that restarts at the seeds in proportion to theirs. A
    seed would mostly see its own restart: in a graph where it has few neighbours its mass comes back
    again and again. So from a memory m that is a seed is taken what its own restart brings it,
    ``v(m) · π_m(m)``, with π_m(m) counted over walks among the ``frontier_cap`` nodes nearest to
    such seeds: exactly, where their surroundings are no larger. Walks that wander farther and come
    back stay in; on MuSiQue they make up .25 % of π_m(m) in the median and at most 3.5 %.

    Attributes:
        snapshot: The matrix.
        values: float64, shape (n,), by its rows, in [0, 1].
    """

    snapshot: Snapshot
    values: NDArray[np.float64]

    @classmethod
    def start(
        cls, snapshot: Snapshot, seeds: Seeds, *, damping: float, cap: int, cut: int
    ) -> Ranks:
        """Solve for the seeds; every seed must have a visible edge."""
        rows = snapshot.rows(seeds.nodes)
        restart = np.zeros(len(snapshot.nodes))
        restart[rows] = seeds.weights / seeds.weights.sum()
        values = personalized_pagerank(snapshot.times, snapshot.strength, restart, damping=damping)
        mine = rows[seeds.memories]  # nobody asks about the others
        if len(mine):
            own = restart[mine] * _own_rank(snapshot, mine, damping=damping, cap=cap, cut=cut)
            rest = values[mine] - own
            # what is left of a subtraction of equals is rounding, not proximity
            values[mine] = np.where((rest > 1e-9 * own) & (len(seeds) > 1), rest, 0.0)
        return cls(snapshot, np.minimum(values, 1.0))


def _own_rank(
    snapshot: Snapshot, rows: NDArray[np.int64], *, damping: float, cap: int, cut: int
) -> NDArray[np.float64]:
    """``π_m(m)`` of each row over walks among the nodes around the rows."""
    chosen = _around(snapshot, rows, cap=cap, cut=cut)
    part = snapshot.matrix[chosen][:, chosen]
    here = np.searchsorted(chosen, rows), np.arange(len(rows))
    units = np.zeros((len(chosen), len(rows)))
    units[here] = 1.0
    ranks = personalized_pagerank(
        lambda vectors: np.asarray(part @ vectors), snapshot.strength[chosen], units,
        damping=damping, tolerance=_OWN_TOLERANCE,
    )  # fmt: skip
    own: NDArray[np.float64] = ranks[here]
    return own


def _around(
    snapshot: Snapshot, rows: NDArray[np.int64], *, cap: int, cut: int
) -> NDArray[np.int64]:
    """The rows and up to ``cap`` rows near them, ring by ring, ascending.

    Of a ring that does not fit, those with the fewest edges, ties by name: they return the most.
    """
    bounds = np.asarray(snapshot.matrix.indptr, dtype=np.int64)
    inside = np.zeros(len(snapshot.nodes), dtype=np.bool_)
    inside[rows] = True
    ring, room = rows, cap
    while len(ring) and room > 0:
        positions, _ = concat_ranges(bounds[ring], bounds[ring + 1])
        near = np.asarray(snapshot.matrix.indices[positions], dtype=np.int64)
        near = np.unique(near[~inside[near]])
        edges = bounds[near + 1] - bounds[near]
        near = near[np.lexsort((near, edges))[:room]]
        inside[near] = True
        room -= len(near)
        ring = near[bounds[near + 1] - bounds[near] <= cut]
    return np.flatnonzero(inside)


EMITS = ("hops", "path_weight", "ppr", "activation", "structured")

_PRESENT, _UNKNOWN = np.int8(Reason.PRESENT), np.int8(Reason.UNKNOWN)
_NOT_APPLICABLE = np.int8(Reason.NOT_APPLICABLE)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Answer:
    """One query on one version of the graph; used by whoever holds the store's lock."""

    def __init__(
        self,
        tables: GraphTables,
        query: StoreQuery,
        *,
        names: NameIndex,
        snapshots: SnapshotCache,
        limits: Limits,
        damping: float,
    ) -> None:
        self.query = query
        self._tables = tables
        self._names, self._snapshots = names, snapshots
        self._limits, self._damping = limits, damping
        self._view = View(tables, query)

    @cached_property
    def seeds(self) -> Seeds:
        """Where the walks start."""
        return gather_seeds(self._view, self._names)

    @cached_property
    def walk(self) -> Walk:
        """The walk from all seeds."""
        return Walk.start(self._view, self.seeds, self._limits)

    @cached_property
    def entity_walk(self) -> Walk:
        """The walk from what the query is about, other stores' proposals left out."""
        entities = self.seeds.only_entities()
        if len(entities) == len(self.seeds):
            return self.walk
        return Walk.start(self._view, entities, self._limits)

    @cached_property
    def ranks(self) -> Ranks:
        """PageRank from all seeds; there must be one."""
        return Ranks.start(
            self._snapshots.snapshot(self._view), self.seeds, damping=self._damping,
            cap=self._limits.frontier_cap, cut=self._limits.degree_cut,
        )  # fmt: skip

    def propose(self, by: str, limit: int, level: int | None) -> list[str]:
        """Seen memories with the most of ``by`` above 0, ties by id."""
        if not len(self.seeds) or limit <= 0:
            return []
        if by == "ppr":
            nodes, values = self.ranks.snapshot.nodes, self.ranks.values
        else:
            nodes, values = self.walk.nodes, self.walk.activation
        slots = self._view.seen(nodes)
        wanted = np.flatnonzero((slots >= 0) & (values > 0))
        if level is not None:
            wanted = wanted[self._view.distance(slots[wanted]) == level]
        nodes, values, slots = nodes[wanted], values[wanted], slots[wanted]
        best = self._tables.nodes.strongest(nodes, values, limit)
        best = best[self._tables.nodes.by_name(nodes[best])]
        best = best[np.argsort(-values[best], kind="stable")]
        names, serials = self._tables.nodes.names, self._tables.memories.serial.values
        return NumberedIds([names[node] for node in nodes[best].tolist()], serials[slots[best]])

    def observe(
        self, ids: Sequence[str], wanted: Sequence[str]
    ) -> tuple[dict[str, Floats], dict[str, NDArray[np.int8]]]:
        """A column and its reasons for each wanted name."""
        held, nodes = self._held(ids)
        there = np.zeros(len(ids), dtype=np.bool_)
        if any(name != "ppr" for name in wanted):  # where the walk came there are edges
            there[held] = self._places(self.walk, nodes[held]) >= 0
        others = held & ~there
        there[others] = self._view.in_graph(nodes[others])
        columns: dict[str, Floats] = {}
        reasons: dict[str, NDArray[np.int8]] = {}
        for name in wanted:
            column = np.full(len(ids), np.nan)
            answered = there & self._has_seed(nodes, entities_only=name == "structured")
            column[answered] = _COLUMNS[name](self, nodes[answered])
            absent = np.where(held, _NOT_APPLICABLE, _UNKNOWN)
            reason = np.where(answered, _PRESENT, absent)
            if name in _NOT_REACHED and (self._walk_of(name).cut if answered.any() else False):
                missed = answered & (column == _NOT_REACHED[name])
                column[missed], reason[missed] = np.nan, Reason.CAPPED
            columns[name], reasons[name] = column, reason
        return columns, reasons

    def _walk_of(self, name: str) -> Walk:
        """The walk behind a column."""
        return self.entity_walk if name == "structured" else self.walk

    def _held(self, ids: Sequence[str]) -> tuple[NDArray[np.bool_], Ints]:
        """Which ids are memories the query sees, and the node of each (−1: none)."""
        memories = self._tables.memories
        if isinstance(ids, NumberedIds) and ids.numbered:
            slots = memories.with_serials(ids.serials)
            held = slots >= 0
            held[held] = self._view.shown(slots[held])
            nodes = np.full(len(ids), -1, dtype=np.int64)
            nodes[held] = memories.node.values[slots[held]]
            return held, nodes
        nodes = self._tables.nodes.find_all(ids)
        held = nodes >= 0
        held[held] = self._view.seen(nodes[held]) >= 0
        return held, nodes

    def _has_seed(self, nodes: Ints, *, entities_only: bool) -> NDArray[np.bool_]:
        """Whether there is a seed to measure each node from: for a lone seed itself there is none."""
        if entities_only:
            return np.full(len(nodes), bool(self.seeds.entities.any()))
        if len(self.seeds) == 1:
            other: NDArray[np.bool_] = nodes != self.seeds.nodes[0]
            return other
        return np.full(len(nodes), len(self.seeds) > 0)

    def _hops(self, nodes: Ints) -> Floats:
        return self._look_up(self.walk, self.walk.hops, nodes, np.inf)

    def _path_weight(self, nodes: Ints) -> Floats:
        return self._look_up(self.walk, self.walk.path_weight, nodes, 0.0)

    def _activation(self, nodes: Ints) -> Floats:
        return self._look_up(self.walk, self.walk.activation, nodes, 0.0)

    def _ppr(self, nodes: Ints) -> Floats:
        if not len(nodes):
            return np.empty(0)
        return self.ranks.values[self.ranks.snapshot.rows(nodes)]

    def _structured(self, nodes: Ints) -> Floats:
        if not len(nodes):
            return np.empty(0)
        walk = self.entity_walk
        return 1.0 / (1.0 + self._look_up(walk, walk.hops_with_own, nodes, np.inf))

    def _look_up(self, walk: Walk, values: Floats, nodes: Ints, missing: float) -> Floats:
        """The value at each node, ``missing`` where the walk did not come."""
        places = self._places(walk, nodes)
        found = np.full(len(nodes), missing)
        came = places >= 0
        found[came] = values[places[came]]
        return found

    def _places(self, walk: Walk, nodes: Ints) -> NDArray[np.int32]:
        """Where in ``walk.nodes`` each node is, −1 where the walk did not come."""
        index = self._tables.nodes.scratch()
        try:
            index[walk.nodes] = np.arange(1, len(walk.nodes) + 1)
            return index[nodes] - 1
        finally:
            index[walk.nodes] = 0


_COLUMNS: dict[str, Callable[[Answer, Ints], Floats]] = {
    "hops": Answer._hops,  # noqa: SLF001
    "path_weight": Answer._path_weight,  # noqa: SLF001
    "ppr": Answer._ppr,  # noqa: SLF001
    "activation": Answer._activation,  # noqa: SLF001
    "structured": Answer._structured,  # noqa: SLF001
}


# What a node has that the walk did not reach. When the walk was cut short that is not known.
_NOT_REACHED = {"hops": math.inf, "path_weight": 0.0, "activation": 0.0, "structured": 0.0}

"""`GraphStore`: how near each memory is, in a graph of links and edges, to what the query is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar

from rankblend.caches import Lru
from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.forks import guard
from rankblend.relevance import Scope, is_identifier
from rankblend.stores._protocol import Contents, Observation, StoreQuery
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores._rows import ScopedRows
from rankblend.stores.graph._answers import EMITS, Answer
from rankblend.stores.graph._edges import check_edges, check_links
from rankblend.stores.graph._interop import from_networkx, to_networkx
from rankblend.stores.graph._names import NameIndex
from rankblend.stores.graph._subgraph import SnapshotCache
from rankblend.stores.graph._tables import GraphTables
from rankblend.stores.graph._walk import Limits

if TYPE_CHECKING:
    import networkx as nx

_REMEMBERED = 8


class GraphStore:
    """A graph of memories and named entities, walked from the query's seeds.

    Nodes are texts: ids of memories and names of entities. A memory's links are edges it owns; more
    edges between any nodes come from `add_edges` or a networkx graph. Kind and direction are kept;
    walks go both ways. Only what the query sees is walked, and degrees, weights and caps count
    nothing else.

    Seeds are ``query.seeds`` and the nodes whose name occurs in ``query.text`` (weight 1 / linked
    memories). A memory that is a seed is measured from the *other* seeds.

    ============  ========================================================================
    evidence      meaning, for a memory the query sees and that has a visible edge
    ============  ========================================================================
    hops          edges to the nearest (other) seed; inf when not reached within ``max_hops``
    path_weight   best product of edge weights from an (other) seed, times its weight; 0 when
                  not reached
    activation    capped spreading activation from the (other) seeds, see `Walk.activation`
    ppr           personalised PageRank of the whole visible graph, see `Ranks`
    structured    1 / (1 + hops) from what the caller or the query's text names; 1 when it is
                  named itself; 0 when not reached
    ============  ========================================================================

    All are absent without an (other) seed in the visible graph, and for a memory without a visible
    edge (NOT_APPLICABLE); and for an id that is no memory or not visible (UNKNOWN, both alike).
    Where a hub or the frontier cap cut the walk short, a memory it did not reach may be near all
    the same: hops, path_weight, activation and structured are absent there (CAPPED).

    Args:
        name: An identifier.
        max_hops: A walk's length at most, 1 to 16.
        frontier_cap: How many nodes a walk opens at each hop, those with the most activation.
        degree_cut: A node with more visible edges is not walked through.
        damping: Of PageRank, in [0, 1). MuSiQue with case-folded entities, nDCG@10: .5 .659,
            .7 .673, .85 .683, .9 .678.
        propose_by: ``activation`` (its cost does not grow with the graph) or ``ppr``.

    Raises:
        InvalidArgumentError: A parameter out of range.
    """

    emits: tuple[str, ...] = EMITS
    immediate: ClassVar[bool] = True
    seeded: ClassVar[bool] = True

    def __init__(
        self,
        *,
        name: str = "graph",
        max_hops: int = 3,
        frontier_cap: int = 1000,
        degree_cut: int = 500,
        damping: float = 0.85,
        propose_by: str = "activation",
    ) -> None:
        problems = []
        if not is_identifier(name):
            problems.append("name: expected an identifier")
        for what, number, most in (
            ("max_hops", max_hops, 16),
            ("frontier_cap", frontier_cap, math.inf),
            ("degree_cut", degree_cut, math.inf),
        ):
            if type(number) is not int or not 1 <= number <= most:
                problems.append(f"{what}: expected a whole number from 1 to {most:g}")
        if not 0 <= damping < 1:
            problems.append("damping: expected a number in [0, 1)")
        if propose_by not in ("activation", "ppr"):
            problems.append("propose_by: expected 'activation' or 'ppr'")
        if problems:
            raise InvalidArgumentError(problems)
        self.name = name
        self._settings: dict[str, Any] = {
            "name": name, "max_hops": max_hops, "frontier_cap": frontier_cap,
            "degree_cut": degree_cut, "damping": damping, "propose_by": propose_by,
        }  # fmt: skip
        self._limits = Limits(max_hops, frontier_cap, degree_cut)
        self._damping = float(damping)
        self._propose_by = propose_by
        self._lock = RLock()
        guard(self, "_lock")
        self._closed = False
        self._clear()

    def _clear(self) -> None:
        self._tables = GraphTables()
        self._names = NameIndex()
        self._names_of = -1
        self._snapshots = SnapshotCache()
        self._answers: Lru[int, Answer] = Lru(_REMEMBERED)  # by the query's id
        self._answers_of = -1

    def fresh(self) -> GraphStore:
        """An empty store with the same settings."""
        return GraphStore(**self._settings)

    def __len__(self) -> int:
        with self._lock:
            return len(self._tables.memories)

    def add(self, records: Sequence[Record]) -> None:
        """Add memories with their links, replacing those with the same key.

        Raises:
            InvalidArgumentError: A blank link target or kind, or a weight outside (0, 1]; nothing
                was added.
        """
        check_links(records)
        with self._open():
            self._tables.add_records(records)

    def load(self, rows: ScopedRows, linked: Sequence[Record], edges: Sequence[Edge]) -> None:
        """Add everything that is kept elsewhere, as `add` and `add_edges` would.

        Args:
            rows: All memories, sorted.
            linked: Records of those that have links, of which only key, serial and links matter;
                links of memories that are not among the rows are left out.
            edges: Edges of their own.

        Raises:
            InvalidArgumentError: As `add` and `add_edges`; nothing was added.
        """
        check_links(linked)
        check_edges(edges)
        with self._open():
            self._tables.add_rows(rows)
            self._tables.add_records([one for one in linked if rows.row(one.key) is not None])
            self._tables.add_edges(edges)

    def load_contents(self, contents: Contents) -> None:
        """Add all that a memory holds; see `load`."""
        self.load(contents.rows(), contents.linked(), list(contents.iter_edges()))

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop memories and the edges they own; edges added by themselves stay."""
        with self._open():
            self._tables.remove_records(keys)

    def add_edges(self, edges: Sequence[Edge]) -> None:
        """Add edges, replacing those of the same scope, source, target and kind.

        Raises:
            InvalidArgumentError: A blank end or kind, or a weight outside (0, 1]; nothing was
                added.
        """
        check_edges(edges)
        with self._open():
            self._tables.add_edges(edges)

    def remove_edges(self, edges: Sequence[Edge]) -> None:
        """Drop edges added by `add_edges`; unknown ones and a memory's own links are left alone."""
        with self._open():
            self._tables.remove_edges(edges)

    def edges(self) -> list[Edge]:
        """The edges that were written apart from memories; only what identifies them is told."""
        with self._open():
            return list(self._tables.own_edges())

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        """Memories by proximity to the (other) seeds, those without any left out, ties by id."""
        with self._open():
            return self._answer(query).propose(self._propose_by, limit, level)

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """Evidence on each id; PageRank is what costs more in a larger graph, when it is wanted."""
        names = query.wants(self.emits)
        with self._open():
            columns, reasons = self._answer(query).observe(ids, names)
        return Observation(columns, reasons)

    def trace(self, query: StoreQuery) -> Mapping[str, Any]:
        """How the walk for a query went, as plain data.

        Returns:
            ``seeds``: (node, weight, named by the query or its caller); ``opened``, ``reached``:
            numbers of nodes; ``capped``: what stopped the walk, of ``hops`` (nodes at the last hop
            were not opened), ``frontier`` (more than ``frontier_cap`` at a hop), ``hub`` (a node
            with more than ``degree_cut`` edges).
        """
        with self._open():
            answer = self._answer(query)
            seeds, walk = answer.seeds, answer.walk
            names = self._tables.nodes.names
            return {
                "seeds": [
                    (names[node], weight, entity)
                    for node, weight, entity in zip(
                        seeds.nodes.tolist(),
                        seeds.weights.tolist(),
                        seeds.entities.tolist(),
                        strict=True,
                    )
                ],
                "opened": walk.opened,
                "reached": len(walk.nodes),
                "capped": walk.capped,
            }

    def add_networkx(self, graph: nx.Graph, *, scope: Scope | str) -> None:
        """Add the edges of a networkx graph of any class, written at one scope.

        ``kind``, ``weight`` (in (0, 1], default 1) and ``verified`` are read from the edges'
        attributes; the key of a multigraph's edge is its kind where it is text and no kind is
        given. All other attributes of edges and nodes are kept for `to_networkx`. An undirected
        edge gets the direction networkx lists it in.

        Raises:
            InvalidArgumentError: A node that is not text, or a bad weight; nothing was added.
        """
        with self._open():
            from_networkx(self._tables, graph, Scope.of(scope))

    def to_networkx(self, query: StoreQuery | None = None) -> nx.MultiDiGraph:
        """The graph as networkx: all of it (for its operator), or what one query sees.

        Edges carry ``kind``, ``weight``, ``verified``, ``scope``, and ``memory`` where a memory
        owns them; nodes that are memories carry ``memory=True``.
        """
        with self._open():
            return to_networkx(self._tables, query)

    def close(self) -> None:
        """Release everything; closing twice is harmless."""
        with self._lock:
            self._closed = True
            self._clear()

    def _open(self) -> RLock:
        if self._closed:
            raise StoreClosedError(f"store {self.name!r} is closed; open a new one")
        return self._lock

    def _answer(self, query: StoreQuery) -> Answer:
        """The answer to this very query object, as long as nothing was written."""
        if self._answers_of != self._tables.version:  # they would keep whole matrices alive
            self._answers.clear()
            self._answers_of = self._tables.version
        if self._names_of != self._tables.epoch:  # nodes were renumbered
            self._names, self._names_of = NameIndex(), self._tables.epoch
        make = partial(
            Answer,
            self._tables,
            query,
            names=self._names,
            snapshots=self._snapshots,
            limits=self._limits,
            damping=self._damping,
        )
        # an answer holds its query, so no other one has that id as long as it is kept
        return self._answers.get(id(query), make)

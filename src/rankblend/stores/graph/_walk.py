"""The capped walk from the seeds: the part of the visible graph near them, and what is measured on it.

The neighbourhood grows hop by hop. At each hop the newly reached nodes with the most activation are
*opened*, at most ``frontier_cap`` of them, ties by name; a node with more than ``degree_cut``
visible edges is reached but not opened. So the cost depends on the caps, not on the graph: a hub of
170k edges, walked plainly, reaches 99 % of a graph in three hops and takes 764 ms.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.spread import (
    best_paths,
    nearest_hops,
    ordered_sums,
    own_returns,
    spread_step,
)
from rankblend.stores.graph._names import NameIndex
from rankblend.stores.graph._view import View

# Seeds from these sources are what the query is about; others are proposals of other stores.
_ENTITY_SOURCES = ("caller", "query")


@frozen(eq=False)
class Seeds:
    """Distinct nodes of the visible graph to start from, in the order of their names.

    Attributes:
        nodes: int64, shape (s,).
        weights: float64, shape (s,), in (0, 1]; of several seeds at one node the strongest.
        entities: bool, shape (s,): named by the caller or in the query's text.
        memories: bool, shape (s,): memories the query sees.
    """

    nodes: NDArray[np.int64]
    weights: NDArray[np.float64]
    entities: NDArray[np.bool_]
    memories: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.nodes)

    def only_entities(self) -> Seeds:
        """Without the proposals of other stores."""
        keep = self.entities
        return Seeds(self.nodes[keep], self.weights[keep], self.entities[keep], self.memories[keep])


def gather_seeds(view: View, index: NameIndex) -> Seeds:
    """The query's seeds and the nodes whose name occurs in its text.

    A named node weighs 1 / the number of seen memories next to it, so that a name everything is
    linked to says little; 1 when no memory is. A seed that is no node of the visible graph, whether
    unknown or invisible, has no effect at all.

    Raises:
        InvalidArgumentError: A seed's weight is not a finite number in (0, 1].
    """
    query, nodes = view.query, view.tables.nodes
    named = index.matches(query.text, nodes.names, view.in_graph)
    strengths = dict(zip(named.tolist(), _rarity(view, named).tolist(), strict=True))
    entities = set(strengths)
    for place, seed in enumerate(query.seeds):
        if not (math.isfinite(seed.weight) and 0 < seed.weight <= 1):
            raise InvalidArgumentError(f"seeds[{place}].weight: expected a finite number in (0, 1]")
        node = nodes.find(seed.id)
        if node >= 0:
            strengths[node] = max(strengths.get(node, 0.0), float(seed.weight))
            if seed.source in _ENTITY_SOURCES:
                entities.add(node)
    numbers = np.array(list(strengths), dtype=np.int64)
    numbers = numbers[view.in_graph(numbers)]
    numbers = numbers[nodes.by_name(numbers)]
    return Seeds(
        numbers,
        np.array([strengths[node] for node in numbers.tolist()], dtype=np.float64),
        np.array([node in entities for node in numbers.tolist()], dtype=np.bool_),
        view.seen(numbers) >= 0,
    )


def _rarity(view: View, named: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 / the number of distinct seen memories next to each node, at most 1."""
    owner, other, _, _ = view.half_edges(named)
    memory = view.seen(other) >= 0
    owner, other = owner[memory], other[memory]
    linked = np.ones(len(named))
    index = view.tables.nodes.scratch()
    for place in range(len(named)):
        near = other[owner == place]
        # of equal ones the one written last stays: counted without sorting a hub's neighbours
        index[near] = np.arange(len(near))
        linked[place] = max(1, int(np.count_nonzero(index[near] == np.arange(len(near)))))
        index[near] = 0
    return 1.0 / linked


# What part of its activation a node passes on in all when it has one edge; with D edges it passes
# DECAY / √D along each. MuSiQue with case-folded entities, nDCG@10, decay .5: exponent of D 0 .637,
# .25 .658, .5 .673, .75 .670, 1 .654.
DECAY = 0.5


@frozen
class Limits:
    """How far a walk may go.

    Args:
        max_hops: Edges from a seed, ≥ 1.
        frontier_cap: Nodes opened per hop, ≥ 1.
        degree_cut: A node with more visible edges is not walked through, ≥ 1. A seed is, up to
            ``max(degree_cut, frontier_cap)`` edges.
    """

    max_hops: int = 3
    frontier_cap: int = 1000
    degree_cut: int = 500


@frozen(eq=False, slots=False)
class Walk:
    """One walk from some seeds, and the evidence it gives; arrays over its nodes.

    Attributes:
        nodes: int64, shape (n,): node numbers; the seeds come first, in their order.
        source, target: int64, shape (m,): half-edges of opened nodes, by position in ``nodes``.
        weight: float64, shape (m,).
        strength: float64, shape (n,): summed visible weight of an opened node, 0 for others.
        settled: float64, shape (n,): activation before the last step, the seeds' own included.
        leaving: float64, shape (n,): what of it takes the last step.
        capped: Which limits stopped it: ``frontier``, ``hub``, ``hops``.
    """

    seeds: Seeds
    limits: Limits
    nodes: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float64]
    strength: NDArray[np.float64]
    settled: NDArray[np.float64]
    leaving: NDArray[np.float64]
    capped: tuple[str, ...] = field(default=())

    @classmethod
    def start(cls, view: View, seeds: Seeds, limits: Limits) -> Walk:
        """Walk from the seeds through what the view shows."""
        index = view.tables.nodes.scratch()  # node → position + 1
        grown = _Growth(view, seeds, index)
        try:
            grown.run(limits)
        finally:
            index[grown.nodes] = 0
        return cls(
            seeds, limits, grown.nodes, grown.source, grown.target, grown.weight, grown.strength,
            grown.settled, grown.leaving, tuple(sorted(grown.capped)),
        )  # fmt: skip

    @property
    def cut(self) -> bool:
        """Whether nodes may have been missed although they are near enough to be reached."""
        return not {"frontier", "hub"}.isdisjoint(self.capped)

    @property
    def opened(self) -> int:
        """How many nodes were walked through."""
        return int(np.count_nonzero(self.strength))

    @cached_property
    def activation(self) -> NDArray[np.float64]:
        """Capped spreading activation, shape (n,); a seed's is what the other seeds bring it.

        ``Σ_h Tʰ v`` for h = 0 … max_hops with ``T[x → y] = DECAY · w(x, y) / √D(x)``, minus, for a
        seed m, the same sum started from v(m) alone, taken at m.
        """
        out = self.settled + spread_step(self.source, self.target, self.share, self.leaving)
        seeds = np.flatnonzero(self.seeds.memories)  # nobody asks about the others
        if len(seeds):
            order = np.argsort(self.source)
            indptr = np.searchsorted(self.source[order], np.arange(len(self.nodes) + 1))
            returns = own_returns(
                indptr, self.target[order], self.share[order], seeds,
                steps=self.limits.max_hops,
            )  # fmt: skip
            own = self.seeds.weights[seeds] * (1.0 + returns)
            rest = out[seeds] - own
            # what is left of a subtraction of equals is rounding, not proximity
            out[seeds] = np.where(rest > 1e-12 * own, rest, 0.0)
        return out

    @cached_property
    def hops(self) -> NDArray[np.float64]:
        """Edges to the nearest seed, for a seed to the nearest other; inf: not reached."""
        return self._hops(others=True)

    @cached_property
    def hops_with_own(self) -> NDArray[np.float64]:
        """Edges to the nearest seed, 0 at a seed; inf: not reached."""
        return self._hops(others=False)

    @cached_property
    def path_weight(self) -> NDArray[np.float64]:
        """Best product of edge weights from a seed (for a seed: another), times its weight."""
        return best_paths(
            self.source, self.target, self.weight, len(self.nodes), np.arange(len(self.seeds)),
            self.seeds.weights, max_hops=self.limits.max_hops,
        )  # fmt: skip

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """What part of its activation a node sends along each of its half-edges."""
        return _share(self.source, self.weight, self.strength)

    def _hops(self, *, others: bool) -> NDArray[np.float64]:
        return nearest_hops(
            self.source, self.target, len(self.nodes), np.arange(len(self.seeds)),
            max_hops=self.limits.max_hops, others=others,
        )  # fmt: skip


def _share(
    source: NDArray[np.int64], weight: NDArray[np.float64], strength: NDArray[np.float64]
) -> NDArray[np.float64]:
    return DECAY * weight / np.sqrt(strength[source])


class _Growth:
    """A neighbourhood while it grows."""

    def __init__(self, view: View, seeds: Seeds, index: NDArray[np.int32]) -> None:
        self.view = view
        self.index = index
        self.nodes = np.empty(0, dtype=np.int64)
        self.source = np.empty(0, dtype=np.int64)
        self.target = np.empty(0, dtype=np.int64)
        self.weight = np.empty(0, dtype=np.float64)
        self._reach(seeds.nodes)
        self.strength = np.zeros(len(seeds))
        self.leaving = seeds.weights.copy()
        self.settled = seeds.weights.copy()
        self.capped: set[str] = set()

    def run(self, limits: Limits) -> None:
        fresh = np.arange(len(self.nodes))
        for hop in range(limits.max_hops):
            most = limits.degree_cut if hop else max(limits.degree_cut, limits.frontier_cap)
            known = len(self.nodes)
            if hop:
                share = _share(self.source, self.weight, self.strength)
                self.leaving = spread_step(self.source, self.target, share, self.leaving)
                self.settled = self.settled + self.leaving
            self._open(fresh, limits.frontier_cap, most)
            room = np.zeros(len(self.nodes) - known)
            self.strength = np.concatenate([self.strength, room])
            self.leaving = np.concatenate([self.leaving, room])
            self.settled = np.concatenate([self.settled, room])
            fresh = np.arange(known, len(self.nodes))
        if len(fresh):
            self.capped.add("hops")

    def _open(self, fresh: NDArray[np.int64], cap: int, most: int) -> None:
        """Gather the half-edges of the strongest fresh nodes."""
        chosen = fresh[
            self.view.tables.nodes.strongest(self.nodes[fresh], self.leaving[fresh], cap)
        ]
        if len(chosen) < len(fresh):
            self.capped.add("frontier")
        hub, owner, other, weight = self.view.open(self.nodes[chosen], most)
        if hub.any():
            self.capped.add("hub")
        self._reach(other)
        self.source = np.concatenate([self.source, chosen[owner]])
        self.target = np.concatenate([self.target, self.index[other] - 1])
        self.weight = np.concatenate([self.weight, weight])
        self.strength[chosen] = ordered_sums(owner, weight, len(chosen))

    def _reach(self, nodes: NDArray[np.int64]) -> None:
        """Give nodes not seen before a position."""
        new = nodes[self.index[nodes] == 0]
        # of equal ones the one written last stays: distinct without sorting
        self.index[new] = np.arange(len(new))
        new = new[self.index[new] == np.arange(len(new))]
        self.index[new] = np.arange(len(self.nodes) + 1, len(self.nodes) + len(new) + 1)
        self.nodes = np.concatenate([self.nodes, new])

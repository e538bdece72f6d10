"""A random graph in a store, and the same as plain columns for a reference to work on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property

import numpy as np
from attrs import define, field
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg
from threadpoolctl import ThreadpoolController

from rankblend.relevance import Scope
from rankblend.stores import Edge, Key, Link, Record, Seed, StoreQuery
from rankblend.stores.graph import GraphStore

__all__ = ["RandomGraph", "conjugate_gradients"]

SCOPES = [Scope.parse(path) for path in ("org:a", "org:a/user:1", "org:b")]
SHARES = (0.45, 0.45, 0.1)  # the last one is another tenant's
DEGREE = 5


def name(node: int) -> str:
    return f"m{node:07d}"


@define(slots=False)
class RandomGraph:
    """``nodes`` memories with five links each to any others, a tenth of them out of sight.

    Attributes:
        store: All of it, asked once, so that everything that is kept is there.
        scope: Of each node. ``source``, ``target``, ``weight``: of each edge.
    """

    store: GraphStore
    scope: np.ndarray
    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    rng: np.random.Generator
    added: itertools.count[int] = field(factory=itertools.count)

    @classmethod
    def of(cls, nodes: int, *, damping: float = 0.85) -> RandomGraph:
        rng = np.random.default_rng(0)
        scope = rng.choice(len(SCOPES), nodes, p=SHARES)
        target = rng.integers(0, nodes, (nodes, DEGREE))
        weight = rng.choice([1.0, 0.7, 0.5, 0.3], (nodes, DEGREE))
        source = np.repeat(np.arange(nodes), DEGREE)
        made = cls(GraphStore(damping=damping), scope, source, target.ravel(), weight.ravel(), rng)
        for start in range(0, nodes, 10_000):
            made.store.add(
                [
                    Record(
                        Key(SCOPES[scope[node]], name(node)), "", serial=node,
                        links=tuple(
                            Link(name(other), "related", strength)
                            for other, strength in zip(
                                target[node].tolist(), weight[node].tolist(), strict=True
                            )
                        ),
                    )
                    for node in range(start, min(start + 10_000, nodes))
                ]
            )  # fmt: skip
        made.ask()
        return made

    @property
    def admitted(self) -> np.ndarray:
        return np.ones(len(self.scope), dtype=bool)

    def ask(self, *signals: str) -> None:
        """A question nobody asked before, about 150 memories."""
        start = self.in_sight[self.rng.integers(0, len(self.in_sight), 10)].tolist()
        seeds = tuple(Seed(name(node), 0.5, "vectors") for node in start)
        query = StoreQuery(
            "", (SCOPES[1],), seeds=seeds, admitted=self.admitted,
            wanted=frozenset(signals) or None,
        )  # fmt: skip
        ids = [name(node) for node in self.rng.integers(0, len(self.scope), 150).tolist()]
        self.store.observe(query, ids)

    @cached_property
    def in_sight(self) -> np.ndarray:
        """The nodes whose memory is visible."""
        return np.flatnonzero(self.scope < len(SCOPES) - 1)

    def add(self, count: int) -> None:
        """More edges, every fourth from a name never heard of."""
        ends = self.rng.integers(0, len(self.scope), (count, 2)).tolist()
        self.store.add_edges(
            [
                Edge(
                    SCOPES[1], f"new {next(self.added)}" if at % 4 == 0 else name(left),
                    name(right), "related", 0.5,
                )
                for at, (left, right) in enumerate(ends)
            ]
        )  # fmt: skip

    def edge_mask(self, edge_scope: np.ndarray, admitted: np.ndarray) -> np.ndarray:
        """What is visible, edge by edge: by the writer's scope and by the owning memory."""
        mask = np.array([True, True, False])[edge_scope]
        mask &= admitted[self.source]
        mask &= self.source != self.target
        return mask

    def matrix(self) -> csr_array:
        """The visible subgraph, symmetric, without nodes that have no edge."""
        mask = self.edge_mask(self.scope[self.source], self.admitted)
        source, target, weight = self.source[mask], self.target[mask], self.weight[mask]
        ends = np.concatenate([source, target]), np.concatenate([target, source])
        both = csr_array((np.concatenate([weight, weight]), ends), shape=(len(self.scope),) * 2)
        used = np.flatnonzero(both.sum(axis=0))
        return both[used][:, used]


def conjugate_gradients(
    matrix: csr_array, *, damping: float, tolerance: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Personalised PageRank by scipy alone: restart → ranks; what can be made before, is."""
    scale = 1.0 / np.sqrt(matrix.sum(axis=0))
    scaled = csr_array(matrix.multiply(scale[:, None]).multiply(scale[None, :]))
    threads = ThreadpoolController()
    system = LinearOperator(matrix.shape, matvec=lambda x: x - damping * (scaled @ x), dtype=float)

    def solve(restart: np.ndarray) -> np.ndarray:
        with threads.limit(limits=1, user_api="blas"):  # one thread, as the kernel it stands beside
            found, failed = cg(system, scale * restart, rtol=tolerance, atol=0.0)
        assert not failed
        return (1.0 - damping) * found / scale

    return solve

"""Where a walk starts: the seeds the query carries and the names that occur in its text."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.stores.graph.names import NameIndex
from rankblend.stores.graph.view import View

__all__ = ["Seeds", "gather_seeds"]

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

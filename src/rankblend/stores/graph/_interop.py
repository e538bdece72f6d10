"""To and from networkx: users bring a graph and take one away, attributes kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores._protocol import StoreQuery
from rankblend.stores._record import Edge
from rankblend.stores.graph._edges import edge_problems
from rankblend.stores.graph._tables import GraphTables
from rankblend.stores.graph._view import View

if TYPE_CHECKING:
    import networkx as nx

# What an exported edge and node say in attributes of our own; everything else is the user's.
_EDGE = ("kind", "weight", "verified", "scope", "memory")
_NODE = ("memory",)


def edges_of(graph: nx.Graph, scope: Scope) -> tuple[list[Edge], list[Mapping[str, Any]]]:
    """A graph's edges at one scope, and each one's further attributes.

    ``kind``, ``weight`` and ``verified`` are read from the edges' attributes; the key of a
    multigraph's edge is its kind where it is text and no kind is given.

    Raises:
        InvalidArgumentError: No graph; nodes that are not text, weights outside (0, 1] or
            ``verified`` that is no bool, all at once.
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_multigraph")):
        raise InvalidArgumentError(
            f"graph: expected a networkx graph of any class, got {type(graph).__name__}"
        )
    edges: list[Edge] = []
    extra: list[Mapping[str, Any]] = []
    problems = [
        f"graph.nodes[{place}]: expected text that is not blank, got {type(node).__name__}"
        for place, node in enumerate(graph.nodes)
        if not isinstance(node, str) or not node.strip()
    ]
    triples = (
        graph.edges(keys=True, data=True)
        if graph.is_multigraph()
        else ((source, target, None, data) for source, target, data in graph.edges(data=True))
    )
    for place, (source, target, key, data) in enumerate(triples):
        kind = data.get("kind", key if isinstance(key, str) else "related")
        weight = data.get("weight", 1.0)
        verified = data.get("verified", False)
        found = edge_problems(f"graph.edges[{place}]", source, target, kind, weight)
        if not isinstance(verified, bool | np.bool_):
            found.append(
                f"graph.edges[{place}].verified: expected True or False, "
                f"got {type(verified).__name__}"
            )
        if found:
            problems += found
            continue
        edges.append(Edge(scope, source, target, kind, float(weight), bool(verified)))
        extra.append({name: value for name, value in data.items() if name not in _EDGE})
    if problems:
        raise InvalidArgumentError(problems)
    return edges, extra


def from_networkx(tables: GraphTables, graph: nx.Graph, scope: Scope) -> None:
    """Add a graph's nodes' attributes and its edges at one scope; see `edges_of`."""
    edges, extra = edges_of(graph, scope)
    number = tables.scopes.enter(scope)
    for node, data in graph.nodes(data=True):
        kept = {name: value for name, value in data.items() if name not in _NODE}
        if kept:
            tables.attributes.setdefault((number, tables.nodes.number(node)), {}).update(kept)
    tables.add_edges(edges, extra)


def to_networkx(tables: GraphTables, query: StoreQuery | None) -> nx.MultiDiGraph:
    """The whole graph, or what one query sees of it."""
    import networkx as nx  # slow to import, and only users of this function need it

    view = None if query is None else View(tables, query)
    edges, names = tables.edges, tables.nodes.names
    graph = nx.MultiDiGraph()
    slots = np.fromiter(tables.memories.slots(), np.int64, len(tables.memories))
    nodes = np.unique(tables.memories.node.values[slots]).astype(np.int64)
    if view is not None:
        nodes = nodes[view.seen(nodes) >= 0]
    graph.add_nodes_from((names[node] for node in nodes.tolist()), memory=True)
    attributes = [
        (0 if view is None else -int(view.distances[scope]), scope, node)
        for scope, node in tables.attributes
        if view is None or view.distances[scope] >= 0
    ]
    for _, scope, node in sorted(attributes):  # the nearest scope's are set last
        graph.add_node(names[node], **tables.attributes[scope, node])
    rows = np.arange(len(edges))
    mask = edges.alive.values if view is None else view.visible(rows)
    for row in np.flatnonzero(mask).tolist():
        source, target = int(edges.source.values[row]), int(edges.target.values[row])
        owner = int(edges.owner.values[row])
        data: dict[str, Any] = dict(edges.extra.get(row, {}))
        data.update(
            kind=tables.kinds.names[edges.kind.values[row]],
            weight=float(edges.weight.values[row]),
            verified=bool(edges.verified.values[row]),
            scope=str(tables.scopes.scopes[edges.scope.values[row]]),
        )
        if owner >= 0:
            data["memory"] = names[tables.memories.node.values[owner]]
        graph.add_edge(names[source], names[target], **data)
    return graph

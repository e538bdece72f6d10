"""Procedure graphs and networkx graphs, there and back."""

from __future__ import annotations

from typing import Any

import networkx as nx

from rankblend.reasonlets.errors import ReasonletValidationError
from rankblend.reasonlets.graph import SCHEMA_VERSION, Edge, Graph, Node

__all__ = ["from_networkx", "to_networkx"]


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """A networkx graph with the same content; its node and edge attributes are ours by name.

    Edges are keyed by their position, so that `from_networkx` gives back the very same graph.
    """
    plain = graph.plain()
    made = nx.MultiDiGraph(
        schema_version=graph.schema_version, properties=plain.get("properties", {})
    )
    for node in graph.nodes:
        attributes = node.plain()
        made.add_node(attributes.pop("id"), **attributes)
    for position, edge in enumerate(graph.edges):
        attributes = edge.plain()
        ends = attributes.pop("from"), attributes.pop("to")
        made.add_edge(*ends, key=position, **attributes)
    return made


def from_networkx(graph: nx.DiGraph) -> Graph:
    """A procedure graph from a directed networkx graph.

    Args:
        graph: Nodes named by text, with the attribute ``type`` (``tool`` when there is none) and
            optionally ``name``, ``tool``, ``properties``; edges optionally with ``condition`` and
            ``properties``. Other attributes are not read.

    Raises:
        ReasonletValidationError: It is not directed, or what it says is no valid graph.
    """
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise ReasonletValidationError("graph: expected a directed networkx graph")
    nodes = [
        Node(
            name,
            data.get("type", "tool"),
            data.get("name"),
            data.get("tool"),
            data.get("properties", {}),
        )
        for name, data in graph.nodes(data=True)
    ]
    made = Graph(
        nodes,
        [
            Edge(source, target, data.get("condition"), data.get("properties", {}))
            for source, target, data in _edges(graph)
        ],
        graph.graph.get("properties", {}),
        graph.graph.get("schema_version", SCHEMA_VERSION),
    )
    problems = made.validate()
    if problems:
        raise ReasonletValidationError(problems)
    return made


def _edges(graph: nx.DiGraph) -> list[tuple[Any, Any, dict[str, Any]]]:
    if not graph.is_multigraph():
        return list(graph.edges(data=True))
    keyed = list(graph.edges(data=True, keys=True))
    if all(type(key) is int for _, _, key, _ in keyed):
        keyed.sort(key=lambda edge: edge[2])
    return [(source, target, data) for source, target, _, data in keyed]

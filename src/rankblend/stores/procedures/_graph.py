"""A procedure as a graph of steps; never executed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import field, fields, frozen

from rankblend.canonical import canonical_hash, canonical_json
from rankblend.errors import ReasonletValidationError
from rankblend.stores.procedures._checks import Checked, Checks

if TYPE_CHECKING:
    import networkx as nx


class PicklesByFields:
    """A frozen attrs class that is made anew of its fields; its converters seal mappings again."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...]]:
        """Its class and its fields, in the order of the arguments."""
        values = (getattr(self, each.name) for each in fields(type(self)))  # type: ignore[arg-type]
        return type(self), tuple(
            dict(value) if isinstance(value, MappingProxyType) else value for value in values
        )


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """A networkx graph with the same content; its node and edge attributes are ours by name.

    Edges are keyed by their position, so that `from_networkx` gives back the very same graph.
    """
    import networkx as nx

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
    import networkx as nx

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


SCHEMA_VERSION = 1
MAX_NODES = 500
MAX_EDGES = 2_000
MAX_GRAPH_BYTES = 2**20
_SCALARS = frozenset({str, int, float, bool, type(None)})
NODE_TYPES = ("agent", "answer", "decision", "retrieve", "tool")
"""The well-known types; others are allowed."""


class _Own(dict[str, object]):
    """A mapping nobody else holds or changes, of JSON values just read."""


_NOTHING: Mapping[str, object] = MappingProxyType({})


def _properties(value: Any) -> Any:
    """A copy of its own, read-only; what is no mapping stays, to be reported by `validate`."""
    if type(value) is _Own:
        return MappingProxyType(value) if value else _NOTHING
    if not isinstance(value, Mapping):
        return value
    try:
        return MappingProxyType(_copied(dict(value)))
    except (RecursionError, TypeError):  # too deep or not copyable: no JSON either
        return MappingProxyType(dict(value))


def _copied(value: Any) -> Any:
    """A deep copy; of JSON values several times as fast as by ``copy``."""
    kind = type(value)
    if kind is dict:
        return {key: _copied(each) for key, each in value.items()}
    if kind is list:
        return [_copied(each) for each in value]
    return value if kind in _SCALARS else copy.deepcopy(value)


def _sequence(value: Any) -> Any:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return value
    return tuple(value)


@frozen
class Node(PicklesByFields):
    """One step.

    Args:
        id: Unique in its graph.
        type: What kind of step; see `NODE_TYPES`.
        name: For people.
        tool: The tool it calls.
        properties: JSON values.
    """

    id: str
    type: str
    name: str | None = None
    tool: str | None = None
    properties: Mapping[str, object] = field(factory=dict, converter=_properties, hash=False)

    def plain(self) -> dict[str, object]:
        """JSON-ready; what is None or empty is left out."""
        found = {"id": self.id, "type": self.type, "name": self.name, "tool": self.tool}
        return _without_absent(found, self.properties)


@frozen
class Edge(PicklesByFields):
    """A directed connection between two steps.

    Args:
        source, target: Ids of nodes; ``from`` and ``to`` in JSON.
        condition: When to follow it.
        properties: JSON values.
    """

    source: str
    target: str
    condition: str | None = None
    properties: Mapping[str, object] = field(factory=dict, converter=_properties, hash=False)

    def plain(self) -> dict[str, object]:
        """JSON-ready; what is None or empty is left out."""
        found = {"from": self.source, "to": self.target, "condition": self.condition}
        return _without_absent(found, self.properties)


@frozen(slots=False)
class Graph(Checked, PicklesByFields):
    """A procedure: steps and the directed edges between them.

    Constructing one checks nothing, so that `validate` can report everything at once; a memory
    stores valid graphs only. Equality compares what was written, in order; two graphs are the *same
    procedure* when their `digest` is equal.

    Args:
        nodes: At most `MAX_NODES`.
        edges: At most `MAX_EDGES`, between existing nodes; equal edges count.
        properties: JSON values.
        schema_version: Of this form; 1.

    Example:
        >>> look, pay = Node("look", "tool", tool="orders.get"), Node("pay", "tool")
        >>> one = Graph([look, pay], [Edge("look", "pay")])
        >>> one.digest == Graph([pay, look], [Edge("look", "pay")]).digest
        True
        >>> Graph([look, look], [Edge("look", "gone")]).validate()
        ('nodes[1].id: the same id as nodes[0]', 'edges[0].to: points at no node')
    """

    nodes: tuple[Node, ...] = field(converter=_sequence)
    edges: tuple[Edge, ...] = field(default=(), converter=_sequence)
    properties: Mapping[str, object] = field(factory=dict, converter=_properties, hash=False)
    schema_version: int = SCHEMA_VERSION

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong; nothing when the graph can be stored.

        This is the full check; the JSON Schema cannot say that ids are unique and edges connected.
        """
        _check_parts(self, checks)
        if not checks.lines:
            size = len(canonical_json(self.plain()).encode())
            if size > MAX_GRAPH_BYTES:
                checks.add(
                    "graph", f"expected at most {MAX_GRAPH_BYTES:,} bytes as JSON, got {size:,}"
                )

    def plain(self) -> dict[str, object]:
        """JSON-ready, in the order written."""
        return _without_absent(
            {
                "schema_version": self.schema_version,
                "nodes": [node.plain() for node in self.nodes],
                "edges": [edge.plain() for edge in self.edges],
            },
            self.properties,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form: equal for the same procedure however it was written.

        Canonical JSON (RFC 8785) of the plain form with nodes and edges sorted by their own
        canonical text.
        """
        plain = self.plain()
        for part in ("nodes", "edges"):
            plain[part] = sorted(plain[part], key=canonical_json)  # type: ignore[call-overload]
        return canonical_hash(plain)

    def is_same_procedure(self, other: Graph) -> bool:
        """Whether both have the same content, whatever the order."""
        return self.digest == other.digest

    @classmethod
    def from_plain(cls, value: object) -> Self:
        """A graph from its JSON form.

        Raises:
            ReasonletValidationError: With everything that is wrong, invalid content included.
        """
        problems: list[str] = []
        table = _table("graph", value, ("schema_version", "nodes", "edges", "properties"), problems)
        nodes = []
        for at, item in enumerate(_list("nodes", table, problems)):
            names = ("id", "type", "name", "tool", "properties")
            read = _table(f"nodes[{at}]", item, names, problems, {"id": None, "type": None})
            nodes.append(Node(**read))
        edges = []
        for at, item in enumerate(_list("edges", table, problems)):
            ends = ("from", "to", "condition", "properties")
            read = _table(f"edges[{at}]", item, ends, problems, {"from": None, "to": None})
            edges.append(Edge(read.pop("from"), read.pop("to"), **read))
        if not problems:
            graph = cls(
                nodes, edges, table.get("properties", {}),
                table.get("schema_version", SCHEMA_VERSION),
            )  # fmt: skip
            problems += graph.validate()
        if problems:
            raise ReasonletValidationError(problems)
        return graph

    @classmethod
    def from_stored(cls, plain: Mapping[str, Any]) -> Self:
        """A graph from a plain form that was valid when it was written; it is not checked again."""
        nodes = [
            Node(
                node["id"],
                node["type"],
                node.get("name"),
                node.get("tool"),
                _Own(node.get("properties", ())),
            )
            for node in plain["nodes"]
        ]
        edges = [
            Edge(edge["from"], edge["to"], edge.get("condition"), _Own(edge.get("properties", ())))
            for edge in plain["edges"]
        ]
        return cls(nodes, edges, _Own(plain.get("properties", ())), plain["schema_version"])

    def to_networkx(self) -> nx.MultiDiGraph:
        """A networkx graph of its own, for any algorithm; see `to_networkx`."""
        return to_networkx(self)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> Graph:
        """The graph that `to_networkx` was made of, or of another directed networkx graph."""
        return from_networkx(graph)


_Part = TypeVar("_Part", Node, Edge)


def graph_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the plain form."""
    text = (
        files("rankblend.stores.procedures")
        .joinpath("graph.schema.json")
        .read_text(encoding="utf-8")
    )
    schema: dict[str, Any] = json.loads(text)
    return schema


def _without_absent(
    found: Mapping[str, object], properties: Mapping[str, object]
) -> dict[str, object]:
    given = {name: value for name, value in found.items() if value is not None}
    if properties:
        given["properties"] = copy.deepcopy(dict(properties))
    return given


def _check_parts(graph: Graph, checks: Checks) -> None:
    if graph.schema_version != SCHEMA_VERSION or isinstance(graph.schema_version, bool):
        checks.add("schema_version", f"expected {SCHEMA_VERSION}")
    checks.json("properties", graph.properties)
    nodes = _parts(checks, "nodes", graph.nodes, Node, MAX_NODES)
    edges = _parts(checks, "edges", graph.edges, Edge, MAX_EDGES)
    first: dict[str, int] = {}
    for at, node in nodes:
        checks.text(f"nodes[{at}].id", node.id, limit=None)
        checks.text(f"nodes[{at}].type", node.type, limit=None)
        for name, text in (("name", node.name), ("tool", node.tool)):
            checks.text(f"nodes[{at}].{name}", text, limit=None, optional=True, blank=True)
        checks.json(f"nodes[{at}].properties", node.properties)
        identifier: object = node.id
        if isinstance(identifier, str) and first.setdefault(identifier, at) != at:
            checks.add(f"nodes[{at}].id", f"the same id as nodes[{first[identifier]}]")
    for at, edge in edges:
        ends: tuple[tuple[str, object], ...] = (("from", edge.source), ("to", edge.target))
        for name, end in ends:
            if not isinstance(end, str) or end not in first:
                checks.add(f"edges[{at}].{name}", "points at no node")
        where = f"edges[{at}].condition"
        checks.text(where, edge.condition, limit=None, optional=True, blank=True)
        checks.json(f"edges[{at}].properties", edge.properties)


def _parts(
    checks: Checks, name: str, items: object, kind: type[_Part], most: int
) -> list[tuple[int, _Part]]:
    """The nodes or edges there are, with their positions."""
    if not isinstance(items, tuple):
        checks.add(name, f"expected a sequence of {kind.__name__}, got {type(items).__name__}")
        return []
    if len(items) > most:
        checks.add(name, f"expected at most {most:,}, got {len(items):,}")
    for at, item in enumerate(items):
        if type(item) is not kind:
            checks.add(f"{name}[{at}]", f"expected a {kind.__name__}")
    return [(at, item) for at, item in enumerate(items) if type(item) is kind]


def _table(
    where: str,
    value: object,
    names: tuple[str, ...],
    problems: list[str],
    otherwise: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        problems.append(f"{where}: expected an object, got {type(value).__name__}")
        return dict(otherwise)
    unknown = sum(1 for name in value if name not in names)
    if unknown:
        problems.append(f"{where}: {unknown} unknown names; known: {', '.join(names)}")
    return {**otherwise, **{name: value[name] for name in names if name in value}}


def _list(name: str, table: Mapping[str, Any], problems: list[str]) -> list[Any]:
    found = table.get(name, [])
    if isinstance(found, list | tuple):
        return list(found)
    problems.append(f"{name}: expected an array, got {type(found).__name__}")
    return []

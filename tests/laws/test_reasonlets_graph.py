"""When two graphs are the same procedure, and what of a graph survives which journey."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.reasonlets import Edge, Graph, Node, ReasonletValidationError, graph_schema
from rankblend.stores.procedures._graph import MAX_EDGES, MAX_NODES
from rankblend.times import next_id

values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)  # fmt: skip
properties = st.dictionaries(st.sampled_from(["x", "y", "ß"]), values, max_size=2)


@st.composite
def graphs(draw: Any) -> Graph:
    ids = draw(st.lists(st.sampled_from("abcdé"), unique=True, max_size=4))
    nodes = [
        Node(i, draw(st.sampled_from(["tool", "answer", "own"])), draw(st.none() | st.just("n")),
             draw(st.none() | st.just("t")), draw(properties))
        for i in ids
    ]  # fmt: skip
    ends = st.sampled_from(ids) if ids else st.nothing()
    edges = draw(
        st.lists(st.builds(Edge, ends, ends, st.none() | st.just("if"), properties), max_size=4)
    )
    return Graph(nodes, edges, draw(properties))


def reversed_order(value: Any) -> Any:
    """The same JSON objects, written the other way round."""
    if isinstance(value, dict):
        return {name: reversed_order(value[name]) for name in reversed(list(value))}
    return [reversed_order(each) for each in value] if isinstance(value, list) else value


@given(graphs(), st.randoms(use_true_random=False))
def test_digest_when_nodes_edges_and_properties_are_reordered_then_the_same(
    graph: Graph, random: Any
) -> None:
    plain = reversed_order(graph.plain())
    for part in ("nodes", "edges"):
        random.shuffle(plain[part])
    other = Graph.from_plain(json.loads(json.dumps(plain)))
    assert other.digest == graph.digest
    assert other.is_same_procedure(graph)


@given(graphs())
def test_digest_when_anything_is_added_then_another(graph: Graph) -> None:
    nodes = (*graph.nodes, Node("new", "tool"))
    assert Graph(nodes, graph.edges, graph.properties).digest != graph.digest
    if graph.edges:  # equal edges count
        twice = (*graph.edges, graph.edges[0])
        assert Graph(graph.nodes, twice, graph.properties).digest != graph.digest


@given(graphs())
def test_graph_when_it_travels_then_it_comes_back(graph: Graph) -> None:
    assert graph.validate() == ()
    assert Graph.from_plain(graph.plain()) == graph
    assert Graph.from_stored(json.loads(json.dumps(graph.plain()))) == graph
    assert Graph.from_networkx(graph.to_networkx()) == graph


def test_digest_when_computed_then_it_is_of_the_documented_form() -> None:
    import hashlib

    graph = Graph([Node("b", "tool"), Node("a", "answer", "A")], [Edge("b", "a")])
    text = (
        '{"edges":[{"from":"b","to":"a"}],"nodes":[{"id":"a","name":"A","type":"answer"},'
        '{"id":"b","type":"tool"}],"schema_version":1}'
    )
    assert graph.digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (Graph([Node("a", "tool")] * 2), "nodes[1].id: the same id as nodes[0]"),
        (Graph([Node("", "tool")]), "nodes[0].id"),
        (Graph([Node("a", " ")]), "nodes[0].type"),
        (Graph([Node(7, "tool")]), "nodes[0].id: expected text, got int"),  # type: ignore[arg-type]
        (Graph([Node("a", "tool", properties={"x": {1}})]), "nodes[0].properties"),
        (Graph([Node("a", "tool", properties={1: 1})]), "nodes[0].properties"),  # type: ignore[dict-item]
        (Graph([Node("a", "tool", properties=7)]), "nodes[0].properties"),  # type: ignore[arg-type]
        (Graph([Node("a", "\ud800")]), "lone surrogate"),
        (Graph([Node("a", "tool")], [Edge("a", "b")]), "edges[0].to: points at no node"),
        (Graph([Node("a", "tool")], [Edge("a", "a", 7)]), "edges[0].condition"),  # type: ignore[arg-type]
        (Graph([Node(str(n), "tool") for n in range(MAX_NODES + 1)]), "nodes: expected at most 500"),
        (Graph([Node("a", "tool")], [Edge("a", "a")] * (MAX_EDGES + 1)), "edges: expected at most"),
        (Graph([Node("a", "tool", properties={"x": "y" * 2**20})]), "graph: expected at most"),
        (Graph([], schema_version=2), "schema_version: expected 1"),
        (Graph("ab"), "nodes: expected a sequence"),  # type: ignore[arg-type]
        (Graph([None]), "nodes[0]: expected a Node"),  # type: ignore[list-item]
    ],
)  # fmt: skip
def test_validate_when_something_is_wrong_then_it_is_named(graph: Graph, problem: str) -> None:
    assert any(problem in line for line in graph.validate())


def test_validate_when_it_is_nested_too_deep_then_that_is_a_problem() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    (problem,) = Graph([], properties=deep).validate()
    assert problem == "properties: nested too deep"


def test_graph_when_its_source_is_changed_afterwards_then_it_is_not() -> None:
    given_properties = {"x": [1]}
    graph = Graph([Node("a", "tool", properties=given_properties)])
    digest = graph.digest
    given_properties["x"].append(2)
    assert graph.nodes[0].properties == {"x": [1]}
    graph.plain()["nodes"][0]["properties"]["x"].append(3)  # type: ignore[index]
    assert Graph(graph.nodes).digest == digest
    with pytest.raises(TypeError):
        graph.nodes[0].properties["x"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    "value", [None, [], {"nodes": 7}, {"nodes": [7]}, {"nodes": [{"id": "a"}]},
              {"nodes": [], "edges": [{"from": "a"}]}, {"nodes": [], "more": 1}]
)  # fmt: skip
def test_from_plain_when_it_is_malformed_then_validation(value: Any) -> None:
    with pytest.raises(ReasonletValidationError):
        Graph.from_plain(value)


def test_from_networkx_when_it_is_somebody_elses_graph_then_read_or_refused() -> None:
    theirs = nx.DiGraph([("a", "b")])
    assert Graph.from_networkx(theirs) == Graph(
        [Node("a", "tool"), Node("b", "tool")], [Edge("a", "b")]
    )
    for wrong in (nx.Graph([("a", "b")]), nx.DiGraph([(1, 2)]), "a graph"):
        with pytest.raises(ReasonletValidationError):
            Graph.from_networkx(wrong)


def test_schema_when_read_then_its_limits_are_those_of_validate() -> None:
    schema = graph_schema()
    assert schema["properties"]["nodes"]["maxItems"] == MAX_NODES
    assert schema["properties"]["edges"]["maxItems"] == MAX_EDGES
    fields = {"id", "type", "name", "tool", "properties"}
    assert set(schema["$defs"]["node"]["properties"]) == fields
    assert set(schema["$defs"]["edge"]["properties"]) == {"from", "to", "condition", "properties"}
    assert set(schema["properties"]) == {"schema_version", "nodes", "edges", "properties"}


@given(st.lists(st.sampled_from([0.0, 1.0, 1e9, 1.7e9, -5.0]), min_size=2, max_size=20))
def test_ids_when_the_clock_jumps_then_each_sorts_after_the_one_before(times: list[float]) -> None:
    last = None
    for now in times:
        made = next_id(now, last)
        assert len(made) == 36
        assert (made[14], made[19] in "89ab") == ("7", True)
        assert last is None or made > last
        last = made

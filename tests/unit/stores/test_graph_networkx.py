"""Bringing a networkx graph and taking one away."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from attrs import evolve

from rankblend.errors import InvalidArgumentError
from rankblend.recall import Memory
from rankblend.relevance import Scope
from rankblend.stores import Edge, Key, Link, Record, Seed, StoreQuery
from rankblend.stores.graph import GraphStore

ACME = Scope.parse("tenant:acme")
USER = Scope.parse("tenant:acme/user:7")


def edges(graph: nx.MultiDiGraph) -> set[tuple[str, str, str, float]]:
    return {(s, t, d["kind"], d["weight"]) for s, t, d in graph.edges(data=True)}


def test_add_networkx_when_taken_away_again_then_attributes_are_kept() -> None:
    graph = nx.DiGraph()
    graph.add_node("Paris", population=2_100_000)
    graph.add_edge("Paris", "France", kind="capital of", weight=0.5, verified=True, year=987)
    store = GraphStore()
    store.add_networkx(graph, scope="tenant:acme")
    out = store.to_networkx()
    assert out.nodes["Paris"] == {"population": 2_100_000}
    assert list(out.edges(data=True)) == [
        (
            "Paris", "France",
            {"kind": "capital of", "weight": 0.5, "verified": True, "year": 987,
             "scope": "tenant:acme"},
        )
    ]  # fmt: skip


def test_add_networkx_when_the_same_graph_comes_twice_then_nothing_doubles() -> None:
    graph = nx.path_graph(["a", "b", "c"])
    store = GraphStore()
    store.add_networkx(graph, scope=ACME)
    store.add_networkx(graph, scope=ACME)
    assert edges(store.to_networkx()) == {("a", "b", "related", 1.0), ("b", "c", "related", 1.0)}
    assert store.to_networkx().number_of_edges() == 2


def test_add_networkx_when_multigraph_keys_are_text_then_they_are_kinds() -> None:
    graph = nx.MultiGraph()
    graph.add_edge("a", "b", key="likes")
    graph.add_edge("a", "b", key="knows", kind="met")
    graph.add_edge("a", "b", key=3)
    store = GraphStore()
    store.add_networkx(graph, scope=ACME)
    kinds = {data["kind"] for _, _, data in store.to_networkx().edges(data=True)}
    assert kinds == {"likes", "met", "related"}


def test_add_networkx_when_walked_then_memories_are_reached() -> None:
    store = GraphStore()
    store.add([Record(Key(ACME, "m"), "", links=(Link("Paris"),))])
    store.add_networkx(nx.Graph([("France", "Paris")]), scope=ACME)
    query = StoreQuery("", (ACME,), seeds=(Seed("France"),))
    assert store.observe(evolve(query, wanted=frozenset({"hops"})), ["m"]).columns[
        "hops"
    ].tolist() == [2.0]


@pytest.mark.parametrize("bad", [nx.path_graph(3), nx.Graph([("a", " ")])])
def test_add_networkx_when_a_node_is_not_text_then_refused(bad: nx.Graph) -> None:
    store = GraphStore()
    with pytest.raises(InvalidArgumentError, match=r"graph.nodes\["):
        store.add_networkx(bad, scope=ACME)
    assert store.to_networkx().number_of_nodes() == 0


def test_add_networkx_when_a_weight_is_out_of_range_then_refused() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=3)
    with pytest.raises(InvalidArgumentError, match=r"graph.edges\[0\].weight"):
        GraphStore().add_networkx(graph, scope=ACME)


def test_to_networkx_when_a_query_is_given_then_only_what_it_sees() -> None:
    store = GraphStore()
    store.add(
        [
            Record(Key(ACME, "a"), "", links=(Link("x", "about", 0.5),)),
            Record(Key(USER, "b"), "", links=(Link("y"),)),
        ]
    )
    store.add_edges([Edge(USER, "x", "y", "near")])
    annotated = nx.Graph()
    annotated.add_node("x", note="tenant's", color="red")
    store.add_networkx(annotated, scope=ACME)
    annotated.nodes["x"].clear()
    annotated.add_node("x", note="user's")
    store.add_networkx(annotated, scope=USER)
    tenant = store.to_networkx(StoreQuery("", (ACME,)))
    assert edges(tenant) == {("a", "x", "about", 0.5)}
    assert dict(tenant.nodes(data=True)) == {
        "a": {"memory": True}, "x": {"note": "tenant's", "color": "red"},
    }  # fmt: skip
    assert tenant.edges["a", "x", 0]["memory"] == "a"
    user = store.to_networkx(StoreQuery("", (USER,)))
    assert edges(user) == {
        ("a", "x", "about", 0.5), ("b", "y", "related", 1.0), ("x", "y", "near", 1.0),
    }  # fmt: skip
    assert user.nodes["x"] == {"note": "user's", "color": "red"}


def test_to_networkx_when_brought_to_a_fresh_store_then_hops_agree() -> None:
    store = GraphStore()
    store.add([Record(Key(ACME, "a"), "", links=(Link("x"),)), Record(Key(ACME, "b"), "")])
    store.add_edges([Edge(ACME, "b", "x")])
    copy = GraphStore()
    copy.add([Record(Key(ACME, "a"), ""), Record(Key(ACME, "b"), "")])
    copy.add_networkx(store.to_networkx(), scope=ACME)
    query = StoreQuery("", (ACME,), seeds=(Seed("a"),))
    for one in (store, copy):
        assert one.observe(evolve(query, wanted=frozenset({"hops"})), ["b"]).columns[
            "hops"
        ].tolist() == [2.0]


def test_attributes_when_edges_are_replaced_or_rows_compacted_then_they_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = GraphStore()
    store.add_edges([Edge(ACME, "p", "q")])
    graph = nx.DiGraph()
    graph.add_edge("a", "b", year=1)
    graph.add_edge("b", "c", year=2)
    graph.add_node("lonely", mood="blue")
    store.add_networkx(graph, scope=ACME)
    store.add_edges([Edge(ACME, "a", "b")])  # a new edge, without the old one's attributes
    monkeypatch.setattr("rankblend.stores.graph._tables._COMPACT_FROM", 0)
    for weight in (0.1, 0.2, 0.3, 0.4, 0.5):
        store.add_edges([Edge(ACME, "p", "q", weight=weight)])
    assert store._tables.epoch > 0
    out = store.to_networkx()
    years = {(s, t): data.get("year") for s, t, data in out.edges(data=True)}
    assert years == {("a", "b"): None, ("b", "c"): 2, ("p", "q"): None}
    assert out.nodes["lonely"] == {"mood": "blue"}


@pytest.mark.parametrize("graph", [5, None, "graph", {"a": ["b"]}])
def test_add_networkx_when_it_is_no_graph_then_it_is_refused(graph: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="graph: expected a networkx graph"):
        GraphStore().add_networkx(graph, scope=ACME)
    with Memory.open(":memory:") as memory, pytest.raises(InvalidArgumentError):
        memory.add_networkx(graph, scope=ACME)


def test_add_networkx_when_verified_is_no_bool_then_it_is_a_problem() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", verified="no")
    graph.add_edge("b", "c", verified=None)
    graph.add_edge("c", "d", verified=np.True_)
    with pytest.raises(InvalidArgumentError) as refused:
        GraphStore().add_networkx(graph, scope=ACME)
    assert refused.value.problems == (
        "graph.edges[0].verified: expected True or False, got str",
        "graph.edges[1].verified: expected True or False, got NoneType",
    )

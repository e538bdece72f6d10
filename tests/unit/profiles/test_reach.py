"""Reachability, circles and order of names made of other names."""

from __future__ import annotations

import pytest

from rankblend.profiles import SignalRecipe
from rankblend.profiles._recipe import depth_of, find_circles, inputs_first, reachable
from rankblend.relevance import Node


def test_reachable_when_nodes_and_signals_nest_then_finds_all_and_nothing_else() -> None:
    nodes = {"n": Node.of("strongest", "m", "a"), "m": Node.of("strongest", "b"),
             "unused": Node.of("strongest", "c")}  # fmt: skip
    signals = {name: SignalRecipe((name,)) for name in "acd"} | {"b": SignalRecipe(of=("d",))}
    found = reachable(["n", "nowhere"], nodes=nodes, signals=signals)
    assert found == ({"n", "m"}, {"a", "b", "d"})


def test_reachable_when_a_fusion_names_a_gate_then_the_gate_is_used() -> None:
    fusion = Node("reciprocal_rank_fusion", {"a": 1}, options={"members": {"a": "gate"}})
    nodes = {"fusion": fusion, "gate": Node.of("strongest", "b")}
    signals = {name: SignalRecipe((name,)) for name in "ab"}
    assert reachable(["fusion"], nodes=nodes, signals=signals) == ({"fusion", "gate"}, {"a", "b"})


def test_find_circles_when_there_are_two_then_names_both() -> None:
    edges = {"a": ["b"], "b": ["a"], "c": ["c"], "d": ["a", "c"]}
    assert sorted(set(circle) for circle in find_circles(edges)) == [{"a", "b"}, {"c"}]
    assert all(circle[0] == circle[-1] for circle in find_circles(edges))
    assert find_circles({"a": ["b"], "b": ["elsewhere"]}) == []


def test_inputs_first_when_given_any_order_then_parts_come_before_what_they_make() -> None:
    assert inputs_first({"c": ["b", "x"], "a": [], "b": ["a"]}) == ("a", "b", "c")
    assert inputs_first({"b": [], "a": []}) == ("b", "a")


@pytest.mark.parametrize(
    ("edges", "depth"), [({}, 0), ({"a": ["s"]}, 1), ({"a": ["b"], "b": []}, 2)]
)
def test_depth_of_when_names_nest_then_counts_levels(
    edges: dict[str, list[str]], depth: int
) -> None:
    assert depth_of(edges) == depth


def test_reach_when_a_chain_is_long_then_needs_no_deep_stack() -> None:
    edges = {str(n): [str(n + 1)] for n in range(20_000)}
    assert depth_of(edges) == 20_000
    assert find_circles(edges) == []

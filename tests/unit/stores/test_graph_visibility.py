"""Who is seen in the graph, and what the caps let a walk reach."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from rankblend.relevance import Scope
from rankblend.stores import Edge, Link, Reach, Reason
from rankblend.stores.graph import GraphStore

sys.path.insert(0, str(Path(__file__).parent))
from graph_world import ACME, OTHER, USER, ask, evidence, make_chain, reasons, record


@pytest.fixture
def chain() -> GraphStore:
    return make_chain()


class TestVisibility:
    def test_walk_when_an_edge_is_invisible_then_it_is_not_walked(self) -> None:
        store = GraphStore()
        store.add([record("a"), record("b")])
        store.add_edges([Edge(OTHER, "a", "b")])
        assert reasons(store, ask("a"), "hops", "b") == [Reason.NOT_APPLICABLE]
        store.add_edges([Edge(ACME, "a", "b")])
        assert evidence(store, ask("a"), "hops", "b") == [1]

    def test_observe_when_a_memory_is_invisible_then_unknown_and_only_a_name(self) -> None:
        store = GraphStore()
        store.add(
            [record("hidden", "z", scope=OTHER), record("a", "hidden"), record("b", "hidden")]
        )
        query = ask("a")
        assert reasons(store, query, "hops", "hidden") == [Reason.UNKNOWN]
        assert evidence(store, query, "hops", "b") == [2]  # over the name, by visible edges
        assert "hidden" not in store.propose(query, 9)

    def test_observe_when_a_memory_is_not_admitted_then_its_links_are_gone(self) -> None:
        store = GraphStore()
        store.add(
            [
                record("a", "x", serial=0),
                record("m", "x", "y", serial=1),
                record("b", "y", serial=2),
            ]
        )
        assert evidence(store, ask("x"), "hops", "b") == [3]
        query = ask("x", admitted=np.array([True, False, True]))
        assert evidence(store, query, "hops", "b") == [math.inf]
        assert reasons(store, query, "hops", "m") == [Reason.UNKNOWN]
        assert list(store.propose(query, 9)) == ["a"]

    @pytest.mark.parametrize("serial", [-1, 7])
    def test_observe_when_a_serial_is_not_in_the_mask_then_not_admitted(self, serial: int) -> None:
        store = GraphStore()
        store.add([record("a", "x", serial=serial)])
        query = ask("x", admitted=np.ones(7, dtype=np.bool_))
        assert reasons(store, query, "hops", "a") == [Reason.UNKNOWN]

    def test_observe_when_most_edges_of_a_memory_are_invisible_then_the_visible_one_counts(
        self,
    ) -> None:
        store = GraphStore(degree_cut=20, frontier_cap=20)
        store.add([record("a")])
        store.add_edges([Edge(OTHER, "a", f"x{i}") for i in range(100)])
        assert reasons(store, ask("b"), "hops", "a") == [Reason.NOT_APPLICABLE]
        store.add_edges([Edge(ACME, "b", "a")])
        assert evidence(store, ask("b"), "hops", "a") == [1]

    def test_observe_when_two_scopes_hold_an_id_then_the_nearest_is_seen(self) -> None:
        store = GraphStore()
        store.add([record("a", "far", scope=ACME), record("a", "near", scope=USER)])
        store.add([record("n", "near"), record("f", "far")])
        assert evidence(store, ask("near"), "hops", "a", "n", "f") == [1, 1, math.inf]
        assert evidence(store, ask("near", scopes=[ACME]), "hops", "n") == [1]
        assert evidence(store, ask("far", scopes=[ACME]), "hops", "a") == [1]

    def test_propose_when_a_level_is_asked_then_only_memories_at_it(self) -> None:
        store = GraphStore()
        store.add([record("up", "x", scope=ACME), record("own", "x", scope=USER)])
        store.add([record("both", "x", scope=ACME), record("both", "x", scope=USER)])
        assert sorted(store.propose(ask("x"), 9)) == ["both", "own", "up"]
        assert sorted(store.propose(ask("x"), 9, level=0)) == ["both", "own"]
        assert list(store.propose(ask("x"), 9, level=1)) == ["up"]
        assert list(store.propose(ask("x"), 9, level=2)) == []

    def test_propose_when_reach_is_subtree_then_memories_below_count_as_own(self) -> None:
        store = GraphStore()
        deep = USER / "session:1"
        store.add([record("deep", "x", scope=deep), record("m", "x")])
        store.add(
            [
                record("no", "x", scope=Scope.parse("tenant:acme/user:70")),
                record("nor", "x", scope=Scope.parse("tenant:acme/user:7-b")),
            ]
        )
        assert list(store.propose(ask("x"), 9)) == ["m"]
        query = ask("x", reach=Reach.SUBTREE)
        assert sorted(store.propose(query, 9)) == ["deep", "m"]
        assert list(store.propose(query, 9, level=0)) == ["deep"]

    def test_query_when_it_names_two_scopes_then_both_are_walked(self) -> None:
        store = GraphStore()
        mine, ours = Scope.parse("user:1"), Scope.parse("project:2")
        store.add([record("a", "x", scope=mine), record("b", "x", scope=ours)])
        assert sorted(store.propose(ask("x", scopes=[mine, ours]), 9)) == ["a", "b"]
        assert list(store.propose(ask("x", scopes=[mine]), 9)) == ["a"]

    def test_caps_when_another_tenant_fills_a_hub_then_nothing_changes(self) -> None:
        store = GraphStore(frontier_cap=3, degree_cut=3)
        store.add([record("a", "hub"), record("b", "hub")])
        before = [store.observe(ask("a"), ["b"]).columns[name][0] for name in store.emits]
        store.add([record(f"x{i}", "hub", "a", scope=OTHER) for i in range(400)])
        after = [store.observe(ask("a"), ["b"]).columns[name][0] for name in store.emits]
        assert before == after
        assert store.trace(ask("a"))["capped"] == ()


class TestCaps:
    def test_walk_when_a_hub_lies_between_then_it_is_reached_but_not_passed(self) -> None:
        store = GraphStore(degree_cut=3)
        store.add([record(name, "hub") for name in "abcd"])
        query = ask("a")
        # It may be near all the same: absent, and not "far".
        for name in ("hops", "path_weight", "activation", "structured"):
            assert np.isnan(evidence(store, query, name, "b")).all()
            assert reasons(store, query, name, "b") == [Reason.CAPPED]
        assert reasons(store, query, "ppr", "b") == [Reason.PRESENT]
        assert store.trace(query)["capped"] == ("hub",)

    def test_walk_when_the_hub_is_a_seed_then_it_is_walked_up_to_the_frontier_cap(self) -> None:
        store = GraphStore(degree_cut=3, frontier_cap=4)
        store.add([record(name, "hub") for name in "abcd"])
        assert evidence(store, ask("hub"), "hops", "b") == [1]
        store.add([record("e", "hub")])
        assert reasons(store, ask("hub"), "hops", "b") == [Reason.CAPPED]

    def test_walk_when_the_frontier_is_full_then_the_most_active_are_opened(self) -> None:
        store = GraphStore(frontier_cap=1)
        store.add([record("s", Link("weak", weight=0.1), Link("strong", weight=0.9))])
        store.add([record("w", "weak"), record("t", "strong")])
        assert evidence(store, ask("s"), "hops", "t") == [2]
        assert reasons(store, ask("s"), "hops", "t", "w") == [Reason.PRESENT, Reason.CAPPED]
        assert "frontier" in store.trace(ask("s"))["capped"]

    def test_walk_when_the_frontier_ties_then_the_lesser_name_is_opened(self) -> None:
        for order in (("p", "q"), ("q", "p")):
            store = GraphStore(frontier_cap=1)
            store.add([record("s", *order)])
            store.add([record("m" + name, name) for name in order])
            assert evidence(store, ask("s"), "hops", "mp") == [2]
            assert reasons(store, ask("s"), "hops", "mq") == [Reason.CAPPED]

    def test_propose_when_values_tie_then_the_limit_cuts_by_id(self) -> None:
        names = [f"m{i:02d}" for i in range(30)]
        for order in (names, names[::-1]):
            store = GraphStore()
            store.add([record(name, "x") for name in order])
            assert list(store.propose(ask("x"), 5)) == names[:5]
            assert list(store.propose(ask("x"), 0)) == []

    def test_propose_when_very_many_tie_then_still_by_id(self) -> None:
        names = [f"m{i:04d}" for i in range(2500)]
        store = GraphStore(frontier_cap=5000)
        store.add([record(name, "x") for name in names[::-1]])
        assert list(store.propose(ask("x"), 3)) == names[:3]
        store.add([record("m", "x"), record("m00005", "x")])
        assert list(store.propose(ask("x"), 3)) == ["m", "m0000", "m00005"]

    def test_propose_when_by_ppr_then_memories_beyond_the_hops_are_proposed(self) -> None:
        far, near = GraphStore(propose_by="ppr"), GraphStore()
        for store in (far, near):
            store.add([record(f"m{i}", f"m{i + 1}") for i in range(8)])
        assert list(far.propose(ask("m0"), 9)) == [f"m{i}" for i in range(1, 8)]
        assert list(near.propose(ask("m0"), 9)) == ["m1", "m2", "m3"]

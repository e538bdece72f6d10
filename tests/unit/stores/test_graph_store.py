"""The graph store's contract: who is seen, what is said about them, and in what order."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.relevance.evidence import lookup_evidence
from rankblend.relevance.scope import Scope
from rankblend.stores.graph import Edge, GraphStore
from rankblend.stores.protocol import (
    Key,
    Link,
    Reach,
    Reason,
    Record,
    Seed,
    Store,
    StoreQuery,
    SupportsSeeds,
    SupportsWrite,
)

ACME = Scope.parse("tenant:acme")
USER = Scope.parse("tenant:acme/user:7")
OTHER = Scope.parse("tenant:acme-corp")


def record(name: str, *links: str | Link, scope: Scope = ACME, serial: int = -1) -> Record:
    targets = tuple(link if isinstance(link, Link) else Link(link) for link in links)
    return Record(Key(scope, name), f"text of {name}", serial=serial, links=targets)


def ask(
    *seeds: str | Seed, text: str = "", scopes: Iterable[Scope] = (USER,), **more: object
) -> StoreQuery:
    given = tuple(seed if isinstance(seed, Seed) else Seed(seed) for seed in seeds)
    return StoreQuery(text, tuple(scopes), seeds=given, **more)  # type: ignore[arg-type]


def evidence(store: GraphStore, query: StoreQuery, name: str, *ids: str) -> list[float]:
    return store.observe(query, ids, {name}).columns[name].tolist()


def reasons(store: GraphStore, query: StoreQuery, name: str, *ids: str) -> list[Reason]:
    return [Reason(code) for code in store.observe(query, ids, {name}).reason(name)]


@pytest.fixture
def chain() -> GraphStore:
    """a – Paris – b – c – Rome – d, and e apart."""
    store = GraphStore()
    store.add(
        [
            record("a", "Paris"), record("b", "Paris", "c"), record("c", "Rome"),
            record("d", "Rome"), record("e"), record("f", "Oslo"),
        ]
    )  # fmt: skip
    return store


class TestContract:
    def test_store_when_checked_then_it_has_the_capabilities(self, chain: GraphStore) -> None:
        for protocol in (Store, SupportsWrite, SupportsSeeds):
            assert isinstance(chain, protocol)
        assert chain.seeded
        assert all(lookup_evidence(name) for name in chain.emits)

    def test_observe_when_no_names_are_wanted_then_all_columns_are_given(
        self, chain: GraphStore
    ) -> None:
        assert tuple(chain.observe(ask("a"), ["b"]).columns) == chain.emits

    def test_observe_when_some_are_wanted_then_the_others_are_left_out(
        self, chain: GraphStore
    ) -> None:
        observed = chain.observe(ask("a"), ["b"], {"hops", "cosine"})
        assert list(observed.columns) == ["hops"]
        assert chain._ranks.built == 0

    def test_observe_when_no_ids_are_asked_then_columns_are_empty(self, chain: GraphStore) -> None:
        for query in (ask("a"), ask()):
            observed = chain.observe(query, [])
            assert {len(column) for column in observed.columns.values()} == {0}

    def test_observe_when_ids_are_asked_together_or_alone_then_the_same(
        self, chain: GraphStore
    ) -> None:
        query, ids = ask("a", "d", text="paris"), ["f", "c", "nobody", "a", "b", "a", "e", "d"]
        together = chain.observe(query, ids)
        for place, name in enumerate(ids):
            alone = GraphStore.observe(chain, ask("a", "d", text="paris"), [name])
            for column in chain.emits:
                expected = together.columns[column][place]
                assert np.array_equal(alone.columns[column][0], expected, equal_nan=True)
                assert alone.reasons[column][0] == together.reasons[column][place]

    def test_store_when_empty_then_it_proposes_nothing_and_knows_nobody(self) -> None:
        store = GraphStore()
        assert list(store.propose(ask("a", text="a name"), 5)) == []
        assert reasons(store, ask("a"), "ppr", "a") == [Reason.UNKNOWN]
        assert len(store) == 0

    def test_store_when_closed_twice_then_harmless_and_use_is_refused(
        self, chain: GraphStore
    ) -> None:
        chain.close()
        chain.close()
        for use in (
            lambda: chain.propose(ask("a"), 1),
            lambda: chain.observe(ask("a"), []),
            lambda: chain.add([]),
            lambda: chain.to_networkx(),
        ):
            with pytest.raises(StoreClosedError, match="closed"):
                use()

    @pytest.mark.parametrize(
        "bad",
        [
            {"name": "no name"}, {"max_hops": 0}, {"max_hops": 17}, {"frontier_cap": 0},
            {"degree_cut": 1.5}, {"damping": 1.0}, {"damping": math.nan}, {"propose_by": "hops"},
            {"max_hops": True},
        ],
    )  # fmt: skip
    def test_init_when_a_parameter_is_out_of_range_then_refused(self, bad: dict) -> None:
        with pytest.raises(InvalidArgumentError, match=next(iter(bad))):
            GraphStore(**bad)

    def test_import_when_nothing_is_asked_then_no_engine_is_loaded(self) -> None:
        code = (
            "import sys, rankblend.stores.graph as g\n"
            "from rankblend.stores.protocol import StoreQuery, Seed\n"
            "from rankblend.relevance.scope import Scope\n"
            "s = g.GraphStore(); q = StoreQuery('x', (Scope.parse('a:1'),), seeds=(Seed('b'),))\n"
            "s.add_edges([g.Edge('a:1', 'b', 'c')]); s.propose(q, 3)\n"
            "s.observe(q, ['b'], {'hops', 'activation'})\n"
            "print({'networkx', 'scipy', 'faiss', 'sqlite3'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "set()", done.stderr


class TestEvidence:
    def test_hops_when_walked_then_edges_are_counted(self, chain: GraphStore) -> None:
        # a–Paris–b is two edges, b–c one more; d lies at five, beyond the three hops
        assert evidence(chain, ask("a"), "hops", "b", "c", "d", "f") == [2, 3, math.inf, math.inf]

    def test_hops_when_not_reached_then_present_and_infinite(self, chain: GraphStore) -> None:
        assert reasons(chain, ask("a"), "hops", "d", "f") == [Reason.PRESENT] * 2
        assert chain.trace(ask("a"))["capped"] == ("hops",)

    def test_observe_when_a_memory_has_no_edge_then_not_applicable(self, chain: GraphStore) -> None:
        for name in chain.emits:
            assert reasons(chain, ask("a"), name, "e") == [Reason.NOT_APPLICABLE]
            assert math.isnan(evidence(chain, ask("a"), name, "e")[0])

    def test_observe_when_an_id_is_no_memory_then_unknown(self, chain: GraphStore) -> None:
        for name in chain.emits:
            assert reasons(chain, ask("a"), name, "nobody", "Paris") == [Reason.UNKNOWN] * 2

    @pytest.mark.parametrize("seeds", [(), ("nobody",), ("e",)])
    def test_observe_when_no_seed_is_in_the_graph_then_not_applicable(
        self, chain: GraphStore, seeds: tuple[str, ...]
    ) -> None:
        for name in chain.emits:
            assert reasons(chain, ask(*seeds), name, "a") == [Reason.NOT_APPLICABLE]
        assert list(chain.propose(ask(*seeds), 9)) == []

    def test_observe_when_a_memory_is_the_only_seed_then_nothing_to_measure_from(
        self, chain: GraphStore
    ) -> None:
        for name in ("hops", "path_weight", "activation", "ppr"):
            assert reasons(chain, ask("a"), name, "a", "b") == [
                Reason.NOT_APPLICABLE, Reason.PRESENT,
            ]  # fmt: skip

    def test_observe_when_a_memory_is_a_seed_then_measured_from_the_others(
        self, chain: GraphStore
    ) -> None:
        query = ask("a", Seed("c", 0.5))
        assert evidence(chain, query, "hops", "a", "b", "c") == [3, 1, 3]
        assert evidence(chain, query, "path_weight", "a", "b", "c") == [0.5, 1.0, 1.0]

    def test_observe_when_seeds_are_far_apart_then_they_have_no_proximity(
        self, chain: GraphStore
    ) -> None:
        query = ask("a", "f")
        assert evidence(chain, query, "hops", "a", "f") == [math.inf] * 2
        for name in ("path_weight", "activation", "ppr"):
            assert evidence(chain, query, name, "a", "f") == [0.0, 0.0]
        assert "f" not in chain.propose(query, 9)

    def test_activation_when_computed_by_hand_then_equal(self) -> None:
        store = GraphStore()
        store.add([record("a", "x"), record("b", "x"), record("c", "x", "y")])
        # x has three edges, a one: a → x .5 · 1/√1 = .5; x → b .5 · .5/√3 per hop
        direct = 0.5 * 0.5 / math.sqrt(3)
        assert evidence(store, ask("a"), "activation", "b", "c") == pytest.approx([direct, direct])
        # from x: b .5/√3, plus two hops more over a, b (one edge) and c (two edges)
        back = 0.5 / math.sqrt(3) * (0.5 + 0.5 + 0.5 / math.sqrt(2))
        expected = 0.5 / math.sqrt(3) * (1 + back)
        assert evidence(store, ask("x"), "activation", "b") == pytest.approx([expected])

    def test_path_weight_when_links_have_weights_then_they_multiply(self) -> None:
        store = GraphStore()
        store.add([record("a", Link("b", weight=0.5)), record("b", Link("c", weight=0.25))])
        store.add([record("c")])
        assert evidence(store, ask(Seed("a", 0.8)), "path_weight", "b", "c") == pytest.approx(
            [0.4, 0.1]
        )

    def test_ppr_when_computed_by_hand_then_equal(self) -> None:
        store = GraphStore(damping=0.5)
        store.add([record("a", "b"), record("b")])
        # p_a = .5 + .5 p_b, p_b = .5 p_a → p_b = 1/3
        assert evidence(store, ask("a"), "ppr", "b") == pytest.approx([1 / 3])
        # both seeds: a gets from b .5 · ⅓
        assert evidence(store, ask("a", "b"), "ppr", "a") == pytest.approx([1 / 6])

    def test_structured_when_named_by_the_query_then_one_over_one_plus_hops(
        self, chain: GraphStore
    ) -> None:
        query = ask(Seed("d", 1.0, "vectors"), text="what about PARIS?")
        assert evidence(chain, query, "structured", "a", "b", "c", "d") == [
            0.5, 0.5, pytest.approx(1 / 3), 0.0,
        ]  # fmt: skip

    def test_structured_when_a_memory_is_named_itself_then_one(self, chain: GraphStore) -> None:
        assert evidence(chain, ask("a"), "structured", "a", "b") == [1.0, pytest.approx(1 / 3)]

    def test_structured_when_only_other_stores_proposed_then_absent(
        self, chain: GraphStore
    ) -> None:
        query = ask(Seed("a", 1.0, "vectors"))
        assert reasons(chain, query, "structured", "b") == [Reason.NOT_APPLICABLE]
        assert reasons(chain, query, "hops", "b") == [Reason.PRESENT]


class TestSeeds:
    def test_seeds_when_a_name_occurs_then_it_weighs_one_over_its_memories(
        self, chain: GraphStore
    ) -> None:
        assert chain.trace(ask(text="Paris"))["seeds"] == [("Paris", 0.5, True)]

    def test_seeds_when_given_twice_then_the_strongest_counts(self, chain: GraphStore) -> None:
        query = ask(Seed("a", 0.2, "keywords"), Seed("a", 0.7, "vectors"), Seed("a", 0.5))
        assert chain.trace(query)["seeds"] == [("a", 0.7, True)]

    @pytest.mark.parametrize("weight", [0.0, -1.0, 1.5, math.nan, math.inf])
    def test_seeds_when_a_weight_is_out_of_range_then_refused(
        self, chain: GraphStore, weight: float
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=r"seeds\[0\].weight"):
            chain.propose(ask(Seed("a", weight)), 3)

    def test_seeds_when_other_tenants_link_a_name_then_its_weight_stays(
        self, chain: GraphStore
    ) -> None:
        chain.add([record(f"x{i}", "Paris", scope=OTHER) for i in range(9)])
        assert chain.trace(ask(text="Paris"))["seeds"] == [("Paris", 0.5, True)]

    def test_seeds_when_the_longer_name_is_invisible_then_it_hides_nothing(
        self, chain: GraphStore
    ) -> None:
        chain.add([record("x", "Paris Hilton", scope=OTHER)])
        assert chain.trace(ask(text="paris hilton"))["seeds"] == [("Paris", 0.5, True)]


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
        store.add([record("no", "x", scope=Scope.parse("tenant:acme/user:70"))])
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
        assert evidence(store, query, "hops", "b") == [math.inf]
        assert evidence(store, query, "activation", "b") == [0.0]
        assert store.trace(query)["capped"] == ("hub",)

    def test_walk_when_the_hub_is_a_seed_then_it_is_walked_up_to_the_frontier_cap(self) -> None:
        store = GraphStore(degree_cut=3, frontier_cap=4)
        store.add([record(name, "hub") for name in "abcd"])
        assert evidence(store, ask("hub"), "hops", "b") == [1]
        store.add([record("e", "hub")])
        assert evidence(store, ask("hub"), "hops", "b") == [math.inf]

    def test_walk_when_the_frontier_is_full_then_the_most_active_are_opened(self) -> None:
        store = GraphStore(frontier_cap=1)
        store.add([record("s", Link("weak", weight=0.1), Link("strong", weight=0.9))])
        store.add([record("w", "weak"), record("t", "strong")])
        assert evidence(store, ask("s"), "hops", "t", "w") == [2, math.inf]
        assert "frontier" in store.trace(ask("s"))["capped"]

    def test_walk_when_the_frontier_ties_then_the_lesser_name_is_opened(self) -> None:
        for order in (("p", "q"), ("q", "p")):
            store = GraphStore(frontier_cap=1)
            store.add([record("s", *order)])
            store.add([record("m" + name, name) for name in order])
            assert evidence(store, ask("s"), "hops", "mp", "mq") == [2, math.inf]

    def test_propose_when_values_tie_then_the_limit_cuts_by_id(self) -> None:
        names = [f"m{i:02d}" for i in range(30)]
        for order in (names, names[::-1]):
            store = GraphStore()
            store.add([record(name, "x") for name in order])
            assert list(store.propose(ask("x"), 5)) == names[:5]
            assert list(store.propose(ask("x"), 0)) == []

    def test_propose_when_by_ppr_then_memories_beyond_the_hops_are_proposed(self) -> None:
        far, near = GraphStore(propose_by="ppr"), GraphStore()
        for store in (far, near):
            store.add([record(f"m{i}", f"m{i + 1}") for i in range(8)])
        assert list(far.propose(ask("m0"), 9)) == [f"m{i}" for i in range(1, 8)]
        assert list(near.propose(ask("m0"), 9)) == ["m1", "m2", "m3"]


class TestWrites:
    def test_remove_when_a_memory_goes_then_so_do_its_links_at_once(
        self, chain: GraphStore
    ) -> None:
        query = ask("a")
        assert evidence(chain, query, "hops", "c") == [3]
        chain.remove([Key(ACME, "b"), Key(ACME, "nobody"), Key(OTHER, "a")])
        assert reasons(chain, query, "hops", "b") == [Reason.UNKNOWN]
        assert evidence(chain, query, "hops", "c") == [math.inf]  # the very same query object
        assert len(chain) == 5

    def test_add_when_the_key_exists_then_its_links_are_replaced(self, chain: GraphStore) -> None:
        chain.add([record("b", "Oslo")])
        assert len(chain) == 6
        assert evidence(chain, ask("a"), "hops", "b") == [math.inf]
        assert evidence(chain, ask("Oslo"), "hops", "b", "f") == [1, 1]

    def test_add_when_the_links_are_the_same_then_no_row_is_written(
        self, chain: GraphStore
    ) -> None:
        rows = len(chain._tables.edges)
        chain.add([record("b", "c", "Paris", serial=3)])
        assert len(chain._tables.edges) == rows
        query = ask("Paris", admitted=np.array([0, 0, 0, 1], dtype=np.bool_))
        assert list(chain.propose(query, 9)) == ["b"]

    def test_add_when_one_batch_has_a_key_twice_then_the_last_stays(self) -> None:
        store = GraphStore()
        store.add([record("a", "x"), record("a", "y")])
        assert len(store) == 1
        assert evidence(store, ask("y"), "hops", "a") == [1]
        assert list(store.propose(ask("x"), 9)) == []

    def test_add_when_a_link_is_given_twice_then_the_stronger_stays(self) -> None:
        store = GraphStore()
        store.add([record("a", Link("x", weight=0.2), Link("x", weight=0.6))])
        assert evidence(store, ask("x"), "path_weight", "a") == [0.6]

    @pytest.mark.parametrize(
        "link",
        [Link(""), Link(" "), Link("x", weight=0.0), Link("x", weight=1.1), Link("x", kind=""),
         Link("x", weight=math.nan), Link("x", weight="1")],  # type: ignore[arg-type]
    )  # fmt: skip
    def test_add_when_a_link_is_invalid_then_refused_and_nothing_is_added(self, link: Link) -> None:
        store = GraphStore()
        with pytest.raises(InvalidArgumentError, match=r"records\[1\].links\[0\]"):
            store.add([record("a", "x"), record("b", link)])
        assert len(store) == 0

    def test_edges_when_removed_then_only_those_of_their_own_go(self) -> None:
        store = GraphStore()
        store.add([record("a", "x"), record("b")])
        store.add_edges([Edge("tenant:acme", "b", "x"), Edge("tenant:acme", "a", "x")])
        store.remove_edges(
            [Edge(ACME, "a", "x"), Edge(ACME, "b", "x", "other"), Edge(USER, "b", "x")]
        )
        assert evidence(store, ask("x"), "hops", "a", "b") == [1, 1]
        store.remove_edges([Edge(ACME, "b", "x", weight=0.1), Edge(ACME, "never", "seen")])
        assert reasons(store, ask("x"), "hops", "b") == [Reason.NOT_APPLICABLE]

    def test_edges_when_added_again_then_replaced(self) -> None:
        store = GraphStore()
        store.add([record("a")])
        store.add_edges([Edge(ACME, "a", "x", weight=0.3), Edge(ACME, "a", "x", weight=0.5)])
        store.add_edges([Edge(ACME, "a", "x", weight=0.25)])
        assert evidence(store, ask("x"), "path_weight", "a") == [0.25]
        # the other direction and another kind are other edges
        store.add_edges([Edge(ACME, "x", "a", weight=0.9), Edge(ACME, "a", "x", "k", 0.7)])
        assert evidence(store, ask("x"), "path_weight", "a") == [0.9]

    def test_edges_when_a_node_links_to_itself_then_kept_but_not_walked(self) -> None:
        store = GraphStore()
        store.add([record("a", "a")])
        store.add_edges([Edge(ACME, "a", "a", "self")])
        assert reasons(store, ask("a", "b"), "hops", "a") == [Reason.NOT_APPLICABLE]
        assert store.to_networkx().number_of_edges() == 2
        store.remove_edges([Edge(ACME, "a", "a", "self")])
        assert store.to_networkx().number_of_edges() == 1

    @pytest.mark.parametrize(
        "bad",
        [{"source": ""}, {"target": "\n"}, {"kind": ""}, {"weight": 0}, {"weight": True},
         {"weight": math.inf}],
    )  # fmt: skip
    def test_edge_when_a_part_is_invalid_then_refused(self, bad: dict) -> None:
        good = {"scope": ACME, "source": "a", "target": "b"}
        with pytest.raises(InvalidArgumentError, match=next(iter(bad))):
            Edge(**(good | bad))

    def test_ppr_when_edges_are_added_then_merged_and_equal_to_a_new_build(
        self, rng: np.random.Generator
    ) -> None:
        def edges(count: int) -> list[Edge]:
            return [
                Edge(ACME, f"n{a}", f"n{b}", str(k), round(float(w), 2))
                for a, b, k, w in zip(
                    rng.integers(0, 40, count), rng.integers(0, 40, count),
                    rng.integers(0, 3, count), rng.uniform(0.1, 1, count), strict=True,
                )
            ]  # fmt: skip

        first, second = edges(80), edges(60)
        ids = [f"n{i}" for i in range(40)]
        query = ask("n1", "n2", "n3")
        grown, fresh = GraphStore(), GraphStore()
        for store in (grown, fresh):
            store.add([record(name) for name in ids])
        grown.add_edges(first)
        grown.observe(query, ids, {"ppr"})
        kept = {(e.source, e.target, e.kind) for e in first}
        new = [e for e in second if (e.source, e.target, e.kind) not in kept]
        grown.add_edges(new)
        fresh.add_edges(first + new)
        expected = fresh.observe(query, ids, {"ppr"}).columns["ppr"]
        assert grown.observe(query, ids, {"ppr"}).columns["ppr"].tobytes() == expected.tobytes()
        assert (grown._ranks.built, grown._ranks.merged) == (1, 1)

    def test_compaction_when_most_rows_are_dead_then_answers_stay(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = GraphStore()
        store.add([record("a", "x", "y"), record("b", "y"), record("b", "x", scope=USER)])
        store.add_edges([Edge(ACME, "x", "z"), Edge(ACME, "gone", "away")])
        query = ask("z", text="z")
        expected = store.observe(query, ["a", "b"])
        store.remove_edges([Edge(ACME, "gone", "away")])
        monkeypatch.setattr("rankblend.stores.graph.tables._COMPACT_FROM", 0)
        for _ in range(6):
            store.add([record("c", "p"), record("d")])
            store.add([record("c", "q")])
        store.remove([Key(ACME, "c"), Key(ACME, "d")])
        assert store._tables.epoch > 0
        assert store._tables.nodes.find("gone") == -1
        observed = store.observe(query, ["a", "b"])
        for name in store.emits:
            assert observed.columns[name].tobytes() == expected.columns[name].tobytes()
        assert len(store) == 3

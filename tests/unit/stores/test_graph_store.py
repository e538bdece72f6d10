"""The graph store's contract and evidence, worked out by hand."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.relevance import lookup_evidence
from rankblend.stores import Link, Reason, Seed, Store, SupportsSeeds, SupportsWrite
from rankblend.stores.graph import GraphStore

sys.path.insert(0, str(Path(__file__).parent))
from graph_world import OTHER, ask, evidence, make_chain, reasons, record


@pytest.fixture
def chain() -> GraphStore:
    return make_chain()


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
        observed = chain.observe(evolve(ask("a"), wanted=frozenset({"hops", "cosine"})), ["b"])
        assert list(observed.columns) == ["hops"]
        assert chain._snapshots.built == 0

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

    def test_fresh_when_called_then_an_empty_store_with_the_same_settings(self) -> None:
        store = GraphStore(name="links", max_hops=1, propose_by="ppr")
        store.add([record("a", "x"), record("b", "x")])
        fresh = store.fresh()
        assert (fresh.name, len(fresh)) == ("links", 0)
        fresh.add([record("a", "x"), record("b", "x")])
        assert evidence(fresh, ask("a"), "hops", "b") == [math.inf]

    def test_import_when_nothing_is_asked_then_no_engine_is_loaded(self) -> None:
        code = (
            "import sys, rankblend.stores.graph as g\n"
            "from attrs import evolve\n"
            "from rankblend.stores import Edge, Edge, Seed, StoreQuery\n"
            "from rankblend.relevance import Scope\n"
            "s = g.GraphStore(); q = StoreQuery('x', (Scope.parse('a:1'),), seeds=(Seed('b'),))\n"
            "s.add_edges([Edge('a:1', 'b', 'c')]); s.propose(q, 3)\n"
            "s.observe(evolve(q, wanted=frozenset({'hops', 'activation'})), ['b'])\n"
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

    @pytest.mark.parametrize("name", ["activation", "ppr"])
    def test_observe_when_only_its_own_mass_comes_back_then_exactly_zero(
        self, name: str, rng: np.random.Generator
    ) -> None:
        store, seeds = GraphStore(), []
        for number in range(30):
            links = [Link(f"e{number} {i}", weight=w) for i, w in enumerate(rng.random(7))]
            store.add([record(f"m{number}", *links)])
            seeds.append(Seed(f"m{number}", float(rng.random()), "vectors"))
        ids = [seed.id for seed in seeds]
        assert evidence(store, ask(*seeds), name, *ids) == [0.0] * 30
        assert list(store.propose(ask(*seeds), 30)) == []

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

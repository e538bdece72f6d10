"""Writes to the graph store: seen by the very next question, and completely."""

from __future__ import annotations

import itertools
import math
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from rankblend.errors import InvalidArgumentError
from rankblend.stores import Edge, Key, Link, Reason
from rankblend.stores._rows import NumberedIds
from rankblend.stores.graph import GraphStore

sys.path.insert(0, str(Path(__file__).parent))
from graph_world import ACME, OTHER, USER, ask, evidence, make_chain, reasons, record


@pytest.fixture
def chain() -> GraphStore:
    return make_chain()


class TestWrites:
    def test_observe_when_ids_carry_serials_then_what_was_written_since_counts(self) -> None:
        store, query, names = GraphStore(), ask("a"), ["a", "b", "c", "hidden", "nobody"]
        store.add([record(name, "Paris", serial=at) for at, name in enumerate("abc")])
        store.add([record("hidden", "Paris", scope=OTHER, serial=3)])

        def seen(*serials: int) -> list[Reason]:
            ids = NumberedIds(names, np.array(serials, dtype=np.int64))
            codes = store.observe(evolve(query, wanted=frozenset({"activation"})), ids).reason(
                "activation"
            )
            assert (
                codes.tolist()
                == store.observe(evolve(query, wanted=frozenset({"activation"})), names)
                .reason("activation")
                .tolist()
            )
            return [Reason(code) for code in codes.tolist()]

        alone, there, none = Reason.NOT_APPLICABLE, Reason.PRESENT, Reason.UNKNOWN
        assert seen(0, 1, 2, 3, 4) == [alone, there, there, none, none]
        store.remove([Key(ACME, "b")])
        assert seen(0, 1, 2, 3, 4) == [alone, none, there, none, none]
        store.add([record("b", "Paris", serial=7), record("c", "Paris", serial=9)])
        assert seen(0, 7, 9, 3, 4) == [alone, there, there, none, none]

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
        store = GraphStore()
        with pytest.raises(InvalidArgumentError, match=next(iter(bad))):
            store.add_edges([Edge(**good), Edge(**(good | bad))])
        assert store.to_networkx().number_of_edges() == 0

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
        grown.observe(evolve(query, wanted=frozenset({"ppr"})), ids)
        kept = {(e.source, e.target, e.kind) for e in first}
        new = [e for e in second if (e.source, e.target, e.kind) not in kept]
        grown.add_edges(new)
        fresh.add_edges(first + new)
        expected = fresh.observe(evolve(query, wanted=frozenset({"ppr"})), ids).columns["ppr"]
        assert (
            grown.observe(evolve(query, wanted=frozenset({"ppr"})), ids).columns["ppr"].tobytes()
            == expected.tobytes()
        )
        assert (grown._snapshots.built, grown._snapshots.merged) == (1, 1)

    def test_ppr_when_parallel_edges_come_in_another_order_then_the_bits_stay(self) -> None:
        weights = {"k": 0.1, "l": 0.2, "m": 0.3}  # (.1 + .2) + .3 is not .1 + (.2 + .3)
        bits = set()
        for order in itertools.permutations(weights):
            store = GraphStore()
            store.add([record("a"), record("b", "c")])
            store.add_edges([Edge(ACME, "a", "b", kind, weights[kind]) for kind in order])
            store.observe(evolve(ask("c"), wanted=frozenset({"ppr"})), ["a", "b"])
            bits.add(store._snapshots._snapshots[0].strength.tobytes())
        assert len(bits) == 1

    def test_compaction_when_most_rows_are_dead_then_answers_stay(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = GraphStore()
        store.add([record("first", "y"), record("a", "x", "y", serial=0)])
        store.add([record("b", "y", serial=1), record("b", "x", scope=USER, serial=2)])
        store.remove([Key(ACME, "first")])
        store.add_edges([Edge(ACME, "x", "z"), Edge(ACME, "gone", "away")])
        query = ask("z", admitted=np.array([False, True, True]))
        expected = store.observe(query, ["a", "b"])
        store.remove_edges([Edge(ACME, "gone", "away")])
        monkeypatch.setattr("rankblend.stores.graph._tables._COMPACT_FROM", 0)
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

    def test_writes_when_others_read_at_the_same_time_then_every_answer_is_whole(self) -> None:
        store = GraphStore(frontier_cap=50)
        store.add([record(f"m{i}", "x", "y") for i in range(20)])
        failures: list[BaseException] = []

        def read() -> None:
            try:
                for _ in range(60):
                    query = ask("x")
                    proposed = store.propose(query, 99)
                    column = store.observe(
                        evolve(query, wanted=frozenset({"hops"})), list(proposed)
                    ).columns["hops"]
                    # z's memories come and go together
                    assert sum(name.startswith("z") for name in store.propose(query, 99)) in (0, 9)
                    assert set(column[~np.isnan(column)].tolist()) <= {1.0, 2.0, np.inf}
            except BaseException as error:
                failures.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for _ in range(40):
            store.add([record(f"z{i}", "x") for i in range(9)])
            store.remove([Key(ACME, f"z{i}") for i in range(9)])
        for reader in readers:
            reader.join()
        assert failures == []

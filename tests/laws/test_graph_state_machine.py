"""Whatever was written, in whatever order: the store answers as one that was only just filled.

After every few writes a random query is put to the store and to a fresh store that holds, in another
order, *only* what that query may see. Equal bits then say at once: updates and removals are complete,
insertion order does not matter, merged indexes equal new ones, and nothing invisible has any
influence, not even through degrees, weights or caps.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from rankblend.relevance import Scope
from rankblend.stores import Edge, Key, Link, Reach, Record, Seed, StoreQuery
from rankblend.stores.graph import GraphStore
from rankblend.stores.graph import _edges as adjacency
from rankblend.stores.graph import _tables as tables

SCOPES = [Scope.parse(text) for text in ("t:a", "t:a/u:1", "t:a/u:10", "t:a-b")]
NAMES = ["alpha", "beta", "gamma", "delta", "alpha beta", "eps", "zeta", "eta x", "theta"]
SERIALS = 48

scopes = st.sampled_from(SCOPES)
names = st.sampled_from(NAMES)
weights = st.sampled_from([1.0, 0.7, 0.3, 0.1])
kinds = st.sampled_from(["related", "part of"])
links = st.builds(Link, names, kinds, weights, st.booleans())
edges = st.builds(Edge, scopes, names, names, kinds, weights, st.booleans())
seeds = st.builds(Seed, names, weights, st.sampled_from(["caller", "vectors", "keywords"]))


class GraphMachine(RuleBasedStateMachine):
    """Random writes, with caps small enough to bite."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[Key, Record] = {}
        self.edges: dict[tuple[Scope, str, str, str], Edge] = {}
        self.serial = 0

    @initialize(
        max_hops=st.integers(1, 4),
        frontier_cap=st.sampled_from([1, 2, 4, 1000]),
        degree_cut=st.sampled_from([2, 4, 500]),
        propose_by=st.sampled_from(["activation", "ppr"]),
    )
    def open(self, **options: Any) -> None:
        self.options = options
        self.store = GraphStore(**options)

    @rule(
        written=st.lists(
            st.tuples(scopes, names, st.lists(links, max_size=4)), min_size=1, max_size=4
        )
    )
    def add(self, written: list[tuple[Scope, str, list[Link]]]) -> None:
        batch = []
        for scope, name, given in written:
            self.serial = (self.serial + 1) % SERIALS
            key = Key(scope, name)
            batch.append(Record(key, "", serial=self.serial, links=tuple(given)))
        self.store.add(batch)
        self.records.update({record.key: record for record in batch})

    @rule(keys=st.lists(st.builds(Key, scopes, names), max_size=3))
    def remove(self, keys: list[Key]) -> None:
        self.store.remove(keys)
        for key in keys:
            self.records.pop(key, None)

    @rule(written=st.lists(edges, max_size=5))
    def add_edges(self, written: list[Edge]) -> None:
        self.store.add_edges(written)
        for edge in written:
            self.edges[edge.scope, edge.source, edge.target, edge.kind] = edge

    @rule(dropped=st.lists(edges, max_size=4), some=st.integers(0, 99))
    def remove_edges(self, dropped: list[Edge], some: int) -> None:
        known = list(self.edges.values())
        dropped = dropped + known[some : some + 1]
        self.store.remove_edges(dropped)
        for edge in dropped:
            self.edges.pop((edge.scope, edge.source, edge.target, edge.kind), None)

    @rule(
        where=st.lists(scopes, min_size=1, max_size=2, unique=True),
        reach=st.sampled_from(Reach),
        given=st.lists(seeds, max_size=4),
        said=st.lists(names, max_size=2),
        mask=st.none() | st.lists(st.booleans(), min_size=SERIALS // 2, max_size=SERIALS),
        order=st.randoms(use_true_random=False),
    )
    def ask(
        self,
        where: list[Scope],
        reach: Reach,
        given: list[Seed],
        said: list[str],
        mask: list[bool] | None,
        order: random.Random,
    ) -> None:
        query = StoreQuery(
            " and ".join(said), tuple(where), reach=reach, seeds=tuple(given),
            admitted=None if mask is None else np.array(mask),
        )  # fmt: skip
        fresh = self.fresh(query, order)
        ids = [*NAMES, "nobody"]
        got, expected = self.store.observe(query, ids), fresh.observe(query, ids)
        for name in self.store.emits:
            assert got.columns[name].tobytes() == expected.columns[name].tobytes(), name
            assert got.reasons[name].tobytes() == expected.reasons[name].tobytes(), name
        for level in (None, 0, 1):
            for limit in (1, 99):
                proposed = list(self.store.propose(query, limit, level=level))
                assert proposed == list(fresh.propose(query, limit, level=level))
                assert len(set(proposed)) == len(proposed) <= limit
        assert self.store.trace(query) == fresh.trace(query)
        assert len(self.store) == len(self.records)

    def fresh(self, query: StoreQuery, order: random.Random) -> GraphStore:
        """A store of only what the query sees, written in another order."""
        nearest: dict[str, Record] = {}
        for record in self.records.values():
            if query.admits(record):
                old = nearest.setdefault(record.id, record)
                nearest[record.id] = min(record, old, key=lambda one: nearness(query, one))
        records = list(nearest.values())
        visible = [edge for edge in self.edges.values() if query.distance(edge.scope) >= 0]
        order.shuffle(records)
        order.shuffle(visible)
        store = GraphStore(**self.options)
        store.add_edges(visible)
        store.add(records)
        return store


def nearness(query: StoreQuery, record: Record) -> tuple[tuple[int, int], str]:
    return query.rank_of_scope(record.scope), record.scope.path


@pytest.mark.parametrize(
    ("eager", "examples"),
    [
        (True, 15),
        (False, 15),
        pytest.param(True, 300, marks=pytest.mark.slow),
        pytest.param(False, 300, marks=pytest.mark.slow),
    ],
)
def test_graph_when_written_in_any_way_then_answers_as_a_fresh_one(
    examples: int, monkeypatch: pytest.MonkeyPatch, *, eager: bool
) -> None:
    # compaction, and search by scope within a row, as often as possible or as in a small graph
    monkeypatch.setattr(tables, "_COMPACT_FROM", 0 if eager else 10**9)
    monkeypatch.setattr(adjacency, "_LONG", 0 if eager else 128)
    run_state_machine_as_test(
        GraphMachine, settings=settings(max_examples=examples, stateful_step_count=25)
    )

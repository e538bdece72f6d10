"""The graph store against its readable twin: networkx and plain dictionaries, one edge at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rankblend.relevance import Scope
from rankblend.stores import Edge, Key, Link, Reach, Reason, Record, Seed, StoreQuery
from rankblend.stores.graph import GraphStore
from rankblend.stores.graph._walk import DECAY

SCOPES = [Scope.parse(text) for text in ("t:a", "t:a/u:1", "t:a/u:2", "t:b", "t:b/u:1")]
HOPS = 3


class Twin:
    """What one query sees, as an undirected multigraph, and every measure by its definition."""

    def __init__(self, records: list[Record], edges: list[Edge], query: StoreQuery) -> None:
        seen: dict[str, Record] = {}
        for record in records:
            if query.admits(record):
                nearest = min(seen.get(record.id, record), record, key=self._nearness(query))
                seen[record.id] = nearest
        self.memories = set(seen)
        self.graph = nx.MultiGraph()
        for record in seen.values():
            strongest: dict[tuple[str, str], float] = {}
            for link in record.links:
                place = link.target, link.kind
                strongest[place] = max(link.weight, strongest.get(place, 0))
            for (target, _), weight in strongest.items():
                self._connect(record.id, target, weight)
        for edge in edges:
            if query.distance(edge.scope) >= 0:
                self._connect(edge.source, edge.target, edge.weight)
        self.seeds: dict[str, float] = {}
        for name in self.graph:
            if name in query.text.split():
                linked = {other for other in self.graph[name] if other in self.memories}
                self.seeds[name] = 1 / max(1, len(linked))
        self.entities = set(self.seeds)
        for seed in query.seeds:
            if seed.id in self.graph:
                self.seeds[seed.id] = max(seed.weight, self.seeds.get(seed.id, 0))
                if seed.source == "caller":
                    self.entities.add(seed.id)

    @staticmethod
    def _nearness(query: StoreQuery) -> Callable[[Record], tuple[object, ...]]:
        return lambda record: (query.rank_of_scope(record.scope), record.scope.path)

    def _connect(self, source: str, target: str, weight: float) -> None:
        if source != target:
            self.graph.add_edge(source, target, weight=weight)

    def others(self, name: str) -> dict[str, float]:
        return {seed: weight for seed, weight in self.seeds.items() if seed != name}

    def hops(self, name: str) -> float:
        lengths = nx.single_source_shortest_path_length(self.graph, name, cutoff=HOPS)
        return min(
            (lengths[seed] for seed in self.others(name) if seed in lengths), default=math.inf
        )

    def structured(self, name: str) -> float:
        lengths = nx.single_source_shortest_path_length(self.graph, name, cutoff=HOPS)
        near = [lengths[seed] for seed in self.entities if seed in lengths]
        return 1 / (1 + min(near, default=math.inf))

    def path_weight(self, name: str) -> float:
        best = 0.0
        for seed, weight in self.others(name).items():
            for path in nx.all_simple_paths(self.graph, seed, name, cutoff=HOPS):
                product = weight
                for left, right in pairwise(path):
                    product *= max(data["weight"] for data in self.graph[left][right].values())
                best = max(best, product)
        return best

    def activation(self, name: str) -> float:
        mass = dict(self.others(name))
        total = 0.0
        for _ in range(HOPS):
            arriving: defaultdict[str, float] = defaultdict(float)
            for source, amount in mass.items():
                strength = self.graph.degree(source, weight="weight")
                for _, target, data in self.graph.edges(source, data=True):
                    arriving[target] += DECAY * amount * data["weight"] / math.sqrt(strength)
            mass = arriving
            total += mass.get(name, 0.0)
        return total

    def ppr(self, name: str, damping: float) -> float:
        ranks = self._pagerank(self.seeds, damping)
        if name not in self.seeds:
            return ranks[name]
        own = self._pagerank({name: 1.0}, damping)[name]
        return ranks[name] - self.seeds[name] / sum(self.seeds.values()) * own

    def _pagerank(self, restart: dict[str, float], damping: float) -> dict[str, float]:
        return nx.pagerank(
            self.graph, alpha=damping, personalization=restart, tol=1e-14, max_iter=5000
        )


def random_world(rng: np.random.Generator) -> tuple[list[Record], list[Edge], StoreQuery]:
    nodes = [f"node{i}" for i in range(int(rng.integers(4, 14)))]

    def pick() -> str:
        return nodes[rng.integers(len(nodes))]

    def weight() -> float:
        return float(rng.choice([1.0, 0.5, 0.3, 0.1]))

    def scope() -> Scope:
        return SCOPES[rng.integers(len(SCOPES))]

    records, edges = {}, {}
    for serial in range(int(rng.integers(1, 14))):
        key = Key(scope(), pick())
        links = tuple(
            Link(pick(), str(rng.choice(["k", "l"])), weight()) for _ in range(rng.integers(0, 4))
        )
        records[key] = Record(key, "", serial=serial, links=links)
    for _ in range(int(rng.integers(0, 14))):
        edge = Edge(scope(), pick(), pick(), str(rng.choice(["k", "l"])), weight())
        edges[edge.scope, edge.source, edge.target, edge.kind] = edge
    seeds = [
        Seed(pick(), weight(), str(rng.choice(["caller", "vectors"])))
        for _ in range(rng.integers(0, 4))
    ]
    text = "" if rng.random() < 0.5 else f"about {pick()} or not"
    admitted = None if rng.random() < 0.5 else rng.random(14) < 0.8
    scopes = dict.fromkeys(scope() for _ in range(int(rng.integers(1, 3))))
    reach = Reach.SUBTREE if rng.random() < 0.3 else Reach.ANCESTORS
    query = StoreQuery(text, tuple(scopes), seeds=tuple(seeds), admitted=admitted, reach=reach)
    return list(records.values()), list(edges.values()), query


def filled(records: list[Record], edges: list[Edge], **options: object) -> GraphStore:
    store = GraphStore(**options)  # type: ignore[arg-type]
    store.add(records)
    store.add_edges(edges)
    return store


@given(st.integers(0, 2**32 - 1))
def test_observe_when_nothing_is_capped_then_equal_to_the_twin(number: int) -> None:
    records, edges, query = random_world(np.random.default_rng(number))
    damping = 0.7
    store = filled(records, edges, damping=damping)
    twin = Twin(records, edges, query)
    ids = sorted({record.id for record in records} | set(twin.graph) | {"nobody"})
    observed = store.observe(query, ids)
    for place, name in enumerate(ids):
        in_graph = name in twin.graph
        expected: dict[str, float | None] = dict.fromkeys(store.emits)
        if name in twin.memories and in_graph and twin.others(name):
            expected["hops"] = twin.hops(name)
            expected["path_weight"] = twin.path_weight(name)
            expected["activation"] = twin.activation(name)
            expected["ppr"] = twin.ppr(name, damping)
        if name in twin.memories and in_graph and twin.entities:
            expected["structured"] = twin.structured(name)
        for column, value in expected.items():
            got = float(observed.columns[column][place])
            reason = Reason(observed.reasons[column][place])
            if value is None:
                assert math.isnan(got)
                unknown = name not in twin.memories
                assert reason is (Reason.UNKNOWN if unknown else Reason.NOT_APPLICABLE)
            else:
                assert reason is Reason.PRESENT
                assert got == pytest.approx(value, rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_propose_when_nothing_is_capped_then_the_twins_memories_by_activation(number: int) -> None:
    records, edges, query = random_world(np.random.default_rng(number))
    store = filled(records, edges)
    twin = Twin(records, edges, query)
    nodes = [name for name in twin.memories if name in twin.graph and twin.seeds]
    expected = {name: twin.activation(name) for name in nodes}
    proposed = list(store.propose(query, 100))
    assert set(proposed) == {name for name, value in expected.items() if value > 0}
    values = (
        store.observe(evolve(query, wanted=frozenset({"activation"})), proposed)
        .columns["activation"]
        .tolist()
    )
    assert list(zip(values, proposed, strict=True)) == sorted(
        zip(values, proposed, strict=True), key=lambda pair: (-pair[0], pair[1])
    )
    assert list(store.propose(query, 2)) == proposed[:2]


def capped_hops(
    graph: nx.MultiGraph, seeds: dict[str, float], *, frontier_cap: int, degree_cut: int
) -> tuple[dict[str, int], bool]:
    """Hops from seeds (no seed is a memory here), opening nodes by the store's rules, slowly.

    And whether a cap cut the walk short.
    """
    cut = False
    reached = dict.fromkeys(seeds, 0)
    arriving = dict(seeds)
    opened: set[str] = set()
    fresh = list(seeds)
    for hop in range(HOPS):
        chosen = sorted(fresh, key=lambda name: (-arriving.get(name, 0.0), name))[:frontier_cap]
        most = degree_cut if hop else max(degree_cut, frontier_cap)
        passed = {name for name in chosen if graph.degree(name) <= most}
        cut |= len(passed) < len(fresh)
        opened |= passed
        following: defaultdict[str, float] = defaultdict(float)
        for source in opened:
            strength = graph.degree(source, weight="weight")
            for _, target, data in graph.edges(source, data=True):
                share = DECAY * data["weight"] / math.sqrt(strength)
                following[target] += arriving.get(source, 0.0) * share
        fresh = sorted({target for source in opened for target in graph[source]} - set(reached))
        reached.update(dict.fromkeys(fresh, hop + 1))
        arriving = following
    return reached, cut


@pytest.mark.parametrize("number", range(25))
@pytest.mark.parametrize(("frontier_cap", "degree_cut"), [(2, 3), (4, 2), (1, 6)])
def test_hops_when_capped_then_the_same_nodes_are_opened_as_by_the_twin(
    number: int, frontier_cap: int, degree_cut: int
) -> None:
    rng = np.random.default_rng(number)
    names = [f"n{i:02d}" for i in range(30)]
    graph = nx.MultiGraph()
    for _ in range(45):
        source, target = rng.choice(30, 2, replace=False)
        graph.add_edge(names[source], names[target], weight=float(rng.choice([1.0, 0.5, 0.25])))
    store = GraphStore(frontier_cap=frontier_cap, degree_cut=degree_cut)
    store.add([Record(Key(SCOPES[0], name), "") for name in names])
    store.add_edges(
        [
            Edge(SCOPES[0], s, t, f"kind {k}", data["weight"])
            for k, (s, t, data) in enumerate(graph.edges(data=True))
        ]
    )
    seed = next(iter(graph))
    query = StoreQuery("", (SCOPES[0],), seeds=(Seed(seed),))
    expected, cut = capped_hops(
        graph, {seed: 1.0}, frontier_cap=frontier_cap, degree_cut=degree_cut
    )
    asked = [name for name in names if name in graph and name != seed]
    got = store.observe(evolve(query, wanted=frozenset({"hops"})), asked).columns["hops"].tolist()
    missed = math.nan if cut else math.inf
    np.testing.assert_array_equal(got, [expected.get(name, missed) for name in asked])

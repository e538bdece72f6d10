"""Laws of reranking: without a yes nothing differs, with one nothing but the score does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.profiles import read_profile
from rankblend.recall import Reranker
from rankblend.rerank import AdmissionDecision, AdmissionRequest, RelevanceReranker, StaticAdmission
from rankblend.stores import Observation, StoreQuery
from rankblend.stores.vectors import VectorStore
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER, OTHER = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:8"
WORDS = ("refund", "order", "policy", "tea", "Ana", "bank")
EMBEDDER = hashed_embedder(8)

units = st.none() | st.sampled_from((0.0, 0.25, 0.5, 1.0))
items = st.fixed_dictionaries(
    {
        "text": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        "scope": st.sampled_from((TENANT, USER, OTHER)),
        "confidence": units,
        "review": st.sampled_from((None, "confirmed", "unreviewed", "flagged")),
        "maturity": st.sampled_from((None, "settled", "provisional")),
        "certainty": st.sampled_from((None, "stated", "inferred")),
        "links": st.lists(st.sampled_from(("Ana", "bank", "m0", "m1")), max_size=2, unique=True),
        "at": st.just("2026-01-01T00:00:00+00:00"),
        "uses": st.integers(0, 9),
    }
)
worlds = st.lists(items, min_size=1, max_size=9).map(
    lambda found: [{**item, "id": f"m{n}"} for n, item in enumerate(found)]
)
queries = st.sampled_from(("refund order", "Ana bank policy", "", "nothing known"))
modes = st.sampled_from(("off", "blend", "backfill"))


def _raises(request: AdmissionRequest) -> AdmissionDecision:
    raise RuntimeError


refusals = st.sampled_from(
    (
        StaticAdmission(False),
        _raises,
        lambda request: None,
        lambda request: AdmissionDecision(False),
    )
)


def opened(world: list[dict[str, Any]], reranker: Reranker | None, **more: Any) -> rb.Memory:
    memory = rb.Memory.open(
        ":memory:", embedder=EMBEDDER, clock=lambda: NOW, reranker=reranker, **more
    )
    memory.remember_many(world)
    return memory


def recipe(mode: str) -> rb.RankingProfile:
    return read_profile(
        f'name = "law"\nextends = ["relevance-rerank"]\n[scope]\nmode = "{mode}"\n'
        "[floors]\nconfidence = { min = 0.1 }\n[select]\nduplicate_penalty = 0.3\ntop = 4\n"
    )


@settings(max_examples=60)
@given(world=worlds, query=queries, mode=modes, admission=refusals)
def test_refused_reranking_is_the_recall_of_a_memory_without_a_reranker(
    world, query, mode, admission
):
    with (
        opened(world, RelevanceReranker(admission)) as refused,
        opened(world, None) as plain,
    ):
        answers = [m.recall(query, scope=USER, profile=recipe(mode)) for m in (refused, plain)]
    seen = [answer.plain() for answer in answers]
    traces = [plain.pop("trace") for plain in seen]
    assert seen[0] == seen[1]
    assert traces[0].pop("reranking").startswith("baseline: ")
    assert traces[1].pop("reranking").startswith("baseline: ")
    assert traces[0] == traces[1]


class Counted(VectorStore):
    """The vector store, counting what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.seen: list[tuple[Any, ...]] = []

    def propose(self, query: StoreQuery, limit: int, **more: Any) -> Sequence[str]:
        self.calls["propose"] += 1
        self.seen.append((query.scopes, query.reach, limit, tuple(sorted(more.items()))))
        return super().propose(query, limit, **more)

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        self.calls["observe"] += 1
        self.seen.append((query.scopes, query.reach, tuple(ids)))
        return super().observe(query, ids)


@settings(max_examples=30)
@given(world=worlds, query=queries, mode=modes)
def test_reranking_adds_no_call_no_candidate_and_no_scope(world, query, mode):
    calls, pools, embedded = [], [], []
    for reranker in (None, RelevanceReranker(StaticAdmission(True))):
        store, texts = Counted(), Counter[str]()

        def embed(found: list[str], texts: Counter[str] = texts) -> np.ndarray:
            texts.update(found)
            return np.asarray(EMBEDDER(found))

        memory = rb.Memory.open(
            ":memory:", embedder=embed, clock=lambda: NOW, reranker=reranker,
            stores=[store, *rb.default_stores()[1:]],
        )  # fmt: skip
        with memory:
            memory.remember_many(world)
            texts.clear()
            recall = memory.recall(query, scope=USER, profile=recipe(mode), top=99)
        calls.append((store.calls, store.seen))
        pools.append((recall.trace.proposed, recall.trace.sources, recall.trace.scopes))
        embedded.append(texts)
    assert calls[0] == calls[1]
    assert pools[0] == pools[1]
    assert embedded[0] == embedded[1]


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=6)


@settings(max_examples=60)
@given(world=st.lists(items, min_size=2, max_size=6), pairs=pairs)
def test_only_verified_equivalents_collapse_and_take_their_strongest_signal(world, pairs):
    """Against a twin that knows the groups: one vote a group, its strongest relevance."""
    named = [
        {**item, "id": f"m{n}", "text": f"{item['text']} own{n}", "scope": USER, "links": []}
        for n, item in enumerate(world)
    ]
    ids = [item["id"] for item in named]
    links = [
        {"source": ids[a], "target": ids[b], "kind": "equivalent", "verified": verified}
        for a, b, verified in pairs
        if a != b and max(a, b) < len(ids)
    ]
    query = "refund order policy"
    with opened(named, RelevanceReranker(StaticAdmission(True))) as memory:
        apart = {m.memory.id: m for m in _all(memory, query)}
        memory.link_many(links, scope=USER)
        together = _all(memory, query)

    group = {identifier: {identifier} for identifier in ids}
    for link in links:
        if link["verified"]:
            joined = group[link["source"]] | group[link["target"]]
            for member in joined:
                group[member] = joined
    expected = {
        min(members): max(_relevance(apart[member]) for member in members if member in apart)
        for members in {frozenset(found) for found in group.values()}
        if any(member in apart for member in members)
    }
    found = {match.memory.id: _relevance(match) for match in together}
    assert found == expected


def _all(memory: rb.Memory, query: str) -> list[rb.Match]:
    flat = read_profile('name = "all"\nextends = ["relevance-rerank"]\n[pool]\nsize = 100\n')
    return list(memory.recall(query, scope=USER, profile=flat, top=99))


def _relevance(match: rb.Match) -> float:
    strongest = [
        getattr(match.signals, name, None) for name in ("coverage", "structured", "similarity")
    ]
    return max((value for value in strongest if value is not None), default=0.0)

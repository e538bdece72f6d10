"""Scoring ten thousand candidates by similarity, recency and importance, beside others' scorers (P5).

Each scores what it is given in its own form: CrewAI its records, LangChain its documents, LlamaIndex
its nodes, we the columns of evidence as stores give them, from evidence to scores. Beside each of them
we use its own formula, as a profile, and our scores are held against its own: LangChain and LlamaIndex
add similarity, recency and, LangChain only, importance, where our mean divides the sum by their number.
LlamaIndex also sorts and returns the best; so do we find the best there.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import numpy as np
import pytest

from rankblend.profiles import RankingProfile, SignalRecipe, load_profile
from rankblend.recall import Candidates, EvidenceColumn
from rankblend.recall._derive import derive
from rankblend.relevance import Node, Scope, compose_table
from rankblend.stores import Key

N = 10_000
HOUR = 3_600.0
LOST_AN_HOUR = 0.01  # LangChain's default; LlamaIndex' own, 0.99, leaves nothing of most ages here
RECIPES = {
    "similarity": SignalRecipe("cosine", curve="clip"),
    "recency": SignalRecipe(
        "age_created",
        curve={"half_life": {"hours": math.log(2.0) / -math.log1p(-LOST_AN_HOUR)}},
    ),
    "importance": SignalRecipe("salience"),
}
PEERS = "needs benchmarks/peers/requirements.txt"


def mean_of(*signals: str) -> RankingProfile:
    score = Node("weighted_mean", dict.fromkeys(signals, 1.0))
    return RankingProfile("sum", score, signals={name: RECIPES[name] for name in signals})


PROFILES = {
    "CrewAI": load_profile("crewai"),
    "LangChain": mean_of("similarity", "recency", "importance"),
    "LlamaIndex": mean_of("similarity", "recency"),
}


def group(peer: str) -> str:
    return f"score {N:,} candidates, beside {peer}"


@pytest.fixture(scope="module")
def evidence():
    rng = np.random.default_rng(5)
    return {
        "cosine": rng.random(N),
        "age_created": rng.random(N) * 90 * 24 * HOUR,
        "salience": rng.random(N),
    }


@pytest.fixture(scope="module")
def candidates(evidence):
    present = np.zeros(N, np.int8)
    scope = Scope.parse("tenant:bench")
    return Candidates(
        tuple(Key(scope, f"m{n}") for n in range(N)),
        np.zeros(N, np.int64),
        ("semantic",) * N,
        {name: (EvidenceColumn("store", values, present),) for name, values in evidence.items()},
        np.arange(N),
    )


def ours(candidates, profile):
    table = derive(profile, candidates).table
    return compose_table(profile.score, profile.nodes, table, contributions=False).scores


def our_best(candidates, profile):
    scores = ours(candidates, profile)
    return scores, int(scores.argmax())


@pytest.mark.benchmark(group=group("CrewAI"))
def test_reference_crewai(benchmark, evidence, candidates):
    types = pytest.importorskip("crewai.memory.types", reason=PEERS)
    benchmark.extra_info |= {"reference": True, "CrewAI": version("crewai")}
    now = datetime.now(UTC).replace(tzinfo=None)  # theirs are naive, in UTC
    records = [
        types.MemoryRecord(
            content="", importance=importance, created_at=now - timedelta(seconds=age)
        )
        for importance, age in zip(evidence["salience"], evidence["age_created"], strict=True)
    ]
    similarities, config = evidence["cosine"].tolist(), types.MemoryConfig()

    def score():
        return [
            types.compute_composite_score(record, similarity, config)[0]
            for record, similarity in zip(records, similarities, strict=True)
        ]

    scores = benchmark.pedantic(score, rounds=10, warmup_rounds=1)
    np.testing.assert_allclose(
        scores, ours(candidates, PROFILES["CrewAI"]), atol=1e-4
    )  # their clock goes on


@pytest.mark.benchmark(group=group("LangChain"))
def test_reference_langchain_time_weighted(benchmark, evidence, candidates):
    module = pytest.importorskip(
        "langchain_classic.retrievers.time_weighted_retriever", reason=PEERS
    )
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    benchmark.extra_info |= {"reference": True, "LangChain": version("langchain-classic")}
    retriever = module.TimeWeightedVectorStoreRetriever(
        vectorstore=InMemoryVectorStore(embedding=None), other_score_keys=["importance"],
        decay_rate=LOST_AN_HOUR,
    )  # fmt: skip
    now = datetime(2026, 1, 1)  # noqa: DTZ001 - as theirs
    documents = [
        Document("", metadata={"importance": importance,
                               "last_accessed_at": now - timedelta(seconds=age)})
        for importance, age in zip(evidence["salience"].tolist(), evidence["age_created"].tolist(),
                                   strict=True)
    ]  # fmt: skip
    similarities = evidence["cosine"].tolist()

    def score():
        return [
            retriever._get_combined_score(document, similarity, now)
            for document, similarity in zip(documents, similarities, strict=True)
        ]

    sums = np.array(benchmark.pedantic(score, rounds=10, warmup_rounds=1))
    np.testing.assert_allclose(sums / 3.0, ours(candidates, PROFILES["LangChain"]), atol=1e-9)


@pytest.mark.benchmark(group=group("LlamaIndex"))
def test_reference_llama_index_time_weighted(benchmark, evidence, candidates):
    module = pytest.importorskip("llama_index.core.postprocessor.node_recency", reason=PEERS)
    from llama_index.core.schema import NodeWithScore, TextNode

    benchmark.extra_info |= {"reference": True, "LlamaIndex": version("llama-index-core")}
    now = 1.75e9
    nodes = [
        NodeWithScore(
            node=TextNode(id_=str(n), text="", metadata={"__last_accessed__": now - age}),
            score=cosine,
        )
        for n, (age, cosine) in enumerate(
            zip(evidence["age_created"].tolist(), evidence["cosine"].tolist(), strict=True)
        )
    ]
    options = {"now": now, "time_access_refresh": False, "time_decay": LOST_AN_HOUR}
    scorer = module.TimeWeightedPostprocessor(top_k=1, **options)
    (best,) = benchmark.pedantic(
        scorer.postprocess_nodes, args=(nodes,), rounds=10, warmup_rounds=1
    )
    scores, first = our_best(candidates, PROFILES["LlamaIndex"])
    assert best.node.id_ == str(first)
    sums = {
        int(one.node.id_): one.score
        for one in module.TimeWeightedPostprocessor(top_k=N, **options).postprocess_nodes(nodes)
    }
    np.testing.assert_allclose([sums[n] / 2.0 for n in range(N)], scores, atol=1e-9)


@pytest.mark.parametrize(
    ("peer", "work"),
    [pytest.param(name, work, marks=pytest.mark.benchmark(group=group(name)), id=name)
     for name, work in (("CrewAI", ours), ("LangChain", ours), ("LlamaIndex", our_best))],
)  # fmt: skip
def test_score_from_evidence(benchmark, candidates, peer, work):
    benchmark.extra_info["target"] = ">= 30 x faster"
    found = benchmark.pedantic(work, args=(candidates, PROFILES[peer]), rounds=50, warmup_rounds=2)
    assert len(found[0] if work is our_best else found) == N

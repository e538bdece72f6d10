"""Scoring ten thousand candidates by similarity, recency and importance, beside others' scorers (P5).

Each scores what it is given in its own form: CrewAI its records, LangChain its documents, LlamaIndex
its nodes, we the columns of evidence as stores give them. Ours is CrewAI's formula (profile
``crewai``), from evidence to scores, and is held against CrewAI's own.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import numpy as np
import pytest

from rankblend.profiles import load_profile
from rankblend.recall import Candidates, EvidenceColumn
from rankblend.recall.derive import derive
from rankblend.relevance.composers import compose_table
from rankblend.relevance.scope import Scope
from rankblend.stores.protocol import Key

N = 10_000
HOUR = 3_600.0
PROFILE = load_profile("crewai")
PEERS = "needs benchmarks/peers/requirements.txt"


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


def ours(candidates):
    table = derive(PROFILE, candidates).table
    return compose_table(PROFILE.score, PROFILE.nodes, table, contributions=False).scores


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
    np.testing.assert_allclose(scores, ours(candidates), atol=1e-4)  # their clock goes on


@pytest.mark.benchmark(group=group("LangChain"))
def test_reference_langchain_time_weighted(benchmark, evidence):
    module = pytest.importorskip(
        "langchain_classic.retrievers.time_weighted_retriever", reason=PEERS
    )
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    benchmark.extra_info |= {"reference": True, "LangChain": version("langchain-classic")}
    retriever = module.TimeWeightedVectorStoreRetriever(
        vectorstore=InMemoryVectorStore(embedding=None), other_score_keys=["importance"]
    )
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

    assert len(benchmark.pedantic(score, rounds=10, warmup_rounds=1)) == N


@pytest.mark.benchmark(group=group("LlamaIndex"))
def test_reference_llama_index_time_weighted(benchmark, evidence):
    module = pytest.importorskip("llama_index.core.postprocessor.node_recency", reason=PEERS)
    from llama_index.core.schema import NodeWithScore, TextNode

    benchmark.extra_info |= {"reference": True, "LlamaIndex": version("llama-index-core")}
    now = 1.75e9
    nodes = [
        NodeWithScore(node=TextNode(text="", metadata={"__last_accessed__": now - age}), score=cosine)
        for age, cosine in zip(evidence["age_created"].tolist(), evidence["cosine"].tolist(),
                               strict=True)
    ]  # fmt: skip
    scorer = module.TimeWeightedPostprocessor(now=now, top_k=1, time_access_refresh=False)
    assert len(benchmark.pedantic(scorer.postprocess_nodes, args=(nodes,), rounds=10,
                                  warmup_rounds=1)) == 1  # fmt: skip


@pytest.mark.parametrize(
    "peer", [pytest.param(name, marks=pytest.mark.benchmark(group=group(name)), id=name)
             for name in ("CrewAI", "LangChain", "LlamaIndex")]
)  # fmt: skip
def test_score_from_evidence(benchmark, candidates, peer):
    benchmark.extra_info["target"] = ">= 30 x faster"
    scores = benchmark.pedantic(ours, args=(candidates,), rounds=50, warmup_rounds=2)
    assert len(scores) == N

"""A recall whose reranker was admitted, beside the same recall of a memory without one.

Both ask pools of 200 with the profile ``relevance-rerank``; the admission reads a ledger of evidence at
every recall, as in service.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

import rankblend as rb
from rankblend.rerank import (
    EvidenceAdmission,
    EvidenceLedger,
    ReleaseEvidence,
    RelevanceReranker,
    admission_request,
)

N, D, POOL, SCOPE = 20_000, 64, 200, "tenant:acme"
GROUP = f"recall with and without a reranker, {N:,} memories, pool {POOL}"


@pytest.fixture(scope="module")
def profile() -> rb.RankingProfile:
    loaded = rb.load_profile("relevance-rerank")
    return evolve(loaded, pool=evolve(loaded.pool, size=POOL))


@pytest.fixture(scope="module")
def admission(profile: rb.RankingProfile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    ledger = EvidenceLedger(tmp_path_factory.mktemp("ledger"))
    request, now = admission_request(profile), datetime.now(UTC)
    ledger.add(
        ReleaseEvidence(
            feature=request.feature, name=request.name, profile_hash=request.profile_hash,
            signal_schema_hash=request.signal_schema_hash,
            scoring_version=request.scoring_version, dataset="made up", dataset_hash="0" * 64,
            metric="nDCG@10", queries=100, clusters=100, effect=0.1, low=0.05, high=0.15, p=0.01,
            families=(), overhead=0.0, measured=now, expires=now + timedelta(days=1),
        )
    )  # fmt: skip
    return ledger.folder


def _memory(reranker: RelevanceReranker | None) -> rb.Memory:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(500)]
    memory = rb.Memory.open(
        ":memory:", embedder=lambda texts: rng.random((len(texts), D)), reranker=reranker
    )
    for start in range(0, N, 2_000):
        memory.remember_many(
            {"id": f"m{start + i}", "scope": SCOPE, "vector": vector, "confidence": 0.5,
             "text": " ".join(rng.choice(words, 12))}
            for i, vector in enumerate(rng.normal(size=(2_000, D)).astype(np.float32))
        )  # fmt: skip
    return memory


@pytest.fixture(scope="module")
def memories(admission: Path) -> Iterator[dict[str, rb.Memory]]:
    """Both are there before either is asked, so that they find the same caches."""
    reranker = RelevanceReranker(EvidenceAdmission(EvidenceLedger(admission)))
    with _memory(reranker) as reranked, _memory(None) as baseline:
        yield {"baseline": baseline, "reranked": reranked}


@pytest.mark.benchmark(group=GROUP)
@pytest.mark.parametrize("kind", ["baseline", "reranked"])
def test_recall(benchmark, memories, profile, kind):
    memory, reranked = memories[kind], kind == "reranked"
    if reranked:
        benchmark.extra_info["target"] = "<= 1.1 x"
    else:
        benchmark.extra_info["reference"] = True

    def recall() -> rb.Recall:
        return memory.recall("w1 w2 w3 w4", scope=SCOPE, profile=profile)

    result = benchmark.pedantic(recall, rounds=200, warmup_rounds=5)
    assert result.trace.reranking.startswith("relevance-rerank@1" if reranked else "baseline")

"""The failure reranking was made for: present on the baseline, gone with it, back on withdrawal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.rerank import EvidenceAdmission, RelevanceReranker, StaticAdmission

NOW = datetime(2026, 6, 1, tzinfo=UTC)
KINDS = ("semantic", "linked", "lexical")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_anchor_is_outside_the_twenty_on_the_baseline_and_first_when_reranked(
    kind, seed, world, opened, ask, ledger, evidence_for, profile
):
    reranker = RelevanceReranker(EvidenceAdmission(ledger, clock=lambda: NOW))
    memory = opened(world(kind, seed), reranker=reranker)
    before = ask(memory)
    assert len(before) == 20
    assert "anchor" not in before.ids
    assert ask(memory, top=100).ids.index("anchor") + 1 >= 58
    assert before.trace.reranking == "baseline: no evidence for this profile and version"

    evidence_id = ledger.add(evidence_for(profile))
    reranked = ask(memory)
    assert reranked.ids[0] == "anchor"
    assert len(reranked) == 20
    assert (reranked.trace.reranking, reranked.trace.evidence) == (
        "relevance-rerank@1",
        evidence_id,
    )

    ledger.withdraw(evidence_id, reason="a regression was found")
    restored = ask(memory)
    assert restored.trace.reranking == ("baseline: evidence withdrawn: a regression was found")
    assert _without_trace(restored) == _without_trace(before)


@pytest.mark.parametrize("kind", KINDS)
def test_standing_of_every_memory_is_the_same_before_and_after(kind, world, opened, ask):
    memories = [
        opened(world(kind, 7), reranker=RelevanceReranker(StaticAdmission(admitted)))
        for admitted in (False, True)
    ]
    served, reranked = (ask(memory, top=100) for memory in memories)
    assert served.ids != reranked.ids
    standing = {match.memory.id: match.memory for match in served}
    assert {match.memory.id: match.memory for match in reranked} == standing


def test_anchor_a_quarter_above_every_other_signal_is_in_the_first_three(world, opened, ask):
    """The three-source case: whatever the metadata, a lead of .25 in the strongest signal holds."""
    rng = np.random.default_rng(3)
    for seed in range(10):
        items = world("semantic", seed)
        items[0]["vector"] = _rescaled(items[0]["vector"], 0.7)
        for item in items[1:]:
            item["vector"] = _rescaled(item["vector"], float(rng.uniform(0.1, 0.45)))
        memory = opened(items, reranker=RelevanceReranker(StaticAdmission(True)))
        assert "anchor" in ask(memory).ids[:3]
        memory.close()


@pytest.mark.slow
def test_every_draw_of_the_stated_distribution_fails_before_and_passes_after(world, opened, ask):
    for kind in KINDS:
        for seed in range(100, 150):
            memory = opened(world(kind, seed), reranker=RelevanceReranker(StaticAdmission(True)))
            assert ask(memory).ids[0] == "anchor"
            baseline = ask(memory, profile="relevance-baseline", top=100)
            assert baseline.ids.index("anchor") + 1 >= 58
            memory.close()


def _rescaled(vector: np.ndarray, cosine: float) -> np.ndarray:
    rest = vector.astype(float)
    rest[0] = 0.0
    rest *= np.sqrt(1 - cosine**2) / np.linalg.norm(rest)
    rest[0] = cosine
    return rest.astype(np.float32)


def _without_trace(recall: rb.Recall) -> dict[str, Any]:
    return {key: value for key, value in recall.plain().items() if key != "trace"}

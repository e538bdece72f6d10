"""The stated failure: one flagged, relevant memory among eighty better kept neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.rerank import EvidenceLedger, ReleaseEvidence, admission_request

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SCOPE = "tenant:acme"
WORDS = [f"term{number}" for number in range(10)]
QUERY = " ".join([*WORDS, "zephyr"])
DIMENSION = 16
NEIGHBOURS = 80


def question_vector() -> np.ndarray:
    return np.eye(DIMENSION, dtype=np.float32)[0]


def vector_at(cosine: float, rng: np.random.Generator) -> np.ndarray:
    """A unit vector with this cosine to the question."""
    rest = rng.normal(size=DIMENSION)
    rest[0] = 0.0
    rest *= np.sqrt(1.0 - cosine * cosine) / np.linalg.norm(rest)
    rest[0] = cosine
    return rest.astype(np.float32)


def anchor(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """One relevance signal well above zero, poor standing (metadata ≤ .3)."""
    words = WORDS[:9] if kind == "lexical" else ["unrelated", "matter"]
    return {
        "id": "anchor",
        "scope": SCOPE,
        "text": " ".join(words),
        "links": ["zephyr"] if kind == "linked" else [],
        "vector": vector_at(0.8 if kind == "semantic" else 0.0, rng),
        "confidence": float(rng.uniform(0.0, 0.3)),
        "review": "flagged",
        "maturity": "provisional",
        "certainty": "inferred",
        "at": NOW - timedelta(days=300),
    }


def neighbour(number: int, kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """A newer, confirmed memory (metadata ≥ .9) that says a little about everything."""
    most = 2 if kind == "linked" else 4
    words = rng.choice(WORDS, size=int(rng.integers(1, most + 1)), replace=False)
    return {
        "id": f"n{number:02d}",
        "scope": SCOPE,
        "text": " ".join([*words, f"filler{number}"]),
        "vector": vector_at(float(rng.uniform(0.01, 0.25 if kind == "linked" else 0.4)), rng),
        "confidence": float(rng.uniform(0.95, 1.0)),
        "review": "confirmed",
        "maturity": "settled",
        "certainty": "stated",
        "uses": int(rng.integers(50, 100)),
        "at": NOW - timedelta(days=float(rng.uniform(0, 30))),
    }


@pytest.fixture
def world() -> Callable[[str, int], list[dict[str, Any]]]:
    """(kind of signal, seed) → the anchor and its neighbours."""

    def items(kind: str, seed: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng(seed)
        return [anchor(kind, rng), *(neighbour(n, kind, rng) for n in range(NEIGHBOURS))]

    return items


@pytest.fixture
def ask() -> Callable[..., rb.Recall]:
    """Recalls the question the worlds are about."""

    def recall(memory: rb.Memory, **more: Any) -> rb.Recall:
        return memory.recall(QUERY, scope=SCOPE, **{"profile": "relevance-rerank", **more})

    return recall


def embed_question(texts: list[str]) -> np.ndarray:
    return np.tile(question_vector(), (len(texts), 1))


@pytest.fixture
def evidence_for() -> Callable[..., ReleaseEvidence]:
    """Good evidence for a profile, with changes."""
    return _evidence


def _evidence(profile: rb.RankingProfile, **changes: Any) -> ReleaseEvidence:
    request = admission_request(profile)
    values: dict[str, Any] = {
        "feature": request.feature,
        "name": request.name,
        "profile_hash": request.profile_hash,
        "signal_schema_hash": request.signal_schema_hash,
        "scoring_version": request.scoring_version,
        "dataset": "made-up",
        "dataset_hash": "0" * 64,
        "metric": "nDCG@10",
        "queries": 40,
        "clusters": 8,
        "effect": 0.05,
        "low": 0.02,
        "high": 0.08,
        "p": 0.01,
        "families": (),
        "overhead": 0.04,
        "measured": NOW - timedelta(days=1),
        "expires": NOW + timedelta(days=30),
    }
    return ReleaseEvidence(**{**values, **changes})


@pytest.fixture
def profile() -> rb.RankingProfile:
    return rb.load_profile("relevance-rerank")


@pytest.fixture
def ledger(tmp_path: Path) -> EvidenceLedger:
    return EvidenceLedger(tmp_path / "ledger")


@pytest.fixture
def opened() -> Iterator[Callable[..., rb.Memory]]:
    """Opens memories over given items; closes them all."""
    memories: list[rb.Memory] = []

    def open_memory(items: list[dict[str, Any]], **options: Any) -> rb.Memory:
        memory = rb.Memory.open(":memory:", embedder=embed_question, clock=lambda: NOW, **options)
        memories.append(memory)
        memory.remember_many(items)
        return memory

    yield open_memory
    for memory in memories:
        memory.close()

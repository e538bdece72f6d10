"""A recall over all stores, beside the raw calls of the engines it makes."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

import rankblend as rb

N, D = 20_000, 128
SCOPE = "tenant:acme"


@pytest.fixture(scope="module")
def memory():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2_000)]
    with rb.Memory.open(":memory:", embedder=lambda texts: rng.random((len(texts), D))) as memory:
        for start in range(0, N, 2_000):
            vectors = rng.normal(size=(2_000, D)).astype(np.float32)
            memory.remember_many(
                {"id": f"m{start + i}", "scope": SCOPE, "vector": vector,
                 "text": " ".join(rng.choice(words, 12))}
                for i, vector in enumerate(vectors)
            )  # fmt: skip
        yield memory


@pytest.mark.benchmark(group=f"recall, {N:,} memories")
def test_reference_exact_search(benchmark):
    rng = np.random.default_rng(0)
    index = faiss.IndexFlatIP(D)
    index.add(rng.normal(size=(N, D)).astype(np.float32))
    query = rng.normal(size=(1, D)).astype(np.float32)
    benchmark(index.search, query, 100)


@pytest.mark.benchmark(group=f"recall, {N:,} memories")
def test_recall_over_all_stores(benchmark, memory):
    benchmark(memory.recall, "w1 w2 w3", scope=SCOPE, top=20)

"""A recall over all stores, beside the raw calls of the engines it makes (P1).

100,000 memories of 384 dimensions in a chain of scopes: the root holds .1 % of them, each further
level makes it 1, 10 and 100 %. A question asked at a level sees that level and those above.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import rankblend as rb
from raw_calls import RawCalls

N, D, TOP, SIZE = 100_000, 384, 20, 100
WORDS, ENTITIES, LENGTH = 20_000, 5_000, 15
SCOPES = {
    "0.1 %": "tenant:acme",
    "1 %": "tenant:acme/user:7",
    "10 %": "tenant:acme/user:7/project:3",
    "100 %": "tenant:acme/user:7/project:3/session:9",
}
SHARES = (0.001, 0.009, 0.09, 0.9)
QUESTION = "what about word12 word35 word800 for entity 17 word2000 word77"
TARGET = "<= 1.5 x + 1 ms"


@pytest.fixture(scope="module")
def vector():
    found = np.random.default_rng(1).normal(size=D).astype(np.float32)
    return found / np.linalg.norm(found)


@pytest.fixture(scope="module")
def memory(vector, tmp_path_factory):
    rng = np.random.default_rng(0)
    places = rng.permutation(np.repeat(np.arange(4), np.round(np.array(SHARES) * N).astype(int)))
    scopes, often = list(SCOPES.values()), 1.0 / np.arange(1, WORDS + 1)
    path = tmp_path_factory.mktemp("recall") / "memories.db"
    with rb.Memory.open(
        path,
        embedder=rb.embedders.from_callable(
            lambda texts: np.repeat(vector[None], len(texts), 0), name="one vector"
        ),
    ) as made:
        for start in range(0, N, 5_000):
            vectors = rng.normal(size=(5_000, D)).astype(np.float32)
            words = rng.choice(WORDS, size=(5_000, LENGTH), p=often / often.sum())
            entities = rng.zipf(1.3, size=(5_000, 2)) % ENTITIES
            made.remember_many(
                {
                    "id": f"m{start + i:06d}",
                    "scope": scopes[places[start + i]],
                    "text": " ".join(f"word{word}" for word in words[i]),
                    "vector": vectors[i],
                    "links": [f"Entity {entity}" for entity in set(entities[i].tolist())],
                    "salience": float(rng.random()) if i % 2 else None,
                }
                for i in range(5_000)
            )
    with rb.Memory.open(
        path,
        embedder=rb.embedders.from_callable(
            lambda texts: np.repeat(vector[None], len(texts), 0), name="one vector"
        ),
    ) as made:
        yield made


@pytest.fixture(params=list(SCOPES))
def share(request):
    return request.param


def test_reference_raw_calls(benchmark, memory, vector, share):
    """FAISS or a gathered scan, BM25 over slices of the postings, the walk, columns, SQLite."""
    benchmark.group = f"recall, {N:,} memories × {D}, {share} of them visible"
    benchmark.extra_info["reference"] = True
    calls = RawCalls(memory, QUESTION, vector, SCOPES[share], top=TOP, size=SIZE)
    benchmark.pedantic(calls, rounds=300, warmup_rounds=5)
    benchmark.extra_info |= {f"{name}, ms": _least(call) for name, call in calls.parts.items()}


def test_recall(benchmark, memory, share):
    """`Memory.recall` with the default profile, embedding included (a constant)."""
    benchmark.group = f"recall, {N:,} memories × {D}, {share} of them visible"
    benchmark.extra_info["target"] = TARGET
    keywords = {"scope": SCOPES[share], "top": TOP}
    found = benchmark.pedantic(
        memory.recall, args=(QUESTION,), kwargs=keywords, rounds=300, warmup_rounds=5
    )
    benchmark.extra_info["pool"] = found.trace.pool


def _least(call):
    taken = []
    for _ in range(30):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return round(min(taken) * 1e3, 3)

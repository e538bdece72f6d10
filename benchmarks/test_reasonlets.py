"""Recall of procedures, 10,000 active in one scope, beside the search it makes."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise

import faiss
import numpy as np
import pytest

from rankblend.reasonlets import (
    Edge,
    Graph,
    Metrics,
    Node,
    Outcome,
    Provenance,
    Reasonlet,
    ReasonletMemory,
    SqliteReasonletStore,
    Status,
)
from rankblend.relevance import Scope
from rankblend.stores.procedures import Counts, Entry, Run, StoredRun
from rankblend.times import next_id

N, D, POOL = 10_000, 384, 20
SCOPE = Scope.parse("tenant:acme")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
STEPS = ("look up", "check policy", "decide", "refund", "answer")
GRAPH = Graph(
    [Node(step, "tool", tool=step, properties={"mnemosyne.arguments": ["id"]}) for step in STEPS],
    [Edge(*ends) for ends in pairwise(STEPS)],
)
AGENT = Provenance("agent")
ROUNDS_FOR = 4.0  # seconds: the least of some 2,000 calls varies by 5 %, of 600 by 15
GROUP = f"recall of procedures, {N:,} active × {D}, top 3"


def entries(vectors):
    identifier = None
    for at, vector in enumerate(vectors):
        identifier = next_id(NOW.timestamp(), identifier)
        made = Reasonlet(
            identifier, SCOPE, f"question {at}", GRAPH, "unspecified", f"name {at}", "1.0",
            identifier, None, AGENT, Status.ACTIVE, NOW, Metrics(0, 0, 0, 0, NOW),
        )  # fmt: skip
        runs = tuple(
            StoredRun(next_id(NOW.timestamp()), Run(NOW.timestamp(), Outcome(run > 0), AGENT))
            for run in range(at % 3 + 1)
        )
        yield Entry(made, vector, Counts(), None, None, runs)


class OneVector:
    """Knows the answer; it is not what is measured, so it runs in no thread of its own."""

    name = "one vector"

    def __init__(self, row):
        self.row, self.dimension = row, row.shape[1]

    async def __call__(self, texts):
        return self.row


@pytest.fixture(scope="module")
def vectors():
    # A common direction, so that most are similar enough to pass the floor.
    rows = np.random.default_rng(0).normal(size=(N, D)) + 1.5
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def asked(vectors):
    return vectors[:1] + vectors[1:2]


@pytest.fixture(scope="module", params=["memory", "file"])
def recall(request, vectors, asked, tmp_path_factory):
    """Recalls on one loop, as a server would make them; embedding is the caller's."""
    path = ":memory:"
    if request.param == "file":
        path = tmp_path_factory.mktemp("reasonlets") / "r.db"
    # Not asyncio.Runner: ending a run it writes out the repr of the result, which takes longer.
    with closing(asyncio.new_event_loop()) as loop:
        run = loop.run_until_complete
        store = SqliteReasonletStore.open(path)
        run(store.load(list(entries(vectors))))

        memory = ReasonletMemory(OneVector(asked), store, clock=lambda: NOW)
        found = run(memory.recall("question", scope=SCOPE))
        assert len(found) == 3
        yield lambda: run(memory.recall("question", scope=SCOPE))
        run(memory.aclose())


@pytest.mark.benchmark(group=GROUP, max_time=ROUNDS_FOR)
def test_reference_exact_search(benchmark, vectors, asked):
    """An exact search of the rows of one scope by FAISS, with a few to spare at the boundary."""
    benchmark.extra_info["reference"] = True
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        benchmark(lambda: faiss.knn(asked, vectors, POOL + 25, faiss.METRIC_INNER_PRODUCT))
    finally:
        faiss.omp_set_num_threads(threads)


@pytest.mark.benchmark(group=GROUP, max_time=ROUNDS_FOR)
def test_recall(benchmark, recall):
    benchmark.extra_info["target"] = "<= 2 x + 1 ms"
    benchmark(recall)

"""Proposals of the vector store at ever narrower scopes, beside an exact search (P6).

The reference is numpy on the visible rows alone, copied out beforehand: one product and a partition.
Every point proposes what the exact search finds, and the less is visible, the less it takes.
``RANKBLEND_LARGE=1`` adds a million memories (5 GB).
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from rankblend.relevance import Scope
from rankblend.stores import Key, Record, StoreQuery
from rankblend.stores.vectors import VectorStore

D, TOP, LIMIT, QUERIES = 384, 20, 100, 20
SCOPES = {
    "0.1 %": "tenant:acme",
    "1 %": "tenant:acme/user:7",
    "10 %": "tenant:acme/user:7/project:3",
    "100 %": "tenant:acme/user:7/project:3/session:9",
}
SHARES = (0.001, 0.009, 0.09, 0.9)
SIZES = [10_000, 100_000] + ([1_000_000] if os.environ.get("RANKBLEND_LARGE") else [])


class Held:
    """A store of n memories, their vectors, and the level each belongs to."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        scopes = [Scope.parse(text) for text in SCOPES.values()]
        self.levels = rng.permutation(
            np.repeat(np.arange(4), np.round(np.array(SHARES) * n).astype(int))
        )
        self.vectors = np.empty((n, D), dtype=np.float32)
        self.store = VectorStore()
        records = []
        for start in range(0, n, 10_000):
            rows = rng.normal(size=(min(10_000, n - start), D)).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            self.vectors[start : start + len(rows)] = rows
            records += [
                Record(Key(scopes[self.levels[at]], f"m{at:07d}"), "", serial=at, vector=row)
                for at, row in enumerate(rows, start)
            ]
        self.store.add(records)
        queries = rng.normal(size=(QUERIES, D)).astype(np.float32)
        self.queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)

    def visible(self, share):
        """Numbers of the memories a level sees."""
        return np.flatnonzero(self.levels <= list(SCOPES).index(share))


@pytest.fixture(scope="module", params=SIZES, ids=lambda n: f"{n:,}")
def held(request):
    made = Held(request.param)
    yield made
    made.store.close()


@pytest.fixture(params=list(SCOPES))
def share(request):
    return request.param


def exact(rows, query):
    """Positions of the best, by numpy alone."""
    scores = rows @ query
    best = (
        np.argpartition(scores, -LIMIT)[-LIMIT:] if len(scores) > LIMIT else np.arange(len(scores))
    )
    return best[np.argsort(-scores[best])]


def test_reference_exact_search(benchmark, held, share):
    """One product with the visible rows, and a partition."""
    benchmark.group = f"nearest of {len(held.vectors):,} × {D}, {share} visible"
    benchmark.extra_info["reference"] = True
    rows = np.ascontiguousarray(held.vectors[held.visible(share)])
    benchmark.pedantic(exact, args=(rows, held.queries[0]), rounds=20, warmup_rounds=2)


def test_propose(benchmark, held, share):
    """`VectorStore.propose`, exact, with ids; recall@20 over 20 queries."""
    benchmark.group = f"nearest of {len(held.vectors):,} × {D}, {share} visible"
    benchmark.extra_info["target"] = "recall@20 >= 0.99"
    scope = (Scope.parse(SCOPES[share]),)
    visible = held.visible(share)
    found = wanted = 0
    scores = held.vectors[visible] @ held.queries.T
    for vector, column in zip(held.queries, scores.T, strict=True):
        best = {f"m{at:07d}" for at in visible[np.argsort(-column)[:TOP]].tolist()}
        found += len(best & set(held.store.propose(StoreQuery("", scope, vector=vector), TOP)))
        wanted += len(best)
    benchmark.extra_info["recall@20"] = found / wanted
    query = StoreQuery("", scope, vector=held.queries[0])
    benchmark.pedantic(held.store.propose, args=(query, LIMIT), rounds=20, warmup_rounds=2)

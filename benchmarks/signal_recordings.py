"""Recordings made of random signals, for benchmarks of replay: no memory, no stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.experiment.datasets import JudgedQuery
from rankblend.experiment.recording import Manifest, RecordedStore, Recording
from rankblend.experiment.recording._arrow import Unfinished, rows_to_batch
from rankblend.experiment.recording._gather import MemoryRow, Row
from rankblend.profiles import Pool, RankingProfile, SignalRecipe
from rankblend.recall import StoredMemory
from rankblend.relevance import Node, Scope
from rankblend.stores import Key, Reason, Record

SIGNALS = ("salience", "confidence", "review", "maturity", "certainty")
QUERIES, CANDIDATES, PRESENT = 1_000, 150, 100
SCOPE = Scope.parse("tenant:bench")


@frozen(eq=False)
class World:
    """The same numbers as arrays.

    Attributes:
        signals: float64, shape (q, n, s), NaN absent: each signal of each query for 100 of 150.
        ids: Ids of the n candidates of every query.
        grades: Per query, id → grade: 10 of the candidates, and up to 2 that no store found.
    """

    signals: NDArray[np.float64]
    ids: tuple[str, ...]
    grades: tuple[dict[str, float], ...]


def make_world(queries: int = QUERIES) -> World:
    rng = np.random.default_rng(20261130)
    signals = rng.random((queries, CANDIDATES, len(SIGNALS)))
    order = np.argsort(rng.random(signals.shape), axis=1)
    signals[order >= PRESENT] = np.nan
    ids = tuple(f"d{number:03d}" for number in range(CANDIDATES))
    grades = []
    for _ in range(queries):
        judged = rng.choice(CANDIDATES, 10, replace=False)
        found = {ids[at]: float(rng.integers(1, 4)) for at in judged}
        found |= {f"never{n}": 1.0 for n in range(rng.integers(0, 3))}
        grades.append(found)
    return World(signals, ids, tuple(grades))


def make_recording(world: World, path: Path) -> Recording:
    queries = len(world.signals)
    store = RecordedStore("catalog", "CatalogStore", SIGNALS, SIGNALS)
    manifest = Manifest(
        dataset="random", licence="none", dataset_hash="", queries=queries, excluded={},
        memories=CANDIDATES, embedder=None, statistics="root", reach="ancestors", stores=(store,),
        seedings=(("catalog",),), depth=CANDIDATES, levels=1, now=0.0, arguments="{}",
        rankblend="0",
    )  # fmt: skip
    memories = tuple(
        MemoryRow(Key(SCOPE, name), "semantic", number, 1, np.empty(0, np.float32))
        for number, name in enumerate(world.ids)
    )
    everything = np.arange(CANDIDATES, dtype=np.int32)
    unfinished = Unfinished(path)
    unfinished.begin(manifest)
    for number, start in enumerate(range(0, queries, 100)):
        rows = []
        for query in range(start, min(start + 100, queries)):
            columns = {f"catalog.{name}": world.signals[query, :, at]
                       for at, name in enumerate(SIGNALS)}  # fmt: skip
            rows.append(
                Row(
                    JudgedQuery(f"q{query}", "words", SCOPE, world.grades[query]), 0.0, memories,
                    np.zeros(CANDIDATES, np.int32), np.empty(0, np.int32),
                    {"proposed:catalog": everything, "proposed:catalog@0": everything},
                    columns,
                    {name: np.where(np.isnan(column), Reason.NOT_APPLICABLE, Reason.PRESENT)
                     .astype(np.int8) for name, column in columns.items()},
                )
            )  # fmt: skip
        unfinished.put(number, rows_to_batch(rows, _stored))
    unfinished.finish(manifest)
    return Recording.open(path)


def make_profiles(weights: NDArray[np.float64]) -> dict[str, RankingProfile]:
    """One profile a row of weights, shape (k, s)."""
    signals = {name: SignalRecipe(name, curve="identity") for name in SIGNALS}
    return {
        f"w{number}": RankingProfile(
            "random", Node("weighted_mean", dict(zip(SIGNALS, row.tolist(), strict=True))),
            signals=signals, pool=Pool(CANDIDATES, 500),
        )
        for number, row in enumerate(weights)
    }  # fmt: skip


def make_weights(k: int) -> NDArray[np.float64]:
    return np.random.default_rng(7).dirichlet(np.ones(len(SIGNALS)), k)


def _stored(key: Key) -> StoredMemory:
    return StoredMemory.of(Record(key, ""))

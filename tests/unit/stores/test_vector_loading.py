"""Filling a vector store all at once gives what adding the same memories one by one gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.relevance import Scope
from rankblend.stores import Key, Record, StoreQuery
from rankblend.stores._rows import ScopedRows
from rankblend.stores.vectors import VectorStore

TENANT = Scope.parse("tenant:a")
USER = TENANT / "user:7"
Room = Callable[[int], NDArray[np.float32]]


def records(count: int, rng: np.random.Generator, *, without: int = 0) -> list[Record]:
    """Some with vectors that are no unit vectors; of each ``without`` memories one has none."""
    return [
        Record(
            Key(USER if n % 3 else TENANT, f"m{n}"),
            "",
            n,
            vector=None
            if without and n % without == 1
            else rng.normal(size=5).astype(np.float32) * (1 + n % 4),
        )
        for n in range(count)
    ]


def load(store: VectorStore, held: list[Record]) -> None:
    ordered = sorted(held, key=lambda one: one.key)
    rows = ScopedRows()
    rows.add([one.key for one in ordered], [one.serial for one in ordered])
    vectors = [one.vector for one in ordered]

    def read(room: Room) -> NDArray[np.bool_]:
        filled = np.array([vector is not None for vector in vectors], dtype=np.bool_)
        if filled.any():
            matrix = room(next(len(v) for v in vectors if v is not None))
            matrix[filled] = [vector for vector in vectors if vector is not None]
        return filled

    store.load(rows, read)


def answers(store: VectorStore, rng: np.random.Generator) -> list[object]:
    found: list[object] = [len(store), store.dimension]
    for scope in (TENANT, USER):
        query = StoreQuery("", [scope], vector=rng.normal(size=5).astype(np.float32))
        proposed = store.propose(query, 20)
        found += [list(proposed), store.observe(query, proposed).columns["cosine"].tolist()]
    return found


@pytest.mark.parametrize("count", [0, 1, 7, 3000])
@pytest.mark.parametrize("without", [0, 2, 5], ids=["all", "half", "most"])
def test_load_when_then_asked_and_written_then_as_if_added(
    rng: np.random.Generator, count: int, without: int
) -> None:
    held = records(count, rng, without=without)
    added, loaded = VectorStore(), VectorStore()
    added.add(held)
    load(loaded, held)
    for _ in range(2):
        assert answers(loaded, np.random.default_rng(3)) == answers(added, np.random.default_rng(3))
        for store in (added, loaded):
            store.remove([one.key for one in held[::4]])
            store.add(records(9, np.random.default_rng(5)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_load_when_a_vector_cannot_be_compared_then_refused_and_nothing_changes(
    rng: np.random.Generator, bad: float
) -> None:
    store = VectorStore()
    load(store, records(3, rng))
    before = answers(store, np.random.default_rng(3))
    spoilt = records(600, rng)
    spoilt[400] = Record(Key(TENANT, "spoilt"), "", 400, vector=np.full(5, bad, np.float32))
    with pytest.raises(InvalidArrayError, match="spoilt"):
        load(store, spoilt)
    assert answers(store, np.random.default_rng(3)) == before


def test_load_when_the_store_is_of_another_dimension_then_refused(rng: np.random.Generator) -> None:
    store = VectorStore(4)
    with pytest.raises(InvalidArrayError, match="expected 4 numbers"):
        load(store, records(3, rng))
    assert (len(store), store.dimension) == (0, 4)


def test_load_when_nothing_has_a_vector_then_the_dimension_stays_open(
    rng: np.random.Generator,
) -> None:
    store = VectorStore()
    load(store, [Record(Key(TENANT, "a"), "", 0)])
    assert (len(store), store.dimension) == (1, None)
    store.add(records(2, rng))
    assert store.dimension == 5

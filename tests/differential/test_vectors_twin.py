"""VectorStore against a full search, record by record, at sizes where every fast path is taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from attrs import evolve

from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Record, StoreQuery
from rankblend.stores._scopes import RowBlocks
from rankblend.stores.vectors import VectorStore
from rankblend.stores.vectors import _arena as arenas
from rankblend.stores.vectors._arena import VectorArena, best_rows

TENANT = Scope.parse("tenant:acme")
USERS = [TENANT / f"user:{number}" for number in range(4)]
SESSIONS = [user / f"session:{number}" for user in USERS for number in range(5)]
PLACES = [TENANT, *USERS, *SESSIONS, Scope.parse("tenant:acme-corp/user:1")]


def unit(vector) -> np.ndarray:
    exact = np.asarray(vector, dtype=np.float32).astype(np.float64)
    return (exact / np.sqrt((exact**2).sum())).astype(np.float32)


def twin_propose(
    records: Sequence[Record], query: StoreQuery, limit: int, level: int | None = None
) -> list[str]:
    """Every record scored by itself."""
    nearest: dict[str, Record] = {}
    for one in sorted(
        filter(query.admits, records),
        key=lambda one: (query.rank_of_scope(one.scope), one.scope.path),
    ):
        nearest.setdefault(one.id, one)
    towards = unit(query.vector).astype(np.float64)
    scored = []
    for one in nearest.values():
        if one.vector is not None and level in (None, query.distance(one.scope)):
            cosine = float(np.dot(unit(one.vector).astype(np.float64), towards))
            scored.append((-max(min(cosine, 1.0), -1.0), one.id))
    return [identifier for _, identifier in sorted(scored)[:limit]]


def made(
    rng: np.random.Generator, count: int, dimension: int, *, places=PLACES, bare: float = 0.0
) -> list[Record]:
    """Clustered vectors, a tenth of them exact copies of another, some ids at several scopes.

    A share ``bare`` of the memories has no vector.
    """
    centres = rng.standard_normal((20, dimension))
    vectors = centres[rng.integers(0, 20, count)] + 0.4 * rng.standard_normal((count, dimension))
    copies = rng.integers(0, count, count // 10)
    vectors[copies] = vectors[rng.integers(0, count, len(copies))]
    records, keys = [], set()
    for serial, vector in enumerate(vectors.astype(np.float32)):
        number = serial if rng.random() < 0.9 else int(rng.integers(0, count))
        key = Key(places[int(rng.integers(0, len(places)))], f"m{number:05}")
        if key not in keys:
            keys.add(key)
            given = None if rng.random() < bare else vector
            records.append(Record(key, "", serial, vector=given))
    return records


@pytest.fixture(scope="module", params=[0.0, 0.2, 0.9])
def records(request) -> list[Record]:
    return made(np.random.default_rng(7), 6000, 12, bare=request.param)


@pytest.fixture(scope="module")
def vectors(records) -> list[np.ndarray]:
    return [one.vector for one in records if one.vector is not None]


@pytest.fixture(scope="module")
def store(records) -> VectorStore:
    """Half of it sorted, the other half added in small batches, with removals in between."""
    store = VectorStore()
    store.add(records[:3000])
    for start in range(3000, 6000, 500):
        batch = records[start : start + 500]
        store.add(batch)
        store.remove([one.key for one in batch[:40]])
        store.add([evolve(one, vector=None) for one in batch[20:60]])
        store.add(batch[:60])
    assert 0 < store._rows.sorted_rows < store._rows.size
    assert not store._rows.alive.all()
    return store


@pytest.mark.parametrize("admitted", [None, 0.97, 0.5, 0.1])
@pytest.mark.parametrize("reach", list(Reach))
def test_proposals_of_a_store_with_any_history_equal_a_full_search(
    store, records, vectors, rng, admitted, reach
):
    mask = None if admitted is None else rng.random(6000) < admitted
    queries = []
    for scopes in ([TENANT], [SESSIONS[3]], [USERS[1], USERS[0]], [SESSIONS[7], TENANT]):
        vector = vectors[int(rng.integers(0, len(vectors) // 2))]
        queries.append(StoreQuery("", scopes, vector=vector, reach=reach, admitted=mask))
    for level, limit in ((None, 10), (None, 150), (0, 25), (1, 25)):
        expected = [twin_propose(records, query, limit, level) for query in queries]
        assert [store.propose(query, limit, level=level) for query in queries] == expected
        assert store.propose_many(queries, limit, level=level) == expected


def test_proposals_do_not_depend_on_the_order_of_writing(store, records, vectors, rng):
    shuffled = VectorStore()
    order = rng.permutation(len(records))
    for start in range(0, len(order), 700):
        shuffled.add([records[at] for at in order[start : start + 700]])
    for at in range(5):
        query = StoreQuery("", [SESSIONS[at]], vector=vectors[at])
        assert shuffled.propose(query, 100) == store.propose(query, 100)


@pytest.fixture(autouse=True, params=[64, 10_240])
def multiplied(request, monkeypatch) -> None:
    """Up to how many rows a range is multiplied for one question, longer ones being scanned."""
    monkeypatch.setattr(arenas, "_MULTIPLIED_ROWS", request.param)


@pytest.fixture(scope="module")
def flat() -> tuple[VectorArena, np.ndarray]:
    """12,000 unit vectors; the last 2,000 equal each other."""
    rng = np.random.default_rng(11)
    vectors = rng.standard_normal((12_000, 24))
    vectors[10_000:] = vectors[0]
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    arena = VectorArena(24)
    arena.room(len(vectors))[:] = vectors
    return arena, vectors


def blocks_without(excluded, ranges, tail=()) -> RowBlocks:
    return RowBlocks(
        tuple(ranges), np.array(excluded, dtype=np.int64), np.array(tail, dtype=np.int64)
    )


def check(flat, queries, blocks, limit, *, most=None) -> None:
    """Every row at or above the exact boundary is among the candidates, and nothing hidden is."""
    arena, vectors = flat
    allowed = set(blocks.rows().tolist())
    together = best_rows(arena, queries, blocks, limit)
    alone = [best_rows(arena, query[None], blocks, limit)[0] for query in queries]
    for query, rows in zip([*queries, *queries], [*together, *alone], strict=True):
        exact = np.minimum(vectors.astype(np.float64) @ query.astype(np.float64), 1.0)
        ranked = sorted(allowed, key=lambda row: -exact[row])
        boundary = exact[ranked[min(limit, len(ranked)) - 1]]
        needed = {row for row in allowed if exact[row] >= boundary - 1e-12}
        assert needed <= set(rows.tolist()) <= allowed
        assert len(set(rows.tolist())) == len(rows)
        if most is not None:
            assert len(rows) <= most


def test_candidates_of_clean_ranges_are_hardly_more_than_the_limit(flat):
    queries = flat[1][[5, 700, 9_999]]
    check(flat, queries, blocks_without([], [(0, 4000), (5000, 5040), (6000, 9000)]), 50, most=60)


def test_candidates_with_random_rows_excluded_are_complete(flat, rng):
    excluded = np.sort(rng.choice(9000, 3000, replace=False))
    check(flat, flat[1][[5, 700]], blocks_without(excluded, [(0, 9000)]), 50, most=60)


def test_candidates_with_exactly_the_best_rows_excluded_are_complete(flat):
    query = flat[1][3]
    nearest = np.argsort(-(flat[1][:9000] @ query))[:4000]
    blocks = blocks_without(np.sort(nearest), [(0, 9000)])
    check(flat, flat[1][[3, 4]], blocks, 50, most=60)


def test_candidates_where_few_of_many_rows_are_admitted_are_complete(flat, rng):
    excluded = np.sort(rng.choice(12_000, 9_500, replace=False))
    check(flat, flat[1][[5, 700]], blocks_without(excluded, [(0, 12_000)]), 50)
    excluded = np.sort(rng.choice(9_000, 8_500, replace=False))
    check(flat, flat[1][[5, 700]], blocks_without(excluded, [(0, 9_000)]), 50, most=60)


def test_candidates_where_two_thousand_rows_tie_at_the_boundary_are_all_there(flat):
    queries = flat[1][[0, 11_000, 17]]
    check(flat, queries, blocks_without([], [(0, 12_000)]), 50)
    check(flat, queries, blocks_without(np.arange(10_000, 12_000, 2), [(0, 12_000)]), 50)


def test_candidates_from_a_long_tail_are_complete(flat):
    queries = flat[1][[5, 9_500]]
    check(flat, queries, blocks_without([], [(0, 300)], np.arange(1000, 9_999, 3)), 50, most=60)
    check(flat, queries, blocks_without([], [(0, 300)], np.arange(1000, 9_999, 30)), 50, most=60)


def test_candidates_when_the_limit_takes_everything_are_everything(flat):
    blocks = blocks_without([7], [(0, 100)], [500])
    assert best_rows(flat[0], flat[1][:1], blocks, 200)[0].tolist() == blocks.rows().tolist()


def test_opposites_that_round_to_less_than_minus_one_tie_with_the_others():
    # Up to rounding these have unit length, so they are kept as they are; all cosines clip to −1.
    just_above, just_below = np.float32(1.0 + 2.0**-23), np.float32(1.0 - 2.0**-24)
    records = [
        Record(Key(TENANT, f"{name}{at:02}"), "", at, vector=np.array([-length], np.float32))
        for name, length, count in (("a", just_above, 3), ("b", just_below, 60))
        for at in range(count)
    ]
    store = VectorStore()
    store.add(records)
    query = StoreQuery("", [TENANT], vector=np.array([just_above], np.float32))
    assert store.propose(query, 4) == ["a00", "a01", "a02", "b00"]
    assert store.propose_many([query, query], 4) == [store.propose(query, 4)] * 2


def test_near_ties_below_float32_resolution_are_ordered_by_the_exact_cosine(rng):
    # The cosines differ by about 1e-8: less than float32 can tell, so its order is arbitrary.
    base = rng.standard_normal(384)
    records = [
        Record(
            Key(TENANT, f"m{at:04}"),
            "",
            at,
            vector=(base + 2e-6 * rng.standard_normal(384)).astype(np.float32),
        )
        for at in range(1500)
    ]
    store = VectorStore()
    store.add(records)
    for limit in (1, 5, 20, 60):
        query = StoreQuery("", [TENANT], vector=rng.standard_normal(384).astype(np.float32))
        assert store.propose(query, limit) == twin_propose(records, query, limit)


def test_a_large_batch_through_blas_answers_as_single_calls_and_puts_settings_back(rng):
    import faiss

    records = made(rng, 3000, 96, places=[TENANT])
    store = VectorStore()
    store.add(records)
    queries = [StoreQuery("", [TENANT], vector=one.vector) for one in records[:70]]
    before = (faiss.cvar.distance_compute_blas_threshold, faiss.omp_get_max_threads())
    assert store.propose_many(queries, 30) == [store.propose(query, 30) for query in queries]
    assert (faiss.cvar.distance_compute_blas_threshold, faiss.omp_get_max_threads()) == before

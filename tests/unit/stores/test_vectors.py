"""VectorStore: what it holds, refuses, proposes and observes."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidArrayError, StoreClosedError
from rankblend.relevance import Scope
from rankblend.stores import (
    Key,
    Reach,
    Reason,
    Record,
    Store,
    StoreQuery,
    SupportsBatch,
    SupportsWrite,
)
from rankblend.stores._rows import ScopedRows
from rankblend.stores.vectors import VectorStore
from rankblend.stores.vectors._arena import VectorArena

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
OTHER = Scope.parse("tenant:acme-corp")


def record(name: str, vector, *, scope: Scope = TENANT, serial: int = 0) -> Record:
    return Record(
        Key(scope, name),
        "",
        serial,
        vector=None if vector is None else np.array(vector, dtype=np.float32),
    )


def asking(vector, *, scope: Scope = TENANT, **more) -> StoreQuery:
    return StoreQuery(
        "",
        [scope],
        vector=None if vector is None else np.array(vector, dtype=np.float32),
        **more,
    )


@pytest.fixture
def store() -> VectorStore:
    """Three directions in the plane at the tenant, one at a user, one at another tenant."""
    store = VectorStore()
    store.add(
        [
            record("east", [2, 0]),
            record("north", [0, 3], serial=1),
            record("west", [-1, 0], serial=2),
            record("northeast", [5, 5], scope=USER, serial=3),
            record("secret", [1, 0], scope=OTHER, serial=4),
        ]
    )
    return store


def test_store_keeps_the_contract_of_stores(store):
    assert isinstance(store, Store)
    assert isinstance(store, SupportsWrite)
    assert isinstance(store, SupportsBatch)
    assert (store.name, store.emits, store.dimension, len(store)) == ("vectors", ("cosine",), 2, 5)


def test_importing_the_store_does_not_import_faiss():
    code = "import sys, rankblend.stores.vectors; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_propose_orders_by_cosine_and_sees_ancestors_only(store):
    assert store.propose(asking([1, 0.1]), 10) == ["east", "north", "west"]
    assert store.propose(asking([1, 0.1], scope=USER), 10) == ["east", "northeast", "north", "west"]
    assert store.propose(asking([1, 0.1], scope=OTHER / "user:1"), 10) == ["secret"]


def test_propose_with_reach_and_level_looks_where_it_is_told(store):
    below = asking([1, 0], reach=Reach.SUBTREE)
    assert store.propose(below, 2) == ["east", "northeast"]
    assert store.propose(asking([1, 0], scope=USER), 10, level=0) == ["northeast"]
    assert store.propose(asking([1, 0], scope=USER), 1, level=1) == ["east"]
    assert store.propose(asking([1, 0], scope=USER), 1, level=2) == []


def test_propose_applies_the_mask_before_the_limit(store):
    only_west = np.array([False, False, True])
    assert store.propose(asking([1, 0], admitted=only_west), 1) == ["west"]


def test_propose_resolves_equal_cosines_by_id():
    store = VectorStore()
    store.add([record(name, [1, 1]) for name in ("d", "b", "é", "a", "B")])
    assert store.propose(asking([1, 0]), 3) == ["B", "a", "b"]


def test_propose_when_one_id_is_visible_twice_takes_the_nearest(store):
    store.add([record("east", [0, 1], scope=USER)])
    query = asking([0, 1], scope=USER)
    assert store.propose(query, 2) == ["east", "north"]
    assert store.observe(query, ["east"]).columns["cosine"].tolist() == [1.0]
    assert store.observe(asking([0, 1]), ["east"]).columns["cosine"].tolist() == [0.0]


def test_propose_of_nothing_to_go_by_is_empty(store):
    assert store.propose(asking(None), 10) == []
    assert store.propose(asking([1, 0]), 0) == []
    assert store.propose(asking([1, 0], scope=Scope.parse("tenant:new")), 10) == []
    assert VectorStore().propose(asking([1, 0, 0]), 10) == []
    with pytest.raises(InvalidArgumentError, match="limit"):
        store.propose(asking([1, 0]), -1)


def test_observe_gives_the_cosine_and_the_same_reason_for_unknown_and_invisible(store):
    seen = store.observe(asking([3, 4]), ["west", "secret", "never", "north", "northeast"])
    # (3, 4) / 5 against (−1, 0), (0, 1): −3/5 and 4/5, up to the rounding of .6 and .8 in float32
    np.testing.assert_allclose(seen.columns["cosine"], [-0.6, np.nan, np.nan, 0.8, np.nan], 1e-7)
    unknown, present = Reason.UNKNOWN, Reason.PRESENT
    assert seen.reason("cosine").tolist() == [present, unknown, unknown, present, unknown]


def test_observe_without_a_query_vector_tells_only_what_is_held(store):
    seen = store.observe(asking(None), ["east", "never", "secret", "west"])
    assert np.isnan(seen.columns["cosine"]).all()
    absent, unknown = Reason.NOT_APPLICABLE, Reason.UNKNOWN
    assert seen.reason("cosine").tolist() == [absent, unknown, unknown, absent]


def test_observe_of_no_ids_and_of_an_empty_store(store):
    assert store.observe(asking([1, 0]), []).columns["cosine"].shape == (0,)
    seen = VectorStore().observe(asking([1, 0, 0]), ["a"])
    assert seen.reason("cosine").tolist() == [Reason.UNKNOWN]


def test_observe_of_one_memory_does_not_depend_on_the_others_asked(rng):
    store = VectorStore()
    store.add([record(f"{at:03}", rng.standard_normal(384)) for at in range(300)])
    query = asking(rng.standard_normal(384))
    ids = [f"{at:03}" for at in range(300)]
    together = store.observe(query, ids).columns["cosine"]
    alone = [store.observe(query, [identifier]).columns["cosine"][0] for identifier in ids]
    assert together.tolist() == alone


def test_a_cosine_never_leaves_its_range(rng):
    store = VectorStore()
    vectors = rng.standard_normal((200, 48)).astype(np.float32)
    store.add([record(f"{at:03}", vector) for at, vector in enumerate(vectors)])
    for at, vector in enumerate(vectors):
        for sign in (1.0, -1.0):
            cosine = store.observe(asking(sign * vector), [f"{at:03}"]).columns["cosine"][0]
            assert abs(cosine) <= 1.0
            assert cosine == pytest.approx(sign, abs=1e-6)


def test_batches_answer_exactly_as_single_calls(store, rng):
    queries = [
        asking(rng.standard_normal(2), scope=scope, admitted=mask)
        for scope in (TENANT, USER, OTHER)
        for mask in (None, np.array([True, False, True, True]))
        for _ in range(3)
    ]
    queries.append(asking(None))
    single = [store.propose(query, 2) for query in queries]
    assert store.propose_many(queries, 2) == single
    assert store.propose_many([], 2) == []
    observed = list(store.observe_many(queries, [["east", "secret"]] * len(queries)))
    for query, seen in zip(queries, observed, strict=True):
        alone = store.observe(query, ["east", "secret"])
        np.testing.assert_array_equal(seen.columns["cosine"], alone.columns["cosine"])
        np.testing.assert_array_equal(seen.reason("cosine"), alone.reason("cosine"))


def test_add_replaces_what_is_held_under_the_key(store):
    store.add([record("east", [-1, 0], serial=0), record("east", [0, -1], serial=0)])
    assert len(store) == 5
    assert store.observe(asking([0, -1]), ["east"]).columns["cosine"].tolist() == [1.0]


def test_add_replaces_the_serial_too(store):
    store.add([record("east", [1, 0], serial=9)])
    mask = np.zeros(10, dtype=bool)
    mask[9] = True
    assert store.propose(asking([1, 0], admitted=mask), 5) == ["east"]


def test_the_first_add_is_sorted_whatever_its_order(store):
    assert store._rows.sorted_rows == 5


def test_add_of_a_record_without_vector_is_held_but_never_proposed(store):
    store.add([record("blank", None, serial=5)])
    assert len(store) == 6
    for query in (asking([1, 0]), asking([1, 0], admitted=np.ones(6, dtype=bool))):
        assert store.propose(query, 10) == ["east", "north", "west"]
    seen = store.observe(asking([1, 0]), ["blank", "east"])
    assert np.isnan(seen.columns["cosine"]).tolist() == [True, False]
    assert seen.reason("cosine").tolist() == [Reason.NOT_APPLICABLE, Reason.PRESENT]
    assert np.isnan(store.vectors_of(asking(None), ["blank"])).all()
    assert np.isnan(store.pairwise(asking(None), ["blank", "east"])[0]).all()
    store.remove([Key(TENANT, "blank")])
    assert len(store) == 5
    assert store.observe(asking([1, 0]), ["blank"]).reason("cosine").tolist() == [Reason.UNKNOWN]


def test_a_memory_without_vector_hides_a_farther_one_with_its_id(store):
    store.add([record("east", None, scope=USER, serial=5)])
    near, far = asking([1, 0], scope=USER), asking([1, 0])
    assert store.propose(near, 10) == ["northeast", "north", "west"]
    assert store.propose(near, 10, level=1) == ["north", "west"]
    seen = store.observe(near, ["east"])
    assert np.isnan(seen.columns["cosine"]).all()
    assert seen.reason("cosine").tolist() == [Reason.NOT_APPLICABLE]
    assert np.isnan(store.vectors_of(near, ["east"])).all()
    assert store.observe(far, ["east"]).columns["cosine"].tolist() == [1.0]
    without = asking([1, 0], scope=USER, admitted=np.array([True] * 5))  # serial 5 is out
    assert store.observe(without, ["east"]).columns["cosine"].tolist() == [1.0]
    store.remove([Key(USER, "east")])
    assert store.propose(near, 1) == ["east"]


@pytest.mark.parametrize("compacted", [False, True])
def test_a_memory_may_gain_a_vector_and_lose_it(store, compacted):
    ways = [None, [0, -1], [0, 1], None, None, [1, 0]]
    for vector in ways:
        store.add([record("east", vector, serial=9)])
        if compacted:
            store._compact()
        assert len(store) == 5
        seen = store.observe(asking([1, 0]), ["east", "north", "west"])
        expected = np.nan if vector is None else vector[0]
        assert np.array_equal(seen.columns["cosine"], [expected, 0, -1], equal_nan=True)
        first = ["east"] if vector == [1, 0] else []
        query = asking([1, 0], admitted=np.array([False, True, True] + [False] * 6 + [True]))
        proposed = store.propose(query, 10)
        assert sorted(proposed) == sorted(["north", "west"] + ["east"] * (vector is not None))
        assert proposed[: len(first)] == first
    store.add([record("east", None), record("east", [1, 0])])
    assert store.propose(asking([1, 0]), 1) == ["east"]
    store.add([record("east", [1, 0]), record("east", None)])
    assert store.propose(asking([1, 0]), 1) == ["north"]


def test_memories_without_vector_fix_no_dimension_and_take_no_vector_memory():
    store = VectorStore()
    store.add([record(name, None) for name in ("c", "a", "b")])
    assert (len(store), store.dimension) == (3, None)
    assert store.propose(asking([1, 0]), 10) == []
    assert store.observe(asking([1, 0]), ["a"]).reason("cosine").tolist() == [Reason.NOT_APPLICABLE]
    assert store.vectors_of(asking(None), ["a"]).shape == (1, 0)
    assert np.isnan(store.pairwise(asking(None), ["a", "b"])).all()
    store._compact()
    store.add([record("d", [1, 0, 0]), record("b", [0, 1, 0])])
    assert (len(store), store.dimension, len(store._arena)) == (4, 3, 2)
    assert store.propose(asking([1, 0, 0]), 10) == ["d", "b"]
    store._compact()
    assert store.propose(asking([0, 1, 0]), 10) == ["b", "d"]


def test_a_vector_lost_is_out_of_memory_at_once(store):
    store.add([record("east", None)])
    assert (store._arena.matrix == [0, 0]).all(axis=1).sum() == 1


def test_remove_takes_a_memory_out_of_every_answer_and_out_of_memory(store):
    store.remove([Key(TENANT, "east"), Key(TENANT, "never"), Key(USER, "north")])
    query = asking([1, 0])
    assert store.propose(query, 10) == ["north", "west"]
    assert store.observe(query, ["east"]).reason("cosine").tolist() == [Reason.UNKNOWN]
    assert np.isnan(store.vectors_of(query, ["east"])).all()
    assert (store._arena.matrix == [0, 0]).all(axis=1).sum() == 1
    store.add([record("east", [1, 0])])
    assert store.propose(query, 1) == ["east"]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([1, 0, 0], r"expected 2 numbers, got shape \(3,\)"),
        ([1, np.nan], "NaN or infinity"),
        ([1, np.inf], "NaN or infinity"),
        ([0, 0], "only zeros"),
        ([[1, 0]], r"shape \(1, 2\)"),
    ],
)
def test_add_of_an_unusable_vector_names_it_and_stores_nothing(store, bad, told):
    with pytest.raises(InvalidArrayError, match=rf"records\[1\]\.vector \(id 'bad'\).*{told}"):
        store.add([record("good", [1, 0]), record("bad", bad)])
    assert len(store) == 5
    assert store.propose(asking([1, 0]), 1) == ["east"]
    with pytest.raises(InvalidArrayError, match=f"query.vector.*{told}"):
        store.propose(asking(bad), 1)
    with pytest.raises(InvalidArrayError, match=f"query.vector.*{told}"):
        store.observe(asking(bad), ["east"])


@pytest.mark.parametrize("bad", [["1", "0"], [True, False], [1 + 2j, 0], [[1], [1, 2]], None, []])
def test_add_of_what_is_no_vector_of_numbers_is_refused(store, bad):
    strange = Record(Key(TENANT, "bad"), "", vector=bad if bad is not None else object())
    with pytest.raises(InvalidArrayError, match="id 'bad'"):
        store.add([strange])
    assert len(store) == 5


def test_add_takes_integers_and_double_precision_but_not_what_overflows_float32(store):
    store.add([Record(Key(TENANT, "list"), "", vector=[3, 4])])
    store.add([Record(Key(TENANT, "tiny"), "", vector=np.array([0.0, 1e-40]))])
    vectors = store.vectors_of(asking([1, 0]), ["list", "tiny"])
    np.testing.assert_array_equal(vectors, np.array([[0.6, 0.8], [0, 1]], dtype=np.float32))
    with pytest.raises(InvalidArrayError, match="NaN or infinity"):
        store.add([Record(Key(TENANT, "huge"), "", vector=np.array([1e300, 0.0]))])


def test_dimension_is_fixed_by_the_first_vector_even_after_its_removal():
    store = VectorStore()
    with pytest.raises(InvalidArrayError, match=r"records\[1\]"):
        store.add([record("a", [1, 0]), record("b", [1, 0, 0])])
    assert (store.dimension, len(store)) == (None, 0)
    store.add([record("a", [1, 0, 0])])
    store.remove([Key(TENANT, "a")])
    assert (store.dimension, len(store)) == (3, 0)
    with pytest.raises(InvalidArrayError):
        store.add([record("a", [1, 0])])
    with pytest.raises(InvalidArrayError):
        VectorStore(2).propose(asking([1, 0, 0]), 1)


@pytest.mark.parametrize("dimension", [0, -1, 2.0, True, "384"])
def test_dimension_that_is_no_positive_integer_is_refused(dimension):
    with pytest.raises(InvalidArgumentError, match="dimension"):
        VectorStore(dimension)


def test_name_that_is_no_identifier_is_refused():
    assert VectorStore(name="notes").name == "notes"
    with pytest.raises(InvalidArgumentError, match="name"):
        VectorStore(name="my vectors")


def test_stored_vectors_added_again_do_not_change_a_bit(rng):
    vectors = rng.standard_normal((500, 100)).astype(np.float32) * 7
    ids = [f"{at:03}" for at in range(500)]
    query = asking(vectors[0])
    first, second = VectorStore(), VectorStore()
    first.add([record(name, vector) for name, vector in zip(ids, vectors, strict=True)])
    stored = first.vectors_of(query, ids)
    second.add([record(name, vector) for name, vector in zip(ids, stored, strict=True)])
    np.testing.assert_array_equal(second.vectors_of(query, ids), stored)
    np.testing.assert_allclose(np.linalg.norm(stored.astype(float), axis=1), 1.0, atol=2e-7)


def test_pairwise_is_the_cosine_of_each_pair_and_absent_where_one_is(store):
    query = asking(None, scope=USER)
    found = store.pairwise(query, ["east", "secret", "northeast", "west"])
    half = np.sqrt(0.5)
    expected = [
        [1, np.nan, half, -1],
        [np.nan] * 4,
        [half, np.nan, 1, -half],
        [-1, np.nan, -half, 1],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_array_equal(found, found.T)
    assert store.pairwise(query, []).shape == (0, 0)
    assert np.isnan(VectorStore().pairwise(query, ["a", "b"])).all()


def test_a_pair_does_not_depend_on_the_others_asked(rng):
    store = VectorStore()
    store.add([record(f"{at}", rng.standard_normal(96)) for at in range(40)])
    query = asking(None)
    together = store.pairwise(query, [f"{at}" for at in range(40)])
    for left, right in ((3, 17), (39, 0), (5, 5)):
        assert together[left, right] == store.pairwise(query, [f"{left}", f"{right}"])[0, 1]


def test_close_releases_and_then_refuses_every_call(store):
    store.close()
    store.close()
    assert len(store) == 0
    for call in (
        lambda: store.propose(asking([1, 0]), 1),
        lambda: store.observe(asking([1, 0]), ["east"]),
        lambda: store.add([record("a", [1, 0])]),
        lambda: store.remove([Key(TENANT, "east")]),
        lambda: store.vectors_of(asking([1, 0]), ["east"]),
        lambda: list(store.observe_many([asking([1, 0])], [["east"]])),
    ):
        with pytest.raises(StoreClosedError, match="'vectors' is closed"):
            call()


def test_add_stopped_half_way_leaves_the_old_answers_and_takes_the_next_add(store, monkeypatch):
    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(ScopedRows, "add", fail)
        with pytest.raises(MemoryError):
            store.add([record("lost", [1, 0])])
    query = asking([1, 0])
    assert store.propose(query, 10) == ["east", "north", "west"]
    store.add([record("south", [0, -1])])
    assert store.propose(asking([0, -1]), 1) == ["south"]
    assert store.observe(query, ["lost"]).reason("cosine").tolist() == [Reason.UNKNOWN]


def test_compaction_without_enough_memory_keeps_every_answer(monkeypatch, rng):
    vectors = rng.standard_normal((1500, 8))
    names = [f"{at:04}" for at in range(1500)]
    store, failing = VectorStore(), VectorStore()
    query = asking(vectors[0])

    def fail(*_):
        raise MemoryError

    for one in (store, failing):
        with monkeypatch.context() as broken:
            if one is failing:
                broken.setattr(VectorArena, "reordered", fail)
            one.add([record(names[0], vectors[0])])
            one.add([record(n, v) for n, v in zip(names[1:], vectors[1:], strict=True)])
    assert store._rows.sorted_rows == 1500
    assert failing._rows.sorted_rows == 1
    assert failing.propose(query, 50) == store.propose(query, 50)
    np.testing.assert_array_equal(failing.vectors_of(query, names), store.vectors_of(query, names))


def test_questions_in_one_thread_while_another_writes_stay_right(rng):
    store = VectorStore(16)
    query = asking(rng.standard_normal(16))
    store.add([record("base", rng.standard_normal(16))])
    batches = [
        [record(f"{batch}-{at}", rng.standard_normal(16)) for at in range(400)]
        for batch in range(12)
    ]
    wrong: list[object] = []

    def ask() -> None:
        while writer.is_alive():
            ids = store.propose(query, 20)
            cosines = store.observe(query, ids).columns["cosine"]
            if np.isnan(cosines).any() or (np.diff(cosines) > 0).any():
                wrong.append(ids)

    writer = threading.Thread(target=lambda: [store.add(batch) for batch in batches])
    reader = threading.Thread(target=ask)
    writer.start()
    reader.start()
    writer.join()
    reader.join()
    assert wrong == []
    assert len(store) == 4801

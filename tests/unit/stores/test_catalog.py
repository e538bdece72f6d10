"""The catalog as the durable truth: writing, revisions, forgetting, change feed, caches."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankblend.errors import (
    CacheWarning,
    CatalogVersionError,
    InvalidArgumentError,
    StoreClosedError,
)
from rankblend.relevance import Scope
from rankblend.stores import Edge, Key, Link, Record, StoreQuery
from rankblend.stores.catalog import Catalog
from rankblend.stores.catalog import _schema as schema
from rankblend.stores.catalog import _writes as writing

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
OTHER = Scope.parse("tenant:acme-corp")
A, B = Key(TENANT, "a"), Key(USER, "b")


@pytest.fixture(params=["memory", "file"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    path = ":memory:" if request.param == "memory" else tmp_path / "catalog.db"
    with Catalog.open(path) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


def vector(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, dtype=np.float32)


def same(left: Record | None, right: Record | None) -> bool:
    """Equality of all fields; records with arrays do not compare themselves."""
    if left is None or right is None:
        return left is right
    fields = [name for name in Record.__slots__ if name not in ("vector", "__weakref__")]
    return all(getattr(left, f) == getattr(right, f) for f in fields) and (
        (left.vector is None and right.vector is None)
        or bool(np.array_equal(left.vector, right.vector))  # type: ignore[arg-type]
    )


def test_put_when_the_key_is_new_then_the_record_reads_back_with_every_field(
    catalog: Catalog,
) -> None:
    draft = Record(
        Key(USER, "größe 𝔊\x00"),
        "Tea „at“ four\x00 – ünïcode 🫖",
        layer="episodic",
        vector=vector(0.6, 0.8),
        links=(Link("b"), Link("Ada", "knows", 0.25, verified=True)),
        created=1.5,
        at=2.5,
        used=3.5,
        uses=4,
        salience=0.3,
        confidence=1.0,
        review="flagged",
        maturity="settled",
        certainty="inferred",
        slot="tea",
        expires=9e9,
        metadata={"n": 1, "x": {"y": [1, 1.5, "1", True, None]}, "big": 10**30, "ü": "\x00"},
    )
    (stored,) = catalog.put([draft])
    assert stored.serial >= 0
    found = catalog.get(draft.key)
    assert found is not None
    assert same(stored, found)
    for name in ("text", "layer", "links", "created", "at", "used", "uses", "salience"):
        assert getattr(found, name) == getattr(draft, name)
    for name in ("confidence", "review", "maturity", "certainty", "slot", "expires", "metadata"):
        assert getattr(found, name) == getattr(draft, name)
    assert found.vector is not None
    assert found.vector.dtype == np.float32
    assert found.vector.tolist() == vector(0.6, 0.8).tolist()
    assert type(found.metadata["x"]["y"][3]) is bool  # type: ignore[index]


def test_put_when_a_draft_is_changed_afterwards_then_what_is_stored_is_not(
    catalog: Catalog,
) -> None:
    metadata: dict[str, object] = {"tags": ["x"]}
    given = vector(1.0, 0.0)
    (stored,) = catalog.put([Record(A, "t", vector=given, metadata=metadata)])
    metadata["tags"] = []
    given[:] = 7.0
    assert stored.metadata == {"tags": ["x"]}
    assert stored.vector is not None
    assert stored.vector.tolist() == [1.0, 0.0]
    assert not stored.vector.flags.writeable


def test_put_when_the_key_exists_then_created_and_uses_stay_and_the_revision_is_current(
    catalog: Catalog,
) -> None:
    (first,) = catalog.put([Record(A, "four", created=10.0, at=10.0, vector=vector(1, 0))])
    catalog.reinforce([A], 15.0)
    (second,) = catalog.put([Record(A, "five", created=20.0, at=20.0, used=1.0, uses=99)])
    assert second.serial == first.serial
    assert (second.text, second.created, second.at) == ("five", 10.0, 20.0)
    assert (second.used, second.uses, second.vector) == (15.0, 1, None)
    assert [each.text for each in catalog.revisions(A)] == ["four", "five"]
    assert catalog.revisions(A)[0].vector is not None
    assert len(catalog) == 1


def test_put_when_the_draft_is_backdated_then_it_is_history_and_the_present_is_returned(
    catalog: Catalog,
) -> None:
    catalog.put([Record(A, "now", at=100.0)])
    (returned,) = catalog.put([Record(A, "before", at=50.0)])
    assert returned.text == "now"
    assert catalog.get(A).text == "now"  # type: ignore[union-attr]
    assert [each.text for each in catalog.revisions(A)] == ["before", "now"]


def test_put_when_two_revisions_have_one_time_then_the_one_written_later_is_current(
    catalog: Catalog,
) -> None:
    catalog.put([Record(A, "one", at=5.0)])
    catalog.put([Record(A, "two", at=5.0)])
    assert catalog.get(A).text == "two"  # type: ignore[union-attr]
    assert [each.text for each in catalog.records_at(5.0)] == ["two"]


def test_put_when_one_call_names_a_key_twice_then_both_are_revisions_in_order(
    catalog: Catalog,
) -> None:
    catalog.put([Record(B, "b0", at=0.0)])
    stored = catalog.put(
        [Record(A, "a1", at=1.0), Record(B, "b1", at=1.0), Record(A, "a2", at=2.0)]
    )
    assert [each.text for each in stored] == ["a2", "b1", "a2"]
    assert [each.text for each in catalog.revisions(A)] == ["a1", "a2"]
    assert len(catalog) == 2


def test_put_when_ids_are_equal_at_two_scopes_then_they_are_two_memories(catalog: Catalog) -> None:
    here, there = catalog.put([Record(Key(TENANT, "x"), "here"), Record(Key(USER, "x"), "there")])
    assert here.serial != there.serial
    assert catalog.forget([Key(USER, "x")]) == 1
    assert catalog.get(Key(TENANT, "x")).text == "here"  # type: ignore[union-attr]


def test_put_when_a_key_was_forgotten_then_its_serial_is_never_given_again(
    catalog: Catalog,
) -> None:
    serials = [catalog.put([Record(A, "1")])[0].serial]
    for text in "234":
        catalog.forget([A])
        serials.append(catalog.put([Record(A, text)])[0].serial)
    assert len(set(serials)) == 4
    assert serials == sorted(serials)


def test_put_when_nothing_is_given_then_nothing_is_written(catalog: Catalog) -> None:
    before = catalog.generation
    assert catalog.put([]) == []
    assert catalog.generation == before


def test_put_when_drafts_are_invalid_then_all_problems_are_told_and_nothing_is_written(
    catalog: Catalog,
) -> None:
    drafts = [
        Record(A, "fine"),
        Record(Key(TENANT, "  "), "text", salience=1.5, review="meh", uses=-1),
        Record(B, "\ud800", at=float("nan"), layer="", metadata={"x": {1, 2}}),
        Record(B, "t", links=(Link("", weight=2.0),), metadata={1: 2}),  # type: ignore[dict-item]
    ]
    with pytest.raises(InvalidArgumentError) as caught:
        catalog.put(drafts)
    told = "\n".join(caught.value.problems)
    for part in (
        "drafts[1]: id",
        "drafts[1]: salience",
        "drafts[1]: review",
        "drafts[1]: uses",
        "drafts[2]: text",
        "drafts[2]: at",
        "drafts[2]: layer",
        "drafts[2]: metadata",
        "drafts[3]: links[0]",
        "drafts[3]: metadata",
    ):
        assert part in told
    assert "drafts[0]" not in told
    assert len(catalog) == 0
    assert catalog.get(A) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"metadata": {"x": float("nan")}},
        {"metadata": {"x": object()}},
        {"metadata": {"x": "\ud800"}},
        {"slot": " "},
        {"expires": float("inf")},
        {"expires": 10**400},
        {"salience": True},
        {"salience": float("nan")},
        {"confidence": "0.5"},
        {"created": "now"},
        {"layer": "\udfff"},
        {"links": ("b",)},
        {"vector": [[1.0]]},
        {"vector": [0.0, 0.0]},
        {"vector": [float("nan"), 1.0]},
        {"vector": [1e300, 1.0]},
        {"vector": ["a", "b"]},
        {"vector": []},
    ],
)
def test_put_when_a_value_cannot_be_stored_then_it_is_refused(
    catalog: Catalog, bad: dict[str, Any]
) -> None:
    if "vector" in bad:
        bad = {"vector": np.array(bad["vector"])}
    with pytest.raises(InvalidArgumentError):
        catalog.put([Record(A, "text", **bad)])
    assert catalog.get(A) is None


def test_put_when_metadata_nests_too_deeply_then_it_is_refused(catalog: Catalog) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidArgumentError, match="metadata"):
        catalog.put([Record(A, "text", metadata={"x": deep})])


def test_put_when_a_vector_has_another_dimension_then_it_is_refused(catalog: Catalog) -> None:
    catalog.put([Record(A, "two", vector=vector(1, 0))])
    assert catalog.get_meta("dimension") == "2"
    with pytest.raises(InvalidArgumentError, match=r"drafts\[1\]: vector: expected shape \(2,\)"):
        catalog.put([Record(B, "t", vector=vector(1, 0)), Record(B, "t", vector=vector(1, 0, 0))])
    assert not catalog.refresh()  # the refused write left no trace, not even a generation
    assert catalog.changes(0).generation == 1


def test_forget_when_a_memory_has_history_uses_and_edges_then_nothing_of_it_is_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.db"
    with Catalog.open(path) as catalog:
        catalog.put([Record(A, "quince", at=1.0, links=(Link("pear"),), vector=vector(1, 0))])
        catalog.put([Record(A, "medlar", at=2.0, vector=vector(0, 1))])
        catalog.put([Record(B, "other", at=2.0)])
        catalog.reinforce([A, B], 3.0)
        catalog.add_edges(
            [
                Edge(TENANT, "a", "x"),
                Edge(TENANT, "y", "a"),
                Edge(TENANT, "x", "y"),
                Edge(USER, "a", "x"),
            ]
        )
        assert catalog.forget([A, Key(TENANT, "unknown"), Key(USER, "a")]) == 1
        assert catalog.get(A) is None
        assert catalog.revisions(A) == []
        assert [each.text for each in catalog.records_at(10.0)] == ["other"]
        assert [edge.identity for edge in catalog.iter_edges()] == [
            Edge(TENANT, "x", "y").identity,
            Edge(USER, "a", "x").identity,
        ]
    connection = sqlite3.connect(path)
    counts = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("memories", "vectors", "history", "uses")
    }
    connection.close()
    assert counts == {"memories": 1, "vectors": 0, "history": 0, "uses": 1}


def test_reinforce_when_called_then_uses_count_once_a_call_and_used_never_goes_back(
    catalog: Catalog,
) -> None:
    catalog.put([Record(A, "t", at=1.0)])
    assert catalog.reinforce([A, A, B], 10.0) == 1
    assert catalog.reinforce([A], 5.0) == 1
    found = catalog.get(A)
    assert found is not None
    assert (found.uses, found.used) == (2, 10.0)
    facts = catalog.facts(StoreQuery("", [TENANT]), ["a"], ["uses", "used"])
    assert (facts.columns["uses"][0], facts.columns["used"][0]) == (2.0, 10.0)
    with pytest.raises(InvalidArgumentError):
        catalog.reinforce([A], float("nan"))


def test_records_at_when_asked_then_each_memory_is_as_it_was_valid_then(catalog: Catalog) -> None:
    catalog.put([Record(A, "a10", at=10.0, created=10.0, vector=vector(1, 0))])
    catalog.put([Record(A, "a30", at=30.0, vector=vector(0, 1))])
    catalog.put([Record(A, "a20", at=20.0, salience=0.5)])  # backdated
    catalog.put([Record(A, "a15", at=15.0)])  # and further, after that
    catalog.put([Record(B, "b25", at=25.0), Record(Key(OTHER, "o"), "o1", at=1.0)])
    catalog.reinforce([A], 12.0)
    catalog.reinforce([A], 22.0)
    at = {t: [each.text for each in catalog.records_at(t)] for t in (0, 10, 14.9, 19.9, 20, 29, 30)}
    # Paths in code point order: "tenant:acme-corp/" comes before "tenant:acme/".
    assert at == {
        0: [],
        10: ["o1", "a10"],
        14.9: ["o1", "a10"],
        19.9: ["o1", "a15"],
        20: ["o1", "a20"],
        29: ["o1", "a20", "b25"],
        30: ["o1", "a30", "b25"],
    }
    past = {each.id: each for each in catalog.records_at(21.0, roots=[TENANT])}
    assert set(past) == {"a"}
    assert (past["a"].uses, past["a"].used, past["a"].vector) == (1, 12.0, None)
    assert catalog.records_at(11.0, roots=[TENANT])[0].vector is not None
    assert [r.id for r in catalog.records_at(30.0, roots=[USER, TENANT])] == ["a", "b"]
    with pytest.raises(InvalidArgumentError):
        catalog.records_at(float("inf"))


def test_snapshot_when_asked_then_it_answers_for_that_moment(catalog: Catalog) -> None:
    catalog.put([Record(A, "old", at=10.0, salience=0.2, expires=50.0, metadata={"v": 1})])
    catalog.put([Record(A, "new", at=30.0, salience=0.9, metadata={"v": 2})])
    past = catalog.snapshot(20.0)
    query = StoreQuery("", [TENANT], now=20.0)
    assert len(past) == 1
    assert past.get(A).text == "old"  # type: ignore[union-attr]
    assert [each.text for each in past.iter_records()] == ["old"]
    assert past.records([A, B])[1] is None
    assert past.facts(query, ["a"], ["salience"]).columns["salience"].tolist() == [0.2]
    assert past.admit(query) is None
    assert past.admit(query, filters={"v": 1}) is None
    mask = past.admit(query, filters={"v": 2})
    assert mask is not None
    assert not mask.any()
    assert past.admit(StoreQuery("", [TENANT], now=50.0)) is not None
    assert past.leading(query, 5, ("salience",)) == ["a"]


def test_iter_records_when_batched_then_all_come_once_by_scope_path_and_id(
    catalog: Catalog, rng: np.random.Generator
) -> None:
    scopes = [TENANT, USER, OTHER, USER / "session:1", USER / "session:10"]
    drafts = [
        Record(Key(scope, f"m{i}"), f"t{i}", vector=vector(i + 1, 1) if i % 3 else None)
        for scope in scopes
        for i in range(20)
    ]
    catalog.put([drafts[i] for i in rng.permutation(len(drafts))])
    found = list(catalog.iter_records(batch=7))
    places = [(each.scope.path, each.id) for each in found]
    assert places == sorted((each.scope.path, each.id) for each in drafts)
    by_place = {(each.scope.path, each.id): each for each in drafts}
    for each, place in zip(found, places, strict=True):
        expected = by_place[place].vector
        assert (each.vector is None) == (expected is None)
        assert expected is None or each.vector.tolist() == expected.tolist()  # type: ignore[union-attr]


def loaded_vectors(
    catalog: Catalog,
) -> tuple[list[Key], NDArray[np.int64], NDArray[np.float32]]:
    """Keys, serials and vectors, as an index loads them."""
    rows, matrix = catalog.rows(), np.zeros((0, 0), np.float32)

    def room(dimension: int) -> NDArray[np.float32]:
        nonlocal matrix
        matrix = np.zeros((rows.size, dimension), np.float32)
        return matrix

    filled = catalog.load_vectors(rows.serials, room)
    keys = [rows.key(row) for row in np.flatnonzero(filled)]
    return keys, rows.serials[filled], matrix[filled] if filled.any() else matrix


def test_load_vectors_when_some_have_none_then_rows_match_keys_in_order(
    catalog: Catalog, rng: np.random.Generator
) -> None:
    assert loaded_vectors(catalog)[2].shape == (0, 0)
    drafts = [
        Record(Key(scope, f"m{i}"), "t", vector=vector(*rng.normal(size=3)) if i % 4 else None)
        for scope in (USER, TENANT)
        for i in range(600)
    ]
    for start in range(0, len(drafts), 400):
        catalog.put(drafts[start : start + 400])
    catalog.forget([drafts[5].key])
    catalog.put([Record(drafts[6].key, "no vector any more", at=1.0)])
    keys, serials, matrix = loaded_vectors(catalog)
    expected = sorted(
        (d for i, d in enumerate(drafts) if d.vector is not None and i not in (5, 6)),
        key=lambda d: (d.scope.path, d.id),
    )
    assert keys == [each.key for each in expected]
    assert matrix.dtype == np.float32
    assert np.array_equal(matrix, np.stack([each.vector for each in expected]))  # type: ignore[misc]
    stored = catalog.records(keys)
    assert serials.tolist() == [each.serial for each in stored if each is not None]


def test_rows_when_written_on_then_each_keeps_its_own(catalog: Catalog) -> None:
    drafts = [Record(Key(scope, f"m{i}"), "t") for scope in (USER, TENANT) for i in range(50)]
    catalog.put(drafts)
    catalog.forget([drafts[3].key])
    catalog.put([Record(Key(TENANT, "late"), "t")])
    rows = catalog.rows()
    held = [rows.key(row) for row in range(rows.size)]
    assert held == sorted({draft.key for draft in drafts} - {drafts[3].key} | {Key(TENANT, "late")})
    assert rows.sorted_rows == len(held)
    catalog.put([Record(Key(TENANT, "m7"), "other", at=1.0), Record(Key(USER, "new"), "t")])
    rows.remove([drafts[0].key])
    other = catalog.rows()
    assert (len(rows), len(other)) == (len(held) - 1, len(held) + 1)
    assert other.row(drafts[0].key) is not None
    assert catalog.locate(StoreQuery("", [USER]), ["m0"]) == [Key(USER, "m0")]


def test_linked_when_a_kind_is_given_then_only_memories_with_such_a_link(catalog: Catalog) -> None:
    quoted = 'a "kind" of é'
    catalog.put(
        [
            Record(A, "t", links=(Link("x"), Link("y", quoted))),
            Record(B, "t", links=(Link(quoted), Link("equivalent"))),
            Record(Key(TENANT, "none"), "t"),
        ]
    )
    assert {each.key: each.links for each in catalog.linked()} == {
        key: catalog.get(key).links  # type: ignore[union-attr]
        for key in (A, B)
    }
    assert [each.key for each in catalog.linked(quoted)] == [A]
    assert [each.key for each in catalog.linked("related")] == [A, B]
    assert catalog.linked("equivalent") == []
    serials = [each.serial for each in catalog.records([A, B]) if each is not None]
    assert [each.serial for each in catalog.linked()] == serials


def test_edges_when_a_kind_is_given_then_only_those(catalog: Catalog) -> None:
    edges = [Edge(USER, f"n{i:02}", "x", f"k{i % 3}") for i in range(20)]
    catalog.add_edges(edges)
    assert list(catalog.iter_edges(kind="k1", batch=2)) == edges[1::3]
    assert list(catalog.iter_edges(batch=3)) == edges


@pytest.mark.parametrize("changes", [1, 60])
def test_cache_when_much_was_written_since_then_due(catalog: Catalog, changes: int) -> None:
    assert catalog.cache_is_due("keywords")
    catalog.put([Record(Key(USER, f"m{i}"), "t") for i in range(1000)])
    catalog.save_cache("keywords", b"postings")
    assert not catalog.cache_is_due("keywords")
    catalog.reinforce([Key(USER, f"m{i}") for i in range(changes)], 1.0)
    assert catalog.cache_is_due("keywords") == (changes > 20)


def test_edges_when_written_again_then_replaced_and_when_removed_then_gone(
    catalog: Catalog,
) -> None:
    first = Edge(TENANT, "Ada", "Bob", "knows", 0.5, at=10.0)
    assert catalog.add_edges([first, Edge(USER, "a", "b")]) == 2
    assert catalog.add_edges([Edge(TENANT, "Ada", "Bob", "knows", 1.0, verified=True)]) == 1
    assert list(catalog.iter_edges(batch=1)) == [
        Edge(TENANT, "Ada", "Bob", "knows", 1.0, verified=True),
        Edge(USER, "a", "b"),
    ]
    assert catalog.remove_edges([first, first, Edge(TENANT, "Ada", "Bob", "other")]) == 1
    assert list(catalog.iter_edges()) == [Edge(USER, "a", "b")]


def test_edges_when_asked_as_of_then_later_ones_are_left_out(catalog: Catalog) -> None:
    catalog.add_edges([Edge(TENANT, "a", "b", at=10.0), Edge(TENANT, "a", "c")])
    assert [edge.target for edge in catalog.iter_edges(as_of=9.0)] == ["c"]
    assert [edge.target for edge in catalog.iter_edges(as_of=10.0)] == ["b", "c"]


def test_edges_when_invalid_then_all_problems_are_told(catalog: Catalog) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        catalog.add_edges(
            [Edge(TENANT, "", "b", weight=0.0), Edge(TENANT, "a", "\ud800", at=float("nan"))]
        )
    assert len(caught.value.problems) == 4
    assert list(catalog.iter_edges()) == []


def test_changes_when_nothing_was_written_then_they_are_empty(catalog: Catalog) -> None:
    catalog.put([Record(A, "t")])
    changes = catalog.changes(catalog.generation)
    assert not changes
    assert changes.generation == catalog.generation
    assert not catalog.refresh()


def test_changes_when_written_then_removed_and_changed_are_told_since_then(
    catalog: Catalog,
) -> None:
    catalog.put([Record(A, "a"), Record(B, "b")])
    catalog.add_edges([Edge(TENANT, "x", "y")])
    since = catalog.generation
    catalog.forget([A])
    catalog.put([Record(A, "again")])
    catalog.reinforce([B], 9.0)
    catalog.remove_edges([Edge(TENANT, "x", "y")])
    catalog.add_edges([Edge(USER, "p", "q")])
    changes = catalog.changes(since)
    assert changes.complete
    assert bool(changes)
    assert changes.removed == (A,)
    assert [(each.text, each.uses) for each in changes.changed] == [("again", 0), ("b", 1)]
    assert changes.edges_removed == (Edge(TENANT, "x", "y"),)
    assert changes.edges == (Edge(USER, "p", "q"),)


def test_refresh_when_another_connection_writes_then_columns_follow(file: Path) -> None:
    with Catalog.open(file) as one, Catalog.open(file) as two:
        one.put([Record(A, "a", salience=0.1), Record(B, "b", salience=0.2)])
        assert len(two) == 0
        assert two.get(A) is not None  # what is read from the file is up to date at once
        changes = two.refresh()
        assert {each.id for each in changes.changed} == {"a", "b"}
        assert len(two) == 2
        one.forget([A])
        one.put([Record(A, "a2", salience=0.9)])
        two.put([Record(B, "b2", at=5.0, salience=0.3)])  # before it saw the other's writes
        told = two.refresh()
        assert told.removed == (A,)
        assert {each.text for each in told.changed} == {"a2", "b2"}
        one.refresh()
        query = StoreQuery("", [USER])
        for each in (one, two):
            assert each.leading(query, 5, ("salience",)) == ["a", "b"]
            assert each.generation == 4
            assert not each.refresh()


def test_put_when_another_process_made_the_memory_anew_then_its_new_serial_is_used(
    file: Path,
) -> None:
    with Catalog.open(file) as one, Catalog.open(file) as two:
        one.put([Record(A, "a", metadata={"n": 1}), Record(B, "b")])
        two.refresh()
        one.forget([A])
        (new,) = one.put([Record(A, "again", metadata={"n": 1})])
        (stored,) = two.put([Record(A, "by two", at=1.0, metadata={"n": 1})])
        assert stored.serial == new.serial
        mask = two.admit(StoreQuery("", [USER]), filters={"n": 1})
        assert mask is not None
        assert np.flatnonzero(mask).tolist() == [new.serial]


def test_replace_vectors_when_called_then_only_the_new_ones_are_left(catalog: Catalog) -> None:
    catalog.put([Record(A, "a1", vector=vector(1, 0)), Record(B, "b", vector=vector(0, 1))])
    catalog.put([Record(A, "a2", at=1.0, vector=vector(0, 1))])
    since = catalog.generation
    given = {A: vector(1, 0, 0), Key(OTHER, "unknown"): vector(0, 1, 0)}
    catalog.replace_vectors(given, embedder="another/3")
    keys, _, matrix = loaded_vectors(catalog)
    assert (keys, matrix.tolist()) == ([A], [[1.0, 0.0, 0.0]])
    assert [each.vector is None for each in catalog.revisions(A)] == [True, False]
    assert catalog.get_meta("embedder") == "another/3"
    assert {each.id for each in catalog.changes(since).changed} == {"a", "b"}
    catalog.put([Record(B, "b", at=1.0, vector=vector(0, 0, 1))])
    with pytest.raises(InvalidArgumentError):
        catalog.replace_vectors({A: vector(1), B: vector(1, 0)}, embedder="x/1")


def test_refresh_when_tombstones_are_gone_then_everything_is_read_anew(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "KEPT_GENERATIONS", 10)
    monkeypatch.setattr(writing, "_SWEEP_EVERY", 5)
    with Catalog.open(file) as one, Catalog.open(file) as two:
        one.put([Record(A, "a"), Record(B, "b")])
        two.refresh()
        one.forget([A])
        for at in range(20):
            one.put([Record(B, "b", at=float(at))])
        changes = two.refresh()
        assert not changes.complete
        assert bool(changes)
        assert changes.changed == ()
        assert len(two) == 1
        assert two.locate(StoreQuery("", [USER]), ["a", "b"]) == [None, B]
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM tombstones").fetchone() == (0,)
    connection.close()


def test_reopen_when_closed_then_everything_is_there(file: Path) -> None:
    with Catalog.open(file) as catalog:
        catalog.put([Record(A, "one", at=1.0), Record(B, "b", vector=vector(1, 0))])
        catalog.put([Record(A, "two", at=2.0)])
        catalog.add_edges([Edge(TENANT, "x", "y")])
        catalog.set_meta("embedder", "wordllama")
        before = list(catalog.iter_records())
        generation = catalog.generation
    with Catalog.open(file) as catalog:
        after = list(catalog.iter_records())
        assert all(map(same, before, after))
        assert [each.text for each in catalog.revisions(A)] == ["one", "two"]
        assert list(catalog.iter_edges()) == [Edge(TENANT, "x", "y")]
        assert catalog.get_meta("embedder") == "wordllama"
        assert catalog.get_meta("created_by") is not None
        assert catalog.get_meta("unknown") is None
        assert catalog.generation == generation
        catalog.check()


def test_reopen_when_the_catalog_is_large_then_kept_columns_equal_those_read_from_rows(
    file: Path, rng: np.random.Generator
) -> None:
    scopes = [TENANT, USER, OTHER, *(USER / f"session:{i}" for i in range(12))]
    drafts = [
        Record(
            Key(scopes[i % len(scopes)], f"m{i // 3}"),
            f"text {i % 50}",
            layer=("semantic", "working", "own")[i % 3],
            at=float(i),
            salience=None if i % 5 == 0 else float(rng.random()),
            review=(None, "flagged", "confirmed")[i % 3],
            slot=None if i % 2 else f"s{i % 7}",
            expires=1e6 + i if i % 11 == 0 else None,
        )
        for i in range(1500)
    ]
    with Catalog.open(file) as catalog:
        catalog.put(drafts)
        catalog.forget([drafts[3].key])
    with Catalog.open(file) as catalog:  # from the kept columns, brought up to date with nothing
        kept = column_image(catalog)
        catalog.put([Record(Key(USER, "late"), "late", layer="new", at=7.0)])
        catalog.forget([drafts[4].key])
        catalog.reinforce([drafts[7].key], 77.0)
        changed = column_image(catalog)
    with Catalog.open(file) as catalog:  # from the kept columns and a few changes
        assert column_image(catalog) == changed
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM index_cache").fetchone() == (1,)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("DELETE FROM index_cache")
    connection.commit()
    connection.close()
    with Catalog.open(file) as catalog:  # from the rows
        assert column_image(catalog) == changed
        assert catalog.reinforce([drafts[7].key], 5.0) == 1
    assert kept != changed


def column_image(catalog: Catalog) -> dict[Key, tuple[object, ...]]:
    """What the columns hold, by key, codes resolved."""
    columns = catalog._columns
    rows = np.flatnonzero(columns.rows.alive)
    slots = [*columns.slots, None]
    image = {}
    names = ["created", "at", "used", "expires", "salience", "uses", "review", "digest"]
    for row in rows.tolist():
        values = [repr(float(columns.values(name, np.array([row]))[0])) for name in names[:-1]]
        image[columns.rows.key(row)] = (
            int(columns.rows.serials[row]),
            columns.layers[int(columns.array("layer")[row])],
            slots[int(columns.array("slot")[row])],
            int(columns.array("digest")[row]),
            *values,
        )
    return image


def test_cache_when_saved_then_loaded_with_its_generation(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankblend.stores.catalog._cache._PART", 7)
    assert catalog.load_cache("keywords") is None
    catalog.put([Record(A, "t")])
    catalog.save_cache("keywords", b"postings of some length")
    catalog.save_cache("empty", b"")
    generation = catalog.generation
    catalog.put([Record(B, "t")])
    assert catalog.load_cache("keywords") == (generation, b"postings of some length")
    assert catalog.load_cache("empty") == (generation, b"")
    assert [each.id for each in catalog.changes(generation).changed] == ["b"]
    catalog.save_cache("keywords", b"less", generation=1)
    assert catalog.load_cache("keywords") == (1, b"less")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE index_cache_parts SET data = x'00' WHERE part = 0",
        "DELETE FROM index_cache_parts",
        "UPDATE index_cache SET generation = 99",
    ],
)
def test_cache_when_damaged_then_a_warning_and_none(file: Path, damage: str) -> None:
    with Catalog.open(file) as catalog:
        catalog.save_cache("keywords", b"postings")
        connection = sqlite3.connect(file)
        connection.execute(damage)
        connection.commit()
        connection.close()
        with pytest.warns(CacheWarning, match="keywords"):
            assert catalog.load_cache("keywords") is None


def test_reopen_when_kept_columns_are_damaged_then_a_warning_and_the_rows_are_read(
    file: Path,
) -> None:
    with Catalog.open(file) as catalog:
        catalog.put([Record(Key(TENANT, f"m{i}"), "t") for i in range(1200)])
    connection = sqlite3.connect(file)
    connection.execute("UPDATE index_cache_parts SET data = zeroblob(100)")
    connection.commit()
    connection.close()
    with pytest.warns(CacheWarning):
        catalog = Catalog.open(file)
    with catalog:
        assert len(catalog) == 1200
        assert catalog.locate(StoreQuery("", [TENANT]), ["m1199"]) == [Key(TENANT, "m1199")]


def test_closed_when_used_then_every_method_says_so(file: Path) -> None:
    catalog = Catalog.open(file)
    catalog.put([Record(A, "t")])
    catalog.close()
    catalog.close()
    query = StoreQuery("", [TENANT])
    uses: list[Callable[[], object]] = [
        lambda: catalog.put([Record(A, "t")]),
        lambda: catalog.forget([A]),
        lambda: catalog.reinforce([A], 1.0),
        lambda: catalog.add_edges([]),
        lambda: catalog.get(A),
        lambda: catalog.revisions(A),
        lambda: list(catalog.iter_records()),
        lambda: list(catalog.iter_edges()),
        lambda: catalog.records_at(1.0),
        catalog.refresh,
        catalog.rows,
        catalog.linked,
        lambda: catalog.load_vectors(np.empty(0, np.int64), lambda d: np.empty((0, d), np.float32)),
        lambda: catalog.admit(query),
        lambda: catalog.locate(query, ["a"]),
        lambda: catalog.leading(query, 1, ("at",)),
        lambda: catalog.facts(query, ["a"], ["at"]),
        lambda: catalog.digests(query, ["a"]),
        lambda: catalog.save_cache("x", b""),
        lambda: catalog.load_cache("x"),
        lambda: catalog.get_meta("x"),
        lambda: len(catalog),
    ]
    for use in uses:
        with pytest.raises(StoreClosedError):
            use()


def test_digests_when_texts_are_equal_up_to_form_then_equal(catalog: Catalog) -> None:
    catalog.put(
        [
            Record(Key(TENANT, "a"), "The  Café"),
            Record(Key(TENANT, "b"), "the cafe\u0301 "),
            Record(Key(TENANT, "c"), "the cafe"),
        ]
    )
    catalog.put([Record(Key(TENANT, "a"), "the cafe", at=1.0)])
    query = StoreQuery("", [TENANT])
    a, b, c, unknown = catalog.digests(query, ["a", "b", "c", "d"])
    assert a == c
    assert a != b
    assert unknown is None
    catalog.put([Record(Key(TENANT, "c"), "THE CAFÉ", at=1.0)])
    assert catalog.digests(query, ["c"]) == [b]


def test_records_when_keys_cannot_exist_then_none(catalog: Catalog) -> None:
    strange = Key(TENANT, "\ud800")
    assert catalog.get(strange) is None
    assert catalog.revisions(strange) == []
    assert catalog.forget([strange]) == 0
    assert catalog.reinforce([strange], 1.0) == 0
    assert catalog.locate(StoreQuery("", [TENANT]), ["\ud800", ""]) == [None, None]


def test_threads_when_many_write_and_read_then_nothing_is_lost(file: Path) -> None:
    errors: list[BaseException] = []
    with Catalog.open(file) as catalog:

        def write(worker: int) -> None:
            try:
                for i in range(25):
                    key = Key(USER, f"w{worker}-{i}")
                    catalog.put([Record(key, "t", at=float(i), salience=0.5)])
                    catalog.reinforce([key], float(i))
                    catalog.leading(StoreQuery("", [USER]), 10, ("at",))
                    assert catalog.get(key) is not None
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert errors == []
        assert len(catalog) == 100
        assert not catalog.refresh()
        assert all(each.uses == 1 for each in catalog.iter_records())


def test_columns_when_rows_come_and_go_then_compaction_keeps_every_value(
    catalog: Catalog, rng: np.random.Generator
) -> None:
    expected: dict[str, float] = {}
    for step in range(30):
        ids = [f"m{n}" for n in rng.integers(0, 3000, 200).tolist()]
        drafts = [
            Record(
                Key(USER, i), "t", at=float(step), salience=float(rng.random()), metadata={"i": i}
            )
            for i in dict.fromkeys(ids)
        ]
        for stored in catalog.put(drafts):
            expected[stored.id] = stored.salience or 0.0
        gone = list(expected)[:: 7 if step % 2 else 3][:60]
        catalog.forget([Key(USER, i) for i in gone])
        for i in gone:
            del expected[i]
        if step == 10:  # from here on the field is kept in memory
            catalog.admit(StoreQuery("", [USER]), filters={"i": "m1"})
    ids = sorted(expected)
    query = StoreQuery("", [USER])
    found = catalog.facts(query, ids, ["salience"]).columns["salience"]
    assert found.tolist() == [expected[i] for i in ids]
    best = sorted(expected, key=lambda i: (-expected[i], i))
    assert catalog.leading(query, 50, ("salience",)) == best[:50]
    wanted = ids[:3]
    mask = catalog.admit(query, filters={"i": wanted})
    assert mask is not None
    shown = [each.id for each in catalog.iter_records() if mask[each.serial]]
    assert shown == wanted


def test_migrate_when_the_file_is_older_then_it_is_brought_up_to_date() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    steps = [*schema.MIGRATIONS]
    assert schema.migrate(connection, steps)
    assert not schema.migrate(connection, steps)
    steps.append(("ALTER TABLE edges ADD COLUMN note TEXT",))
    assert schema.migrate(connection, steps)
    assert connection.execute("SELECT note FROM edges").fetchall() == []
    assert connection.execute("PRAGMA user_version").fetchone() == (len(steps),)
    with pytest.raises(CatalogVersionError):
        schema.migrate(connection, steps[:-1])
    connection.close()


def test_open_when_an_older_file_is_opened_then_its_memories_stay(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open(file) as catalog:
        catalog.put([Record(A, "old")])
    steps = (*schema.MIGRATIONS, ("CREATE TABLE added (x)",))
    monkeypatch.setattr(schema.migrate, "__defaults__", (steps,))
    monkeypatch.setattr("rankblend.stores.catalog._file.SCHEMA_VERSION", len(steps))
    with Catalog.open(file) as catalog:
        assert catalog.get(A).text == "old"  # type: ignore[union-attr]
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM added").fetchone() == (0,)
    connection.close()

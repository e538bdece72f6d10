"""Ids that carry serials, and the way from a serial to its row."""

from __future__ import annotations

import numpy as np

from rankblend.relevance import Scope
from rankblend.stores import Key, StoreQuery
from rankblend.stores._rows import NumberedIds, ScopedRows, SerialIndex

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"


def numbered(*pairs: tuple[str, int]) -> NumberedIds:
    return NumberedIds([i for i, _ in pairs], np.array([s for _, s in pairs], np.int64))


def test_find_when_rows_come_later_then_they_are_found_too() -> None:
    index, alive = SerialIndex(), np.ones(4, np.bool_)
    assert index.find(np.array([3]), np.array([5, 3]), alive[:2]).tolist() == [1]
    serials = np.array([5, 3, 40, -1])
    asked = np.array([40, 5, 7, 1000])
    assert index.find(asked, serials, alive).tolist() == [2, 0, -1, -1]


def test_find_when_a_row_is_dead_then_it_is_not_found() -> None:
    found = SerialIndex().find(np.array([0, 1]), np.array([0, 1]), np.array([False, True]))
    assert found.tolist() == [-1, 1]


def test_find_when_there_are_no_rows_then_nothing() -> None:
    none = SerialIndex().find(np.array([0]), np.empty(0, np.int64), np.empty(0, np.bool_))
    assert none.tolist() == [-1]


def test_locate_when_ids_carry_serials_then_these_decide() -> None:
    rows = ScopedRows()
    rows.add([Key(TENANT, "a"), Key(USER, "a"), Key(USER, "b")], [4, 2, 9])
    query = StoreQuery("", [USER])
    assert rows.locate(query, ["a", "b"]).tolist() == [1, 2]
    assert rows.locate(query, numbered(("a", 4), ("a", 2), ("b", 9))).tolist() == [0, 1, 2]
    assert rows.locate(StoreQuery("", [TENANT]), numbered(("b", 9), ("a", 4))).tolist() == [-1, 0]
    assert rows.locate(query, numbered(("b", -1))).tolist() == [2]  # says nothing: the id decides


def test_locate_when_rows_were_removed_added_and_compacted_then_by_serial_as_by_id() -> None:
    rows = ScopedRows()
    rows.add([Key(TENANT, name) for name in "abc"], [0, 1, 2])
    query = StoreQuery("", [TENANT])
    assert rows.locate(query, numbered(("c", 2))).tolist() == [2]
    rows.remove([Key(TENANT, "b")])
    rows.add([Key(TENANT, "aa"), Key(TENANT, "b")], [7, 1])
    rows.renumber(np.array([0]), [8])
    for _ in range(2):
        by_id = rows.locate(query, ["a", "aa", "b", "c"]).tolist()
        asked = numbered(("a", 8), ("aa", 7), ("b", 1), ("c", 2), ("a", 0))
        assert rows.locate(query, asked).tolist() == [*by_id, -1]
        rows.compact()


def test_numbered_ids_when_joined_and_taken_then_ids_and_serials_stay_together() -> None:
    joined = NumberedIds.joined([numbered(("a", 1)), numbered(("b", 2), ("a", 1))])
    assert (joined, joined.serials.tolist()) == (["a", "b", "a"], [1, 2, 1])
    taken = joined.take(np.array([1]))
    assert (taken, taken.serials.tolist()) == (["b"], [2])
    assert NumberedIds.joined([]).serials.tolist() == []

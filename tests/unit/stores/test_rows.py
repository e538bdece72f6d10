"""The row space of one index: sorting, tombstones, compaction, who sees which rows."""

from __future__ import annotations

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, StoreQuery
from rankblend.stores._rows import RowBlocks, ScopedRows

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
SESSION = USER / "session:9"


def filled(*keys: Key) -> ScopedRows:
    rows = ScopedRows()
    rows.add(keys, range(len(keys)))
    return rows


def test_add_of_ascending_keys_to_an_empty_instance_is_sorted_at_once():
    rows = filled(Key(TENANT, "b"), Key(USER, "a"), Key(USER, "c"))
    assert rows.sorted_rows == 3
    assert rows.blocks(StoreQuery("", [USER])).ranges == ((0, 3),)


def test_add_of_unordered_keys_to_an_empty_instance_goes_to_the_tail_in_their_order():
    rows = filled(Key(USER, "a"), Key(TENANT, "b"))
    assert rows.sorted_rows == 0
    assert rows.blocks(StoreQuery("", [USER])).tail.tolist() == [0, 1]
    assert rows.compact().tolist() == [1, 0]


def test_add_of_a_held_key_raises_and_adds_nothing():
    rows = filled(Key(TENANT, "a"))
    with pytest.raises(InvalidArgumentError, match="'a' at tenant:acme is held already"):
        rows.add([Key(TENANT, "b"), Key(TENANT, "a")], [1, 2])
    assert len(rows) == rows.size == 1
    assert rows.row(Key(TENANT, "b")) is None


def test_add_of_one_key_twice_raises_even_into_an_empty_instance():
    rows = ScopedRows()
    with pytest.raises(InvalidArgumentError):
        rows.add([Key(TENANT, "a"), Key(TENANT, "a")], [0, 1])
    assert rows.size == 0


def test_add_with_another_number_of_serials_raises():
    with pytest.raises(InvalidArgumentError, match="one per key"):
        ScopedRows().add([Key(TENANT, "a")], [])


def test_remove_skips_unknown_keys_and_keeps_the_same_id_elsewhere():
    rows = filled(Key(TENANT, "a"), Key(USER, "a"))
    freed = rows.remove([Key(USER, "a"), Key(SESSION, "a"), Key(USER, "z"), Key(USER, "a")])
    assert freed.tolist() == [1]
    assert rows.locate(StoreQuery("", [USER]), ["a"]).tolist() == [0]
    assert rows.alive.tolist() == [True, False]


def test_a_key_removed_and_added_again_lives_in_the_tail():
    rows = filled(Key(TENANT, "a"), Key(TENANT, "b"))
    rows.remove([Key(TENANT, "a")])
    assert rows.add([Key(TENANT, "a")], [5]).tolist() == [2]
    blocks = rows.blocks(StoreQuery("", [TENANT]))
    assert (blocks.ranges, blocks.excluded.tolist(), blocks.tail.tolist()) == (((0, 2),), [0], [2])
    assert blocks.rows().tolist() == [1, 2]


def test_an_ancestor_and_its_neighbour_in_key_order_are_one_range():
    other = TENANT / "user:70"
    rows = filled(Key(TENANT, "x"), Key(other, "x"), Key(USER, "x"))
    # the separator "/" (0x2F) sorts before "0" (0x30): "user:7/" before "user:70/"
    rows.compact()
    assert [rows.key(row).scope for row in range(3)] == [TENANT, USER, other]
    assert rows.blocks(StoreQuery("", [USER])).ranges == ((0, 2),)
    assert rows.blocks(StoreQuery("", [other])).ranges == ((0, 1), (2, 3))


def test_subtree_is_one_range_and_never_takes_a_name_that_only_starts_alike():
    rows = filled(
        Key(Scope.parse("t:a"), "1"),
        Key(Scope.parse("t:a/u:1"), "2"),
        Key(Scope.parse("t:a0"), "3"),
    )
    query = StoreQuery("", [Scope.parse("t:a")], reach=Reach.SUBTREE)
    assert rows.blocks(query).ranges == ((0, 2),)
    assert rows.distances(query, np.arange(3)).tolist() == [0, 0, -1]


def test_subtree_sees_new_scopes_in_the_tail():
    rows = filled(Key(TENANT, "a"))
    rows.add([Key(SESSION, "b"), Key(Scope.parse("tenant:acme-corp"), "c")], [1, 2])
    query = StoreQuery("", [TENANT], reach=Reach.SUBTREE)
    assert rows.visible(query).tolist() == [0, 1]
    assert rows.visible(query, 1).tolist() == []


def test_visible_hides_the_farther_of_two_rows_with_one_id_at_every_level():
    rows = filled(Key(TENANT, "a"), Key(TENANT, "b"), Key(USER, "a"))
    query = StoreQuery("", [USER])
    assert rows.visible(query).tolist() == [1, 2]
    assert rows.visible(query, 1).tolist() == [1]
    assert rows.locate(query, ["a", "b"]).tolist() == [2, 1]


def test_visible_shows_the_farther_row_when_the_nearer_is_not_admitted():
    rows = filled(Key(TENANT, "a"), Key(USER, "a"))
    query = StoreQuery("", [USER], admitted=np.array([True, False]))
    assert rows.visible(query).tolist() == [0]
    assert rows.locate(query, ["a"]).tolist() == [0]


def test_visible_of_two_scopes_equally_near_shows_the_first_named_ones_row():
    left, right = TENANT / "user:1", TENANT / "user:2"
    rows = filled(Key(left, "a"), Key(right, "a"))
    assert rows.visible(StoreQuery("", [right, left])).tolist() == [1]
    assert rows.visible(StoreQuery("", [left, right])).tolist() == [0]


def test_admitted_counts_serials_outside_the_mask_and_negative_ones_as_not_admitted():
    rows = ScopedRows()
    rows.add([Key(TENANT, name) for name in "abc"], [-1, 0, 1])
    assert rows.visible(StoreQuery("", [TENANT], admitted=np.array([True]))).tolist() == [1]
    assert rows.visible(StoreQuery("", [TENANT], admitted=np.zeros(0, bool))).tolist() == []
    assert rows.visible(StoreQuery("", [TENANT])).tolist() == [0, 1, 2]
    rows.renumber(np.array([1]), [7])
    assert rows.visible(StoreQuery("", [TENANT], admitted=np.array([True]))).tolist() == []


def test_an_id_held_at_very_many_scopes_is_still_located_at_the_nearest():
    scopes = [TENANT / f"user:{number:03}" for number in range(100)]
    rows = filled(*(Key(scope, "name") for scope in scopes))
    late = [TENANT / f"user:{number:03}" for number in range(100, 110)]
    rows.add([Key(scope, "name") for scope in late], range(100, 110))
    assert rows.locate(StoreQuery("", [scopes[42]]), ["name"]).tolist() == [42]
    assert rows.locate(StoreQuery("", [late[3] / "session:1"]), ["name"]).tolist() == [103]
    assert rows.locate(StoreQuery("", [TENANT]), ["name"]).tolist() == [-1]
    everything = StoreQuery("", [TENANT], reach=Reach.SUBTREE)
    assert rows.locate(everything, ["name"]).tolist() == rows.visible(everything).tolist() == [0]
    assert rows.remove([Key(late[3], "name"), Key(scopes[42], "name")]).tolist() == [103, 42]
    assert rows.locate(StoreQuery("", [scopes[42]]), ["name"]).tolist() == [-1]


def test_needs_compaction_counts_tail_and_dead_rows():
    keys = [Key(TENANT, f"{number:05}") for number in range(2048)]
    rows = filled(*keys[:1024])
    rows.add(keys[1024:], range(1024, 2048))
    assert not rows.needs_compaction  # 1,024 in the tail
    rows.remove(keys[:1])
    assert rows.needs_compaction  # 1,024 + 1 dead
    rows.compact()
    assert not rows.needs_compaction
    assert len(rows) == rows.size == rows.sorted_rows == 2047


def test_compact_of_an_empty_or_emptied_instance_leaves_nothing():
    rows = ScopedRows()
    assert rows.compact().tolist() == []
    rows.add([Key(TENANT, "a")], [0])
    rows.remove([Key(TENANT, "a")])
    assert rows.compact().tolist() == []
    assert (rows.size, len(rows)) == (0, 0)
    assert rows.visible(StoreQuery("", [TENANT])).tolist() == []
    assert rows.locate(StoreQuery("", [TENANT]), ["a"]).tolist() == [-1]
    assert rows.locate(StoreQuery("", [TENANT]), []).tolist() == []


def test_row_blocks_of_nothing_have_no_rows():
    nothing = np.empty(0, dtype=np.int64)
    blocks = RowBlocks((), nothing, nothing)
    assert blocks.count == 0
    assert blocks.rows().tolist() == []

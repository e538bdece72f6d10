"""Which rows have a vector, and at which slot of the arena."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.stores._scopes import RowBlocks
from rankblend.stores.vectors._slots import VectorSlots


def of(*batches: list[bool]) -> VectorSlots:
    slots = VectorSlots()
    for batch in batches:
        slots.append(np.array(batch, dtype=np.bool_))
    return slots


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_find_gives_the_slot_of_a_row_and_none_where_there_is_no_vector() -> None:
    slots = of([True, False], [], [False, True, True])
    assert len(slots) == 3
    assert slots.find(rows(4, 0, 1, -1, 3, 2)).tolist() == [2, 0, -1, -1, 1, -1]
    assert slots.find(rows()).tolist() == []
    assert VectorSlots().find(rows(-1)).tolist() == [-1]


def test_cut_drops_the_rows_behind_and_their_slots() -> None:
    slots = of([True, False, True, True])
    slots.cut(9)
    assert len(slots) == 3
    slots.cut(2)
    assert len(slots) == 1
    slots.append(np.array([False, True]))
    assert slots.occupied.tolist() == [True, False, False, True]
    assert slots.find(rows(2, 3)).tolist() == [-1, 1]


def test_blocks_in_slots_leave_out_what_has_no_vector() -> None:
    slots = of([False, True, True, False, False, True, False, True])
    blocks = slots.blocks(RowBlocks(((0, 3), (3, 5)), rows(0, 2, 4), rows(6, 7)))
    assert (blocks.ranges, blocks.excluded.tolist(), blocks.tail.tolist()) == (((0, 2),), [1], [3])


@given(
    occupied=st.lists(st.booleans(), max_size=30),
    cuts=st.lists(st.integers(0, 30), min_size=4, max_size=4),
)
def test_blocks_in_slots_are_the_rows_with_a_vector(occupied: list[bool], cuts: list[int]) -> None:
    slots = of(occupied)
    a, b, c, d = sorted(min(cut, len(occupied)) for cut in cuts)
    ranges = tuple((start, stop) for start, stop in ((a, b), (b, c)) if start < stop)
    excluded = rows(*(row for row in range(a, c) if row % 3 == 0))
    blocks = RowBlocks(ranges, excluded, rows(*range(d, len(occupied))))
    wanted = [row for row in blocks.rows().tolist() if occupied[row]]
    found = slots.blocks(blocks)
    assert slots.rows(found.rows()).tolist() == wanted
    assert slots.find(rows(*wanted)).tolist() == found.rows().tolist()
    assert found.count == len(wanted)
    assert all(start < stop for start, stop in found.ranges)

"""Which rows hold an id, when entering them is stopped half-way."""

from __future__ import annotations

import pytest

from rankblend.relevance import Scope
from rankblend.stores import Key, StoreQuery
from rankblend.stores._rows import HeldIds, ScopedRows

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:1"


class NoRoom(str):
    """An id for which memory runs out, after it was looked up a few times."""

    left = 0

    def __hash__(self) -> int:
        if not self.left:
            raise MemoryError
        self.left -= 1
        return super().__hash__()


def state(held: HeldIds) -> tuple[object, ...]:
    return (
        {i: [*rows] if isinstance(rows, list) else rows for i, rows in held.rows.items()},
        held.several,
        len(held.groups),
    )


def test_enter_when_stopped_half_way_then_as_before() -> None:
    held = HeldIds()
    held.enter(["a", "b", "a"])
    held.enter(["b"])
    before = state(held)
    with pytest.raises(MemoryError):
        held.enter(["c", "a", "b", "c", NoRoom("d"), "e"])
    assert state(held) == before
    held.enter(["a", "e"])
    assert held.rows == {"a": [0, 2, 4], "b": [1, 3], "e": 5}
    assert held.groups[0] == held.groups[2] == held.groups[4] != held.groups[1]
    assert held.groups[5] == 0


@pytest.mark.parametrize("first", [["a", NoRoom("b")], ["a", "a", NoRoom("b")]])
def test_enter_when_the_first_rows_are_stopped_then_nothing_is_held(first) -> None:
    held = HeldIds()
    with pytest.raises(MemoryError):
        held.enter(first)
    held.enter(["x", "a"])
    assert state(held) == ({"x": 0, "a": 1}, 0, 2)


def test_rows_that_could_not_be_entered_are_not_there_and_do_not_shift_the_next_ones() -> None:
    rows = ScopedRows()
    rows.add([Key(TENANT, "m"), Key(USER, "m")], [0, 1])
    late = NoRoom("o")
    late.left = 3  # while the keys are checked
    with pytest.raises(MemoryError):
        rows.add([Key(USER, "n"), Key(USER, late)], [2, 3])
    assert late.left == 0
    assert rows.size == 2
    assert rows.row(Key(USER, "n")) is None
    assert rows.add([Key(TENANT, "n"), Key(USER, "n")], [2, 3]).tolist() == [2, 3]
    assert rows.visible(StoreQuery("", [USER])).tolist() == [1, 3]

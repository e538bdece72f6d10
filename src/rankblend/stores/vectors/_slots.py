"""Which rows of an index have a vector, and where in the arena it is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankblend.stores._arrays import Growing
from rankblend.stores._scopes import RowBlocks


class VectorSlots:
    """Rows, some of them with a vector, and the slots of the arena, one for each vector.

    ::

        row    0  1  2  3  4  5        a memory without a vector has a row, so that it is known and
        slot   0  1  ·  2  ·  3        hides farther ones with its id, but nothing to be scanned

    Slots are in the order of their rows, so a range of rows is a range of slots, and one number a
    row says everything: how many vectors there are before it. Whether a row has a vector is settled
    when it is added.
    """

    def __init__(self) -> None:
        self._before = Growing(np.zeros(1, dtype=np.int32))

    def __len__(self) -> int:
        """How many slots there are."""
        return int(self._before.values[-1])

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """bool, shape (rows,): whether each row has a vector."""
        before = self._before.values
        return before[1:] > before[:-1]

    def append(self, occupied: NDArray[np.bool_]) -> None:
        """Add rows; those with a vector get the next slots."""
        self._before.extend(len(self) + np.cumsum(occupied, dtype=np.int32))

    def cut(self, rows: int) -> None:
        """Drop what lies behind the first ``rows``."""
        self._before.cut(rows + 1)

    def find(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, shape (n,): the slot of each row, −1 where it has no vector; −1 for row −1."""
        before = self._before.values
        if len(self) == len(before) - 1:
            return rows
        slots = before[rows].astype(np.int64)
        slots[(rows < 0) | (before[rows + 1] == slots)] = -1
        return slots

    def rows(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, shape (n,): the row of each slot."""
        before = self._before.values
        if len(self) == len(before) - 1:
            return slots
        # the last of the rows with so many vectors before them; those ahead of it have none
        return np.searchsorted(before, slots.astype(before.dtype), side="right") - 1

    def blocks(self, blocks: RowBlocks) -> RowBlocks:
        """The same in slots: of the rows, those that have a vector."""
        before = self._before.values
        if len(self) == len(before) - 1:
            return blocks
        ranges = [(int(before[start]), int(before[stop])) for start, stop in blocks.ranges]
        excluded, tail = self.find(blocks.excluded), self.find(blocks.tail)
        return RowBlocks(
            tuple((start, stop) for start, stop in ranges if start < stop),
            excluded[excluded >= 0],
            tail[tail >= 0],
        )

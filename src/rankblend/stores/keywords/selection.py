"""Which rows count, in the terms of an index: slices of the postings, and rows to look into."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.stores.sight import RowBlocks

__all__ = ["Selection", "select"]

# Slicing the postings of unsorted rows reads all of them; below a share of them it is quicker to
# look into the rows wanted.
_SLICING_PAYS = 8


@frozen(eq=False)
class Selection:
    """A set of rows.

    Args:
        ranges: Disjoint ``(start, stop)``, ascending: rows whose postings are read.
        excluded: int64: rows inside the ranges that do not belong.
        scanned: int64, ascending: rows outside the ranges, whose tokens are read one by one.
    """

    ranges: tuple[tuple[int, int], ...]
    excluded: NDArray[np.int64]
    scanned: NDArray[np.int64]

    def left_out(self, rows: int) -> NDArray[np.bool_] | None:
        """bool, shape (rows,): True for excluded rows; None when there are none."""
        if not len(self.excluded):
            return None
        mask = np.zeros(rows, dtype=np.bool_)
        mask[self.excluded] = True
        return mask


def select(blocks: RowBlocks, *, sorted_rows: int, covered: int) -> Selection:
    """Say with postings what `ScopedRows` says with ranges and a tail.

    ::

        row   0 ........ sorted_rows ........ covered ........ size
              in the postings,       in the postings,  not yet in
              sorted by scope        in any order      the postings

    Args:
        blocks: The rows, as `ScopedRows` has them.
        sorted_rows: Rows sorted by scope, ≤ ``covered``.
        covered: Rows the postings cover.
    """
    tail = blocks.tail
    middle = tail[: np.searchsorted(tail, covered)]
    width = covered - sorted_rows
    if len(middle) * _SLICING_PAYS <= width:
        return Selection(blocks.ranges, blocks.excluded, tail)
    others = np.ones(width, dtype=np.bool_)
    others[middle - sorted_rows] = False
    return Selection(
        (*blocks.ranges, (sorted_rows, covered)),
        np.concatenate([blocks.excluded, np.flatnonzero(others) + sorted_rows]),
        tail[len(middle) :],
    )

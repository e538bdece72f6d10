"""Filling an index of vectors all at once, from whoever keeps them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.stores.arena import VectorArena
from rankblend.stores.rows import ScopedRows
from rankblend.stores.unit_vectors import make_units
from rankblend.stores.vector_slots import VectorSlots

__all__ = ["VectorReader", "loaded_vectors"]

VectorReader = Callable[[Callable[[int], NDArray[np.float32]]], NDArray[np.bool_]]
"""Fills a matrix with the vectors of some rows.

Is given a function that makes room for vectors of some dimension, float32, shape (rows, d), zeros;
it is called once, or not at all when there are no vectors. Returns bool, shape (rows,): the rows
that have a vector.
"""


def loaded_vectors(
    rows: ScopedRows, read: VectorReader, dimension: int | None
) -> tuple[VectorSlots, VectorArena | None]:
    """The vectors of some rows, read straight to where they stay: there is never a second copy.

    Args:
        rows: Whose.
        read: Reads them.
        dimension: What theirs must be; None: any.

    Raises:
        InvalidArrayError: Another dimension; NaN, infinity, or only zeros.
    """
    arena = None if dimension is None else VectorArena(dimension)

    def room(found: int) -> NDArray[np.float32]:
        nonlocal arena
        if dimension not in (None, found):
            raise InvalidArrayError("vectors", f"{dimension} numbers", f"shape ({found},)")
        arena = VectorArena(found)
        return arena.room(rows.size)

    slots = VectorSlots()
    slots.append(read(room))
    if arena is not None and len(arena):
        arena.keep(slots.occupied)
        held = slots.rows(np.arange(len(slots)))
        make_units(arena.matrix, lambda at: f"vector (id {rows.ids[held[at]]!r})")
    return slots, arena

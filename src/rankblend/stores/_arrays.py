"""An array that can be added to at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Growing:
    """An array, of whatever shape, with room for more rows behind the last.

    It is filled exactly at first (a bulk load stays tight) and then grows by a quarter.

    Args:
        values: What it starts with.
        widens: Whether its dtype follows values that need a wider one; else they are converted.
    """

    __slots__ = ("_data", "_size", "_widens")

    def __init__(self, values: NDArray[Any], *, widens: bool = False) -> None:
        self._data = values
        self._size = len(values)
        self._widens = widens

    def __len__(self) -> int:
        """How many rows there are."""
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """What was added so far, as a view to read and write; adding may leave it behind."""
        return self._data[: self._size]

    def cut(self, size: int) -> None:
        """Drop what lies behind the first ``size``."""
        self._size = min(self._size, size)

    def extend(self, values: ArrayLike) -> None:
        """Add values at the end."""
        values = np.asarray(values, dtype=None if self._widens else self._data.dtype)
        if self._widens and values.dtype != self._data.dtype:
            widest = np.promote_types(self._data.dtype, values.dtype)
            self._data = self._data.astype(widest, copy=False)
        self.room(len(values))[...] = values

    def room(self, rows: int) -> NDArray[Any]:
        """Add rows, to be filled before more are added; zeros unless something was cut there."""
        first, size = self._size, self._size + rows
        if size > len(self._data):
            self._data = grown(self.values, max(size, first * 5 // 4))
        self._size = size
        return self._data[first:size]


def grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    """A copy of an array, of whatever shape, with zeros behind it: ``room`` rows in all."""
    copied = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    copied[: len(array)] = array
    return copied

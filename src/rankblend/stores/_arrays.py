"""An array that can be added to at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Growing:
    """A one-dimensional integer array with room to grow.

    It is filled exactly at first (a bulk load stays tight) and then grows by a quarter; its dtype
    widens when values arrive that need it.

    Args:
        values: What it starts with.
    """

    def __init__(self, values: NDArray[np.integer]) -> None:
        self._data = values
        self._size = len(values)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[np.integer]:
        """What was added so far, as a view; adding may leave it behind."""
        return self._data[: self._size]

    def cut(self, size: int) -> None:
        """Drop what lies behind the first ``size``."""
        self._size = min(self._size, size)

    def extend(self, values: NDArray[np.integer]) -> None:
        """Add values at the end."""
        size = self._size + len(values)
        dtype = np.promote_types(self._data.dtype, values.dtype)
        if size > len(self._data) or dtype != self._data.dtype:
            room = size if not self._size else max(size, self._size * 5 // 4)
            self._data = grown(self.values.astype(dtype, copy=False), room)
        self._data[self._size : size] = values
        self._size = size


def grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    """A copy of an array, of whatever shape, with zeros behind it: ``room`` rows in all."""
    copied = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    copied[: len(array)] = array
    return copied

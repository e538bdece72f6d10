"""A numpy column that grows at its end: amortised appends, the filled part as one array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rankblend.stores.growing import grown

__all__ = ["Column"]


class Column:
    """A one-dimensional array with room to grow.

    `values` is a view of the filled part: writing into it changes the column. It is valid until the
    next `extend`.
    """

    __slots__ = ("_room", "_size")

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Any] = np.empty(16, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """The filled part, shape (n,)."""
        return self._room[: self._size]

    def extend(self, values: ArrayLike) -> None:
        """Append values of any length."""
        new = np.asarray(values, dtype=self._room.dtype)
        size = self._size + len(new)
        if size > len(self._room):
            self._room = grown(self.values, max(size, 2 * len(self._room)))
        self._room[self._size : size] = new
        self._size = size

    def append(self, value: object) -> None:
        """Append one value."""
        self.extend(np.array([value]))

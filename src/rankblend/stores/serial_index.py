"""Which row of an index holds each serial."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SerialIndex"]


class SerialIndex:
    """Serial → row, brought up to date when it is asked; an index nobody asks costs nothing."""

    def __init__(self) -> None:
        self._rows = np.empty(0, dtype=np.int32)
        self._entered = 0

    def enter(self, serials: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Note the serials of rows, ``serials`` being those of all rows."""
        found = serials[rows]
        most = int(found.max(initial=-1))
        if most >= len(self._rows):
            grown = np.full(max(most + 1, len(self._rows) * 5 // 4), -1, dtype=np.int32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        numbered = found >= 0
        self._rows[found[numbered]] = rows[numbered]

    def find(
        self, asked: NDArray[np.int64], serials: NDArray[np.int64], alive: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """int64, shape (n,): the living row of each serial, −1 where there is none.

        Args:
            asked: Serials ≥ 0, shape (n,).
            serials: Those of all rows; a living one occurs once.
            alive: bool, of all rows.
        """
        if self._entered < len(serials):
            self.enter(serials, np.arange(self._entered, len(serials)))
            self._entered = len(serials)
        if not len(self._rows):
            return np.full(len(asked), -1, dtype=np.int64)
        rows = self._rows.take(asked, mode="clip").astype(np.int64)
        # Where there is none, −1 is the last row, which holds another serial, or is dead.
        held = (serials[rows] == asked) & alive[rows]
        return rows if held.all() else np.where(held, rows, -1)

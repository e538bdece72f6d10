"""Ids that carry the serials of the memories they name."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

__all__ = ["NumberedIds"]


class NumberedIds(list[str]):
    """What the stores of one memory tell each other: ids, each with the serial of its memory.

    To whoever knows no serials it is a list of ids like any other. A store that keeps serials finds
    its rows by them in a few microseconds, where looking up ids takes some for each of them. Not to
    be changed after it was made.

    Args:
        ids: n ids.
        serials: int64, shape (n,): `Record.serial` of each; a negative one says nothing.

    Attributes:
        numbered: Whether every serial says something.
    """

    __slots__ = ("numbered", "serials")

    def __init__(self, ids: Iterable[str], serials: NDArray[np.int64]) -> None:
        super().__init__(ids)
        self.serials = serials
        self.numbered = bool(serials.min(initial=0) >= 0)

    @classmethod
    def joined(cls, lists: Iterable[NumberedIds]) -> NumberedIds:
        """Several lists as one, repeats included."""
        parts = list(lists)
        none = np.empty(0, dtype=np.int64)
        return cls(chain.from_iterable(parts), np.concatenate([none, *(p.serials for p in parts)]))

    def take(self, positions: NDArray[np.int64]) -> NumberedIds:
        """Those at some positions."""
        return NumberedIds([self[at] for at in positions.tolist()], self.serials[positions])

"""The forward index: for each row the distinct tokens of its text, with their counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankblend.stores.growing import Growing

__all__ = ["ForwardIndex", "narrowed", "ragged"]

_STEP = 8192  # rows moved at once


class ForwardIndex:
    """What each row holds; answers for given rows, and is what the postings are made from.

    Attributes:
        lengths: int32, shape (rows,): what BM25 calls the length: terms, repeats counted.
    """

    def __init__(self) -> None:
        self._ends = Growing(np.empty(0, dtype=np.int64))
        self._tokens = Growing(np.empty(0, dtype=np.int32))
        self._counts = Growing(np.empty(0, dtype=np.uint8))
        self._lengths = Growing(np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        """Rows, dead ones included."""
        return len(self._ends)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64, shape (rows,): distinct tokens of each row."""
        return np.diff(self._ends.values, prepend=np.int64(0))

    @property
    def tokens(self) -> NDArray[np.integer]:
        """int32: the tokens of all rows, row after row, ascending within a row."""
        return self._tokens.values

    @property
    def counts(self) -> NDArray[np.integer]:
        """Unsigned, aligned with ``tokens``: how often the row holds the token, ≥ 1."""
        return self._counts.values

    @property
    def lengths(self) -> NDArray[np.integer]:
        """int32, shape (rows,)."""
        return self._lengths.values

    def append(
        self,
        sizes: NDArray[np.integer],
        tokens: NDArray[np.integer],
        counts: NDArray[np.integer],
        lengths: NDArray[np.integer],
    ) -> None:
        """Add rows at the end; the arguments are like the attributes of the same names."""
        self._ends.extend(len(self._tokens) + np.cumsum(sizes, dtype=np.int64))
        self._tokens.extend(tokens)
        self._counts.extend(narrowed(counts))
        self._lengths.extend(lengths)

    def start(self, row: int) -> int:
        """Where the tokens of a row begin; for ``row == len(self)`` where they all end."""
        return int(self._ends.values[row - 1]) if row else 0

    def row_at(self, token: int) -> int:
        """How many rows end at or before a place among the tokens."""
        return int(np.searchsorted(self._ends.values, token, side="right"))

    def span(self, first: int, stop: int) -> tuple[NDArray[np.int64], slice]:
        """The rows from ``first`` up to ``stop``: (row of each entry, where the entries are)."""
        rows = np.arange(first, stop, dtype=np.int64)
        return np.repeat(rows, self.sizes[first:stop]), slice(self.start(first), self.start(stop))

    def entries(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of rows in any order: (position in ``rows`` of each entry, where the entry is)."""
        ends = self._ends.values
        starts = np.where(rows > 0, ends[rows - 1], 0).astype(np.int64, copy=False)
        return ragged(starts, np.asarray(ends[rows] - starts, dtype=np.int64))

    def reordered(self, order: NDArray[np.int64], renamed: NDArray[np.int32]) -> ForwardIndex:
        """Another index whose row i is row ``order[i]``.

        Args:
            order: int64: rows of this index.
            renamed: Old number of a token → new number, in the same order.
        """
        tokens, counts = [self.tokens[:0]], [self.counts[:0]]
        # In steps, so that what is needed only on the way stays small beside the index itself.
        for first in range(0, len(order), _STEP):
            _, places = self.entries(order[first : first + _STEP])
            tokens.append(renamed[self.tokens[places]])
            counts.append(self.counts[places])
        index = ForwardIndex()
        index.append(
            self.sizes[order], np.concatenate(tokens), np.concatenate(counts), self.lengths[order]
        )
        return index


def ragged(
    starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places ``starts[i] … starts[i] + sizes[i] − 1`` for each i: (i of each place, place)."""
    slots = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    before = np.cumsum(sizes) - sizes
    return slots, np.arange(len(slots), dtype=np.int64) + (starts - before)[slots]


def narrowed(counts: NDArray[np.integer]) -> NDArray[np.integer]:
    """The same counts in the narrowest unsigned dtype; nearly every word occurs < 256 times."""
    most = int(counts.max()) if len(counts) else 0
    return counts.astype(np.min_scalar_type(most), copy=False)

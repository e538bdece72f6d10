"""The postings: for each stem the rows that hold it, ascending, with its counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.stores.keywords.forward import narrowed

__all__ = ["Occurrences", "Postings", "positions"]


@frozen(eq=False)
class Occurrences:
    """Where terms of a query occur. Within one row they are in the order of the query.

    Args:
        rows: int, shape (m,).
        terms: int64, shape (m,): which of the query's terms.
        counts: int, shape (m,): how often, ≥ 1.
    """

    rows: NDArray[np.integer]
    terms: NDArray[np.int64]
    counts: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: NDArray[np.bool_]) -> Occurrences:
        """Only some of them."""
        return Occurrences(self.rows[kept], self.terms[kept], self.counts[kept])


class Postings:
    """Rows by stem, for all rows below ``rows``; later ones are found in the forward index.

    Rows are sorted by scope, so what a query sees of a stem's rows are slices found by binary
    search: 8 terms in 0.1 % of 100,000 rows take as long as in a store of 100.

    Attributes:
        rows: How many rows it covers.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._ends = np.empty(0, dtype=np.int64)
        self._rows: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._counts: NDArray[np.integer] = np.empty(0, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.integer]]:
        """How many rows each stem has, the rows stem after stem, and the counts."""
        return np.diff(self._ends, prepend=np.int64(0)), self._rows, self._counts

    def load(
        self,
        rows: int,
        sizes: NDArray[np.integer],
        held: NDArray[np.integer],
        counts: NDArray[np.integer],
    ) -> None:
        """Replace everything; inverse of ``rows`` and ``arrays``.

        Raises:
            ValueError: The arrays do not belong together.
        """
        ends = np.cumsum(sizes, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        if total != len(held) or len(held) != len(counts) or (sizes < 0).any():
            raise ValueError("postings differ in number")
        if len(held) and not (held.min() >= 0 and held.max() < rows):
            raise ValueError("postings name rows that are not there")
        self.rows = rows
        self._ends = ends
        self._rows = held.astype(np.int32, copy=False)
        self._counts = counts

    def merge(
        self,
        rows: int,
        stems: NDArray[np.integer],
        held: NDArray[np.int64],
        counts: NDArray[np.integer],
        *,
        words: int,
    ) -> None:
        """Cover the rows up to ``rows`` too.

        Args:
            rows: How many rows are covered afterwards.
            stems: A stem of each entry, ≥ 0; one row may name it several times (as "run" and as
                "running"), and the counts are summed.
            held: int64, shape (m,): the row of each entry, in [self.rows, rows).
            counts: Shape (m,), ≥ 1.
            words: Size of the vocabulary.
        """
        # Repeating an entry by its count makes counting and sorting one step, and sorting plain
        # int64 is several times faster than sorting an index of it.
        keys = np.repeat((stems.astype(np.int64) << 32) | held, counts)
        keys, sums = np.unique(keys, return_counts=True)
        terms, held = keys >> 32, keys & 0xFFFFFFFF
        ends = np.zeros(words, dtype=np.int64)
        ends[: len(self._ends)] = self._ends
        ends[len(self._ends) :] = len(self._rows)
        if len(self._rows):
            # Later rows have greater numbers: they belong at the end of each stem's rows.
            self._rows = np.insert(self._rows, ends[terms], held.astype(np.int32))
            dtype = np.promote_types(self._counts.dtype, narrowed(sums).dtype)
            self._counts = np.insert(self._counts.astype(dtype, copy=False), ends[terms], sums)
        else:
            self._rows, self._counts = held.astype(np.int32), narrowed(sums)
        self._ends = ends + np.cumsum(np.bincount(terms, minlength=words))
        self.rows = rows

    def slices(
        self, stems: NDArray[np.int64], ranges: Sequence[tuple[int, int]]
    ) -> NDArray[np.int64]:
        """Where each stem's rows inside some row ranges are.

        Returns:
            int64, shape (stems, ranges, 2): start and stop in the postings.
        """
        cuts = np.zeros((len(stems), 2 * len(ranges)), dtype=np.int64)
        if ranges == ((0, self.rows),):  # all there are: nothing to search
            held = stems < len(self._ends)
            known = stems[held]
            cuts[held, 0] = np.where(known > 0, self._ends[known - 1], 0)
            cuts[held, 1] = self._ends[known]
            return cuts.reshape(len(stems), 1, 2)
        # searchsorted copies the postings when the dtypes differ
        edges = np.array(ranges, dtype=self._rows.dtype).ravel()
        for at, stem in enumerate(stems.tolist()):
            if stem < len(self._ends):
                start = int(self._ends[stem - 1]) if stem else 0
                cuts[at] = self._rows[start : self._ends[stem]].searchsorted(edges)
                cuts[at] += start
        return cuts.reshape(len(stems), len(ranges), 2)

    def read(self, slices: NDArray[np.int64]) -> Occurrences:
        """What `slices` found, stem after stem."""
        spans = [(start, stop) for start, stop in slices.reshape(-1, 2).tolist() if start < stop]
        sizes = (slices[:, :, 1] - slices[:, :, 0]).sum(axis=1)
        nothing = (0, 0)
        return Occurrences(
            np.concatenate([self._rows[start:stop] for start, stop in spans or [nothing]]),
            np.repeat(np.arange(len(slices), dtype=np.int64), sizes),
            np.concatenate([self._counts[start:stop] for start, stop in spans or [nothing]]),
        )


def positions(
    values: NDArray[np.integer], wanted: NDArray[np.int64], *, below: int
) -> NDArray[np.signedinteger]:
    """Where in ``wanted`` each value is; −1 where it is not.

    Args:
        values: int, shape (n,), in [−2, below); negative ones are never found.
        wanted: int64, shape (t,), distinct, in [0, below).
        below: A table this long is used when ``values`` are many.
    """
    if not len(wanted):
        return np.full(len(values), -1, dtype=np.int64)
    if 4 * len(values) > below:
        # narrow, so that it stays in the cache
        table = np.full(below + 2, -1, dtype=np.min_scalar_type(-len(wanted)))
        table[wanted] = np.arange(len(wanted))
        return np.asarray(table[values])  # −1 and −2 read the two last places
    order = np.argsort(wanted)
    ascending = wanted[order]
    found = np.minimum(np.searchsorted(ascending, values), len(wanted) - 1)
    return np.where(ascending[found] == values, order[found], -1)

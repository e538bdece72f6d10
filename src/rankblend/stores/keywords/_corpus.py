"""The memories keyword statistics are taken over."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from rankblend.caches import Lru
from rankblend.relevance import Scope
from rankblend.stores._protocol import Reach, Statistics, StoreQuery
from rankblend.stores._rows import ScopedRows
from rankblend.stores._scopes import RowBlocks
from rankblend.stores.keywords._index import Selection, TokenIndex, select

_KEPT = 64  # tenants remembered


@frozen(eq=False)
class Corpus:
    """Memories that count, how many they are, and how long together.

    Args:
        selection: Their rows.
        memories: How many.
        length: Sum of their lengths in terms.
    """

    selection: Selection
    memories: int
    length: int


class Corpora:
    """Finds the corpus of a query, and remembers those of whole tenants.

    Holds for one numbering of the rows: after a compaction a new one is needed.
    """

    def __init__(self, rows: ScopedRows, index: TokenIndex) -> None:
        self._rows = rows
        self._index = index
        # of the sorted rows, by root
        self._ranges: Lru[str, tuple[tuple[int, int], ...]] = Lru(_KEPT)
        self._sorted_rows = rows.sorted_rows
        self._known: Lru[str, Corpus] = Lru(_KEPT)

    def forget(self) -> None:
        """Something was written: count anew."""
        self._known.clear()
        if self._sorted_rows != self._rows.sorted_rows:  # the first, already sorted load
            self._sorted_rows = self._rows.sorted_rows
            self._ranges.clear()

    def find(self, query: StoreQuery) -> list[Corpus]:
        """Disjoint parts of what the statistics of a query are taken over.

        ``root``: everything alive below each of the query's first scope levels; ``visible``: what a
        result may show; ``store``: everything alive. The level that proposals are limited to plays
        no part.
        """
        if query.statistics is Statistics.VISIBLE:
            return [self._corpus(self._rows.blocks(query))]
        roots = [None] if query.statistics is Statistics.STORE else query.roots
        return [self._remembered(root) for root in roots]

    def _remembered(self, root: Scope | None) -> Corpus:
        path = "" if root is None else root.path
        return self._known.get(path, lambda: self._corpus(self._alive(root)))

    def _corpus(self, blocks: RowBlocks) -> Corpus:
        selection = select(
            blocks, sorted_rows=self._rows.sorted_rows, covered=self._index.postings.rows
        )
        lengths = self._index.forward.lengths
        length = sum(int(lengths[start:stop].sum()) for start, stop in blocks.ranges)
        length += int(lengths[blocks.tail].sum()) - int(lengths[blocks.excluded].sum())
        return Corpus(selection, blocks.count, length)

    def _alive(self, root: Scope | None) -> RowBlocks:
        """All rows alive below a scope, or all; also those a nearer memory with the same id hides."""
        end, alive = self._rows.sorted_rows, self._rows.alive
        tail = np.flatnonzero(alive[end:]) + end
        if root is None:
            ranges: tuple[tuple[int, int], ...] = ((0, end),) if end else ()
        else:
            below = StoreQuery("", (root,), reach=Reach.SUBTREE)
            tail = tail[self._rows.distances(below, tail) >= 0]
            ranges = self._ranges.get(root.path, lambda: self._rows.blocks(below).ranges)
        dead = [np.flatnonzero(~alive[start:stop]) + start for start, stop in ranges]
        return RowBlocks(ranges, np.concatenate([tail[:0], *dead]), tail)

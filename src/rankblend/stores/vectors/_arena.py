"""The vectors of one index in one block of memory that FAISS scans and numpy reads.

FAISS proposes, it does not decide. Its inner products are float32 and their last bits depend on
how many queries are asked together, so `best_rows` returns every row that *could* be among the best
`limit`; the caller scores those few with a kernel that treats each row alone and cuts there.

How far a float32 inner product of two unit vectors can be from the exact one, whatever the order of
summation: γ_d = d·u / (1 − d·u) with u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., §3.1). Rows further than 2·γ_d below the limit-th best cannot be among the best.

A single query is answered by one thread, without BLAS: threads that wait for each other stand still
for milliseconds as soon as there is more to do than there are processors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.kernels.select import kth_greatest
from rankblend.stores._arrays import Growing
from rankblend.stores._scopes import RowBlocks

_UNIT_ROUNDOFF = 2.0**-24
# Rows asked for beyond the limit, so that the boundary is usually clear at once.
_SLACK = 16
# Measured, 384 numbers a row, one thread: for one query the products with adjacent rows take what a
# scan takes that keeps the best (all of `best_rows`: 1,000 rows 35 µs, 10,000 .27 ms), and they wake
# no other thread. Several queries are scanned together, unless a scan would return all of the rows.
# Of a long range a row by itself takes .14 µs, the next row of a scan .05, so it is scanned, rows
# that must not be shown and all, as soon as three rows in ten may be shown.
_MULTIPLIED_ROWS = 10_240
_SCANNED_SHARE = 0.3
# Rows moved at a time: 1,024 × 384 float32 are 1.5 MB and stay in the cache.
_CHUNK = 1024
# FAISS ≥ 1.15 compares queries × dimension with its BLAS threshold, and its default of 128,000
# leaves most batches to the slow path: 64 queries on 100,000 × 384 take 450 ms, through BLAS 68.
_BLAS_FROM = 6000
_NO_ROWS = np.empty(0, dtype=np.int64)

_Scored = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Products with the query, and the rows they belong to."""


def _faiss() -> Any:
    """Imported when the first vector arrives, not with the package (it takes .14 s)."""
    import faiss

    return faiss


class VectorArena:
    """Unit vectors by row, float32, shape (rows, dimension): the only copy in memory.

    It is numpy's, for which Linux provides huge pages where it has them: 100,000 × 384 are scanned
    in 4.7 ms, in pages of 4 kB in 5.7.
    """

    def __init__(self, dimension: int) -> None:
        _faiss()  # here, and not when the first question is asked
        self.dimension = dimension
        self._rows = Growing(np.zeros((0, dimension), dtype=np.float32))  # zeros behind the rows

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    @property
    def matrix(self) -> NDArray[np.float32]:
        """The rows themselves; adding rows may leave the view behind."""
        matrix: NDArray[np.float32] = self._rows.values
        return matrix

    def room(self, rows: int) -> NDArray[np.float32]:
        """Add rows of zeros; float32, shape (rows, d), to be filled before rows are added again.

        Exactly so many at first (a bulk load stays tight), a quarter to spare after that.
        """
        return self._rows.room(rows)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop all rows but some, without a second copy; bool, shape (rows,)."""
        if kept.all():
            return
        sources = np.flatnonzero(kept)
        for start in range(0, len(sources), _CHUNK):
            chunk = sources[start : start + _CHUNK]  # never before the place it moves to
            self.matrix[start : start + len(chunk)] = self.matrix[chunk]
        self.cut(len(sources))

    def cut(self, rows: int) -> None:
        """Drop what lies behind the first ``rows``, and its numbers with it."""
        self.matrix[rows:] = 0.0
        self._rows.cut(rows)

    def reordered(self, order: NDArray[np.int64]) -> VectorArena:
        """A new arena whose row i is row ``order[i]`` of this one, which stays as it is."""
        arena = VectorArena(self.dimension)
        room = arena.room(len(order))
        for start in range(0, len(order), _CHUNK):
            room[start : start + _CHUNK] = self.matrix[order[start : start + _CHUNK]]
        return arena

    def products(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """float32, shape (n,): inner products with some rows."""
        faiss, found = _faiss(), np.empty(len(rows), dtype=np.float32)
        to, vector, matrix, ids = map(faiss.swig_ptr, (found, query, self.matrix, rows))
        with _tuned(1, self.dimension):
            faiss.fvec_inner_products_by_idx(to, vector, matrix, ids, self.dimension, 1, len(rows))
        return found

    def products_in(self, query: NDArray[np.float32], start: int, stop: int) -> NDArray[np.float32]:
        """`products` with the rows of a range."""
        faiss, found = _faiss(), np.empty(stop - start, dtype=np.float32)
        to, vector, matrix = map(faiss.swig_ptr, (found, query, self.matrix[start:stop]))
        faiss.fvec_inner_products_ny(to, vector, matrix, self.dimension, len(found))
        return found

    def search(
        self, queries: NDArray[np.float32], k: int, start: int, stop: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, shape (q, k), best first, of a range; k at most its length."""
        faiss = _faiss()
        with _tuned(len(queries), self.dimension):
            scores, rows = faiss.knn(
                queries, self.matrix[start:stop], k, faiss.METRIC_INNER_PRODUCT
            )
        return scores, rows + start


@frozen(eq=False)
class _Range:
    """Adjacent rows, three in ten or more of which may be shown.

    Args:
        start, stop: The range.
        excluded: int64, ascending: the rows of it that must not be shown.
    """

    start: int
    stop: int
    excluded: NDArray[np.int64]

    def __len__(self) -> int:
        """How many rows, shown or not."""
        return self.stop - self.start

    @property
    def shown(self) -> int:
        """How many rows may be shown."""
        return len(self) - len(self.excluded)

    def asked(self, limit: int) -> int:
        """How many rows to ask for, so that about ``limit`` of them may be shown."""
        return min(len(self), math.ceil((limit + _SLACK) * 1.25 * len(self) / self.shown))

    def allowed(self, scores: NDArray[np.float32], rows: NDArray[np.int64]) -> _Scored:
        """Only what may be shown."""
        if not len(self.excluded):
            return scores, rows
        at = np.searchsorted(self.excluded, rows)
        keep = self.excluded.take(at, mode="clip") != rows
        return scores[keep], rows[keep]

    def products(self, arena: VectorArena, query: NDArray[np.float32]) -> _Scored:
        """All that may be shown."""
        products = arena.products_in(query, self.start, self.stop)
        return self.allowed(products, np.arange(self.start, self.stop))


def best_rows(
    arena: VectorArena, queries: NDArray[np.float32], blocks: RowBlocks, limit: int
) -> list[NDArray[np.int64]]:
    """For each query, few rows that certainly contain the best ``limit``, ties at the end included.

    An approximate index would be one more kind of part here, chosen by ``blocks.count``: exact
    search is faster and better for every scope below about 300,000 rows.

    Args:
        arena: Unit vectors.
        queries: float32, shape (q, d), C-contiguous, unit length.
        blocks: The rows that may be shown.
        limit: ≥ 1.

    Returns:
        int64 arrays, one per query, in no order; each also holds every row whose exact score,
        clipped to [−1, 1], equals the limit-th best.
    """
    if blocks.count <= limit + _SLACK:
        return [blocks.rows()] * len(queries)
    ranges, scattered = _parts(blocks)
    most = _MULTIPLIED_ROWS if len(queries) == 1 else 0
    multiplied, scans = [], []
    for one in ranges:
        asked = one.asked(limit)
        if len(one) <= most or len(one) == asked:
            multiplied.append(one)
        else:
            scans.append((one, *arena.search(queries, asked, one.start, one.stop)))
    found = []
    for at, query in enumerate(queries):
        known = [one.products(arena, query) for one in multiplied]
        if len(scattered):
            known.append((arena.products(query, scattered), scattered))
        scanned = [(one, scores[at], rows[at]) for one, scores, rows in scans]
        found.append(_settled(arena, query, known, scanned, limit))
    return found


def _parts(blocks: RowBlocks) -> tuple[list[_Range], NDArray[np.int64]]:
    """Ranges to look at as such, and rows to look at one by one."""
    ranges, scattered = [], [blocks.tail]
    for start, stop in blocks.ranges:
        one = _Range(start, stop, blocks.excluded_in(start, stop))
        if one.shown < _SCANNED_SHARE * len(one):
            scattered.append(RowBlocks(((start, stop),), one.excluded, _NO_ROWS).rows())
        else:
            ranges.append(one)
    return ranges, np.concatenate(scattered)


def _settled(
    arena: VectorArena,
    query: NDArray[np.float32],
    known: list[_Scored],
    scanned: list[tuple[_Range, NDArray[np.float32], NDArray[np.int64]]],
    limit: int,
) -> NDArray[np.int64]:
    """The rows of one query, after looking at all of a range whose boundary was not clear."""
    parts = [*known, *(one.allowed(scores, rows) for one, scores, rows in scanned)]
    least = _least(parts, limit, arena.dimension)
    for at, (one, scores, _) in enumerate(scanned, start=len(known)):
        # What a scan did not return scores at most as the last that it did. It may have been
        # crowded out by rows that must not be shown, or many rows score alike.
        if scores[-1] >= least:
            parts[at] = one.products(arena, query)
            least = _least(parts, limit, arena.dimension)
    return np.concatenate([rows[scores >= least] for scores, rows in parts])


def _least(parts: list[_Scored], limit: int, dimension: int) -> float:
    """What a row must score in float32 to be possibly among the best ``limit``."""
    scores = np.concatenate([scores for scores, _ in parts])
    if len(scores) < limit:
        return -math.inf
    # Clipped at ±1: rows that equal the query, or its opposite, up to rounding all tie there.
    least = min(kth_greatest(scores, limit), 1.0) - 2.0 * _error_bound(dimension)
    return least if least > -1.0 else -math.inf


def _error_bound(dimension: int) -> float:
    """Greatest error of a float32 inner product of two float32 vectors of unit length."""
    rounding = dimension * _UNIT_ROUNDOFF
    # 1 ppm more for lengths that are 1 only up to rounding
    return 1.000001 * rounding / (1.0 - rounding)


@contextmanager
def _tuned(queries: int, dimension: int) -> Iterator[None]:
    """FAISS' settings for one search; both are global, so they are put back.

    A single query gets one OpenMP thread: the scan waits for memory, a second thread slows it down.
    """
    faiss = _faiss()
    threads, blas_from = faiss.omp_get_max_threads(), faiss.cvar.distance_compute_blas_threshold
    batch = queries * dimension >= _BLAS_FROM and queries > 1
    try:
        if queries == 1:
            faiss.omp_set_num_threads(1)
        if batch and blas_from > _BLAS_FROM:  # older versions: 20, a number of queries
            faiss.cvar.distance_compute_blas_threshold = _BLAS_FROM
        yield
    finally:
        faiss.omp_set_num_threads(threads)
        if batch:
            faiss.cvar.distance_compute_blas_threshold = blas_from

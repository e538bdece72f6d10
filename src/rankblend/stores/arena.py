"""The vectors of one index in one block of memory that FAISS searches and numpy reads.

FAISS proposes, it does not decide. Its inner products are float32 and their last bits depend on
how many queries are asked together, so `best_rows` returns every row that *could* be among the best
`limit`; the caller scores those few with a kernel that treats each row alone and cuts there.

How far a float32 inner product of two unit vectors can be from the exact one, whatever the order of
summation: γ_d = d·u / (1 − d·u) with u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., §3.1). Rows further than 2·γ_d below the limit-th best cannot be among the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.stores.sight import RowBlocks

__all__ = ["VectorArena", "best_rows"]

_UNIT_ROUNDOFF = 2.0**-24
# Rows asked for beyond the limit, so that the boundary is usually clear at once.
_SLACK = 16
# Measured, 100,000 × 384, one thread: up to 2,048 rows one product by BLAS costs less than a FAISS
# call and its Python objects (1,000 in a row .04 ms; .04 to .2 ms); rows scattered over a range are
# gathered up to as many (.1 ms; a bitmap .3 ms), above that a
# bitmap selector takes over, and as soon as three rows in ten may be shown (bitmap 235 ns a row
# shown, plain scan 76 ns a row) the plain scan with over-fetching is the fastest.
_GATHERED_ROWS = 2048
_SCANNED_SHARE = 0.3
# Rows moved or gathered at a time: 1,024 × 384 float32 are 1.5 MB and stay in the cache.
_CHUNK = 1024
# FAISS ≥ 1.15 compares queries × dimension with its BLAS threshold, and its default of 128,000
# leaves most batches to the slow path: 64 queries on 100,000 × 384 take 450 ms, through BLAS 68.
_BLAS_FROM = 6000
_NO_ROWS = np.empty(0, dtype=np.int64)

Selector = Callable[[], Any]


def _faiss() -> Any:
    """Imported when the first vector arrives, not with the package (it takes .14 s)."""
    import faiss

    return faiss


class VectorArena:
    """Unit vectors by row, float32, shape (rows, dimension); FAISS holds the only copy."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._index = _faiss().IndexFlatIP(dimension)
        self._view: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self._index.ntotal)

    @property
    def matrix(self) -> NDArray[np.float32]:
        """The memory of the index itself; valid until rows are added."""
        if self._view is None:
            if not len(self):
                return np.empty((0, self.dimension), dtype=np.float32)
            flat = _faiss().rev_swig_ptr(self._index.get_xb(), len(self) * self.dimension)
            self._view = flat.reshape(len(self), self.dimension)
        return self._view

    def room(self, rows: int) -> NDArray[np.float32]:
        """Add rows of zeros; float32, shape (rows, d), to be filled before rows are added again."""
        self._view = None
        size = len(self)
        self._index.codes.resize((size + rows) * self._index.code_size)
        self._index.ntotal = size + rows
        return self.matrix[size:]

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
        """Drop what lies behind the first ``rows``."""
        if len(self) > rows:
            self._view = None
            self._index.remove_ids(_faiss().IDSelectorRange(rows, len(self)))

    def reordered(self, order: NDArray[np.int64]) -> VectorArena:
        """A new arena whose row i is row ``order[i]`` of this one, which stays as it is."""
        arena = VectorArena(self.dimension)
        room = arena.room(len(order))
        for start in range(0, len(order), _CHUNK):
            room[start : start + _CHUNK] = self.matrix[order[start : start + _CHUNK]]
        return arena

    def products(
        self, queries: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """float32, shape (q, n): inner products with scattered rows."""
        out = np.empty((len(queries), len(rows)), dtype=np.float32)
        for start in range(0, len(rows), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            out[:, chunk] = queries @ self.matrix[rows[chunk]].T
        return out

    def products_in(
        self, queries: NDArray[np.float32], start: int, stop: int
    ) -> NDArray[np.float32]:
        """`products` with the rows of a range, which are not copied."""
        rows = self.matrix[start:stop]
        # a matrix times a vector for a single query: BLAS starts no threads for it
        return (rows @ queries[0])[None] if len(queries) == 1 else queries @ rows.T

    def search(
        self, queries: NDArray[np.float32], k: int, selector: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, shape (q, k), best first; row −1 where there are fewer."""
        with _tuned(len(queries), self.dimension):
            scores, rows = self._index.search(
                queries, k, params=_faiss().SearchParameters(sel=selector)
            )
        return scores, rows

    def above(
        self, query: NDArray[np.float32], least: float, selector: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, shape (n,), of all rows that score at least ``least``, in any order."""
        # FAISS wants a float32 that the score exceeds; two steps down, for rounding and for ≥.
        radius = np.float32(least)
        for _ in range(2):
            radius = np.nextafter(radius, np.float32(-np.inf))
        with _tuned(1, self.dimension):
            _, scores, rows = self._index.range_search(
                query[None], float(radius), params=_faiss().SearchParameters(sel=selector)
            )
        return scores, rows


@frozen(eq=False)
class _Source:
    """Rows that are searched together.

    Args:
        selector: Makes the FAISS selector that lets them through.
        spanned: How many rows that lets through.
        excluded: int64, ascending: those among them that must not be shown.
        shown: int64, ascending, made when needed: the others.
    """

    selector: Selector
    spanned: int
    shown: Callable[[], NDArray[np.int64]]
    excluded: NDArray[np.int64] = _NO_ROWS

    def asked(self, limit: int) -> int:
        """How many rows to ask FAISS for, so that about ``limit`` of them may be shown."""
        kept = self.spanned - len(self.excluded)
        return min(self.spanned, math.ceil((limit + _SLACK) * 1.25 * self.spanned / kept))

    def allowed(
        self, scores: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Only what may be shown."""
        keep = rows >= 0
        if len(self.excluded):
            at = np.searchsorted(self.excluded, rows)
            keep &= self.excluded.take(at, mode="clip") != rows
        return scores[keep], rows[keep]


def best_rows(
    arena: VectorArena, queries: NDArray[np.float32], blocks: RowBlocks, limit: int
) -> list[NDArray[np.int64]]:
    """For each query, few rows that certainly contain the best ``limit``, ties at the end included.

    An approximate index would be one more kind of source here, chosen by ``blocks.count``: exact
    search is faster and better for every scope below about 300,000 rows.

    Args:
        arena: Unit vectors.
        queries: float32, shape (q, d), unit length.
        blocks: The rows that may be shown.
        limit: ≥ 1.

    Returns:
        int64 arrays, one per query, in no order; each also holds every row whose exact score,
        clipped to [−1, 1], equals the limit-th best.
    """
    if blocks.count <= limit + _SLACK:
        return [blocks.rows()] * len(queries)
    few, gathered, sources = _sources(blocks)
    products = np.empty((len(queries), 0), dtype=np.float32)
    if few or len(gathered):
        products = np.hstack(
            [arena.products_in(queries, *span) for span in few]
            + [arena.products(queries, gathered)]
        )
        gathered = np.concatenate([*(np.arange(*span) for span in few), gathered])
    searched = [
        (source, *arena.search(queries, source.asked(limit), source.selector()))
        for source in sources
    ]
    found = []
    for at, query in enumerate(queries):
        pools = [(source, scores[at], rows[at]) for source, scores, rows in searched]
        found.append(_settled(arena, query, (products[at], gathered), pools, limit))
    return found


def _sources(
    blocks: RowBlocks,
) -> tuple[list[tuple[int, int]], NDArray[np.int64], list[_Source]]:
    """Short ranges, rows to gather one by one, and what to let FAISS scan."""
    few, gathered, marked, sources = [], [], [], []
    for start, stop in blocks.ranges:
        excluded = blocks.excluded_in(start, stop)
        shown = stop - start - len(excluded)
        part = RowBlocks(((start, stop),), excluded, _NO_ROWS)
        if shown <= _GATHERED_ROWS:
            if len(excluded):
                gathered.append(part.rows())
            else:
                few.append((start, stop))
        elif shown < _SCANNED_SHARE * (stop - start):
            marked.append(part.rows())
        else:
            sources.append(_Source(_range(start, stop), stop - start, part.rows, excluded))
    (gathered if len(blocks.tail) <= _GATHERED_ROWS else marked).append(blocks.tail)
    if marked:
        sources.append(_marked(np.concatenate(marked)))
    return few, np.concatenate([_NO_ROWS, *gathered]), sources


def _settled(
    arena: VectorArena,
    query: NDArray[np.float32],
    gathered: tuple[NDArray[np.float32], NDArray[np.int64]],
    pools: list[tuple[_Source, NDArray[np.float32], NDArray[np.int64]]],
    limit: int,
) -> NDArray[np.int64]:
    """The rows of one query, after asking again wherever the boundary was not clear."""
    parts = [gathered]
    floors = []  # what a source did not return scores at most this
    for source, scores, rows in pools:
        floors.append(float(scores[-1]) if len(rows) < source.spanned else -math.inf)
        parts.append(source.allowed(scores, rows))
    least = _least(parts, limit, arena.dimension)
    # Two rounds at most: first without the rows that must not be shown (they crowded out the
    # others), then every row above the boundary (many rows score alike).
    for at, (source, _, _) in enumerate(pools, start=1):
        if len(source.excluded) and -math.inf < floors[at - 1] >= least:
            only = _marked(source.shown())
            k = only.asked(limit)
            scores, rows = arena.search(query[None], k, only.selector())
            floors[at - 1] = float(scores[0, -1]) if k < only.spanned else -math.inf
            parts[at] = only.allowed(scores[0], rows[0])
            least = _least(parts, limit, arena.dimension)
    for at, (source, _, _) in enumerate(pools, start=1):
        if -math.inf < floors[at - 1] >= least:
            parts[at] = source.allowed(*arena.above(query, least, source.selector()))
    return np.concatenate([rows[scores >= least] for scores, rows in parts])


def _least(
    parts: list[tuple[NDArray[np.float32], NDArray[np.int64]]], limit: int, dimension: int
) -> float:
    """What a row must score in float32 to be possibly among the best ``limit``."""
    scores = np.concatenate([scores for scores, _ in parts])
    if len(scores) < limit:
        return -math.inf
    boundary = float(np.partition(scores, len(scores) - limit)[len(scores) - limit])
    # Clipped at 1: rows that equal the query up to rounding all tie there.
    return min(boundary, 1.0) - 2.0 * _error_bound(dimension)


def _error_bound(dimension: int) -> float:
    """Greatest error of a float32 inner product of two float32 vectors of unit length."""
    rounding = dimension * _UNIT_ROUNDOFF
    # 1 ppm more for lengths that are 1 only up to rounding
    return 1.000001 * rounding / (1.0 - rounding)


def _range(start: int, stop: int) -> Selector:
    def selector() -> Any:
        return _faiss().IDSelectorRange(start, stop)

    return selector


def _marked(rows: NDArray[np.int64]) -> _Source:
    """Scattered rows, as a bitmap."""

    def selector() -> Any:
        mask = np.zeros(int(rows.max()) + 1, dtype=np.bool_)
        mask[rows] = True
        return _faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))

    return _Source(selector, len(rows), lambda: rows)


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

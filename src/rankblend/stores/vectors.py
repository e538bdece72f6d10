"""Memories by the direction of their embedding: proposes the nearest, observes the cosine."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.kernels.similarity import dot_rows, pairwise_cosines
from rankblend.relevance.evidence import is_identifier
from rankblend.stores.arena import VectorArena, best_rows
from rankblend.stores.protocol import Key, Observation, Reason, Record, StoreQuery
from rankblend.stores.rows import ScopedRows
from rankblend.stores.unit_vectors import as_unit, checked_lengths, stacked

__all__ = ["VectorStore"]

# Rows checked, stored or scored at a time; bounds what is held in float64 beside the arena.
_CHUNK = 1024


class VectorStore:
    """Exact nearest neighbours among the memories a query sees, by cosine.

    Vectors are kept once, in float32 and of unit length, in rows sorted by scope (`ScopedRows`), so
    that searching one scope or one subtree scans one range of memory. Cosines are computed from
    the stored rows in float64, each by itself: the same memory and query give the same number
    whatever else is asked, and proposals are ordered by that number, then by id.

    Records without a vector are not held. Calls are serialized by a lock, so that a question may
    run in one thread while another writes.

    Args:
        dimension: Length of the vectors; None: that of the first one added, for good.
        name: An identifier.

    Raises:
        InvalidArgumentError: A dimension below 1, or a name that is no identifier.

    Example:
        >>> from rankblend.relevance.scope import Scope
        >>> scope, store = Scope.parse("tenant:acme"), VectorStore()
        >>> store.add([Record(Key(scope, "a"), "", vector=np.array([3.0, 4.0], np.float32))])
        >>> query = StoreQuery("", [scope], vector=np.array([1.0, 0.0], np.float32))
        >>> store.propose(query, 10), store.observe(query, ["a"]).columns["cosine"].round(6).tolist()
        (['a'], [0.6])
    """

    emits: tuple[str, ...] = ("cosine",)

    def __init__(self, dimension: int | None = None, *, name: str = "vectors") -> None:
        problems = []
        if dimension is not None and (type(dimension) is not int or dimension < 1):
            problems.append(f"dimension: expected an integer ≥ 1 or None, got {dimension!r:.40}")
        if not is_identifier(name):
            problems.append("name: expected letters, digits and _ (ASCII)")
        if problems:
            raise InvalidArgumentError(problems)
        self.name = name
        self._lock = threading.RLock()
        self._closed = False
        self._rows = ScopedRows()
        self._arena = VectorArena(dimension) if dimension is not None else None

    def __len__(self) -> int:
        """How many memories with a vector it holds."""
        with self._lock:
            return len(self._rows)

    def fresh(self) -> VectorStore:
        """An empty store with the same settings."""
        return VectorStore(name=self.name)

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None until the first one is added."""
        return None if self._arena is None else self._arena.dimension

    def close(self) -> None:
        """Release the vectors; closing twice is harmless."""
        with self._lock:
            self._closed = True
            self._rows, self._arena = ScopedRows(), None

    def add(self, records: Sequence[Record]) -> None:
        """Add memories, replacing those with the same key; the last of several with one key counts.

        A record without a vector removes what was held under its key.

        Raises:
            InvalidArrayError: A vector of another dimension, with NaN or infinity, or of length
                zero; the message names the record's position and id. Nothing was stored.
            StoreClosedError: After `close`.
        """
        with self._lock:
            self._check_open()
            vectors = [record.vector for record in records]
            dimension, lengths = checked_lengths(
                vectors, self.dimension, lambda at: f"records[{at}].vector (id {records[at].id!r})"
            )
            latest = {(one.key.scope.path, one.key.id): at for at, one in enumerate(records)}
            places = sorted(latest) if not self._rows.size else list(latest)
            kept = [at for place in places if vectors[at := latest[place]] is not None]
            if len(kept) < len(latest):
                self._drop(one.key for one in records if one.vector is None)
            if dimension is not None:
                if self._arena is None:
                    self._arena = VectorArena(dimension)
                self._replace(self._arena, records, kept, lengths)
            self._tidy()

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop memories from every answer at once; unknown keys are ignored."""
        with self._lock:
            self._check_open()
            self._drop(keys)
            self._tidy()

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        """The ids nearest to the query's vector, by cosine descending, then id.

        Exact over all memories the query may be shown; equal whatever the order of writing.

        Args:
            query: Without a vector nothing is proposed.
            limit: ≥ 0.
            level: Only memories exactly this many levels up; None for all visible ones.

        Raises:
            InvalidArgumentError: A negative limit.
            InvalidArrayError: The query's vector has another dimension, NaN, infinity or length 0.
            StoreClosedError: After `close`.
        """
        return self.propose_many([query], limit, level=level)[0]

    def propose_many(
        self, queries: Sequence[StoreQuery], limit: int, *, level: int | None = None
    ) -> list[Sequence[str]]:
        """`propose` for each query; those that see the same memories are searched together."""
        if limit < 0:
            raise InvalidArgumentError(f"limit: expected ≥ 0, got {limit}")
        with self._lock:
            self._check_open()
            vectors = [self._query_vector(query) for query in queries]
            proposed: list[Sequence[str]] = [[] for _ in queries]
            if self._arena is None or limit == 0:
                return proposed
            alike: dict[tuple[object, ...], list[tuple[int, NDArray[np.float32]]]] = {}
            for at, (query, vector) in enumerate(zip(queries, vectors, strict=True)):
                if vector is not None:
                    paths = tuple(scope.path for scope in query.scopes)
                    sees = (paths, query.reach, id(query.admitted))
                    alike.setdefault(sees, []).append((at, vector))
            for members in alike.values():
                blocks = self._rows.blocks(queries[members[0][0]], level)
                matrix = np.stack([vector for _, vector in members])
                candidates = best_rows(self._arena, matrix, blocks, limit)
                for (at, vector), rows in zip(members, candidates, strict=True):
                    proposed[at] = self._ranked(rows, vector, limit)
            return proposed

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """The cosine with each memory, in [−1, 1].

        NaN with reason UNKNOWN for ids that are not held (no vector) or not visible; a query
        without a vector measures nothing: NaN, NOT_APPLICABLE.

        Raises:
            InvalidArrayError: The query's vector has another dimension, NaN, infinity or length 0.
            StoreClosedError: After `close`.
        """
        with self._lock:
            self._check_open()
            vector = self._query_vector(query)
            cosine = np.full(len(ids), np.nan)
            reasons = np.full(len(ids), Reason.NOT_APPLICABLE, dtype=np.int8)
            if vector is not None:
                rows = self._rows.locate(query, ids)
                held = rows >= 0
                cosine[held] = self._cosines(rows[held], vector)
                reasons[:] = np.where(held, Reason.PRESENT, Reason.UNKNOWN)
            return Observation({"cosine": cosine}, {"cosine": reasons})

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        """`observe` for each query."""
        return (self.observe(query, asked) for query, asked in zip(queries, ids, strict=True))

    def vectors_of(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (n, d): the unit vectors, rows of NaN for ids not held or not visible.

        d is 0 while no dimension is known.
        """
        with self._lock:
            self._check_open()
            vectors = np.full((len(ids), self.dimension or 0), np.nan, dtype=np.float32)
            if self._arena is not None:
                rows = self._rows.locate(query, ids)
                held = rows >= 0
                vectors[held] = self._arena.matrix[rows[held]]
            return vectors

    def pairwise(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.float64]:
        """float64, shape (n, n), symmetric: cosines between memories, NaN where one is absent.

        Each cosine is computed by itself, so it does not depend on the other ids. The query says
        what is visible; its vector is not used.
        """
        vectors = self.vectors_of(query, ids)
        if not vectors.shape[1]:
            return np.full((len(ids), len(ids)), np.nan)
        return pairwise_cosines(vectors)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"store {self.name!r} is closed")

    def _query_vector(self, query: StoreQuery) -> NDArray[np.float32] | None:
        if query.vector is None:
            return None
        return as_unit(query.vector, "query.vector", self.dimension)

    def _drop(self, keys: Iterable[Key]) -> None:
        freed = self._rows.remove(keys)
        if self._arena is not None and len(freed):
            self._arena.matrix[freed] = 0.0  # forgotten means gone, also before compaction

    def _replace(
        self,
        arena: VectorArena,
        records: Sequence[Record],
        kept: Sequence[int],
        lengths: NDArray[np.float64],
    ) -> None:
        """Overwrite the vectors of keys held, append the others."""

        def unit(which: Sequence[int]) -> NDArray[np.float32]:
            return stacked([records[at].vector for at in which], lengths[which])

        new, old, rows = [], [], []
        for at in kept:
            row = self._rows.row(records[at].key) if self._rows.size else None
            if row is None:
                new.append(at)
            else:
                old.append(at)
                rows.append(row)
        for start in range(0, len(old), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            arena.matrix[rows[chunk]] = unit(old[chunk])
        self._rows.renumber(np.array(rows, dtype=np.int64), [records[at].serial for at in old])
        # Vectors first: whatever stops this half-way, rows without a key are never shown.
        arena.cut(self._rows.size)
        for start in range(0, len(new), _CHUNK):
            arena.append(unit(new[start : start + _CHUNK]))
        self._rows.add([records[at].key for at in new], [records[at].serial for at in new])

    def _tidy(self) -> None:
        if self._rows.needs_compaction:
            # Too little memory for a second copy: slower, but every answer is still right.
            with contextlib.suppress(MemoryError):
                self._compact()

    def _compact(self) -> None:
        """Sort the rows; the old ones stay in force until the new ones are complete."""
        if self._arena is not None:
            rows = copy.copy(self._rows)
            self._arena = self._arena.reordered(rows.compact())
            self._rows = rows

    def _cosines(self, rows: NDArray[np.int64], vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """float64, shape (n,): the evidence, whose bits depend on the row and the query only."""
        cosines = np.empty(len(rows))
        if self._arena is None:
            return cosines
        for start in range(0, len(rows), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            cosines[chunk] = dot_rows(self._arena.matrix[rows[chunk]], vector)
        # Unit only up to rounding: two equal vectors may come out at 1 + 1e-8.
        return np.clip(cosines, -1.0, 1.0)

    def _ranked(
        self, rows: NDArray[np.int64], vector: NDArray[np.float32], limit: int
    ) -> list[str]:
        """Ids of the best rows: cosine descending, then id."""
        ids = self._rows.ids
        farness = (-self._cosines(rows, vector)).tolist()
        ranked = sorted(zip(farness, [ids[row] for row in rows.tolist()], strict=True))
        return [identifier for _, identifier in ranked[:limit]]

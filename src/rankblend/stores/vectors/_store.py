"""Memories by the direction of their embedding: proposes the nearest, observes the cosine."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError, StoreClosedError
from rankblend.forks import guard
from rankblend.kernels.select import leading
from rankblend.kernels.similarity import dot_rows, pairwise_cosines
from rankblend.relevance import is_identifier
from rankblend.stores._protocol import Contents, Observation, StoreQuery
from rankblend.stores._record import Key, Record
from rankblend.stores._rows import NumberedIds, ScopedRows, latest
from rankblend.stores._unit_vectors import as_unit, checked_lengths, make_units, stacked
from rankblend.stores.vectors._arena import VectorArena, best_rows
from rankblend.stores.vectors._slots import VectorSlots
from rankblend.values import shown

VectorReader = Callable[[Callable[[int], NDArray[np.float32]]], NDArray[np.bool_]]
"""Fills a matrix with the vectors of some rows.

Is given a function that makes room for vectors of some dimension, float32, shape (rows, d), zeros;
it is called once, or not at all when there are no vectors. Returns bool, shape (rows,): the rows
that have a vector.
"""


def loaded_vectors(
    rows: ScopedRows, read: VectorReader, dimension: int | None
) -> tuple[VectorSlots, VectorArena | None]:
    """The vectors of some rows, read straight to where they stay: there is never a second copy.

    Args:
        rows: Whose.
        read: Reads them.
        dimension: What theirs must be; None: any.

    Raises:
        InvalidArrayError: Another dimension; NaN, infinity, or only zeros.
    """
    arena = None if dimension is None else VectorArena(dimension)

    def room(found: int) -> NDArray[np.float32]:
        nonlocal arena
        if dimension not in (None, found):
            raise InvalidArrayError("vectors", f"{dimension} numbers", f"shape ({found},)")
        arena = VectorArena(found)
        return arena.room(rows.size)

    slots = VectorSlots()
    slots.append(read(room))
    if arena is not None and len(arena):
        arena.keep(slots.occupied)
        held = slots.rows(np.arange(len(slots)))
        make_units(arena.matrix, lambda at: f"vector (id {rows.ids[held[at]]!r})")
    return slots, arena


# Rows checked, stored or scored at a time; bounds what is held in float64 beside the arena.
_CHUNK = 1024


class VectorStore:
    """Exact nearest neighbours among the memories a query sees, by cosine.

    Vectors are kept once, in float32 and of unit length, in rows sorted by scope (`ScopedRows`), so
    that searching one scope or one subtree scans one range of memory. Cosines are computed from
    the stored rows in float64, each by itself: the same memory and query give the same number
    whatever else is asked, and proposals are ordered by that number, then by id.

    A memory without a vector is held too: it is never proposed and has no cosine, but a farther one
    with its id does not answer in its place. Calls are serialized by a lock, so that a question may
    run in one thread while another writes.

    Args:
        dimension: Length of the vectors; None: that of the first one added, for good.
        name: An identifier.

    Raises:
        InvalidArgumentError: A dimension below 1, or a name that is no identifier.

    Example:
        >>> from rankblend.relevance import Scope
        >>> scope, store = Scope.parse("tenant:acme"), VectorStore()
        >>> store.add([Record(Key(scope, "a"), "", vector=np.array([3.0, 4.0], np.float32))])
        >>> query = StoreQuery("", [scope], vector=np.array([1.0, 0.0], np.float32))
        >>> store.propose(query, 10), store.observe(query, ["a"]).columns["cosine"].round(6).tolist()
        (['a'], [0.6])
    """

    emits: tuple[str, ...] = ("cosine",)
    immediate: ClassVar[bool] = True

    def __init__(self, dimension: int | None = None, *, name: str = "vectors") -> None:
        problems = []
        if dimension is not None and (type(dimension) is not int or dimension < 1):
            problems.append(f"dimension: expected an integer ≥ 1 or None, got {shown(dimension)}")
        if not is_identifier(name):
            problems.append("name: expected letters, digits and _ (ASCII)")
        if problems:
            raise InvalidArgumentError(problems)
        self.name = name
        self._lock = threading.RLock()
        guard(self, "_lock")
        self._closed = False
        self._rows, self._slots = ScopedRows(), VectorSlots()
        self._arena = VectorArena(dimension) if dimension is not None else None

    def __len__(self) -> int:
        """How many memories it holds, with a vector or without."""
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
            self._rows, self._slots, self._arena = ScopedRows(), VectorSlots(), None

    def add(self, records: Sequence[Record]) -> None:
        """Add memories, replacing those with the same key; the last of several with one key counts.

        A memory may gain a vector and lose it again.

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
            chosen = latest(records, ordered=not self._rows.size)
            if dimension is not None and self._arena is None:
                self._arena = VectorArena(dimension)
            self._replace([records[at] for at in chosen], lengths[chosen])
            self._tidy()

    def load(self, rows: ScopedRows, read: VectorReader) -> None:
        """Replace everything by some memories, whose vectors are read straight into their rows.

        Args:
            rows: The memories, sorted; they belong to the store from now on.
            read: Reads their vectors.

        Raises:
            InvalidArrayError: A vector that `add` would refuse; the store stays as it was.
            StoreClosedError: After `close`.
        """
        with self._lock:
            self._check_open()
            self._slots, self._arena = loaded_vectors(rows, read, self.dimension)
            self._rows = rows

    def load_contents(self, contents: Contents) -> None:
        """Replace everything by all that a memory holds; see `load`."""
        rows = contents.rows()
        self.load(rows, partial(contents.load_vectors, rows.serials))

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
        return self.nearest(query, limit, level=level)[0]

    def nearest(
        self, query: StoreQuery, limit: int, *, level: int | None = None
    ) -> tuple[Sequence[str], NDArray[np.float64]]:
        """What `propose` gives, and what `observe` says of it: ids and float64 cosines."""
        return self._nearest([query], limit, level)[0]

    def propose_many(
        self, queries: Sequence[StoreQuery], limit: int, *, level: int | None = None
    ) -> list[Sequence[str]]:
        """`propose` for each query; those that see the same memories are searched together."""
        return [ids for ids, _ in self._nearest(queries, limit, level)]

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """The cosine with each memory, in [−1, 1].

        NaN with reason UNKNOWN for ids that are not held or not visible, and NOT_APPLICABLE where
        the memory, or the query, has no vector.

        Raises:
            InvalidArrayError: The query's vector has another dimension, NaN, infinity or length 0.
            StoreClosedError: After `close`.
        """
        with self._lock:
            self._check_open()
            vector = self._query_vector(query)
            rows = self._rows.locate(query, ids)
            known = rows >= 0
            slots = self._slots.find(rows[known])
            return Observation.of_known({"cosine": self._cosines(slots, vector)}, known)

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        """`observe` for each query."""
        return (self.observe(query, asked) for query, asked in zip(queries, ids, strict=True))

    def vectors_of(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (n, d): the unit vectors, rows of NaN where there is none to be seen.

        d is 0 while no dimension is known.
        """
        with self._lock:
            self._check_open()
            vectors = np.full((len(ids), self.dimension or 0), np.nan, dtype=np.float32)
            slots = self._slots.find(self._rows.locate(query, ids))
            there = slots >= 0
            if there.any():
                vectors[there] = self._matrix[slots[there]]
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
        slots = self._slots.find(self._rows.remove(keys))
        if (slots >= 0).any():
            self._matrix[slots[slots >= 0]] = 0.0  # forgotten means gone, also before compaction

    def _replace(self, records: Sequence[Record], lengths: NDArray[np.float64]) -> None:
        """Enter memories, no key twice.

        A memory stays in its row unless it gains or loses its vector; the others go to the end.
        """
        rows = [self._rows.row(one.key) if self._rows.size else None for one in records]
        held = np.array([-1 if row is None else row for row in rows], dtype=np.int64)
        slots, given = self._slots.find(held), ~np.isnan(lengths)
        stays = (held >= 0) & ((slots >= 0) == given)
        for chunk in _chunks(np.flatnonzero(stays & given)):
            self._matrix[slots[chunk]] = _units(records, lengths, chunk)
        kept, moved = np.flatnonzero(stays), np.flatnonzero(~stays)
        self._rows.renumber(held[kept], [records[at].serial for at in kept.tolist()])
        # Vectors first: whatever stops this half-way, rows without a key are never shown.
        self._slots.cut(self._rows.size)
        if self._arena is not None:
            self._arena.cut(len(self._slots))
            entering = moved[given[moved]]
            room = self._arena.room(len(entering))
            for places in _chunks(np.arange(len(entering))):
                room[places] = _units(records, lengths, entering[places])
        self._slots.append(given[moved])
        self._drop(records[at].key for at in moved[held[moved] >= 0].tolist())
        new = [records[at] for at in moved.tolist()]
        self._rows.add([one.key for one in new], [one.serial for one in new])

    def _tidy(self) -> None:
        if self._rows.needs_compaction:
            # Too little memory for a second copy: slower, but every answer is still right.
            with contextlib.suppress(MemoryError):
                self._compact()

    def _compact(self) -> None:
        """Sort the rows; the old ones stay in force until the new ones are complete."""
        rows, slots = copy.copy(self._rows), VectorSlots()
        order = rows.compact()
        slots.append(self._slots.occupied[order])
        if self._arena is not None:
            kept = self._slots.find(order)
            self._arena = self._arena.reordered(kept[kept >= 0])
        self._rows, self._slots = rows, slots

    @property
    def _matrix(self) -> NDArray[np.float32]:
        """float32, shape (slots, d)."""
        if self._arena is None:
            return np.empty((0, 0), dtype=np.float32)
        return self._arena.matrix

    def _cosines(
        self, slots: NDArray[np.int64], vector: NDArray[np.float32] | None
    ) -> NDArray[np.float64]:
        """float64, shape (n,): the evidence, whose bits depend on the slot and the query only.

        NaN for slot −1, and for all without a vector to compare with.
        """
        cosines = np.full(len(slots), np.nan)
        if vector is None:
            return cosines
        for chunk in _chunks(np.flatnonzero(slots >= 0)):
            cosines[chunk] = dot_rows(self._matrix.take(slots[chunk], axis=0), vector)
        # Unit only up to rounding: two equal vectors may come out at 1 + 1e-8.
        np.maximum(cosines, -1.0, out=cosines)
        np.minimum(cosines, 1.0, out=cosines)  # np.clip takes four times as long
        return cosines

    def _nearest(
        self, queries: Sequence[StoreQuery], limit: int, level: int | None
    ) -> list[tuple[Sequence[str], NDArray[np.float64]]]:
        if limit < 0:
            raise InvalidArgumentError(f"limit: expected ≥ 0, got {limit}")
        with self._lock:
            self._check_open()
            vectors = [self._query_vector(query) for query in queries]
            found: list[tuple[Sequence[str], NDArray[np.float64]]] = [
                ([], np.empty(0)) for _ in queries
            ]
            if self._arena is None or limit == 0:
                return found
            alike: dict[tuple[object, ...], list[tuple[int, NDArray[np.float32]]]] = {}
            for at, (query, vector) in enumerate(zip(queries, vectors, strict=True)):
                if vector is not None:
                    paths = tuple(scope.path for scope in query.scopes)
                    sees = (paths, query.reach, id(query.admitted))
                    alike.setdefault(sees, []).append((at, vector))
            for members in alike.values():
                blocks = self._slots.blocks(self._rows.blocks(queries[members[0][0]], level))
                matrix = np.stack([vector for _, vector in members])
                candidates = best_rows(self._arena, matrix, blocks, limit)
                for (at, vector), slots in zip(members, candidates, strict=True):
                    found[at] = self._ranked(slots, vector, limit)
            return found

    def _ranked(
        self, slots: NDArray[np.int64], vector: NDArray[np.float32], limit: int
    ) -> tuple[NumberedIds, NDArray[np.float64]]:
        """Ids and cosines of the best slots: cosine descending, then id."""
        rows, cosines = self._slots.rows(slots), self._cosines(slots, vector)
        best = leading(rows, [cosines], limit, self._rows.ids)
        ascending = np.argsort(rows)
        return self._rows.named(best), cosines[ascending[rows[ascending].searchsorted(best)]]


def _chunks(positions: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(positions), _CHUNK):
        yield positions[start : start + _CHUNK]


def _units(
    records: Sequence[Record], lengths: NDArray[np.float64], positions: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The unit vectors of some records, all of which have one."""
    return stacked([records[at].vector for at in positions.tolist()], lengths[positions])

"""The catalog: the one durable truth about memories, and what recall asks about them."""

from __future__ import annotations

import copy
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from sqlite3 import Connection
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import (
    CatalogCorruptError,
    InvalidArgumentError,
    StoreClosedError,
    StoreError,
)
from rankblend.forks import guard
from rankblend.kernels.text import normalized_text
from rankblend.relevance import Scope
from rankblend.stores._fields import JSON
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores._rows import ScopedRows
from rankblend.stores.catalog import _cache, _columns, _edges, _reads, _writes
from rankblend.stores.catalog._codec import (
    DIGEST,
    ScopeReader,
    encode_records,
    stored_records,
    text_digest,
)
from rankblend.stores.catalog._columns import Columns
from rankblend.stores.catalog._database import Compaction, Database
from rankblend.stores.catalog._file import MEMORY
from rankblend.stores.catalog._reads import Changes, Removals
from rankblend.stores.catalog._snapshot import Snapshot
from rankblend.stores.catalog._view import MemoryView
from rankblend.values import is_number, is_text

T = TypeVar("T")
_BATCH = 4096
_FEW = 50  # one memory in so many
# Fewer memories are read from their rows in a few milliseconds.
_LEAST_KEPT = 1000
_METADATA = "SELECT serial, metadata FROM memories WHERE metadata IS NOT NULL"
_METADATA_OF = """
SELECT serial, metadata FROM memories
WHERE metadata IS NOT NULL AND serial IN (SELECT value FROM json_each(?))
"""


class Catalog(MemoryView):
    """Every memory with all its revisions, uses and edges, in one SQLite file.

    Writes are transactions: when a method returns, everything it did is on the disk; when it
    raises, nothing was done. Several processes may have one file open; each sees the others' writes
    in what it reads from the file at once, and in its columns (`admit`, `locate`, `facts`) after
    `refresh`. One object may be used from several threads; a write keeps no reader waiting.

    A memory is identified by its scope and id. Writing it again adds a revision: of all revisions
    the one with the greatest valid time ``at`` is current, and of equal ones the one written last,
    so that something backdated becomes history and leaves the present as it is.

    Example:
        >>> from rankblend.relevance import Scope
        >>> with Catalog.open(":memory:") as catalog:
        ...     key = Key(Scope.parse("tenant:acme"), "m1")
        ...     _ = catalog.put([Record(key, "tea is at four", at=1.0)])
        ...     _ = catalog.put([Record(key, "tea is at five", at=2.0)])
        ...     len(catalog), catalog.get(key).text, len(catalog.revisions(key))
        (1, 'tea is at five', 2)
    """

    def __init__(self, database: Database, normalize: Callable[[str], str]) -> None:
        self._database = database
        self._normalize = normalize
        self._scopes = ScopeReader()
        self._removals = Removals()
        self._useless: set[str] = set()  # stores whose bytes were damaged, or of another version
        # Held over a transaction and what it does to the columns, so that these see all writes in
        # the order of their commits. Taken before the locks of columns and database, in this order.
        self._ordered = threading.RLock()
        guard(self, "_ordered")
        super().__init__(self._loaded(), self._metadata_of)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        busy_timeout: float = 5.0,
        normalize: Callable[[str], str] = normalized_text,
    ) -> Self:
        """Open a catalog, or make a new one where there is no file.

        Args:
            path: A file, or ``":memory:"``.
            busy_timeout: Seconds a write waits for the writer of another process.
            normalize: How texts are normalized before their digests are taken.

        Raises:
            CatalogCorruptError: There is a file, but no readable catalog in it; it is left as it
                is. An empty file is not a catalog either.
            CatalogVersionError: A newer rankblend wrote it.
            CatalogReadOnlyError: There is no file, and none can be made.
            CatalogBusyError: Another process holds it exclusively.
            InvalidArgumentError: The path is a folder, or in a folder that does not exist.
        """
        database = Database.open(path, busy_timeout=busy_timeout)
        try:
            return cls(database, normalize)
        except BaseException:
            database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is harmless, any other use raises StoreClosedError.

        Of a large catalog the columns are kept in the file first, if much was written since that
        was last done, so that it opens faster. Nothing depends on that.
        """
        with self._ordered, suppress(StoreError):
            self.stop_waiting()
            self._keep_columns()
        self._database.close()

    def stop_waiting(self) -> None:
        """From now on give up at once when another process is writing: before closing."""
        self._database.stop_waiting()

    @property
    def database(self) -> Database:
        """The file: for those whose tables are in it, too."""
        return self._database

    @property
    def path(self) -> str:
        """Where it is: a file, or ``":memory:"``."""
        return self._database.path

    @property
    def generation(self) -> int:
        """The number of the last write that the columns include."""
        return self._columns.generation

    def get(self, key: Key) -> Record | None:
        """The current record with this key, or None; reads the file."""
        return self.records([key])[0]

    def records(self, keys: Iterable[Key]) -> list[Record | None]:
        """The current record of each key, None where there is none; reads the file."""
        with self._database.read() as connection:
            return _reads.records_of(connection, self._scopes, keys)

    def contents(self, serials: NDArray[np.int64]) -> list[Record | None]:
        """`MemoryView.contents`; reads the file once."""
        with self._database.read() as connection:
            return _reads.contents_of(connection, self._scopes, serials)

    def revisions(self, key: Key) -> list[Record]:
        """Every revision of a memory by valid time, then in order of writing; the last is current.

        Created, used and uses are those of the memory and the same in each. Empty for unknown keys.
        """
        with self._database.read() as connection:
            return _reads.revisions_of(connection, self._scopes, key)

    def iter_records(self, *, batch: int = _BATCH) -> Iterator[Record]:
        """All current records with their vectors, by scope path and id.

        Each batch is read when it is needed, so that writers go on meanwhile; what they change
        behind the last record given out is seen. Apply `changes` since a `generation` taken before.
        """
        after = ("", "")
        while True:
            with self._database.read() as connection:
                records = _reads.next_records(connection, self._scopes, after, batch)
            if not records:
                return
            yield from records
            after = (records[-1].key.scope.path, records[-1].key.id)

    def rows(self) -> ScopedRows:
        """All memories as the rows of an index: sorted, none removed; the caller's own.

        Costs nothing while the columns are sorted themselves, and is copied when either changes.
        """
        with self._reading():
            rows = self._columns.rows
            if len(rows) == rows.sorted_rows == rows.size:
                return rows.shared()
            rows = copy.copy(rows)
            rows.compact()
            return rows

    def load_vectors(
        self, serials: NDArray[np.int64], room: Callable[[int], NDArray[np.float32]]
    ) -> NDArray[np.bool_]:
        """Read the vectors of the current revisions of some memories straight into their rows.

        The quick way to fill an index: 100k × 384 in about twice the time their bytes take.

        Args:
            serials: The serial of each row.
            room: Makes room for vectors of a dimension: float32, shape (rows, d), C-contiguous. It
                is called once, or not at all while the catalog has no vector.

        Returns:
            bool, shape (rows,): which rows were filled; the others have no vector.
        """
        with self._database.read() as connection:
            dimension = _writes.stored_dimension(connection)
            if dimension is None:
                return np.zeros(len(serials), dtype=np.bool_)
            row_of = np.full(int(serials.max(initial=-1)) + 2, -1, dtype=np.int64)
            row_of[serials] = np.arange(len(serials))
            return _reads.vectors_into(connection, room(dimension), row_of)

    def linked(self, kind: str | None = None) -> list[Record]:
        """Memories that have links: records of which only key, serial and links are read.

        Args:
            kind: Only those with a link of this kind; None for any.
        """
        with self._database.read() as connection:
            return _reads.linked_records(connection, self._scopes, kind)

    def iter_edges(
        self, *, as_of: float = math.inf, kind: str | None = None, batch: int = _BATCH
    ) -> Iterator[Edge]:
        """Edges, of one kind or any, that hold at ``as_of``, by scope path, source, target, kind."""
        after: _edges.EdgeIdentity = ("", "", "", "")
        while True:
            with self._database.read() as connection:
                edges = _edges.next_edges(connection, self._scopes, after, as_of, kind, batch)
            if not edges:
                return
            yield from edges
            after = edges[-1].identity

    def records_at(self, as_of: float, *, roots: Sequence[Scope] | None = None) -> list[Record]:
        """The revision of each memory that was valid at ``as_of``, by scope path and id.

        Of the revisions with ``at`` ≤ ``as_of`` it is the one with the greatest ``at``, then the
        one written last. Uses after ``as_of`` are not counted. Expired ones are included.

        Args:
            as_of: Seconds since the epoch.
            roots: Only memories at or below these scopes; None for all.
        """
        if not math.isfinite(as_of):
            raise InvalidArgumentError("as_of: expected finite seconds since the epoch")
        with self._database.read() as connection:
            return _reads.records_at(connection, self._scopes, as_of, roots)

    def snapshot(self, as_of: float, *, roots: Sequence[Scope] | None = None) -> Snapshot:
        """`records_at` as a view that answers `admit`, `locate` and `facts` for that moment."""
        with self._reading():
            generation = self._columns.generation
        records = self.records_at(as_of, roots=roots)
        return Snapshot(records, normalize=self._normalize, generation=generation)

    def changes(self, since: int) -> Changes:
        """What was written after generation ``since``, by anybody; reads the file.

        Memories that others removed are told as long as the columns hold them, see `refresh`.
        """
        with self._columns_lock, self._database.read() as connection:
            return self._changes(connection, since, self._columns)

    def is_current(self) -> bool:
        """Whether the columns include everything that is in the file; reads one number."""
        with self._database.read() as connection:
            (generation,) = connection.execute("SELECT generation FROM state").fetchone()
        return bool(generation == self.generation)

    def get_meta(self, name: str) -> str | None:
        """A fact about the whole catalog, such as ``embedder``, ``dimension``, ``created_by``."""
        with self._database.read() as connection:
            found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    @property
    def dimension(self) -> int | None:
        """The length of all vectors; None while there is none."""
        with self._database.read() as connection:
            return _writes.stored_dimension(connection)

    def load_cache(self, store: str) -> tuple[int, bytes] | None:
        """What a store kept, with the generation it belongs to, or None.

        The store brings it up to date with `changes` since that generation. Damaged bytes: None,
        and a `CacheWarning`.
        """
        with self._database.read() as connection:
            return self._load_cache(connection, store)

    def discard_cache(self, store: str) -> None:
        """Note that a store could do nothing with what it kept: it is due to be renewed."""
        self._useless.add(store)

    def cache_is_due(self, store: str) -> bool:
        """Whether a store's bytes were damaged, or so much was written since that they are renewed.

        A few changes are told quicker, one by one, than all bytes are written.
        """
        with self._database.read() as connection:
            kept = _cache.cached_generation(connection, store)
            few = len(self) // _FEW
            return (
                store in self._useless
                or kept is None
                or _reads.written_since(connection, kept) > few
            )

    def check(self) -> None:
        """Read the whole file and check its structure.

        Raises:
            CatalogCorruptError: It is damaged.
        """
        with self._database.read() as connection:
            found = [str(line) for (line,) in connection.execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            raise CatalogCorruptError(f"the catalog {self.path!r} is damaged; restore a backup")

    def put(
        self,
        drafts: Iterable[Record],
        *,
        edges: Iterable[Edge] = (),
        embedder: str | None = None,
        dimension: int | None = None,
        undated: AbstractSet[int] = frozenset(),
        also: Callable[[Connection], object] | None = None,
    ) -> list[Record]:
        """Write memories, in one transaction.

        Args:
            drafts: In order; their serials are ignored. For an existing memory ``created``, ``used``
                and ``uses`` stay as they are.
            edges: Written with them, as by `add_edges`.
            embedder: Identity of what made the vectors, ``name/dimension``, noted with them.
            dimension: Length of all vectors, noted where the catalog has none yet.
            undated: Positions of drafts whose ``at`` is only the time of writing. A clock may have
                gone backwards since the current revision was written, so that theirs is then that
                revision's: they become current.
            also: What else is to be done in the same transaction, by those whose tables are in the
                file, too.

        Returns:
            The current record of each draft's memory after all of them are written, as it is
            stored. It is not the draft's own content where the draft is older than what is there.

        Raises:
            InvalidArgumentError: Drafts that cannot be stored; every problem at once.
            EmbedderMismatchError: The catalog has vectors of another embedder.
            CatalogBusyError, CatalogFullError, CatalogReadOnlyError: Nothing was written.
        """
        drafts = list(drafts)
        contents = encode_records(drafts, self._normalize)
        joined = _edges.check_edges(edges)
        if not (drafts or joined or embedder is not None or dimension is not None or also):
            return []

        def write(connection: Connection, generation: int) -> tuple[list[Record], list[int]]:
            _writes.note_embedder(connection, embedder, dimension)
            written = _writes.write_records(connection, drafts, contents, generation, undated)
            _edges.insert_edges(connection, generation, joined)
            if also is not None:
                also(connection)
            pairs = zip(drafts, written.fresh, strict=True)
            revised = dict.fromkeys(draft.key for draft, fresh in pairs if not fresh)
            found = _reads.records_of(connection, self._scopes, revised)
            current = {record.key: record for record in found if record is not None}
            vectors = [written.vectors[row] if row >= 0 else None for row in written.vector_rows]
            stored = stored_records(drafts, contents, written.serials, vectors)
            if current:
                stored = [current.get(record.key, record) for record in stored]
            return stored, [
                content[DIGEST] if fresh else text_digest(record.text, self._normalize)
                for record, content, fresh in zip(stored, contents, written.fresh, strict=True)
            ]

        return self._write(write, lambda columns, done: columns.put_records(*done))[0]

    def forget(self, keys: Iterable[Key]) -> int:
        """Erase memories: every revision, embedding and use, and the edges at their ids.

        An edge goes with a memory when it was written at the memory's scope.

        Returns:
            How many there were; unknown keys are skipped.
        """
        wanted = _distinct(keys)

        def erase(connection: Connection, generation: int) -> list[Key]:
            erased, unlinked = _writes.erase(connection, wanted, generation)
            self._removals.note(generation, erased, unlinked)
            return list(erased.values())

        return len(self._write(erase, Columns.remove))

    def reinforce(self, keys: Iterable[Key], now: float) -> int:
        """Count one use of each memory at ``now`` (seconds since the epoch).

        Returns:
            How many there were; unknown keys are skipped.
        """
        if not is_number(now):
            raise InvalidArgumentError("now: expected finite seconds since the epoch")
        wanted, at = _distinct(keys), float(now)
        counted = self._write(
            lambda connection, generation: _writes.reinforce(connection, wanted, at, generation),
            lambda columns, done: columns.use(done, at),
        )
        return len(counted)

    def add_edges(self, edges: Iterable[Edge]) -> int:
        """Write edges, replacing those with the same scope, source, target and kind.

        Returns:
            How many were given.

        Raises:
            InvalidArgumentError: Blank nodes or kinds, weights outside (0, 1]; all at once.
        """
        checked = _edges.check_edges(edges)
        self._write(partial(_edges.insert_edges, edges=checked))
        return len(checked)

    def remove_edges(self, edges: Iterable[Edge]) -> int:
        """Delete the edges with these scopes, sources, targets and kinds.

        Returns:
            How many there were.
        """
        checked = _edges.check_edges(edges)

        def delete(connection: Connection, generation: int) -> int:
            deleted = _edges.delete_edges(connection, checked, generation)
            self._removals.note(generation, {}, deleted)
            return len(deleted)

        return self._write(delete)

    def replace_vectors(
        self,
        vectors: Mapping[Key, NDArray[np.float32]],
        *,
        embedder: str,
        also: Callable[[Connection], object] | None = None,
    ) -> None:
        """Replace all vectors by those of another embedder; past revisions keep none.

        Args:
            vectors: By key, float32, shape (d,), all of one length.
            embedder: Identity of what made them, ``name/dimension``.
            also: What else is to be done in the same transaction.

        Raises:
            InvalidArgumentError: Vectors of several lengths.
        """
        if len({vector.size for vector in vectors.values()}) > 1:
            raise InvalidArgumentError("vectors: expected one length")

        def replace(connection: Connection, generation: int) -> None:
            _writes.replace_vectors(connection, vectors, embedder=embedder, generation=generation)
            if also is not None:
                also(connection)

        self._write(replace)

    def refresh(self, since: int | None = None) -> Changes:
        """Bring the columns up to date with what other processes wrote.

        Costs a few microseconds when nothing was.

        Args:
            since: The last write that whoever asks has seen already, if it is before those that the
                columns include. What was removed up to it is not asked for again.

        Returns:
            What was written since, or since the columns were last up to date, for the other stores
            to apply; own writes may be among it, and applying them again changes nothing.
        """
        with self._ordered:
            includes = self._columns.generation
            start = includes if since is None else min(since, includes)
            changes = self.changes(start)
            if not changes.complete:
                columns = self._loaded()
                with self._columns_lock:
                    self._columns = columns
            elif changes.generation > includes:
                with self._entering(changes.generation, after=includes) as columns:
                    self._apply(columns, changes)
            self._removals.drop(start)
            return changes

    def compact(self) -> Compaction:
        """Leave no byte of what was erased in the file, and give the space back to the disk.

        Call `refresh` before: what it has not told is still needed.
        """
        with self._ordered:
            return self._database.compact(self.generation)

    def set_meta(self, name: str, value: str) -> None:
        """Note a fact about the whole catalog, replacing what was noted under this name."""
        if not all(map(is_text, (name, value))):
            raise InvalidArgumentError("meta: expected texts")
        with self._database.write() as connection:
            connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))

    def save_cache(self, store: str, data: bytes, *, generation: int | None = None) -> None:
        """Keep bytes from which a store opens faster; never needed to answer anything.

        Args:
            store: Its name.
            data: Its bytes, replacing what it kept before.
            generation: The last write they include; None: all that the columns include.
        """
        held = self.generation if generation is None else generation
        with self._database.write() as connection:
            _cache.save_cache(connection, store, data, held)
        self._useless.discard(store)

    def _keep_columns(self) -> None:
        if self.path == MEMORY or len(self) < _LEAST_KEPT:
            return
        if self.cache_is_due(_columns.NAME):
            with self._columns_lock:
                data = _columns.dump_columns(self._columns)
            self.save_cache(_columns.NAME, data)

    def _write(
        self,
        change: Callable[[Connection, int], T],
        enter: Callable[[Columns, T], object] = lambda _, __: None,
    ) -> T:
        """Make a change in one transaction, with the number of the write, then in the columns."""
        with self._ordered:
            with self._database.write() as connection:
                generation = _writes.next_generation(connection)
                done = change(connection, generation)
            with self._entering(generation) as columns:
                enter(columns, done)
            return done

    @contextmanager
    def _entering(self, generation: int, *, after: int | None = None) -> Iterator[Columns]:
        """The columns while a write is entered in them; they include it when that is done.

        Unless others wrote before it: then `refresh` reads both. Columns that were stopped half-way
        (Ctrl-C, no memory) include nothing any more, so that `refresh` loads them anew.

        Args:
            generation: The number of the write.
            after: The last write they include already; None: the one before.
        """
        with self._columns_lock:
            includes = self._columns.generation
            try:
                yield self._columns
                if includes == (generation - 1 if after is None else after):
                    self._columns.generation = generation
            except BaseException:
                self._columns.generation = -1
                raise

    def _reading(self) -> AbstractContextManager[object]:
        if self._database.closed:
            raise StoreClosedError(f"the catalog {self.path!r} was closed; open it again to use it")
        return super()._reading()

    def _loaded(self) -> Columns:
        """The columns: from the cache where it is almost up to date, else from the rows."""
        with self._database.read() as connection:
            columns = None
            cached = self._load_cache(connection, _columns.NAME)
            if cached is not None:
                columns = _columns.restore_columns(cached[1], self._scopes, cached[0])
                if columns is None:
                    self.discard_cache(_columns.NAME)
            if (
                columns is None
                or _reads.written_since(connection, columns.generation) > len(columns) // 8
            ):
                return _reads.load_columns(connection, self._scopes)
            changes = self._changes(connection, columns.generation, columns)
            if not changes.complete:
                return _reads.load_columns(connection, self._scopes)
            self._apply(columns, changes)
            return columns

    def _changes(self, connection: Connection, since: int, columns: Columns) -> Changes:
        return _reads.select_changes(
            connection, self._scopes, since, columns.keys_of, self._removals, columns.generation
        )

    def _load_cache(self, connection: Connection, store: str) -> tuple[int, bytes] | None:
        kept = _cache.load_cache(connection, store)
        if kept is None:
            self.discard_cache(store)
        return kept

    def _apply(self, columns: Columns, changes: Changes) -> None:
        """Bring columns up to date; without any lock."""
        columns.remove(changes.removed)
        columns.put_records(
            changes.changed, [text_digest(each.text, self._normalize) for each in changes.changed]
        )
        columns.generation = changes.generation

    def _metadata_of(
        self, serials: Sequence[int] | None
    ) -> Sequence[tuple[int, Mapping[str, object]]]:
        with self._database.read() as connection:
            if serials is None:
                rows = connection.execute(_METADATA)
            else:
                rows = connection.execute(_METADATA_OF, (json.dumps(list(serials)),))
            found = rows.fetchall()
            texts = JSON.decode([text for _, text in found])
            return [(serial, each) for (serial, _), each in zip(found, texts, strict=True)]


def _distinct(keys: Iterable[Key]) -> list[Key]:
    """Each key once; keys that cannot be in any catalog are left out."""
    return [key for key in dict.fromkeys(keys) if is_text(key.id)]

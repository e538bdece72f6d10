"""The catalog: the one durable truth about memories, and what recall asks about them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, StoreError
from rankblend.kernels.text import normalized_text
from rankblend.relevance import is_number
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores.catalog import _cache as cache
from rankblend.stores.catalog import _columns as column_cache
from rankblend.stores.catalog import _writes as writing
from rankblend.stores.catalog._codec import DIGEST, encode_records, stored_records, text_digest
from rankblend.stores.catalog._columns import Columns
from rankblend.stores.catalog._edges import check_edges, delete_edges, insert_edges
from rankblend.stores.catalog._file import MEMORY, Database
from rankblend.stores.catalog._reader import CatalogReader
from rankblend.stores.catalog._reads import Changes, records_of
from rankblend.stores.catalog._record_checks import is_text

# Fewer memories are read from their rows in a few milliseconds.
_LEAST_KEPT = 1000


class Catalog(CatalogReader):
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
        super().__init__(database, normalize)
        # Held over a transaction and what it does to the columns, so that these see all writes in
        # the order of their commits. Taken before the locks of columns and database, in this order.
        self._ordered = threading.RLock()

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

    @property
    def database(self) -> Database:
        """The file, for what else is kept in it."""
        return self._database

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
            also: Writes something else of the file in the same transaction.

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
        joined = check_edges(edges)
        if not (drafts or joined or also or embedder is not None or dimension is not None):
            return []
        with self._ordered:
            with self._database.write() as connection:
                generation = writing.next_generation(connection)
                writing.note_embedder(connection, embedder, dimension)
                written = writing.write_records(connection, drafts, contents, generation, undated)
                insert_edges(connection, joined, generation)
                if also is not None:
                    also(connection)
                revised = dict.fromkeys(
                    draft.key
                    for draft, fresh in zip(drafts, written.fresh, strict=True)
                    if not fresh
                )
                found = records_of(connection, self._scopes, revised)
            current = {record.key: record for record in found if record is not None}
            vectors = [written.vectors[row] if row >= 0 else None for row in written.vector_rows]
            stored = stored_records(drafts, contents, written.serials, vectors)
            if current:
                stored = [current.get(record.key, record) for record in stored]
            digests = [
                content[DIGEST] if fresh else text_digest(record.text, self._normalize)
                for record, content, fresh in zip(stored, contents, written.fresh, strict=True)
            ]
            with self._entering(generation) as columns:
                columns.put_records(stored, digests)
        return stored

    def forget(self, keys: Iterable[Key]) -> int:
        """Erase memories: every revision, embedding and use, and the edges at their ids.

        An edge goes with a memory when it was written at the memory's scope.

        Returns:
            How many there were; unknown keys are skipped.
        """
        wanted = _distinct(keys)
        with self._ordered:
            with self._database.write() as connection:
                generation = writing.next_generation(connection)
                erased = writing.erase(connection, wanted, generation)
            with self._entering(generation) as columns:
                columns.remove(erased)
        return len(erased)

    def reinforce(self, keys: Iterable[Key], now: float) -> int:
        """Count one use of each memory at ``now`` (seconds since the epoch).

        Returns:
            How many there were; unknown keys are skipped.
        """
        if not is_number(now):
            raise InvalidArgumentError("now: expected finite seconds since the epoch")
        wanted = _distinct(keys)
        with self._ordered:
            with self._database.write() as connection:
                generation = writing.next_generation(connection)
                counted = writing.reinforce(connection, wanted, float(now), generation)
            with self._entering(generation) as columns:
                columns.use(counted, float(now))
        return len(counted)

    def add_edges(self, edges: Iterable[Edge]) -> int:
        """Write edges, replacing those with the same scope, source, target and kind.

        Returns:
            How many were given.

        Raises:
            InvalidArgumentError: Blank nodes or kinds, weights outside (0, 1]; all at once.
        """
        checked = check_edges(edges)
        with self._ordered:
            with self._database.write() as connection:
                generation = writing.next_generation(connection)
                insert_edges(connection, checked, generation)
            with self._entering(generation):
                pass
        return len(checked)

    def remove_edges(self, edges: Iterable[Edge]) -> int:
        """Delete the edges with these scopes, sources, targets and kinds.

        Returns:
            How many there were.
        """
        identities = [edge.identity for edge in check_edges(edges)]
        with self._ordered:
            with self._database.write() as connection:
                generation = writing.next_generation(connection)
                removed = delete_edges(connection, identities, generation)
            with self._entering(generation):
                pass
        return removed

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
            also: Writes something else of the file in the same transaction.

        Raises:
            InvalidArgumentError: Vectors of several lengths.
        """
        if len({vector.size for vector in vectors.values()}) > 1:
            raise InvalidArgumentError("vectors: expected one length")
        with self._ordered:
            with self._database.write() as connection:
                generation = writing.next_generation(connection)
                writing.replace_vectors(
                    connection, vectors, embedder=embedder, generation=generation
                )
                if also is not None:
                    also(connection)
            with self._entering(generation):
                pass

    def refresh(self) -> Changes:
        """Bring the columns up to date with what other processes wrote.

        Costs a few microseconds when nothing was.

        Returns:
            What was written since the columns were last up to date, for the other stores to apply;
            own writes may be among it, and applying them again changes nothing.
        """
        with self._ordered:
            changes = self.changes(self._columns.generation)
            if not changes.complete:
                columns = self._loaded()
                with self._columns_lock:
                    self._columns = columns
            elif changes.generation > self._columns.generation:
                with self._entering(changes.generation, after=self.generation) as columns:
                    self._apply(columns, changes)
            return changes

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
            cache.save_cache(connection, store, data, held)
        self._useless.discard(store)

    def _keep_columns(self) -> None:
        if self.path == MEMORY or len(self) < _LEAST_KEPT:
            return
        if self.cache_is_due(column_cache.NAME):
            with self._columns_lock:
                data = column_cache.dump_columns(self._columns)
            self.save_cache(column_cache.NAME, data)

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


def _distinct(keys: Iterable[Key]) -> list[Key]:
    """Each key once; keys that cannot be in any catalog are left out."""
    return [key for key in dict.fromkeys(keys) if is_text(key.id)]

"""The reading half of the catalog."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import CatalogCorruptError, InvalidArgumentError, StoreClosedError
from rankblend.relevance import Scope
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores._rows import ScopedRows
from rankblend.stores.catalog import _cache as cache
from rankblend.stores.catalog import _columns as column_cache
from rankblend.stores.catalog._codec import ScopeReader, decode_metadata, decoding, text_digest
from rankblend.stores.catalog._columns import Columns
from rankblend.stores.catalog._edges import EdgeIdentity, next_edges
from rankblend.stores.catalog._file import Database
from rankblend.stores.catalog._reads import (
    Changes,
    contents_of,
    linked_records,
    load_columns,
    next_records,
    records_at,
    records_of,
    revisions_of,
    select_changes,
    vectors_into,
    written_since,
)
from rankblend.stores.catalog._snapshot import Snapshot
from rankblend.stores.catalog._view import MemoryView

_BATCH = 4096
_FEW = 50  # one memory in so many
_METADATA = "SELECT serial, metadata FROM memories WHERE metadata IS NOT NULL"
_METADATA_OF = (
    "SELECT serial, metadata FROM memories WHERE metadata IS NOT NULL "
    "AND serial IN (SELECT value FROM json_each(?))"
)


class CatalogReader(MemoryView):
    """What can be read from an open database; see `Catalog`."""

    def __init__(self, database: Database, normalize: Callable[[str], str]) -> None:
        self._database = database
        self._normalize = normalize
        self._scopes = ScopeReader()
        self._useless: set[str] = set()  # stores whose bytes were damaged, or of another version
        super().__init__(self._loaded(), self._metadata_of)

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
            return records_of(connection, self._scopes, keys)

    def contents(self, serials: NDArray[np.int64]) -> list[Record | None]:
        """`MemoryView.contents`; reads the file once."""
        with self._database.read() as connection:
            return contents_of(connection, self._scopes, serials)

    def revisions(self, key: Key) -> list[Record]:
        """Every revision of a memory by valid time, then in order of writing; the last is current.

        Created, used and uses are those of the memory and the same in each. Empty for unknown keys.
        """
        with self._database.read() as connection:
            return revisions_of(connection, self._scopes, key)

    def iter_records(self, *, batch: int = _BATCH) -> Iterator[Record]:
        """All current records with their vectors, by scope path and id.

        Each batch is read when it is needed, so that writers go on meanwhile; what they change
        behind the last record given out is seen. Apply `changes` since a `generation` taken before.
        """
        after = ("", "")
        while True:
            with self._database.read() as connection:
                records = next_records(connection, self._scopes, after, batch)
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
            found = connection.execute("SELECT value FROM meta WHERE name = 'dimension'").fetchone()
            if found is None:
                return np.zeros(len(serials), dtype=np.bool_)
            row_of = np.full(int(serials.max(initial=-1)) + 2, -1, dtype=np.int64)
            row_of[serials] = np.arange(len(serials))
            return vectors_into(connection, room(int(found[0])), row_of)

    def linked(self, kind: str | None = None) -> list[Record]:
        """Memories that have links: records of which only key, serial and links are read.

        Args:
            kind: Only those with a link of this kind; None for any.
        """
        with self._database.read() as connection:
            return linked_records(connection, self._scopes, kind)

    def iter_edges(
        self, *, as_of: float = math.inf, kind: str | None = None, batch: int = _BATCH
    ) -> Iterator[Edge]:
        """Edges, of one kind or any, that hold at ``as_of``, by scope path, source, target, kind."""
        after: EdgeIdentity = ("", "", "", "")
        while True:
            with self._database.read() as connection:
                edges = next_edges(connection, self._scopes, after, as_of, kind, batch)
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
            return records_at(connection, self._scopes, as_of, roots)

    def snapshot(self, as_of: float, *, roots: Sequence[Scope] | None = None) -> Snapshot:
        """`records_at` as a view that answers `admit`, `locate` and `facts` for that moment."""
        with self._reading():
            generation = self._columns.generation
        records = self.records_at(as_of, roots=roots)
        return Snapshot(records, normalize=self._normalize, generation=generation)

    def changes(self, since: int) -> Changes:
        """What was written after generation ``since``, by anybody; reads the file."""
        with self._database.read() as connection:
            return select_changes(connection, self._scopes, since)

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
            kept = cache.cached_generation(connection, store)
            few = len(self) // _FEW
            return store in self._useless or kept is None or written_since(connection, kept) > few

    def check(self) -> None:
        """Read the whole file and check its structure.

        Raises:
            CatalogCorruptError: It is damaged.
        """
        with self._database.read() as connection:
            found = [str(line) for (line,) in connection.execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            raise CatalogCorruptError(f"the catalog {self.path!r} is damaged; restore a backup")

    def _reading(self) -> AbstractContextManager[object]:
        if self._database.closed:
            raise StoreClosedError(f"the catalog {self.path!r} was closed; open it again to use it")
        return super()._reading()

    def _loaded(self) -> Columns:
        """The columns: from the cache where it is almost up to date, else from the rows."""
        with self._database.read() as connection:
            columns = None
            cached = self._load_cache(connection, column_cache.NAME)
            if cached is not None:
                columns = column_cache.restore_columns(cached[1], self._scopes, cached[0])
                if columns is None:
                    self.discard_cache(column_cache.NAME)
            if columns is None or written_since(connection, columns.generation) > len(columns) // 8:
                return load_columns(connection, self._scopes)
            self._apply(columns, select_changes(connection, self._scopes, columns.generation))
            return columns

    def _load_cache(self, connection: Connection, store: str) -> tuple[int, bytes] | None:
        kept = cache.load_cache(connection, store)
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
        with decoding():
            return [(serial, decode_metadata(text)) for serial, text in found]

"""One open database: a connection that writes and one that reads, and transactions on them."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from rankblend.errors import StoreClosedError, StoreError
from rankblend.files import hold, is_held, refuse_part, release
from rankblend.forks import guard
from rankblend.stores.catalog import _file
from rankblend.stores.catalog._file import MEMORY

_LEFT_BEHIND: list[sqlite3.Connection] = []


@frozen
class Compaction:
    """What came of rewriting a file.

    Attributes:
        freed: Bytes given back to the disk.
        waiting: Whether somebody still reads an older state, or is writing: what was deleted is
            out of the tables but not yet out of the file or the log beside it. Try again then.
    """

    freed: int
    waiting: bool


class Database:
    """A connection that writes and one that reads, each behind a lock.

    No writer keeps a reader waiting: a read sees the last commit. In memory both are the same
    connection. What is acknowledged is on the disk (``synchronous = FULL``), after a power cut too.
    """

    def __init__(
        self,
        path: str,
        writer: sqlite3.Connection,
        reader: sqlite3.Connection,
        *,
        file: Path | None = None,
        timeout: float = 0.0,
    ) -> None:
        self.path = path
        self._file = file
        self._timeout = timeout
        self._patience = round(timeout * 1000)  # milliseconds a read waits for another process
        self._waits = self._patience  # what the reading connection was told of that
        self._writer: sqlite3.Connection | None = writer
        self._reader: sqlite3.Connection | None = reader
        self._write_lock = threading.RLock()
        self._read_lock = self._write_lock if reader is writer else threading.RLock()
        guard(self, "_write_lock", "_read_lock")

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, busy_timeout: float = 5.0) -> Database:
        """Open a catalog file, or make one where there is none.

        Args:
            path: A file, or ``":memory:"``.
            busy_timeout: Seconds to wait for another writer, ≥ 0.

        Raises:
            CatalogCorruptError: There is a file, but no readable catalog in it.
            CatalogVersionError: A newer rankblend wrote it.
            CatalogReadOnlyError: There is none and none can be made there. An existing catalog that
                cannot be written opens; writing to it raises this.
            CatalogBusyError: Another process holds it exclusively.
            InvalidArgumentError: The path names a folder or lies in none, or a bad time-out.
        """
        timeout = _file.checked_timeout(busy_timeout)
        if path == MEMORY:
            with _file.translated(MEMORY):
                connection = _file.connect(MEMORY, timeout)
                _file.in_transaction(connection)
                return cls(MEMORY, connection, connection)
        file = _file.locate_file(path)
        with _file.translated(str(path)):
            if not file.exists():
                refuse_part(file)
                _file.create(file, timeout)
            # To close a file takes away the locks that other connections of this process have on it.
            foreign = not is_held(file) and _file.inspect_file(file)
            writer = _file.connect_file(file, timeout, foreign=foreign)
            with _file.closed_on_error(writer):
                reader = _file.connect_reader(file, timeout)
            opened = cls(str(path), writer, reader, file=file, timeout=timeout)
            hold(opened, file)
            return opened

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block, or, when anything in it raises, nothing of it."""
        with self._write_lock, _file.translated(self.path, self._writer):
            connection = self._idle(self._writer)
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk may have ended the transaction already.
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self, *, waiting: bool = True) -> Iterator[sqlite3.Connection]:
        """One consistent view for all statements; not ``waiting``, it fails where it would wait."""
        with self._read_lock, _file.translated(self.path, self._reader):
            connection = self._idle(self._reader)
            patience = self._patience if waiting else 0
            if patience != self._waits:
                connection.execute(f"PRAGMA busy_timeout = {patience}")
                self._waits = patience
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def read_if_free(self) -> Iterator[sqlite3.Connection | None]:
        """`read` for whoever must not wait: None, or CatalogBusyError, while others hold the file."""
        if not self._read_lock.acquire(blocking=False):
            yield None
            return
        try:
            with self.read(waiting=False) as connection:
                yield connection
        finally:
            self._read_lock.release()

    def stop_waiting(self) -> None:
        """From now on give up at once when another writer holds the file."""
        with self._write_lock, _file.translated(self.path):
            self._open(self._writer).execute("PRAGMA busy_timeout = 0")

    def compact(self, seen: int = 0) -> Compaction:
        """Rewrite the file without what was freed in it, empty the log, drop what nobody needs.

        Args:
            seen: The last write that whoever reads through this object knows: tombstones up to it
                go, provided that nobody else has the file open.
        """
        with self._write_lock, self._read_lock, _file.translated(self.path, self._writer):
            writer = self._idle(self._writer)
            before = self._size()
            if self._file is None:
                _file.drop_tombstones(writer, seen)
            else:
                self._idle(self._reader).close()
                try:
                    _file.clear_alone(writer, seen)
                    writer.execute(f"PRAGMA busy_timeout = {self._patience}")
                    self._reader = _file.connect_reader(self._file, self._timeout)
                    self._waits = self._patience
                except BaseException:
                    self._writer = self._reader = None
                    writer.close()
                    raise
            return Compaction(
                waiting=not _file.rewrite(writer), freed=max(before - self._size(), 0)
            )

    def _size(self) -> int:
        return 0 if self._file is None else self._file.stat().st_size + _file.log_size(self._file)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._writer is None

    def close(self) -> None:
        """Close both connections; closing twice is harmless."""
        with self._write_lock, self._read_lock:
            release(self)
            writer, reader = self._writer, self._reader
            self._writer = self._reader = None
            if writer is None or reader is None:
                return
            if reader is not writer:
                reader.close()
                with suppress(sqlite3.Error):
                    _file.clear_alone(writer)
            writer.close()

    def after_fork(self, *, quiet: bool) -> None:
        """In the child: connections of its own, as SQLite's must not be carried over a fork.

        They can be let go of only between transactions; where one was open, only an error is left.
        """
        writer, reader = self._writer, self._reader
        if writer is None or reader is None:
            return
        if quiet and not writer.in_transaction and not reader.in_transaction:
            if self._file is None:  # a copy, like everything else in memory
                return
            reader.close()
            writer.close()
            with suppress(StoreError, sqlite3.Error, OSError):
                self._writer = _file.connect_file(self._file, self._timeout, foreign=False)
                self._reader = _file.connect_reader(self._file, self._timeout)
                self._waits = self._patience
                return
        _LEFT_BEHIND.extend((writer, reader))  # not even closed, which could undo a transaction
        self._writer = self._reader = None

    def _idle(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        """A connection in no transaction; the caller holds its lock."""
        found = self._open(connection)
        if found.in_transaction:  # Ctrl-C came right before it was ended
            found.execute("ROLLBACK")
        return found

    def _open(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:
            raise StoreClosedError(f"the catalog {self.path!r} was closed; open it again to use it")
        return connection

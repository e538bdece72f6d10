"""One SQLite file: opening it without harm, transactions, and errors a caller can act on.

A file is looked at before SQLite touches it: what is not a catalog is refused as it is, and never
becomes an empty one. A new catalog is made complete under another name and then linked to its own,
so that no kill leaves half a catalog behind and an empty file is always somebody else's.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankblend.errors import (
    CatalogBusyError,
    CatalogCorruptError,
    CatalogFullError,
    CatalogReadOnlyError,
    CatalogVersionError,
    InvalidArgumentError,
    StoreClosedError,
    StoreError,
)
from rankblend.stores.catalog.schema import APPLICATION_ID, PAGE_SIZE, SCHEMA_VERSION, migrate

__all__ = ["MEMORY", "Database", "translated"]

MEMORY = ":memory:"
_MAGIC = b"SQLite format 3\x00"
# Pages each connection keeps. 8 MB hold the (scope, id) index of 100k memories, so that a bulk
# write in random order does not spill it into the log again and again.
_CACHE_KIB = 8192


class Database:
    """A connection that writes and one that reads, each behind a lock.

    Readers are never kept waiting by a writer, of this process or another one: a read sees the
    last commit. In memory both are the same connection. Every commit is on the disk when it is
    acknowledged (``synchronous = FULL``), also after a power cut.
    """

    def __init__(self, path: str, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self._writer: sqlite3.Connection | None = writer
        self._reader: sqlite3.Connection | None = reader
        self._write_lock = threading.RLock()
        self._read_lock = self._write_lock if reader is writer else threading.RLock()

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
        timeout = _checked_timeout(busy_timeout)
        if os.fspath(path) == MEMORY:
            with translated(MEMORY):
                connection = _connect(MEMORY, timeout)
                _in_transaction(connection)
                return cls(MEMORY, connection, connection)
        file = Path(path)
        _check_place(file)
        with translated(str(path)):
            if not file.exists():
                _create(file, timeout)
            foreign = _inspect(file)
            writer = _connect_file(file, timeout, foreign=foreign)
            try:
                reader = _connect_file(file, timeout, foreign=False)
                reader.execute("PRAGMA query_only = ON")
            except BaseException:
                writer.close()
                raise
            return cls(str(path), writer, reader)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block, or, when anything in it raises, nothing of it."""
        with self._write_lock, translated(self.path):
            connection = self._open(self._writer)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk may have ended the transaction already.
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file for all statements of the block."""
        with self._read_lock, translated(self.path):
            connection = self._open(self._reader)
            if connection.in_transaction:  # inside a write or another read of this thread
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def stop_waiting(self) -> None:
        """From now on give up at once when another writer holds the file."""
        with self._write_lock, translated(self.path):
            self._open(self._writer).execute("PRAGMA busy_timeout = 0")

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._writer is None

    def close(self) -> None:
        """Close both connections; closing twice is harmless."""
        with self._write_lock, self._read_lock:
            writer, reader = self._writer, self._reader
            self._writer = self._reader = None
            if writer is None or reader is None:
                return
            reader.close()
            writer.close()

    def _open(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:
            raise StoreClosedError(f"the catalog {self.path!r} was closed; open it again to use it")
        return connection


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the errors of SQLite into those of rankblend, by their code; others pass."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translation(error, path) from error


def _translation(error: sqlite3.Error, path: str) -> Exception:
    extended = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        return error
    match extended & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return CatalogBusyError(
                f"the catalog {path!r} is held by another writer; nothing was written. Try again, "
                "or open it with a longer busy_timeout"
            )
        case sqlite3.SQLITE_FULL:
            return _full(path)
        case sqlite3.SQLITE_IOERR if extended == sqlite3.SQLITE_IOERR_SHMSIZE:
            return _full(path)  # no room for the few pages the readers share
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return CatalogReadOnlyError(
                f"the catalog {path!r} cannot be written: read-only file or folder; nothing was "
                "changed"
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _corrupt(path, "its content is damaged")
        case _:
            name = getattr(error, "sqlite_errorname", "unknown")
            return StoreError(f"the catalog {path!r} failed with {name}")


def _full(path: str) -> CatalogFullError:
    return CatalogFullError(
        f"there is no space left to write to the catalog {path!r}; nothing was changed"
    )


def _corrupt(path: str, why: str) -> CatalogCorruptError:
    return CatalogCorruptError(
        f"{path!r} is not a readable catalog: {why}. The file was left as it is; restore a backup, "
        "or give the path of a file that does not exist to begin a new one"
    )


def _checked_timeout(busy_timeout: object) -> float:
    # SQLite counts milliseconds in 31 bits.
    if type(busy_timeout) in (int, float) and 0 <= busy_timeout <= 2_000_000:  # type: ignore[operator]
        return float(busy_timeout)  # type: ignore[arg-type]
    raise InvalidArgumentError("busy_timeout: expected seconds in [0, 2,000,000]")


def _check_place(file: Path) -> None:
    if file.is_dir():
        raise InvalidArgumentError(f"path: expected a file, got the folder {str(file)!r}")
    if not file.absolute().parent.is_dir():
        raise InvalidArgumentError(f"path: the folder of {str(file)!r} does not exist")


def _log_of(file: Path) -> int:
    """Bytes in the write-ahead log beside a file."""
    try:
        return file.with_name(file.name + "-wal").stat().st_size
    except OSError:
        return 0


def _inspect(file: Path) -> bool:
    """Refuse what is no catalog from its first bytes; whether it is an SQLite file without owner."""
    try:
        with file.open("rb") as stream:
            header = stream.read(100)
    except OSError as error:
        raise _corrupt(str(file), f"it cannot be read ({type(error).__name__})") from error
    if not header:
        raise _corrupt(str(file), "it is empty")
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise _corrupt(str(file), "it is not an SQLite file")
    owner = int.from_bytes(header[68:72], "big")
    if owner not in (0, APPLICATION_ID):
        raise _corrupt(str(file), "it belongs to another application")
    return owner == 0


def _connect(where: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        where,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        uri=where.startswith("file:"),
    )
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _connect_file(file: Path, timeout: float, *, foreign: bool) -> sqlite3.Connection:
    where = file.absolute().as_uri()
    connection = _connect(f"{where}?mode=rw", timeout)
    try:
        try:
            _prepare(connection, file, foreign=foreign)
        except sqlite3.OperationalError as error:
            # A folder nothing can be written to has no room for the files that readers share.
            # Without a log the file is complete in itself and is read as it stands.
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or _log_of(file):
                raise
            connection.close()
            connection = _connect(f"{where}?mode=ro&immutable=1", timeout)
            _prepare(connection, file, foreign=foreign)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, file: Path, *, foreign: bool) -> None:
    """Check version and content, and bring an older file up to date."""
    if foreign and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise _corrupt(str(file), "it is an SQLite file with tables of something else")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise CatalogVersionError(version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        if version == 0 and not foreign:
            raise _corrupt(str(file), "it has no version")
        connection.execute("PRAGMA journal_mode = WAL")
        _in_transaction(connection)
    connection.execute("SELECT generation FROM state").fetchone()


def _in_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrate(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _create(file: Path, timeout: float) -> None:
    """Make a complete, empty catalog; when somebody else was quicker, theirs is kept."""
    if _log_of(file):
        raise _corrupt(str(file), "only its write-ahead log is there, the file itself is missing")
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}.new")
    try:
        connection = _connect(f"{draft.absolute().as_uri()}?mode=rwc", timeout)
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            _in_transaction(connection)
        finally:
            connection.close()
        with suppress(FileExistsError):
            _publish(draft, file)
        _sync_folder(file.absolute().parent)
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, file: Path) -> None:
    """Give a file its name unless the name is taken."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        draft.replace(file)


def _sync_folder(folder: Path) -> None:
    """Make a new name durable, where folders can be synchronized."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""One SQLite file: opening it without harm, transactions, and errors a caller can act on.

A file is looked at before SQLite touches it: what is not a catalog is refused as it is, and never
becomes an empty one. A new catalog is made complete under another name and then linked to its own,
so that no kill leaves half a catalog behind and an empty file is always somebody else's.
"""

from __future__ import annotations

import errno
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
from rankblend.files import hold, refuse, release
from rankblend.stores.catalog._schema import APPLICATION_ID, PAGE_SIZE, SCHEMA_VERSION, migrate

_MAGIC = b"SQLite format 3\x00"


def corrupt(path: str, why: str) -> CatalogCorruptError:
    """The error for a file that is no readable catalog."""
    return CatalogCorruptError(
        f"{path!r} is not a readable catalog: {why}. The file was left as it is; restore a backup, "
        "or give the path of a file that does not exist to begin a new one"
    )


def locate_file(path: object) -> Path:
    """The file a path names, links followed, because that is beside which SQLite puts its log.

    Raises:
        InvalidArgumentError: It is no path, names a folder or lies in none.
    """
    try:
        file = Path(path).resolve()  # type: ignore[arg-type]
        if file.is_dir():
            raise InvalidArgumentError(f"path: expected a file, got the folder {str(path)!r}")
        if not file.parent.is_dir():
            raise InvalidArgumentError(f"path: the folder of {str(path)!r} does not exist")
    except (TypeError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"path: not a usable path ({type(error).__name__})") from error
    return file


def log_size(file: Path) -> int:
    """Bytes in the write-ahead log beside a file."""
    try:
        return file.with_name(file.name + "-wal").stat().st_size
    except OSError:
        return 0


def inspect_file(file: Path) -> bool:
    """Refuse what is no catalog from its first bytes; whether it is an SQLite file without owner."""
    try:
        with file.open("rb") as stream:
            header = stream.read(100)
    except OSError as error:
        raise corrupt(str(file), f"it cannot be read ({type(error).__name__})") from error
    if not header:
        raise corrupt(str(file), "it is empty")
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise corrupt(str(file), "it is not an SQLite file")
    # SQLite notices missing pages, but not that the last one is incomplete. With a log beside it the
    # file may be behind its own header, so that says nothing.
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    if not log_size(file) and file.stat().st_size < pages * (65536 if page == 1 else page):
        raise corrupt(str(file), "its end is missing")
    owner = int.from_bytes(header[68:72], "big")
    if owner not in (0, APPLICATION_ID):
        raise corrupt(str(file), "it belongs to another application")
    return owner == 0


def publish(draft: Path, file: Path) -> None:
    """Give a file its name unless the name is taken."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        draft.replace(file)


def sync_folder(folder: Path) -> None:
    """Make a new name durable, where folders can be synchronized."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


MEMORY = ":memory:"
# Of pages: the (scope, id) index of 100k memories, which bulk writes would spill again and again.
_CACHE_KIB = 8192


class Database:
    """A connection that writes and one that reads, each behind a lock.

    No writer keeps a reader waiting: a read sees the last commit. In memory both are the same
    connection. What is acknowledged is on the disk (``synchronous = FULL``), after a power cut too.
    """

    def __init__(
        self, path: str, writer: sqlite3.Connection, reader: sqlite3.Connection, patience: int = 0
    ) -> None:
        self.path = path
        self._patience = patience  # milliseconds a read waits for another process
        self._waits = patience  # what the reading connection was told of that
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
        if path == MEMORY:
            with translated(MEMORY):
                connection = _connect(MEMORY, timeout)
                _in_transaction(connection)
                return cls(MEMORY, connection, connection)
        file = locate_file(path)
        with translated(str(path)):
            if not file.exists():
                refuse(file)
                _create(file, timeout)
            foreign = inspect_file(file)
            writer = _connect_file(file, timeout, foreign=foreign)
            try:
                reader = _connect_file(file, timeout, foreign=False)
                reader.execute("PRAGMA query_only = ON")
            except BaseException:
                writer.close()
                raise
            opened = cls(str(path), writer, reader, round(timeout * 1000))
            hold(opened, file)
            return opened

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block, or, when anything in it raises, nothing of it."""
        with self._write_lock, translated(self.path):
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
        with self._read_lock, translated(self.path):
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
        with self._write_lock, translated(self.path):
            self._open(self._writer).execute("PRAGMA busy_timeout = 0")

    def compact(self) -> None:
        """Rewrite the file without what was freed in it, and empty the log.

        Raises:
            CatalogBusyError: Somebody still reads an older state, so the log had to be kept.
        """
        with self._write_lock, translated(self.path):
            connection = self._open(self._writer)
            connection.execute("VACUUM")
            kept = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if kept:
            raise CatalogBusyError(
                f"the catalog {self.path!r} is being read; what was freed is still in its log. "
                "Try again when nobody reads"
            )

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
            release(self)

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
        # Raised by Python itself: only text that is no UTF-8 can come from the file.
        return corrupt(path, "its text is damaged") if "decode" in str(error) else error
    match extended & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return CatalogBusyError(
                f"the catalog {path!r} is held by another writer; nothing was written. Try again, "
                "or open it with a longer busy_timeout"
            )
        case sqlite3.SQLITE_FULL:
            return _full(path)
        # No room for what the readers share, or what a quota or a limit of file sizes says.
        case sqlite3.SQLITE_IOERR if extended in (
            sqlite3.SQLITE_IOERR_SHMSIZE,
            sqlite3.SQLITE_IOERR_WRITE,
        ):
            return _full(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return _read_only(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return corrupt(path, "its content is damaged")
        case _:
            name = getattr(error, "sqlite_errorname", "unknown")
            return StoreError(
                f"the catalog {path!r} failed with {name}; what was being written is undone. Check "
                "the disk, then open it again"
            )


def _read_only(path: str) -> CatalogReadOnlyError:
    return CatalogReadOnlyError(
        f"the catalog {path!r} cannot be written: read-only file or folder; nothing was changed. "
        "Make both writable, or open a copy elsewhere"
    )


def _full(path: str) -> CatalogFullError:
    return CatalogFullError(
        f"there is no space left to write to the catalog {path!r} (disk, quota or limit of file "
        "sizes); nothing was changed. Make room and try again"
    )


def _checked_timeout(busy_timeout: object) -> float:
    if type(busy_timeout) in (int, float) and 0 <= busy_timeout <= 2_000_000:  # type: ignore[operator]
        return float(busy_timeout)  # type: ignore[arg-type]  # milliseconds in 31 bits
    raise InvalidArgumentError("busy_timeout: expected seconds in [0, 2,000,000]")


def _connect(where: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        where,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        uri=where.startswith("file:"),
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_file(file: Path, timeout: float, *, foreign: bool) -> sqlite3.Connection:
    where = file.as_uri()
    try:
        return _connect_as(f"{where}?mode=rw", file, timeout, foreign=foreign)
    except sqlite3.OperationalError as error:
        # A folder nothing can be written to has no room for the files that readers share. Without
        # a log the file is complete in itself and is read as it stands.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or log_size(file):
            raise
        return _connect_as(f"{where}?mode=ro&immutable=1", file, timeout, foreign=foreign)


def _connect_as(where: str, file: Path, timeout: float, *, foreign: bool) -> sqlite3.Connection:
    connection = _connect(where, timeout)
    try:
        _prepare(connection, file, foreign=foreign)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, file: Path, *, foreign: bool) -> None:
    """Check version and content, and bring an older file up to date."""
    if foreign and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise corrupt(str(file), "it is an SQLite file with tables of something else")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise CatalogVersionError(version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        if version == 0 and not foreign:
            raise corrupt(str(file), "it has no version")
        connection.execute("PRAGMA journal_mode = WAL")
        _in_transaction(connection)
    try:
        connection.execute("SELECT generation FROM state").fetchone()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_ERROR:
            raise
        raise corrupt(str(file), "its tables are missing") from error


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
    if log_size(file):
        raise corrupt(str(file), "only its write-ahead log is there, the file itself is missing")
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}.new")
    try:
        connection = _connect(f"{draft.as_uri()}?mode=rwc", timeout)
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            _in_transaction(connection)
        finally:
            connection.close()
        try:
            publish(draft, file)
        except FileExistsError:
            pass
        except OSError as error:
            raise (
                _full(str(file)) if error.errno == errno.ENOSPC else _read_only(str(file))
            ) from error
        sync_folder(file.parent)
    finally:
        with suppress(OSError):
            draft.unlink()

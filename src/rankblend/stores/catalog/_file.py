"""The file of a catalog: what it may be, how it is opened and made, and how it is left without a trace.

A file is looked at before SQLite touches it: what is not a catalog is refused as it is, and never
becomes an empty one. A new catalog is made complete under another name and then linked to its own,
so that no kill leaves half a catalog behind and an empty file is always somebody else's.

What is deleted is overwritten, whichever way SQLite was compiled. Copies that SQLite made of it when
pages were split, and the log beside the file, go when the last one closes the file, or when it is
compacted.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from rankblend.errors import (
    CatalogBusyError,
    CatalogCorruptError,
    CatalogFullError,
    CatalogReadOnlyError,
    CatalogVersionError,
    InvalidArgumentError,
    RankblendError,
    StoreError,
)
from rankblend.stores.catalog._schema import (
    APPLICATION_ID,
    MIGRATED,
    PAGE_SIZE,
    SCHEMA_VERSION,
    UNCLEAN,
    migrate,
    tables_of,
    version_of,
)

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
_TOMBSTONES = """
SELECT EXISTS (SELECT 1 FROM tombstones) OR EXISTS (SELECT 1 FROM edge_tombstones)
"""
_DROP = (
    "DELETE FROM tombstones WHERE ?1 IS NULL OR generation <= ?1",
    "DELETE FROM edge_tombstones WHERE ?1 IS NULL OR generation <= ?1",
)
# Why a file cannot be rewritten now although nothing is wrong with it.
_NOT_NOW = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
)


@contextmanager
def translated(path: str, connection: sqlite3.Connection | None = None) -> Iterator[None]:
    """Turn what SQLite raises, and what damaged rows do, into errors of rankblend; those pass.

    Nothing but SQL and the decoding of rows belongs in the block: whatever fails there without
    being an error of ours was made to fail by what the file says.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _translation(error, path, connection) from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, RankblendError):
            raise
        why = f"what a row says cannot be decoded ({type(error).__name__})"
        raise corrupt(path, why) from error


def _translation(
    error: sqlite3.Error, path: str, connection: sqlite3.Connection | None
) -> Exception:
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
        # Our statements are fixed, so tables that they do not fit are not the ones we made.
        case sqlite3.SQLITE_ERROR | sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH:
            with suppress(sqlite3.Error):
                if connection is not None and version_of(connection) > SCHEMA_VERSION:
                    return CatalogVersionError(version_of(connection), SCHEMA_VERSION)
            return corrupt(path, f"its tables are damaged ({error.sqlite_errorname})")
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


def checked_timeout(busy_timeout: object) -> float:
    if type(busy_timeout) in (int, float) and 0 <= busy_timeout <= 2_000_000:  # type: ignore[operator]
        return float(busy_timeout)  # type: ignore[arg-type]  # milliseconds in 31 bits
    raise InvalidArgumentError("busy_timeout: expected seconds in [0, 2,000,000]")


def connect(where: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        where,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        uri=where.startswith("file:"),
    )
    with closed_on_error(connection):
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def connect_reader(file: Path, timeout: float) -> sqlite3.Connection:
    connection = connect_file(file, timeout, foreign=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


def connect_file(file: Path, timeout: float, *, foreign: bool) -> sqlite3.Connection:
    where = file.as_uri()
    try:
        connection = connect(f"{where}?mode=rw", timeout)
        with closed_on_error(connection):
            _prepare(connection, file, foreign=foreign)
    except sqlite3.OperationalError as error:
        # A folder nothing can be written to has no room for the files that readers share. Without
        # a log the file is complete in itself and is read as it stands.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or log_size(file):
            raise
        connection = connect(f"{where}?mode=ro&immutable=1", timeout)
        with closed_on_error(connection):
            if 0 < version_of(connection) < SCHEMA_VERSION:
                connection = brought_up(connection, timeout)
            _prepare(connection, file, foreign=foreign)
    return connection


def brought_up(old: sqlite3.Connection, timeout: float) -> sqlite3.Connection:
    """A copy in memory of an old file that cannot be written, up to date and for reading only."""
    copy = connect(MEMORY, timeout)
    with closed_on_error(copy):
        old.backup(copy)
        in_transaction(copy)
        copy.execute("PRAGMA query_only = ON")
    old.close()
    return copy


def _prepare(connection: sqlite3.Connection, file: Path, *, foreign: bool) -> None:
    """Check version and tables, and bring an older file up to date."""
    if foreign and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise corrupt(str(file), "it is an SQLite file with tables of something else")
    version = version_of(connection)
    if version > SCHEMA_VERSION:
        raise CatalogVersionError(version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        if version == 0 and not foreign:
            raise corrupt(str(file), "it has no version")
        connection.execute("PRAGMA journal_mode = WAL")
        in_transaction(connection)
    if not _expected_tables() <= tables_of(connection):
        raise corrupt(str(file), "its tables are not those of a catalog")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete":  # left by a kill
        with suppress(sqlite3.OperationalError):  # it cannot be written
            connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("SELECT generation FROM state").fetchone()
    if _unclean(connection) == MIGRATED:
        rewrite(connection)


def _unclean(connection: sqlite3.Connection) -> str | None:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (UNCLEAN,)).fetchone()
    return None if found is None else str(found[0])


@cache
def _expected_tables() -> frozenset[tuple[object, ...]]:
    connection = connect(MEMORY, 0)
    try:
        migrate(connection)
        return frozenset(tables_of(connection))
    finally:
        connection.close()


def rewrite(connection: sqlite3.Connection) -> bool:
    """Leave no byte of what was deleted in the file and its log; whether that could be done now.

    It is tried again when the file is opened next, if it was `UNCLEAN`.
    """
    try:
        connection.execute("VACUUM")
        connection.execute("DELETE FROM meta WHERE name = ?", (UNCLEAN,))
        # In memory there is no log, and the answer is (0, −1, −1).
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NOT_NOW:
            raise
        return False


def clear_alone(connection: sqlite3.Connection, seen: int | None = None) -> None:
    """Where nobody else has the file open, drop tombstones and what deleting left in the pages.

    A file leaves the mode in which others may read beside a writer only when there are none; where
    there are, at least the log is emptied.
    """
    found = connection.execute(_TOMBSTONES).fetchone()[0]
    unclean = seen is None and _unclean(connection)
    if not found and not unclean:
        return
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        if connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
            return
        drop_tombstones(connection, seen)
        if unclean:
            rewrite(connection)
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NOT_NOW:
            raise
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        with suppress(sqlite3.OperationalError):  # somebody is opening it, who will do it then
            connection.execute("PRAGMA journal_mode = WAL")


def drop_tombstones(connection: sqlite3.Connection, seen: int | None) -> None:
    """Drop the tombstones of all writes, or of those up to one that was seen."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _DROP:
            connection.execute(statement, (seen,))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def in_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrate(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create(file: Path, timeout: float) -> None:
    """Make a complete, empty catalog; when somebody else was quicker, theirs is kept."""
    if log_size(file):
        raise corrupt(str(file), "only its write-ahead log is there, the file itself is missing")
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}.new")
    try:
        connection = connect(f"{draft.as_uri()}?mode=rwc", timeout)
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            in_transaction(connection)
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

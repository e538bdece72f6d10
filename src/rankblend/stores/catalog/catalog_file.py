"""The file of a catalog: what it may be, before SQLite is let near it, and how a new one appears."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rankblend.errors import CatalogCorruptError, InvalidArgumentError
from rankblend.stores.catalog.schema import APPLICATION_ID

__all__ = ["corrupt", "inspect_file", "locate_file", "log_size", "publish", "sync_folder"]

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

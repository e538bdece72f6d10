"""Files: written whole or not at all, and never over what is being read; text read as people save it."""

from __future__ import annotations

import gzip
import os
import secrets
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO
from weakref import finalize

from rankblend.errors import InvalidArgumentError

__all__ = [
    "hold",
    "is_held",
    "noting",
    "read_text",
    "refuse",
    "refuse_part",
    "release",
    "text_lines",
    "whole",
    "write_whole",
]

PathLike = str | os.PathLike[str]

_DATABASE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"
# What SQLite keeps beside a database; without its log a database may lose what was acknowledged.
_BESIDE = ("-wal", "-shm", "-journal")

# By the identity of who reads; no lock, which a child forked meanwhile could never have again.
_held: dict[int, str] = {}
_noted: ContextVar[set[str] | None] = ContextVar("rankblend_files_noted", default=None)


def hold(owner: object, path: PathLike) -> None:
    """Say that an object reads a file until `release`, or until nobody has the object any more."""
    _held[id(owner)] = os.path.realpath(path)
    finalize(owner, _held.pop, id(owner), None).atexit = False


def release(owner: object) -> None:
    """Say that an object reads its file no longer; once more is harmless."""
    _held.pop(id(owner), None)


def is_held(path: PathLike) -> bool:
    """Whether an object of this process reads a file."""
    return os.path.realpath(path) in list(_held.values())


@contextmanager
def noting(inputs: Iterable[PathLike] = ()) -> Iterator[None]:
    """Nothing that is read inside the block, and none of the inputs, is written over inside it."""
    token = _noted.set({os.path.realpath(path) for path in inputs})
    try:
        yield
    finally:
        _noted.reset(token)


def note(path: PathLike) -> None:
    """Say that a file was read; only `noting` wants to know."""
    noted = _noted.get()
    if noted is not None:
        noted.add(os.path.realpath(path))


def refuse(target: PathLike) -> None:
    """Refuse to write where that would take away what is read.

    That is a file that is held open here, one that is an input of the same command, a database
    whoever has it open, and what SQLite keeps beside one; links of both kinds are followed.

    Raises:
        InvalidArgumentError: It is one of these.
        OSError: It cannot be looked at.
    """
    place, there = os.path.realpath(target), _status(target)
    if there is not None and not stat.S_ISREG(there.st_mode):
        return  # is written to, not replaced
    inputs = _noted.get() or set()
    read = {*inputs, *list(_held.values())}
    if place in inputs or any(_is_file(path, there) for path in read):
        raise InvalidArgumentError(f"{target}: is being read; write to another file")
    if _is_database(place):
        raise InvalidArgumentError(
            f"{target}: is a database; write to another file, or remove it first"
        )
    refuse_part(target)
    if any(_is_file(f"{path}{end}", there) for path in read for end in _BESIDE):
        raise InvalidArgumentError(f"{target}: belongs to a database that is being read")


def refuse_part(target: PathLike) -> None:
    """Refuse a name that belongs to a database: of its log, say, whether there is one or not.

    Raises:
        InvalidArgumentError: It is one.
    """
    place = os.path.realpath(target)
    owners = {place.removesuffix(end) for end in _BESIDE if place.endswith(end)}
    if owners & {*list(_held.values())} or any(map(_is_database, owners)):
        raise InvalidArgumentError(f"{target}: belongs to a database; choose another name")


@contextmanager
def whole(target: PathLike) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of ``target`` when the block ends well.

    When it does not, whatever was at ``target`` is still there and nothing else is left; of several
    who write at once the last to end stands. Links are followed and the mode of a file that is
    there is kept. A pipe or a device is not replaced but written to, as it comes.

    Raises:
        InvalidArgumentError: See `refuse`; before anything is touched.
        OSError: It cannot be written.
    """
    refuse(target)
    place = os.path.realpath(target)
    there = _status(target)
    if there is not None and not stat.S_ISREG(there.st_mode):
        with Path(target).open("wb") as file:
            yield file
        return
    # The name says nothing of the target, whose own may be as long as a name can be.
    partial = Path(place).with_name(f".rankblend-{secrets.token_hex(8)}.partial")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(partial, flags, 0o600 if there else 0o666)
    except OSError as error:
        error.filename = str(target)
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            if there is not None:
                _like(partial, there)
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(target: PathLike, text: str) -> None:
    """Write a text file as UTF-8, see `whole`.

    Raises:
        InvalidArgumentError: See `refuse`.
        OSError: It cannot be written.
    """
    with whole(target) as file:
        file.write(text.encode())


def read_text(path: PathLike) -> str:
    """The text of a file that people made: UTF-8, compressed or not, a byte order mark left out.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8.
    """
    content = Path(path).read_bytes()
    note(path)
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, zlib.error) as error:
            raise OSError(None, "the compressed file is damaged", str(path)) from error
    return content.decode("utf-8-sig")


def text_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    r"""Number and text of each line that is not blank.

    Lines end at ``\n``, with or without ``\r`` before it, and at nothing else: other separators may
    stand in a text. Files joined into one may have their byte order marks in the middle.

    Raises:
        OSError, UnicodeDecodeError: As `read_text`.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.removeprefix("\ufeff").removesuffix("\r")
        if line.strip():
            yield number, line


def _status(path: PathLike) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except FileNotFoundError:
        return None


def _is_file(path: str, status: os.stat_result | None) -> bool:
    try:
        return status is not None and os.path.samestat(Path(path).stat(), status)
    except OSError:
        return False


def _is_database(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


def _like(path: Path, other: os.stat_result) -> None:
    """Owner, as far as that is allowed, and mode of another file."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, other.st_uid, other.st_gid)
    path.chmod(stat.S_IMODE(other.st_mode))

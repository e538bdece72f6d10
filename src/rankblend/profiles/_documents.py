"""Reading the text of a profile: bytes → TOML → plain tables, safely."""

from __future__ import annotations

import tomllib
from pathlib import Path as FilePath
from typing import Any

from attrs import frozen

from rankblend.errors import ProfileError
from rankblend.files import note
from rankblend.profiles._problems import Path
from rankblend.values import dotted

MAX_BYTES = 1_000_000
# signals.x.curve.[step].smoothed_rate.prior_weight is 6 deep; the rest is room for plug-in curves.
MAX_DEPTH = 16
_INT64 = 2**63


@frozen
class Document:
    """One profile file, parsed but not understood.

    Args:
        label: How it is called in messages and origins: a preset's name or a file's name.
        key: What makes it the same document again, e.g. its resolved path.
        tables: The tables of the TOML text.
        folder: Where relative paths in ``extends`` start; None: there are none.
    """

    label: str
    key: str
    tables: dict[str, Any]
    folder: FilePath | None = None


def document_from_file(path: FilePath) -> Document:
    """Read a file of UTF-8 TOML, with or without a byte order mark, up to ``MAX_BYTES``.

    Raises:
        ProfileError: It cannot be read, or is not TOML.
    """
    label = path.name or str(path)
    try:
        reason, content, resolved = _unreadable(path), b"", path
        if reason is None:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            note(path)
            resolved = path.resolve()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = f"cannot be read: {getattr(error, 'strerror', None) or 'not a usable path'}"
    if reason is not None:
        raise ProfileError(label, [f"{path}: {reason}"])
    if len(content) > MAX_BYTES:
        raise ProfileError(label, [f"{path}: is larger than {MAX_BYTES:,} bytes"])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProfileError(
            label, [f"{path}: is not UTF-8, byte {error.start} is {content[error.start]:#04x}"]
        ) from None
    return document_from_text(text, label=label, key=str(resolved), folder=resolved.parent)


def document_from_text(
    text: str, *, label: str, key: str | None = None, folder: FilePath | None = None
) -> Document:
    """Parse TOML text.

    Raises:
        ProfileError: It is not TOML (with line and column), is nested deeper than ``MAX_DEPTH`` or
            holds an integer beyond 64 bits.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(label, [f"{label}: is not TOML: {error}"]) from None
    except (ValueError, RecursionError):
        # Integers with thousands of digits and brackets thousands deep end here.
        raise ProfileError(label, [f"{label}: is not TOML that can be read"]) from None
    problems: list[str] = []
    _walk((), tables, problems)
    if problems:
        raise ProfileError(label, problems)
    return Document(label, key or label, tables, folder)


def _unreadable(path: FilePath) -> str | None:
    """Why a path is no file to read; pipes and devices could be read without end."""
    if path.is_dir():
        return "is a folder, not a profile file"
    if not path.exists():
        return "there is no such file"
    return None if path.is_file() else "is not a regular file"


def _walk(path: Path, value: object, problems: list[str]) -> None:
    if len(path) > MAX_DEPTH:
        problems.append(f"{dotted(path[:3])}…: is nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _walk((*path, key), inner, problems)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _walk((*path, str(position)), inner, problems)
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        problems.append(f"{dotted(path)}: integers must fit in 64 bits")

"""A whole store of procedures in a file that anything can read, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from rankblend.errors import ReasonletValidationError
from rankblend.files import text_lines
from rankblend.recall import write_lines
from rankblend.stores.procedures import Entry, ProcedureLines, procedure_lines

_SHOWN_PROBLEMS = 20


def write_entries(path: str | os.PathLike[str], entries: Sequence[Entry]) -> int:
    """Write entries to a file, all of them or no file; returns how many."""
    write_lines(path, procedure_lines(entries))
    return len(entries)


def read_entries(path: str | os.PathLike[str]) -> list[Entry]:
    """Read and check what `write_entries` wrote.

    Raises:
        ReasonletValidationError: The file cannot be read; what is wrong, with the numbers of the
            lines, the first 20 problems. Memories in it are wrong here: a `rankblend.Memory` reads
            both.
    """
    lines = ProcedureLines()
    for where, line in _parsed(path, lines.problems):
        kind = line.pop("type", None)
        if kind in ("rankblend", "memory", "link"):
            lines.problems.append(
                f"{where}: type: an export of memories, too; read it with rankblend ingest"
            )
            break
        lines.read(where, kind, line)
        if lines.damaged:
            break
    problems = lines.problems
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        tail = [f"… and {more} more"] if more > 0 else []
        raise ReasonletValidationError(problems[:_SHOWN_PROBLEMS] + tail)
    return lines.entries


def _parsed(
    path: str | os.PathLike[str], problems: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        for number, text in text_lines(path):
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                line = None
            if isinstance(line, dict):
                yield f"line {number}", line
            else:
                problems.append(f"line {number}: expected a JSON object")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"path: cannot be read ({type(error).__name__})")

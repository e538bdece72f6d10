"""``rankblend export``: a memory file as JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import counted, errors
from rankblend.errors import InvalidArgumentError
from rankblend.recall import Memory

__all__ = ["export"]


def export(
    db: Annotated[Path, typer.Option("--db", help="The memory file.")],
    out: Annotated[Path, typer.Option("--out", help="The .jsonl to write.")],
) -> None:
    """Write everything in a file as JSON lines: memories, links, procedures and runs."""
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")
    if out.is_dir() or not out.parent.is_dir():
        raise InvalidArgumentError(f"--out: expected a file in an existing folder, got {out}")
    with Memory.open(db) as memory:
        count = memory.export(out)
    errors.print(Text(f"{counted(count, 'line', 'lines')} written to {out}"), soft_wrap=True)

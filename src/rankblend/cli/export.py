"""``rankblend export``: a memory file as JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.console import errors
from rankblend.errors import InvalidArgumentError
from rankblend.recall import Memory

__all__ = ["export"]


def export(
    db: Annotated[Path, typer.Option("--db", help="The memory file.")],
    out: Annotated[Path, typer.Option("--out", help="The .jsonl to write.")],
) -> None:
    """Write every memory, revision and link of a file as JSON lines."""
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")
    with Memory.open(db) as memory:
        count = memory.export(out)
    errors.print(f"{count:,} lines written to {out}")

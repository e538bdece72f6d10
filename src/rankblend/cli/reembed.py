"""``rankblend reembed``: write all vectors of a file anew with another embedder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.console import counted, output
from rankblend.cli.embedder import HELP, embedder_for
from rankblend.errors import InvalidArgumentError
from rankblend.recall import Memory

__all__ = ["reembed"]


def reembed(
    db: Annotated[Path, typer.Option("--db", help="The memory file.")],
    embedder: Annotated[str, typer.Option("--embedder", help=HELP)],
) -> None:
    """Replace every vector of a memory file with those of another embedder."""
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")
    chosen = embedder_for(embedder, None)
    if chosen is None:
        raise InvalidArgumentError("--embedder: expected an embedder, not none")
    with Memory.open(db) as memory:
        count = memory.reembed(chosen)
    output.print(f"{counted(count, 'memory', 'memories')} embedded anew")

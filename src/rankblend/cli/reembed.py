"""``rankblend reembed``: write all vectors of a file anew with another embedder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.console import counted, output
from rankblend.cli.embedder import HELP, embedder_for
from rankblend.cli.reasonlets_shown import open_procedures
from rankblend.errors import InvalidArgumentError
from rankblend.recall import Memory

__all__ = ["reembed"]


def reembed(
    db: Annotated[Path, typer.Option("--db", help="The memory file.")],
    embedder: Annotated[str, typer.Option("--embedder", help=HELP)],
) -> None:
    """Replace every vector in a file, of memories and procedures, with another embedder's."""
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")
    chosen = embedder_for(embedder, None)
    if chosen is None:
        raise InvalidArgumentError("--embedder: expected an embedder, not none")
    with Memory.open(db) as memory:
        count = memory.reembed(chosen)
    written = counted(count, "memory", "memories")
    with open_procedures(db) as kept:
        found = kept.statistics()
    if procedures := found.active + found.pending:
        written += f" and {counted(procedures, 'procedure', 'procedures')}"
    output.print(f"{written} embedded anew")

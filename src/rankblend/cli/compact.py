"""``rankblend compact``: leave nothing of what was erased in a file, and give its space back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.console import errors, output
from rankblend.errors import InvalidArgumentError
from rankblend.stores.catalog import Catalog

__all__ = ["compact"]


def compact(db: Annotated[Path, typer.Option("--db", help="The memory file.")]) -> None:
    """Rewrite a file without what was erased from it, and give the space back to the disk.

    Exits with 1 while somebody still reads an older state: erased words may then be in the log
    beside the file.
    """
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")
    with Catalog.open(db) as catalog:
        done = catalog.compact()
    output.print(f"{done.freed:,} bytes given back")
    if done.waiting:
        errors.print(f"{db} is in use; what was erased may still be in its log. Try again later")
        raise typer.Exit(1)

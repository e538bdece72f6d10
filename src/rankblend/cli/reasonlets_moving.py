"""``rankblend reasonlets stats``, ``export`` and ``import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from attrs import asdict
from rich.text import Text

from rankblend.cli.console import counted, errors, output, print_json
from rankblend.cli.reasonlets_file import AsJson, Db, open_procedures
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import read_entries

__all__ = ["export", "import_", "stats"]


def stats(
    db: Db,
    scope: Annotated[
        str | None, typer.Option("--scope", help="Exactly this scope; without it the whole file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count procedures, runs and verdicts."""
    with open_procedures(db) as memory:
        found = memory.statistics(scope)
    if as_json:
        print_json(asdict(found))
        return
    every = counted(found.active + found.pending, "procedure", "procedures")
    families = counted(found.families, "family", "families")
    output.print(
        Text(
            f"{every} in {families}: {found.active:,} active, {found.pending:,} waiting for review\n"
            f"{counted(found.runs, 'run', 'runs')}, {found.successes:,} of them worked; "
            f"{found.judged_runs:,} judged, {found.judged_successes:,} of those worked\n"
            f"{found.stored_runs:,} still stored one by one"
        ),
        soft_wrap=True,
    )


def export(
    db: Db, out: Annotated[Path, typer.Option("--out", help="The .jsonl to write.")]
) -> None:
    """Write every procedure with its runs and feedback as JSON lines."""
    if out.is_dir() or not out.parent.is_dir():
        raise InvalidArgumentError(f"--out: expected a file in an existing folder, got {out}")
    with open_procedures(db) as memory, errors.status("writing"):
        count = memory.export(out)
    written = counted(count, "procedure", "procedures")
    errors.print(Text(f"{written} written to {out}"), soft_wrap=True)


def import_(
    source: Annotated[Path, typer.Argument(help="Written by `rankblend reasonlets export`.")],
    db: Annotated[Path, typer.Option("--db", help="The file; created when missing.")],
) -> None:
    """Add exported procedures to a file: all of them, or nothing."""
    if not source.is_file():
        raise InvalidArgumentError(f"{source}: no such file")
    if not db.exists():
        read_entries(source)  # so that no file is made for what cannot be read
    with open_procedures(db, create=True) as memory, errors.status("reading and writing"):
        count = memory.import_(source)
    written = counted(count, "procedure", "procedures")
    output.print(Text(f"{written} written to {db}"), soft_wrap=True)

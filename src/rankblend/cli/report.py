"""``rankblend report``: a report of kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.compare import comparison_report
from rankblend.cli.console import output
from rankblend.cli.replaying import ledger_says, read_results
from rankblend.experiment.inference import compare

__all__ = ["report"]


def report(
    results: Annotated[Path, typer.Argument(help="Kept by `rankblend replay --out`.")],
    out: Annotated[Path, typer.Option("--out", help=".html, .md, .tex, .csv or .json.")],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Note what was tried, and correct p for all of it."),
    ] = None,
) -> None:
    """Write a report of kept results: every arm against the first."""
    kept = read_results(results)
    comparison = compare(kept, tried=ledger_says(kept, ledger, "report"))
    comparison_report(kept, comparison).write(out)
    output.print(Text(f"report written to {out}"), soft_wrap=True)

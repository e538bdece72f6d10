"""``rankblend ablate``: what each part of a profile is worth on a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.arms import evaluation_reranker, print_notes
from rankblend.cli.compare import ledger_says
from rankblend.cli.console import output, print_json, progress
from rankblend.cli.contrasts import contrast_table
from rankblend.experiment.ablation import PLANS
from rankblend.experiment.ablation import ablate as ablate_profile
from rankblend.experiment.recording import Recording
from rankblend.profiles import load_profile

__all__ = ["ablate"]

_USUAL = "signals,missing,stores,observing"


def ablate(
    recording: Annotated[Path, typer.Argument(help="Made by `rankblend record`.")],
    profile: Annotated[str, typer.Option("--profile", help="A preset or .toml.")] = "default",
    plans: Annotated[str, typer.Option("--plans", help=f"Of {', '.join(PLANS)}.")] = _USUAL,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="E.g. nDCG@10, R@20, RR (repeatable).")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Note what is tried here, and correct p for all of it."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; -1 for all.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="A report: .html, .md, .tex, .csv or .json.")
    ] = None,
    reranked: Annotated[
        bool,
        typer.Option("--reranked", help="Let rerank scores serve, as if evidence admitted them."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The differences as JSON.")] = False,
) -> None:
    """Take a profile apart: without each signal, each store, with other rules for absence.

    Every arm ranks the recorded queries exactly as a live recall would. Differences come with an
    interval over whole clusters of queries and a p-value corrected for all arms tried here.
    """
    opened = Recording.open(recording)
    with progress() as bar:
        task = bar.add_task("replaying", total=len(opened))
        found = ablate_profile(
            opened,
            load_profile(profile),
            plans=[name.strip() for name in plans.split(",") if name.strip()],
            measures=measure or ("nDCG@10", "R@10"),
            n_jobs=jobs,
            tried=lambda results: ledger_says(results, ledger, "ablate"),
            reranker=evaluation_reranker(reranked),
            progress=lambda done: bar.advance(task, done),
        )
    if out is not None:
        found.report.write(out)
    if as_json:
        print_json(found.plain())
        return
    output.print(contrast_table(found.comparison))
    print_notes(found.results)
    if out is not None:
        output.print(Text(f"report written to {out}"), soft_wrap=True)

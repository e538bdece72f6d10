"""``rankblend compare``: profiles against a baseline, with intervals and corrected p-values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.arms import evaluation_reranker, print_notes
from rankblend.cli.console import output, print_json, progress
from rankblend.cli.contrasts import contrast_table
from rankblend.experiment.inference import Comparison, Tried
from rankblend.experiment.inference import compare as compare_arms
from rankblend.experiment.ledger import Ledger
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.experiment.report import (
    Report,
    comparison_section,
    judged_measures,
    manifest_section,
    reading_section,
    slices_section,
)
from rankblend.experiment.results import Results
from rankblend.experiment.slices import compare_slices
from rankblend.profiles import load_profile, profile_names

__all__ = ["compare", "comparison_report", "ledger_says"]


def compare(
    recording: Annotated[Path, typer.Argument(help="Made by `rankblend record`.")],
    baseline: Annotated[str, typer.Option("--baseline", help="A preset or .toml.")] = "default",
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", help="A preset or .toml (repeatable; all presets)."),
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="E.g. nDCG@10, R@20, RR (repeatable).")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; -1 for all.")] = 1,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Note what is tried here, and correct p for all of it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A report: .html, .md, .tex, .csv or .json.")
    ] = None,
    reranked: Annotated[
        bool,
        typer.Option("--reranked", help="Let rerank scores serve, as if evidence admitted them."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The differences as JSON.")] = False,
) -> None:
    """Compare profiles with a baseline on a recording."""
    opened = Recording.open(recording)
    others = [name for name in profile or profile_names() if name != baseline]
    measures = measure or ["nDCG@10", "R@10"]
    with progress() as bar:
        task = bar.add_task("replaying", total=len(opened))
        results = replay(
            opened,
            {name: load_profile(name) for name in [baseline, *others]},
            [*measures, *judged_measures(measures)],
            n_jobs=jobs,
            reranker=evaluation_reranker(reranked),
            progress=lambda done: bar.advance(task, done),
        )
    tried = ledger_says(results, ledger, "compare")
    comparison = compare_arms(results, measures=measures, tried=tried)
    report = comparison_report(results, comparison)
    if out is not None:
        report.write(out)
    if as_json:
        print_json(report.plain)
        return
    output.print(contrast_table(comparison))
    print_notes(results)
    if out is not None:
        output.print(Text(f"report written to {out}"), soft_wrap=True)


def ledger_says(results: Results, ledger: Path | None, purpose: str) -> Tried | None:
    """Note the results in a ledger and read what else has been tried on their queries."""
    if ledger is None:
        return None
    with Ledger(ledger) as book:
        book.record(results, purpose=purpose)
        return book.tried(results)


def comparison_report(results: Results, comparison: Comparison) -> Report:
    """A report of every arm against the first, whole and by family."""
    first = next(iter(results.values))
    sections = [
        manifest_section(results),
        comparison_section(comparison, title=f"Against {results.arms[0]}", results=results),
    ]
    if len(set(results.families)) > 1:
        sections.append(slices_section(compare_slices(results, measure=first), measure=first))
    sections.append(reading_section(comparison, results))
    told = {**comparison.plain(), "manifest": dict(results.manifest)}
    title = f"Profiles on {results.manifest.get('dataset', 'a recording')}"
    return Report(title, sections, told)

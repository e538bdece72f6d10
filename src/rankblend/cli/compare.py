"""``rankblend compare`` and ``report``: profiles against a baseline, with intervals and corrected p."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankblend.cli.console import output, print_json, say
from rankblend.cli.options import (
    OUTPUT,
    AsJson,
    Jobs,
    LedgerFile,
    Measures,
    Profiles,
    RecordingFile,
    ReportFile,
    Reranked,
)
from rankblend.cli.replaying import (
    USUAL_MEASURES,
    contrast_table,
    ledger_says,
    print_notes,
    read_results,
    replay_profiles,
)
from rankblend.experiment.inference import Comparison
from rankblend.experiment.inference import compare as compare_arms
from rankblend.experiment.recording import Recording
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

__all__ = ["compare", "report"]


def compare(
    recording: RecordingFile,
    baseline: Annotated[str, typer.Option("--baseline", help="A preset or .toml.")] = "default",
    profile: Profiles = None,
    measure: Measures = None,
    jobs: Jobs = 1,
    ledger: LedgerFile = None,
    out: ReportFile = None,
    reranked: Reranked = False,
    as_json: AsJson = False,
) -> None:
    """Compare profiles with a baseline on a recording."""
    opened = Recording.open(recording)
    others = [name for name in profile or profile_names() if name != baseline]
    measures = measure or USUAL_MEASURES
    results = replay_profiles(
        opened,
        {name: load_profile(name) for name in [baseline, *others]},
        [*measures, *judged_measures(measures)],
        jobs=jobs,
        reranked=reranked,
    )
    tried = ledger_says(results, ledger, "compare")
    comparison = compare_arms(results, measures=measures, tried=tried)
    if out is not None:
        _comparison_report(results, comparison).write(out)
    if as_json:
        print_json(_plain(results, comparison))
        return
    output.print(contrast_table(comparison))
    print_notes(results)
    if out is not None:
        say(f"report written to {out}")


def report(
    results: Annotated[Path, typer.Argument(help="Kept by `rankblend replay --out`.")],
    out: Annotated[Path, typer.Option("--out", help=".html, .md, .tex, .csv or .json."), OUTPUT],
    ledger: LedgerFile = None,
) -> None:
    """Write a report of kept results: every arm against the first."""
    kept = read_results(results)
    comparison = compare_arms(kept, tried=ledger_says(kept, ledger, "report"))
    _comparison_report(kept, comparison).write(out)
    say(f"report written to {out}")


def _comparison_report(results: Results, comparison: Comparison) -> Report:
    """A report of every arm against the first, whole and by family."""
    first = next(iter(results.values))
    sections = [
        manifest_section(results),
        comparison_section(comparison, title=f"Against {results.arms[0]}", results=results),
    ]
    if len(set(results.families)) > 1:
        sections.append(slices_section(compare_slices(results, measure=first), measure=first))
    sections.append(reading_section(comparison, results))
    title = f"Profiles on {results.manifest.get('dataset', 'a recording')}"
    return Report(title, sections, _plain(results, comparison))


def _plain(results: Results, comparison: Comparison) -> dict[str, Any]:
    return {**comparison.plain(), "manifest": dict(results.manifest)}

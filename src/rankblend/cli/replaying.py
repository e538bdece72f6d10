"""What the commands over recordings share: their options, a replay with a bar, the ledger, remarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import errors, progress
from rankblend.experiment.inference import Tried
from rankblend.experiment.ledger import Ledger
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.experiment.results import Results
from rankblend.profiles import RankingProfile
from rankblend.rerank import RelevanceReranker, StaticAdmission

__all__ = [
    "USUAL_MEASURES",
    "AsJson",
    "Jobs",
    "LedgerFile",
    "Measures",
    "Profiles",
    "RecordingFile",
    "ReportFile",
    "Reranked",
    "evaluation_reranker",
    "ledger_says",
    "print_notes",
    "replay_profiles",
    "replaying",
]

USUAL_MEASURES = ("nDCG@10", "R@10")

RecordingFile = Annotated[Path, typer.Argument(help="Made by `rankblend record`.")]
Profiles = Annotated[
    list[str] | None,
    typer.Option("--profile", help="A preset or .toml (repeatable; all presets)."),
]
Measures = Annotated[
    list[str] | None, typer.Option("--measure", help="E.g. nDCG@10, R@20, RR (repeatable).")
]
Jobs = Annotated[int, typer.Option("--jobs", help="Processes; -1 for all.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Note what is tried here, and correct p for all of it."),
]
ReportFile = Annotated[
    Path | None, typer.Option("--out", help="A report: .html, .md, .tex, .csv or .json.")
]
Reranked = Annotated[
    bool,
    typer.Option("--reranked", help="Let rerank scores serve, as if evidence admitted them."),
]
AsJson = Annotated[bool, typer.Option("--json", help="The differences as JSON.")]


@contextmanager
def replaying(recording: Recording) -> Iterator[Callable[[int], object]]:
    """A progress bar over the queries of a recording; told how many more are done."""
    with progress() as bar:
        task = bar.add_task("replaying", total=len(recording))
        yield lambda done: bar.advance(task, done)


def replay_profiles(
    recording: Recording,
    profiles: dict[str, RankingProfile],
    measures: Sequence[str],
    *,
    jobs: int = 1,
    reranked: bool,
) -> Results:
    """Measure profiles, showing how far it is."""
    with replaying(recording) as done:
        return replay(
            recording,
            profiles,
            measures,
            n_jobs=jobs,
            reranker=evaluation_reranker(reranked),
            progress=done,
        )


def evaluation_reranker(wanted: bool) -> RelevanceReranker | None:
    """A reranker that is always admitted, for measuring; None to measure baselines."""
    return RelevanceReranker(StaticAdmission(True)) if wanted else None


def ledger_says(results: Results, ledger: Path | None, purpose: str) -> Tried | None:
    """Note the results in a ledger and read what else has been tried on their queries."""
    if ledger is None:
        return None
    with Ledger(ledger) as book:
        book.record(results, purpose=purpose)
        return book.tried(results)


def print_notes(results: Results) -> None:
    """What is remarkable about the arms that ran, on standard error."""
    for arm, remarks in results.manifest.get("notes", {}).items():
        for remark in remarks:
            errors.print(Text(f"{arm}: {remark}", "yellow"), soft_wrap=True)

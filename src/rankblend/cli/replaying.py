"""What the commands over recordings share: a replay with a bar, the ledger, tables, remarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankblend.cli.console import errors, plain_table, progress, say
from rankblend.errors import InvalidArgumentError, RecordingError
from rankblend.experiment.inference import Comparison, Contrast, Tried
from rankblend.experiment.ledger import Ledger
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.experiment.report import p_value
from rankblend.experiment.results import Results
from rankblend.files import read_text
from rankblend.profiles import RankingProfile
from rankblend.rerank import RelevanceReranker, StaticAdmission

__all__ = [
    "USUAL_MEASURES",
    "contrast_table",
    "evaluation_reranker",
    "ledger_says",
    "print_notes",
    "read_results",
    "refusing",
    "replay_profiles",
    "replaying",
]


def read_results(path: Path) -> Results:
    """Read them.

    Raises:
        InvalidArgumentError: The file cannot be read or holds something else.
    """
    try:
        return Results.from_json(read_text(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read ({type(error).__name__})") from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{path}: expected results kept by `rankblend replay --out`"
        ) from error


def contrast_table(comparison: Comparison) -> RenderableType:
    """Arms against their baselines, measure by measure."""
    parts: list[RenderableType] = []
    groups: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in comparison:
        groups.setdefault((contrast.measure, contrast.baseline), []).append(contrast)
    for (measure, baseline), contrasts in groups.items():
        value = next((c.baseline_value for c in contrasts if c.not_run is None), None)
        shown = "" if value is None else f" {value:.4f}"
        parts.append(Text(f"{measure}, difference to {baseline}{shown}", "bold"))
        parts.append(_table(contrasts, comparison.confidence))
    first = next(iter(comparison))
    parts.append(
        Text(
            f"{first.queries:,} judged queries ({first.excluded:,} without judgments) in "
            f"{comparison.units:,} units ({comparison.unit}); p corrected for "
            f"{comparison.family} rows, none can be below {p_value(comparison.smallest_p)}",
            "dim",
        )
    )
    return Group(*parts)


def _table(contrasts: list[Contrast], confidence: float) -> Table:
    numbers = ("value", "difference", f"{confidence:.0%} interval", "p", "w/t/l")
    table = plain_table("arm", right=numbers)
    for c in contrasts:
        if c.not_run is not None:
            table.add_row(Text(c.arm), Text("not run"), "", Text(c.not_run, "yellow"), "", "")
            continue
        sure = c.interval is not None and (c.interval.low > 0 or c.interval.high < 0)
        table.add_row(
            Text(c.arm),
            f"{c.value:.4f}",
            Text(f"{c.difference:+.4f}", "bold" if sure else ""),
            "" if c.interval is None else c.interval.ends,
            p_value(c.p),
            f"{c.wins}/{c.ties}/{c.losses}",
        )
    return table


USUAL_MEASURES = ("nDCG@10", "R@10")


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


@contextmanager
def refusing(code: int) -> Iterator[None]:
    """Nothing is let through on a recording that has not what is to be measured: exit, with why."""
    try:
        yield
    except RecordingError as error:
        for problem in error.problems:
            say(f"refused: {problem}", "yellow", to=errors)
        raise typer.Exit(code) from None


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
            say(f"{arm}: {remark}", "yellow", to=errors)

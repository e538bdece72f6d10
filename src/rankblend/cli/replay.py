"""``rankblend replay``: profiles measured on a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from rankblend.cli.arms import evaluation_reranker, print_notes
from rankblend.cli.console import errors, output, print_json, progress
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay as replay_profiles
from rankblend.experiment.results import Results
from rankblend.files import write_whole
from rankblend.profiles import load_profile, profile_names

__all__ = ["replay"]


def replay(
    recording: Annotated[Path, typer.Argument(help="Made by `rankblend record`.")],
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", help="A preset or .toml (repeatable; all presets)."),
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="E.g. nDCG@10, R@20, RR (repeatable).")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; -1 for all.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Keep the results, for compare, report and gate (.json)."),
    ] = None,
    reranked: Annotated[
        bool,
        typer.Option("--reranked", help="Let rerank scores serve, as if evidence admitted them."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The means as JSON.")] = False,
) -> None:
    """Measure profiles on the recorded queries, exactly as live recalls would come out."""
    opened = Recording.open(recording)
    recipes = {name: load_profile(name) for name in profile or profile_names()}
    with progress() as bar:
        task = bar.add_task("replaying", total=len(opened))
        results = replay_profiles(
            opened,
            recipes,
            measure or ("nDCG@10", "R@10"),
            n_jobs=jobs,
            reranker=evaluation_reranker(reranked),
            progress=lambda done: bar.advance(task, done),
        )
    if out is not None:
        write_whole(out, results.to_json())
    if as_json:
        print_json(_plain(results))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("profile")
    table.add_column("hash")
    for name in results.values:
        table.add_column(name, justify="right")
    means = {name: results.mean(name) for name in results.values}
    for row, arm in enumerate(results.arms):
        if results.ran(arm):
            cells = [f"{means[name][row]:.4f}" for name in results.values]
            table.add_row(Text(arm), results.hashes[row][:12], *cells)
    output.print(table)
    print_notes(results)
    for arm, why in results.not_run.items():
        errors.print(Text(f"{arm} not run: {why}", "yellow"), soft_wrap=True)
    judged = int(results.judged.sum())
    output.print(
        Text(f"{judged:,} judged queries, {results.judged.size - judged:,} excluded", "dim")
    )


def _plain(results: Results) -> dict[str, object]:
    means = {name: results.mean(name) for name in results.values}
    judged = int(results.judged.sum())
    return {
        "profiles": [
            {
                "profile": arm,
                "hash": results.hashes[row],
                "not_run": results.not_run.get(arm),
                "empty": int(results.empty[row].sum()),
                **{name: float(means[name][row]) if results.ran(arm) else None for name in means},
            }
            for row, arm in enumerate(results.arms)
        ],
        "queries": judged,
        "excluded": results.judged.size - judged,
        "manifest": dict(results.manifest),
    }

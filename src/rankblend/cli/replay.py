"""``rankblend replay``: profiles measured on a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import errors, output, plain_table, print_json, say
from rankblend.cli.options import OUTPUT, AsJson, Jobs, Measures, Profiles, RecordingFile, Reranked
from rankblend.cli.replaying import USUAL_MEASURES, print_notes, replay_profiles
from rankblend.experiment.recording import Recording
from rankblend.experiment.results import Results
from rankblend.files import write_whole
from rankblend.profiles import load_profile, profile_names

__all__ = ["replay"]


def replay(
    recording: RecordingFile,
    profile: Profiles = None,
    measure: Measures = None,
    jobs: Jobs = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Keep the results, for compare, report and gate (.json)."),
        OUTPUT,
    ] = None,
    reranked: Reranked = False,
    as_json: AsJson = False,
) -> None:
    """Measure profiles on the recorded queries, exactly as live recalls would come out."""
    opened = Recording.open(recording)
    recipes = {name: load_profile(name) for name in profile or profile_names()}
    results = replay_profiles(
        opened, recipes, measure or USUAL_MEASURES, jobs=jobs, reranked=reranked
    )
    if out is not None:
        write_whole(out, results.to_json())
    if as_json:
        print_json(_plain(results))
        return
    table = plain_table("profile", "hash", right=tuple(results.values))
    means = {name: results.mean(name) for name in results.values}
    for row, arm in enumerate(results.arms):
        if results.ran(arm):
            cells = [f"{means[name][row]:.4f}" for name in results.values]
            table.add_row(Text(arm), results.hashes[row][:12], *cells)
    output.print(table)
    print_notes(results)
    for arm, why in results.not_run.items():
        say(f"{arm} not run: {why}", "yellow", to=errors)
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

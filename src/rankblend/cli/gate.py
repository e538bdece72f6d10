"""``rankblend gate``: fail a build when a profile may have become worse."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import output, print_json
from rankblend.cli.options import AsJson, Measures, RecordingFile, Reranked
from rankblend.cli.replaying import print_notes, refusing, replay_profiles
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.gate import GateVerdict, judge_results
from rankblend.experiment.recording import Recording
from rankblend.profiles import load_profile

__all__ = ["EXIT_SHUT", "gate"]

EXIT_SHUT = 3
_STYLES = {GateVerdict.PASSED: "green", GateVerdict.REGRESSED: "red"}


def gate(
    recording: RecordingFile,
    candidate: Annotated[
        list[str], typer.Option("--candidate", help="A preset or .toml (repeatable).")
    ],
    baseline: Annotated[str, typer.Option("--baseline", help="What is in use now.")] = "default",
    min_effect: Annotated[
        float, typer.Option("--min-effect", help="The greatest loss that does not matter, > 0.")
    ] = 0.01,
    measure: Measures = None,
    reranked: Reranked = False,
    as_json: AsJson = False,
) -> None:
    """Pass (exit 0) when every candidate is shown to lose less than [b]--min-effect[/b].

    Not having found a loss is not enough: too few queries keep the gate shut (exit 3), and so does
    a recording without what a profile scores by.
    """
    opened = Recording.open(recording)
    if baseline in candidate:
        raise InvalidArgumentError(f"--candidate: {baseline!r} is the baseline itself")
    names = [baseline, *candidate]
    with refusing(EXIT_SHUT):
        results = replay_profiles(
            opened,
            {name: load_profile(name) for name in names},
            measure or ("nDCG@10",),
            reranked=reranked,
        )
    result = judge_results(results, min_effect=min_effect)
    if as_json:
        rows = [{"verdict": row.verdict.value, **row.contrast.plain()} for row in result.rows]
        print_json({"passed": result.passed, "min_effect": min_effect, "arms": rows})
    else:
        for row in result.rows:
            style = _STYLES.get(row.verdict, "yellow")
            output.print(
                Text.assemble((row.verdict.value, style), f"  {row.words}"), soft_wrap=True
            )
    print_notes(results)
    if not result.passed:
        raise typer.Exit(EXIT_SHUT)

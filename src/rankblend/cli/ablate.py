"""``rankblend ablate``: what each part of a profile is worth on a recording."""

from __future__ import annotations

from typing import Annotated

import typer

from rankblend.cli.console import output, print_json, say
from rankblend.cli.options import (
    AsJson,
    Jobs,
    LedgerFile,
    Measures,
    Profile,
    RecordingFile,
    ReportFile,
    Reranked,
)
from rankblend.cli.replaying import (
    USUAL_MEASURES,
    contrast_table,
    evaluation_reranker,
    ledger_says,
    print_notes,
    replaying,
)
from rankblend.experiment.ablation import PLANS
from rankblend.experiment.ablation import ablate as ablate_profile
from rankblend.experiment.recording import Recording
from rankblend.profiles import load_profile

__all__ = ["ablate"]

_USUAL = "signals,missing,stores,observing"


def ablate(
    recording: RecordingFile,
    profile: Profile = "default",
    plans: Annotated[str, typer.Option("--plans", help=f"Of {', '.join(PLANS)}.")] = _USUAL,
    measure: Measures = None,
    ledger: LedgerFile = None,
    jobs: Jobs = 1,
    out: ReportFile = None,
    reranked: Reranked = False,
    as_json: AsJson = False,
) -> None:
    """Take a profile apart: without each signal, each store, with other rules for absence.

    Every arm ranks the recorded queries exactly as a live recall would. Differences come with an
    interval over whole clusters of queries and a p-value corrected for all arms tried here.
    """
    opened = Recording.open(recording)
    with replaying(opened) as done:
        found = ablate_profile(
            opened,
            load_profile(profile),
            plans=[name.strip() for name in plans.split(",") if name.strip()],
            measures=measure or USUAL_MEASURES,
            n_jobs=jobs,
            tried=lambda results: ledger_says(results, ledger, "ablate"),
            reranker=evaluation_reranker(reranked),
            progress=done,
        )
    if out is not None:
        found.report.write(out)
    if as_json:
        print_json(found.plain())
        return
    output.print(contrast_table(found.comparison))
    print_notes(found.results)
    if out is not None:
        say(f"report written to {out}")

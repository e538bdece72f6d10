"""``rankblend release``: measure a reranker, and let it serve if that is enough."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import errors, output, print_json, progress
from rankblend.cli.contrasts import contrast_table
from rankblend.experiment.inference import Tried
from rankblend.experiment.ledger import Ledger
from rankblend.experiment.recording import Recording
from rankblend.experiment.release import measure_release
from rankblend.experiment.results import Results
from rankblend.profiles import load_profile
from rankblend.rerank import EvidenceLedger, EvidencePolicy

__all__ = ["EXIT_REFUSED", "release"]

EXIT_REFUSED = 3


def release(
    recording: Annotated[Path, typer.Option("--recording", help="Made by `rankblend record`.")],
    reranker: Annotated[
        str, typer.Option("--reranker", help='A preset or .toml with reranking = "relevance".')
    ],
    ledger: Annotated[Path, typer.Option("--ledger", help="The folder the evidence goes to.")],
    measure: Annotated[str, typer.Option("--measure", help="Which decides.")] = "nDCG@10",
    least_effect: Annotated[
        float, typer.Option("--least-effect", help="The interval must lie above this.")
    ] = 0.0,
    days: Annotated[int, typer.Option("--days", help="For how long the evidence holds.")] = 180,
    trials: Annotated[
        Path | None,
        typer.Option("--trials", help="Ledger of what was tried; p is corrected for all of it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The evidence as JSON.")] = False,
) -> None:
    """Measure a reranker against its own baseline; write evidence, or refuse and say why (exit 3).

    It is refused without a clear gain, with a significant loss in any family of queries, or when it
    costs more than a tenth of a recall.
    """
    opened = Recording.open(recording)

    def tried(results: Results) -> Tried:
        with Ledger(trials or ":memory:") as book:
            book.record(results, purpose="release")
            return book.tried(results)

    with progress() as bar:
        task = bar.add_task("replaying", total=len(opened))
        found = measure_release(
            opened, load_profile(reranker), measure=measure,
            policy=EvidencePolicy(least_effect=least_effect), valid=timedelta(days=days),
            tried=tried if trials is not None else None,
            progress=lambda done: bar.advance(task, done),
        )  # fmt: skip
    identifier = EvidenceLedger(ledger).add(found.evidence) if found.admitted else None
    if as_json:
        print_json(
            {"admitted": found.admitted, "refusals": list(found.refusals), "id": identifier,
             **found.evidence.plain()}
        )  # fmt: skip
    else:
        output.print(contrast_table(found.comparison))
        for each in found.evidence.families:
            mark = "yellow" if each.regressed else "dim"
            output.print(
                Text(f"{each.family or '(none)'}: {each.effect:+.4f} [{each.low:+.4f}, "
                     f"{each.high:+.4f}] on {each.queries:,} queries", mark)
            )  # fmt: skip
        output.print(Text(f"adds {found.evidence.overhead:.1%} to a recall", "dim"))
        if identifier is not None:
            output.print(Text(f"evidence {identifier} written to {ledger}", "green"))
    if not found.admitted:
        for refusal in found.refusals:
            errors.print(Text(f"refused: {refusal}", "yellow"), soft_wrap=True)
        raise typer.Exit(EXIT_REFUSED)

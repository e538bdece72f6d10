"""``rankblend release``: measure a reranker, and let it serve if that is enough."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import errors, output, print_json, say
from rankblend.cli.options import AsJson, Measure, number
from rankblend.cli.replaying import contrast_table, ledger_says, refusing, replaying
from rankblend.experiment.inference import Tried
from rankblend.experiment.recording import Recording
from rankblend.experiment.release import measure_release
from rankblend.experiment.results import Results
from rankblend.profiles import load_profile
from rankblend.rerank import RERANKER, EvidenceLedger, EvidencePolicy

__all__ = ["EXIT_REFUSED", "release"]

EXIT_REFUSED = 3


def release(
    recording: Annotated[Path, typer.Option("--recording", help="Made by `rankblend record`.")],
    reranker: Annotated[
        str, typer.Option("--reranker", help='A preset or .toml with reranking = "relevance".')
    ],
    ledger: Annotated[
        Path, typer.Option("--ledger", help="The folder the evidence goes to.")
    ] = Path("evidence"),
    measure: Measure = "nDCG@10",
    least_effect: Annotated[
        float, typer.Option("--least-effect", help="The interval must lie above this.")
    ] = 0.0,
    days: Annotated[int, number("days", "--days", "For how long the evidence holds")] = 180,
    trials: Annotated[
        Path | None,
        typer.Option("--trials", help="Ledger of what was tried (trials.db beside the evidence)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a reranker against its own baseline; admit it, or refuse and say why (exit 3).

    It is refused without a clear gain, with a significant loss in any family of queries, or when it
    costs more than a tenth of a recall. What was measured is written down either way: the latest
    measurement decides, so a worse one is not forgotten.
    """
    opened = Recording.open(recording)
    recipe = load_profile("relevance-rerank" if reranker == RERANKER else reranker)
    policy = EvidencePolicy(least_effect=least_effect)

    def tried(results: Results) -> Tried | None:
        ledger.mkdir(parents=True, exist_ok=True)
        return ledger_says(results, trials or ledger / "trials.db", "release")

    with refusing(EXIT_REFUSED), replaying(opened) as done:
        found = measure_release(
            opened, recipe, measure=measure, policy=policy, valid=timedelta(days=days),
            tried=tried, progress=done,
        )  # fmt: skip
    identifier = EvidenceLedger(ledger).add(found.evidence)
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
        style = "green" if found.admitted else "yellow"
        said = "admits it" if found.admitted else "does not admit it"
        say(f"evidence {identifier} in {ledger} {said}", style)
    if not found.admitted:
        for refusal in found.refusals:
            say(f"refused: {refusal}", "yellow", to=errors)
        raise typer.Exit(EXIT_REFUSED)

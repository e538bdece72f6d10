"""``rankblend evidence``: what lets a reranker serve, and taking it back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import errors, output, plain_table, print_json, say
from rankblend.cli.options import AsJson
from rankblend.rerank import EvidenceLedger, EvidencePolicy, LedgerEntry

__all__ = ["evidence"]

evidence = typer.Typer(
    name="evidence",
    help="Evidence that lets a reranker serve: list it, show it, withdraw it.",
    no_args_is_help=True,
)

Ledger = Annotated[
    Path, typer.Option("--ledger", help="The folder the evidence is in.", show_default=True)
]
_HERE = Path("evidence")
Identifier = Annotated[str, typer.Argument(help="As shown by `rankblend evidence list`.")]


@evidence.command(name="list")
def list_evidence(ledger: Ledger = _HERE, as_json: AsJson = False) -> None:
    """List all evidence, the latest measurement first."""
    book = EvidenceLedger(ledger)
    entries = book.entries()
    for identifier, why in book.unreadable().items():
        errors.print(Text(f"{identifier}: {why}; it counts for nothing", "yellow"))
    if as_json:
        print_json([_plain(entry) for entry in entries])
        return
    if not entries:
        why = "" if ledger.is_dir() else ": there is no such folder"
        output.print(Text(f"no evidence in {ledger}{why}"))
        return
    table = plain_table("id", "reranker", "profile", "data set", "effect", "measured", "state")
    for entry in entries:
        found = entry.evidence
        table.add_row(
            found.id,
            Text(found.name),
            found.profile_hash[:8],
            Text(found.dataset),
            f"{found.metric} {found.effect:+.4f} [{found.low:+.4f}, {found.high:+.4f}]",
            f"{found.measured:%Y-%m-%d}",
            _state(entry),
        )
    output.print(table)


@evidence.command()
def show(identifier: Identifier, ledger: Ledger = _HERE, as_json: AsJson = False) -> None:
    """Show one piece of evidence with everything that speaks for and against it."""
    entry = EvidenceLedger(ledger).get(identifier)
    if as_json:
        print_json(_plain(entry))
        return
    found = entry.evidence
    say(
        f"{found.name} for profile {found.profile_hash[:12]} (signal schema "
        f"{found.signal_schema_hash[:12]}, scoring version {found.scoring_version})\n"
        f"measured {found.measured:%Y-%m-%d} on {found.dataset} "
        f"({found.dataset_hash[:12]}), holds until {found.expires:%Y-%m-%d}\n"
        f"{found.metric}: {found.effect:+.4f} [{found.low:+.4f}, {found.high:+.4f}], family-wise "
        f"p {found.p:.4f}, {found.queries:,} queries in {found.clusters:,} clusters; "
        f"adds {found.overhead:.1%} to a recall"
    )
    if found.families:
        table = plain_table("family", right=("queries", "effect", "interval"))
        for each in found.families:
            table.add_row(
                Text(each.family or "(none)"),
                f"{each.queries:,}",
                f"{each.effect:+.4f}",
                f"[{each.low:+.4f}, {each.high:+.4f}]",
                style="yellow" if each.regressed else "",
            )
        output.print(table)
    output.print(_state(entry))
    for refusal in EvidencePolicy().refusals(found):
        say(f"against it: {refusal}", "yellow")


@evidence.command()
def withdraw(
    identifier: Identifier,
    ledger: Ledger = _HERE,
    reason: Annotated[
        str, typer.Option("--reason", help="One line, shown by every recall.")
    ] = "no reason given",
) -> None:
    """Withdraw evidence for ever; running processes heed it at their next recall."""
    book = EvidenceLedger(ledger)
    book.withdraw(identifier, reason=reason)
    output.print(Text(f"{identifier} withdrawn"))
    for other in book.standing(book.get(identifier).evidence)[:1]:
        output.print(
            Text(f"{other.id}, measured before or after it for the same version, now decides",
                 "yellow")
        )  # fmt: skip


def _plain(entry: LedgerEntry) -> dict[str, object]:
    return {
        "id": entry.evidence.id,
        "state": _state(entry).plain,
        **entry.evidence.plain(),
        "withdrawn": entry.withdrawn,
        "refusals": list(EvidencePolicy().refusals(entry.evidence)),
    }


def _state(entry: LedgerEntry) -> Text:
    if entry.withdrawn is not None:
        return Text(f"withdrawn: {entry.withdrawn}", "red")
    if entry.evidence.expires <= datetime.now(UTC):
        return Text("expired", "red")
    if EvidencePolicy().refusals(entry.evidence):
        return Text("insufficient", "yellow")
    return Text("stands", "green")

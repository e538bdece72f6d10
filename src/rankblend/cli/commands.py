"""Which commands there are."""

from __future__ import annotations

import typer

from rankblend.cli.ablate import ablate
from rankblend.cli.compare import compare, report
from rankblend.cli.demo import demo
from rankblend.cli.evidence import evidence
from rankblend.cli.fit import fit
from rankblend.cli.gate import gate
from rankblend.cli.mcp import mcp
from rankblend.cli.options import safe
from rankblend.cli.profiles import profiles
from rankblend.cli.reasonlets import reasonlets
from rankblend.cli.recall import recall
from rankblend.cli.record import record
from rankblend.cli.release import release
from rankblend.cli.replay import replay
from rankblend.cli.transfer import compact, export, ingest, reembed, relabel

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add every command, in the order of the help page; registering twice is harmless."""
    if app.registered_commands:
        return
    memory = (demo, ingest, recall, profiles, export, reembed, relabel, compact, mcp)
    experiments = (record, replay, ablate, compare, fit, report, gate, release)
    for command in (*memory, *experiments):
        app.command()(safe(command))
    app.add_typer(evidence)
    app.add_typer(reasonlets)

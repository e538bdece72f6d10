"""Which commands there are."""

from __future__ import annotations

import typer

from rankblend.cli.ablate import ablate
from rankblend.cli.compact import compact
from rankblend.cli.compare import compare
from rankblend.cli.demo import demo
from rankblend.cli.evidence import evidence
from rankblend.cli.export import export
from rankblend.cli.fit import fit
from rankblend.cli.gate import gate
from rankblend.cli.ingest import ingest
from rankblend.cli.mcp import mcp
from rankblend.cli.profiles import profiles
from rankblend.cli.reasonlets import reasonlets
from rankblend.cli.recall import recall
from rankblend.cli.record import record
from rankblend.cli.reembed import reembed
from rankblend.cli.release import release
from rankblend.cli.replay import replay
from rankblend.cli.report import report

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add every command, in the order of the help page; registering twice is harmless."""
    if app.registered_commands:
        return
    memory = (demo, ingest, recall, profiles, export, reembed, compact, mcp)
    experiments = (record, replay, ablate, compare, fit, report, gate, release)
    for command in (*memory, *experiments):
        app.command()(command)
    app.add_typer(evidence)
    app.add_typer(reasonlets)

"""Which commands there are."""

from __future__ import annotations

import typer

from rankblend.cli.demo import demo
from rankblend.cli.evidence import evidence
from rankblend.cli.export import export
from rankblend.cli.ingest import ingest
from rankblend.cli.profiles import profiles
from rankblend.cli.recall import recall
from rankblend.cli.reembed import reembed

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add every command, in the order of the help page; registering twice is harmless."""
    if app.registered_commands:
        return
    for command in (demo, ingest, recall, profiles, export, reembed):
        app.command()(command)
    app.add_typer(evidence)

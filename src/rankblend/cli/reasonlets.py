"""``rankblend reasonlets``: ask, look at, review and move the procedures in a file."""

from __future__ import annotations

import typer

from rankblend.cli.reasonlets_asking import recall, show
from rankblend.cli.reasonlets_moving import export, import_, stats
from rankblend.cli.reasonlets_review import approve, pending, reject

__all__ = ["reasonlets"]

reasonlets = typer.Typer(
    name="reasonlets",
    help="Procedures with a track record: ask for them, review them, move them.",
    no_args_is_help=True,
)
for _command in (recall, show, pending, approve, reject, stats, export):
    reasonlets.command()(_command)
reasonlets.command(name="import")(import_)

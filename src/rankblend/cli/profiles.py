"""``rankblend profiles``: which recipes there are, and every value of one with its origin."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from rankblend.cli.console import output, print_json
from rankblend.profiles import load_profile, profile_names

__all__ = ["profiles"]


def profiles(
    name: Annotated[str | None, typer.Argument(help="A preset, or a path to a .toml.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON on standard output.")] = False,
) -> None:
    """List the presets, or show every value of one profile with where it comes from."""
    if name is None:
        _list(as_json=as_json)
        return
    profile = load_profile(name)
    rows = profile.describe()
    if as_json:
        print_json(
            {
                "name": profile.name,
                "hash": profile.hash,
                "source": profile.source,
                "values": [
                    {"path": path, "value": value, "origin": origin} for path, value, origin in rows
                ],
            }
        )
        return
    output.print(f"[bold]{profile.name}[/]  {profile.hash}")
    if profile.source:
        output.print(" ".join(profile.source.split()), style="dim")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("value")
    table.add_column("")
    table.add_column("from", style="dim")
    for path, value, origin in rows:
        table.add_row(path, f"{value}", origin)
    output.print(table)


def _list(*, as_json: bool) -> None:
    loaded = [load_profile(name) for name in profile_names()]
    if as_json:
        print_json([{"name": p.name, "hash": p.hash, "source": p.source} for p in loaded])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("profile")
    table.add_column("hash", style="dim")
    table.add_column("weights")
    for profile in loaded:
        weights = ", ".join(f"{name} {weight:g}" for name, weight in profile.score.weights)
        table.add_row(profile.name, profile.hash[:12], f"{profile.score.compose}: {weights}")
    output.print(table)

"""``rankblend profiles``: which recipes there are, and every value of one with its origin."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import output, plain_table, print_json
from rankblend.cli.options import AsJson
from rankblend.profiles import load_profile, profile_names

__all__ = ["profiles"]


def profiles(
    name: Annotated[str | None, typer.Argument(help="A preset, or a path to a .toml.")] = None,
    as_json: AsJson = False,
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
                    {"path": path, "value": _as_json(value), "origin": origin}
                    for path, value, origin in rows
                ],
            }
        )
        return
    output.print(Text.assemble((profile.name, "bold"), "  ", profile.hash), soft_wrap=True)
    if profile.source:
        output.print(Text(" ".join(profile.source.split()), "dim"))
    table = plain_table("path", "value")
    table.add_column("from", style="dim")
    for path, value, origin in rows:
        table.add_row(Text(path), Text(_as_toml(value)), Text(origin))
    output.print(table)


def _list(*, as_json: bool) -> None:
    loaded = [load_profile(name) for name in profile_names()]
    if as_json:
        print_json([{"name": p.name, "hash": p.hash, "source": p.source} for p in loaded])
        return
    table = plain_table()
    table.add_column("profile")
    table.add_column("hash", style="dim")
    table.add_column("score")
    for profile in loaded:
        weights = ", ".join(f"{name} {weight:g}" for name, weight in profile.score.weights)
        table.add_row(profile.name, profile.hash[:12], f"{profile.score.compose}: {weights}")
    output.print(table)


def _as_json(value: object) -> object:
    """A value without infinities, which JSON has no word for: ``"inf"``, as in TOML."""
    if isinstance(value, Mapping):
        return {key: _as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _as_toml(value: object) -> str:
    """A value as it would be written in a profile; a dash for what TOML cannot say."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_as_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_as_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)

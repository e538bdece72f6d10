"""A profile as plain tables again: complete, defaults filled in, as it would be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import tomli_w
from attrs import asdict

from rankblend.profiles._problems import Path
from rankblend.profiles._recipe import SignalRecipe
from rankblend.relevance import Node, plain_curve, plain_missing
from rankblend.values import dotted

if TYPE_CHECKING:
    from rankblend.profiles._profile import RankingProfile

# Tables below these keys are one value each, as they are when inherited.
_WHOLE = ("curve", "missing", "members")


class Row(NamedTuple):
    """One value in effect."""

    path: str
    value: Any
    origin: str


def plain_profile(profile: RankingProfile) -> dict[str, Any]:
    """The tables of a profile; None where it says nothing (``select.top``)."""

    def node(at: str, node: Node | None) -> dict[str, Any] | None:
        return None if node is None else _node(node, profile.must_sum_to.get(at))

    tables: dict[str, Any] = {
        "name": profile.name,
        "source": profile.source,
        "reranking": profile.reranking,
        "pool": asdict(profile.pool),
        "evidence": {
            name: {
                "unit": evidence.unit,
                "range": [evidence.low, evidence.high],
                "natural_zero": evidence.natural_zero,
                "relevance": evidence.relevance,
                "meaning": evidence.meaning or None,
            }
            for name, evidence in profile.evidence.items()
        },
        "signals": {name: _signal(recipe) for name, recipe in profile.signals.items()},
        "score": node("score", profile.score),
        "rerank": node("rerank", profile.rerank),
        "nodes": {name: node(f"nodes.{name}", one) for name, one in profile.nodes.items()},
        "floors": {
            "min_score": profile.floors.min_score,
            **{name: asdict(floor) for name, floor in profile.floors.signals.items()},
        },
        "scope": asdict(profile.scope) | {"mode": profile.scope.mode.value},
        "order": {"ties": list(profile.ties)},
        "select": asdict(profile.select),
    }
    return tables


def describe_profile(profile: RankingProfile, origins: Mapping[str, str]) -> tuple[Row, ...]:
    """Every value in effect, with where it comes from; ``code`` for a profile made in Python."""
    return tuple(
        Row(dotted(path), value, origins.get(dotted(path), "code"))
        for path, value in _leaves((), plain_profile(profile))
        if path not in (("name",), ("source",))
    )


def origins_of(profile: RankingProfile, written: Mapping[Path, str]) -> dict[str, str]:
    """Per path of a value in effect where it was written, ``built-in`` where nowhere."""
    found = {}
    for path, _ in _leaves((), plain_profile(profile)):
        if path not in (("name",), ("source",)):
            spellings = (written[other] for other in _spellings(path, written) if other in written)
            found[dotted(path)] = next(spellings, "built-in")
    return found


def _spellings(path: Path, written: Mapping[Path, str]) -> Iterator[Path]:
    """The path, then the other ways in which the same value can have been written."""
    yield path
    if path[-1] == "curve":
        yield (*path[:-1], "of")
    elif path[-1] == "of":
        yield from (other for other in written if other[:-1] == (*path[:-1], "weights"))
    elif len(path) > 1 and path[-2] == "weights":
        yield (*path[:-2], "of")


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and not (path and path[-1] in _WHOLE):
        if path[-2:-1] == ("absent",):
            yield path, value
            return
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif not (value is None and path in (("rerank",), ("floors", "min_score"))):
        yield path, value


def _signal(recipe: SignalRecipe) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if recipe.of:
        rest = plain_curve(recipe.curve[1:]) if len(recipe.curve) > 1 else []
        first = {"first_present": list(recipe.of)}
        steps = [first, *(rest if isinstance(rest, list) else [rest])]
        table["curve"] = steps if len(steps) > 1 else first
    else:
        names = list(recipe.evidence)
        table["evidence"] = names[0] if len(names) == 1 else names
        table["curve"] = plain_curve(recipe.curve)
    return {**table, "merge": recipe.merge}


def _node(node: Node, must_sum_to: float | None) -> dict[str, Any]:
    table: dict[str, Any] = {"compose": node.compose, "missing": plain_missing(node.missing)}
    if node.absent:
        table["absent"] = {name: plain_missing(override) for name, override in node.absent}
    for name, value in node.options:
        table[name] = dict(value) if isinstance(value, tuple) else value
    if all(weight == 1.0 for _, weight in node.weights):
        table["of"] = [name for name, _ in node.weights]
    else:
        table["weights"] = dict(node.weights)
    if must_sum_to is not None:
        table["weights_must_sum_to"] = must_sum_to
    return table


def dump_profile(profile: RankingProfile) -> str:
    """The profile as TOML, complete and without parents.

    Loading the text gives an equal profile with the same hash. Evidence that was registered from
    Python is not written, only what the profile declares itself; to load the text, it has to be
    registered again.
    """
    tables = plain_profile(profile)
    # A line break inside a multi-line string reads back as \n whatever it was.
    multiline = "\r" not in profile.source
    return tomli_w.dumps(_said(tables), multiline_strings=multiline)


def _said(tables: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing: TOML has no null, and an empty section would be noise."""
    return {
        key: kept
        for key, value in tables.items()
        if value is not None and (kept := _without_none(value)) != {}
    }


def _without_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_none(inner) for key, inner in value.items() if inner is not None}

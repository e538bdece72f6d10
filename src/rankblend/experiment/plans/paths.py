"""Where two arms differ: the values that decide their rankings, by the paths of a profile file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rankblend.profiles import RankingProfile
from rankblend.profiles.reach import reachable
from rankblend.profiles.tree import plain_profile
from rankblend.relevance.composers import Node, node_inputs
from rankblend.relevance.missing import plain_missing

__all__ = ["covers", "profile_differences", "told_at"]

_NODES, _SIGNALS, _EVIDENCE = "nodes", "signals", "evidence"


def profile_differences(one: RankingProfile, other: RankingProfile) -> tuple[str, ...]:
    """The paths at which two profiles differ in what ranks, sorted; empty where hashes are equal.

    Name and source do not count, nor does what is defined but not used. What only one of the two
    uses shows at the place that uses it: a signal left out is ``score.weights.<signal>``, not its
    curve. A different order of the same inputs, on which the last bit of a sum depends, is
    ``<node>.order``.
    """
    mine, theirs = _values(one), _values(other)
    shared = {
        section: _named(mine, section) & _named(theirs, section)
        for section in (_NODES, _SIGNALS, _EVIDENCE)
    }

    def counts(path: tuple[str, ...]) -> bool:
        return path[0] not in shared or path[1] in shared[path[0]]

    nothing = object()
    changed = {
        path
        for path in mine.keys() | theirs.keys()
        if counts(path) and mine.get(path, nothing) != theirs.get(path, nothing)
    }
    changed |= {
        (*path, "order")
        for path, node in _nodes(one).items()
        if (twin := _nodes(other).get(path)) is not None and not _same_order(node, twin)
    }
    return tuple(sorted(".".join(path) for path in changed))


def covers(studied: Iterable[str], path: str) -> bool:
    """Whether a path is one of those studied or lies below one; ``*`` stands for any one name."""
    names = path.split(".")
    for pattern in studied:
        wanted = pattern.split(".")
        if len(wanted) <= len(names) and all(
            one in ("*", name) for one, name in zip(wanted, names, strict=False)
        ):
            return True
    return False


def told_at(path: str) -> str:
    """The path at which `profile_differences` tells a change that `revise` makes at ``path``.

    Differences are told by whole curves, policies and options, so a parameter within one shows
    there: ``signals.recency.curve.half_life.days`` as ``signals.recency.curve``, ``score.k`` as
    ``score.options``.
    """
    names = path.split(".")
    if names[0] in ("score", "rerank", _NODES):
        at = 2 if names[0] == _NODES else 1
        part = names[at] if len(names) > at else None
        if part in (None, "weights"):
            return path
        if part == "of":
            return ".".join([*names[:at], "weights"])
        known = ("compose", "missing", "absent")
        return ".".join([*names[:at], part if part in known else "options"])
    return ".".join(names[: 3 if names[0] == _SIGNALS else 2])


def _values(profile: RankingProfile) -> dict[tuple[str, ...], Any]:
    """Every value that ranks, by its path."""
    tables = plain_profile(profile)
    found: dict[tuple[str, ...], Any] = {("reranking",): profile.reranking}
    for section in ("pool", "floors", "scope", "order", "select"):
        found |= {(section, key): value for key, value in tables[section].items()}
    for path, node in _nodes(profile).items():
        found |= {(*path, key): value for key, value in _node(node).items()}
        found |= {(*path, "weights", name): weight for name, weight in node.weights}
    if profile.rerank is None:
        found["rerank",] = None
    for name in profile.signals_needed:
        recipe = profile.signals[name]
        found |= {
            (_SIGNALS, name, "evidence"): recipe.evidence,
            (_SIGNALS, name, "of"): recipe.of,
            (_SIGNALS, name, "curve"): recipe.curve,
            (_SIGNALS, name, "merge"): recipe.merge,
        }
        if recipe.evidence:
            found |= {(_EVIDENCE, kind.name): kind for kind in profile.kinds(name)}
    return found


def _nodes(profile: RankingProfile) -> dict[tuple[str, ...], Node]:
    roots = {("score",): profile.score}
    if profile.rerank is not None:
        roots["rerank",] = profile.rerank
    names = [name for node in roots.values() for name in node_inputs(node)]
    used = reachable(names, nodes=profile.nodes, signals=profile.signals)[0]
    return roots | {(_NODES, name): profile.nodes[name] for name in sorted(used)}


def _node(node: Node) -> dict[str, Any]:
    return {
        "compose": node.compose,
        "missing": plain_missing(node.missing),
        "absent": {name: plain_missing(override) for name, override in node.absent},
        "options": dict(node.options),
    }


def _named(values: Mapping[tuple[str, ...], Any], section: str) -> set[str]:
    return {path[1] for path in values if path[0] == section}


def _same_order(one: Node, other: Node) -> bool:
    mine, theirs = ([name for name, _ in node.weights] for node in (one, other))
    return [n for n in mine if n in theirs] == [n for n in theirs if n in mine]

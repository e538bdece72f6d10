"""Profiles with parts changed by path, and the paths in which two arms differ."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import tomli_w
from attrs import evolve

from rankblend.errors import InvalidArgumentError
from rankblend.profiles import (
    RankingProfile,
    dump_profile,
    inputs_first,
    plain_profile,
    reachable,
    read_profile,
)
from rankblend.relevance import Node, node_inputs, plain_missing

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


def revise(
    profile: RankingProfile, values: Mapping[str, object], *, name: str | None = None
) -> RankingProfile:
    """The same profile with other values at some paths, checked like any profile file.

    Args:
        profile: The recipe.
        values: Path as in a profile file → plain data, or None to drop what stands there:
            ``{"score.missing": "zero", "signals.recency.curve.half_life.days": 30}``. A number in a
            path counts the steps of a curve from 0.
        name: Of the new profile; None keeps the name.

    Raises:
        ProfileError: The result is no valid profile; all problems.
        InvalidArgumentError: A path leads through something that is no table or list.
    """
    tables = tomllib.loads(dump_profile(profile))
    for path, value in values.items():
        _place(tables, path, value)
    if name is not None:
        tables["name"] = name
    return read_profile(tomli_w.dumps(tables), name=profile.name)


def scored_signals(profile: RankingProfile) -> tuple[str, ...]:
    """The signals that nodes of the score read directly, in the order in which they are named."""
    found: dict[str, None] = {}
    waiting = [*node_inputs(profile.score)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in profile.nodes and name not in seen:
            seen.add(name)
            waiting = [*node_inputs(profile.nodes[name]), *waiting]
        elif name in profile.signals:
            found[name] = None
    return tuple(found)


def without_signals(
    profile: RankingProfile, dropped: Collection[str], *, name: str | None = None
) -> RankingProfile:
    """The profile as it would have been written without some signals.

    They go from every node, from ``first_present`` lists, floors and ties. A node or list that
    loses its last entry goes with them, and so do promised sums of weights. Unlike a signal that is
    absent, one that is not there has no weight either, whatever the missing policy.

    Raises:
        InvalidArgumentError: A signal the profile does not have; nothing would be left to score
            by; what is left is no valid node, such as a boost without its base.
    """
    unknown = sorted(set(dropped) - profile.signals.keys())
    if unknown:
        raise InvalidArgumentError(
            [f"signals: profile {profile.name!r} has no {one!r}" for one in unknown]
        )
    gone = set(dropped)
    signals = {}
    for signal, recipe in profile.signals.items():  # each after what it is made of
        left = tuple(part for part in recipe.of if part not in gone)
        if recipe.of and not left:
            gone.add(signal)
        if signal not in gone:
            signals[signal] = evolve(recipe, of=left)
    nodes: dict[str, Node] = {}
    for node_name in inputs_first({key: node_inputs(node) for key, node in profile.nodes.items()}):
        node = _without(profile.nodes[node_name], gone)
        if node is None:
            gone.add(node_name)
        else:
            nodes[node_name] = node
    score = _without(profile.score, gone)
    rerank = None if profile.rerank is None else _without(profile.rerank, gone)
    if score is None:
        raise InvalidArgumentError(f"signals: profile {profile.name!r} would score by nothing")
    changed = {
        "score": score != profile.score,
        "rerank": rerank != profile.rerank,
        **{f"nodes.{key}": nodes.get(key) != node for key, node in profile.nodes.items()},
    }
    floors = {key: floor for key, floor in profile.floors.signals.items() if key not in gone}
    return evolve(
        profile,
        name=profile.name if name is None else name,
        signals=signals,
        nodes=nodes,
        score=score,
        rerank=rerank,
        ties=tuple(tie for tie in profile.ties if tie not in gone),
        floors=evolve(profile.floors, signals=floors),
        must_sum_to={at: total for at, total in profile.must_sum_to.items() if not changed[at]},
    )


def nodes_in_use(profile: RankingProfile) -> tuple[str, ...]:
    """The paths of the score and of the nodes below it: ``score``, ``nodes.words``."""
    used = reachable(node_inputs(profile.score), nodes=profile.nodes, signals=profile.signals)[0]
    return ("score", *(f"nodes.{name}" for name in profile.nodes if name in used))


def _without(node: Node, gone: Collection[str]) -> Node | None:
    weights = tuple((name, weight) for name, weight in node.weights if name not in gone)
    if not weights:
        return None
    absent = tuple((name, override) for name, override in node.absent if name not in gone)
    options = tuple(
        (key, tuple(rule for rule in value if rule[0] not in gone))
        if isinstance(value, tuple)
        else (key, value)
        for key, value in node.options
    )
    try:
        left = Node(node.compose, weights, missing=node.missing, absent=absent, options=options)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            [f"{node.compose} without {', '.join(sorted(gone))}: {line}" for line in error.problems]
        ) from error
    lost = [name for name in node_inputs(left) if name in gone]
    if lost:
        raise InvalidArgumentError(f"{node.compose}: is gated by {', '.join(lost)}")
    return left


def _place(tables: dict[str, Any], path: str, value: object) -> None:
    *steps, last = path.split(".")
    place: Any = tables
    for step in steps:
        if step == "weights" and isinstance(place, dict) and "of" in place:
            # A list of inputs is a table of weights 1.
            place["weights"] = dict.fromkeys(place.pop("of"), 1.0)
        if isinstance(place, dict):
            place = place.setdefault(step, {})
        elif isinstance(place, list) and step.isdigit() and int(step) < len(place):
            place = place[int(step)]
        else:
            raise InvalidArgumentError(f"{path}: there is no table at {step!r}")
    if isinstance(place, list) and last.isdigit() and int(last) < len(place):
        place[int(last)] = value
    elif not isinstance(place, dict):
        raise InvalidArgumentError(f"{path}: there is no table above {last!r}")
    elif value is None:
        place.pop(last, None)
    else:
        if last == "weights":
            place.pop("of", None)
        place[last] = value

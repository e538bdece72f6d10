"""Whether the parts of a profile fit together: every problem, with its path.

Within one query such a value orders as well as any. Between queries it means nothing: the best of a
hopeless pool has 1.0. So no floor may be put on it.

Loading a profile and constructing one in Python go through the same checks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rankblend.profiles._problems import Path, ProfileProblems, check_rules, toml_shown
from rankblend.profiles._recipe import (
    Floor,
    Floors,
    Pool,
    Select,
    SignalRecipe,
    depth_of,
    find_circles,
    inputs_first,
)
from rankblend.relevance import (
    COMPOSERS,
    EVIDENCE,
    Evidence,
    Node,
    ScopeBlend,
    check_curve,
    is_batch_relative,
    is_identifier,
    lookup_evidence,
    node_inputs,
)
from rankblend.values import dotted

if TYPE_CHECKING:
    from rankblend.profiles._profile import RankingProfile


def relative_signals(signals: Mapping[str, SignalRecipe]) -> frozenset[str]:
    """The signals whose values depend on the pool, directly or through what they are made of.

    Of signals that are made of themselves, which is refused elsewhere, the answer may lack some.
    """
    relative: set[str] = set()
    for name in inputs_first({name: signal.of for name, signal in signals.items()}):
        signal = signals[name]
        if is_batch_relative(signal.curve) or not relative.isdisjoint(signal.of):
            relative.add(name)
    return frozenset(relative)


def relative_part(root: Node, nodes: Mapping[str, Node], relative: Collection[str]) -> str | None:
    """What in a score depends on the pool: the name of a signal or composer, or None."""
    seen: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not COMPOSERS[node.compose].pointwise:
            return node.compose
        for name in node_inputs(node):
            if name in nodes and name not in seen:
                seen.add(name)
                waiting.append(nodes[name])
            elif name in relative:
                return name
    return None


SUM_TOLERANCE = 1e-9
MAX_NESTING = 32
_PARTS: Mapping[str, type] = {
    "score": Node, "pool": Pool, "floors": Floors, "scope": ScopeBlend, "select": Select,
}  # fmt: skip
_TABLES: Mapping[str, type] = {"signals": SignalRecipe, "nodes": Node, "evidence": Evidence}


def find_evidence(name: str, declared: Mapping[str, Evidence]) -> Evidence | None:
    """The evidence a recipe means by ``name`` or ``store.name``: its own, else the registered."""
    return declared.get(name.rpartition(".")[2]) or lookup_evidence(name)


def check_types(recipe: RankingProfile, problems: ProfileProblems) -> None:
    """Note every part of another type, as only Python can write it; the rest is then unreadable."""

    def expect(path: Path, value: object, kind: type) -> None:
        if not isinstance(value, kind):
            problems.expected(path, kind.__name__, value)

    for name, kind in _PARTS.items():
        expect((name,), getattr(recipe, name), kind)
    if recipe.rerank is not None:
        expect(("rerank",), recipe.rerank, Node)
    tables = {name: (getattr(recipe, name), kind) for name, kind in _TABLES.items()}
    tables["must_sum_to"] = (recipe.must_sum_to, object)
    if isinstance(recipe.floors, Floors):
        tables["floors"] = (recipe.floors.signals, Floor)
    for name, (table, kind) in tables.items():
        expect((name,), table, Mapping)
        for key, value in table.items() if isinstance(table, Mapping) else ():
            if not isinstance(key, str):
                problems.expected((name,), "names as keys", key)
                continue
            expect((name, key), value, kind)
            if isinstance(value, SignalRecipe):
                problems.names((name, key, "evidence"), value.evidence)
                problems.names((name, key, "of"), value.of)


def check_recipe(
    recipe: RankingProfile, problems: ProfileProblems, *, broken: Collection[Path] = frozenset()
) -> None:
    """Note everything wrong with a recipe.

    Args:
        recipe: Its parts.
        problems: Takes the problems.
        broken: Where tables stood that could not be read: their names are defined, and what is
            wrong with them is already noted.
    """
    _values(recipe, problems)
    _evidence(recipe, problems)
    _signals(recipe, problems, broken)
    _nodes(recipe, problems, broken)
    _floors(recipe, problems, broken)
    known = {*recipe.signals, *_broken_in("signals", broken)}
    for name in problems.names(("order", "ties"), recipe.ties):
        if name not in known:
            problems.undefined(("order", "ties"), "signal", name, known)


def _broken_in(section: str, broken: Collection[Path]) -> set[str]:
    return {path[1] for path in broken if path[0] == section and len(path) > 1}


def _values(recipe: RankingProfile, problems: ProfileProblems) -> None:
    """The rules of single values, and of the size of the pool below its greatest number."""
    check_rules(problems, (), recipe)
    pool, here = recipe.pool, problems.at()
    check_rules(here, ("pool",), pool)
    if here.clean and pool.size > pool.max:
        problems.add(("pool", "max"), f"expected at least pool.size = {pool.size}, got {pool.max}")
    check_rules(problems, ("select",), recipe.select)


def _evidence(recipe: RankingProfile, problems: ProfileProblems) -> None:
    for name, evidence in recipe.evidence.items():
        known = EVIDENCE.get(name)
        if evidence.name != name:
            problems.add(("evidence", name), f"declares evidence named {toml_shown(evidence.name)}")
        elif known is not None and known != evidence:
            problems.add(
                ("evidence", name), "is registered with another unit or range; choose another name"
            )


def _signals(recipe: RankingProfile, problems: ProfileProblems, broken: Collection[Path]) -> None:
    known = {*recipe.signals, *_broken_in("signals", broken)}
    unread = _broken_in("evidence", broken)
    vocabulary = [*EVIDENCE, *recipe.evidence, *unread]
    for name, signal in recipe.signals.items():
        path = ("signals", name)
        problems.identifier(path, name, "signal")
        if name == "min_score":
            problems.add(path, "is what [floors] calls the least score; choose another name")
        check_rules(problems, path, signal)
        for part in signal.of:
            if part not in known:
                problems.undefined((*path, "curve"), "signal", part, known)
        for part in signal.evidence:
            store, _, bare = part.rpartition(".")
            if store and not is_identifier(store):
                problems.expected((*path, "evidence"), "a name or store.name", part)
            elif bare not in unread and find_evidence(part, recipe.evidence) is None:
                problems.undefined((*path, "evidence"), "evidence", bare, vocabulary)
        if bool(signal.of) == bool(signal.evidence):
            problems.lacking(
                path, "expected either evidence or the signals it is the first present of"
            )
            continue
        kinds = [
            None if part.rpartition(".")[2] in unread else find_evidence(part, recipe.evidence)
            for part in signal.evidence
        ]
        kinds += [Evidence(part) for part in signal.of if is_identifier(part)]
        if signal.of and (not signal.curve or signal.curve[0].name != "first_present"):
            problems.add((*path, "curve"), "signals are read by first_present, as its first step")
        elif None not in kinds and len(kinds) == len(signal.of or signal.evidence):
            found = check_curve(signal.curve, [kind for kind in kinds if kind is not None])
            for line in found:
                problems.add((*path, "curve"), line)
    for circle in find_circles({name: signal.of for name, signal in recipe.signals.items()}):
        problems.add(("signals", circle[0]), f"is made of itself: {' → '.join(circle)}")


def _nodes(recipe: RankingProfile, problems: ProfileProblems, broken: Collection[Path]) -> None:
    signals = {*recipe.signals, *_broken_in("signals", broken)}
    nodes = {*recipe.nodes, *_broken_in("nodes", broken)}
    for path, node in _all_nodes(recipe):
        for name in node_inputs(node):
            if name not in signals and name not in nodes:
                where = _input_path(path, name, node, problems)
                problems.undefined(where, "signal or node", name, signals | nodes)
    for name in recipe.nodes:
        problems.identifier(("nodes", name), name, "node")
        if name in signals:
            problems.add(("nodes", name), "is the name of a signal as well; rename one of them")
    edges = {name: node_inputs(node) for name, node in recipe.nodes.items()}
    circles = find_circles(edges)
    for circle in circles:
        problems.add(("nodes", circle[0]), f"is made of itself: {' → '.join(circle)}")
    if not circles and depth_of(edges) > MAX_NESTING:
        problems.add(("nodes",), f"are nested deeper than {MAX_NESTING} levels")
    named = {dotted(path): node for path, node in _all_nodes(recipe) if path not in broken}
    for name, expected in recipe.must_sum_to.items():
        promise: Path = (*name.split("."), "weights_must_sum_to")
        if math.isnan(problems.number(promise, expected, least=0.0)) or name not in named:
            continue
        total = sum(weight for _, weight in named[name].weights)
        if not abs(total - expected) <= SUM_TOLERANCE:
            problems.add(
                promise, f"expected weights that sum to {expected:g}, they sum to {total:.12g}"
            )
    if recipe.reranking == "relevance" and recipe.rerank is None and ("rerank",) not in broken:
        problems.lacking(
            ("reranking",), 'is "relevance", but there is no [rerank] to replace the score'
        )


def _input_path(path: Path, name: str, node: Node, problems: ProfileProblems) -> Path:
    if name not in dict(node.weights):
        return (*path, "members")
    of = (*path, "of")
    return of if problems.written(of) else (*path, "weights", name)


def _all_nodes(recipe: RankingProfile) -> list[tuple[Path, Node]]:
    found: list[tuple[Path, Node]] = [
        (("nodes", name), node) for name, node in recipe.nodes.items()
    ]
    return [*_roots(recipe), *found]


def _roots(recipe: RankingProfile) -> list[tuple[Path, Node]]:
    found: list[tuple[Path, Node | None]] = [
        (("score",), recipe.score),
        (("rerank",), recipe.rerank),
    ]
    return [(path, node) for path, node in found if node is not None]


def _floors(recipe: RankingProfile, problems: ProfileProblems, broken: Collection[Path]) -> None:
    """A floor means the same for every query only on what does not depend on the pool."""
    floors, unknown = recipe.floors, _broken_in("signals", broken)
    relative = relative_signals(recipe.signals)
    for name, floor in floors.signals.items():
        path = ("floors", name)
        check_rules(problems, path, floor)
        if name in relative:
            problems.add(path, "the signal is relative to the pool, so a floor on it means nothing")
        elif name not in recipe.signals and name not in unknown:
            problems.undefined(path, "signal", name, {*recipe.signals, *unknown})
    check_rules(problems, ("floors",), floors)
    if floors.min_score is None:
        return
    for root, node in _roots(recipe):
        cause = relative_part(node, recipe.nodes, relative)
        if cause is not None:
            problems.add(
                ("floors", "min_score"),
                f"{dotted(root)} contains {cause}, which is relative to the pool, so a least score "
                "means nothing",
            )

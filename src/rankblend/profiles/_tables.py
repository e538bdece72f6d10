"""Profiles from plain tables: every problem at once, each with its path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.profiles._check import check_recipe
from rankblend.profiles._extend import Merged
from rankblend.profiles._problems import Path, Problems, dotted
from rankblend.profiles._profile import RankingProfile
from rankblend.profiles._recipe import Floor, Floors, Pool, Select, SignalRecipe
from rankblend.profiles._tree import origins_of
from rankblend.relevance import (
    COMPOSERS,
    UNITS,
    Evidence,
    MissingPolicy,
    Node,
    Override,
    Renormalize,
    ScopeBlend,
    is_identifier,
    node_problems,
    parse_curve,
    parse_missing,
    parse_override,
)

_NODE_KEYS = ("compose", "weights", "of", "missing", "absent", "weights_must_sum_to")


@frozen
class NodeTable:
    """What a table gave.

    Args:
        node: The node; where something is wrong with the table, a stand-in with the inputs that
            could be read, so that problems elsewhere are found in the same run; None without any.
        must_sum_to: What the weights were promised to sum to.
        broken: Something is wrong with the table.
    """

    node: Node | None
    must_sum_to: float | None = None
    broken: bool = False


def read_node(path: Path, value: object, problems: Problems) -> NodeTable:
    """Read one node, noting everything wrong with it but not what its inputs are."""
    before = len(problems.lines)
    table = problems.table(path, value)
    if not isinstance(value, Mapping):
        return NodeTable(None, broken=True)
    compose = table.get("compose", "weighted_mean")
    composer = COMPOSERS.get(compose) if isinstance(compose, str) else None
    options = [option.name for option in composer.options] if composer else []
    if composer:
        problems.keys(path, table, (*_NODE_KEYS, *options))
    weights = _weights(path, table, problems)
    missing = _missing((*path, "missing"), table.get("missing", "renormalize"), problems)
    absent = _absent((*path, "absent"), table.get("absent"), problems)
    chosen = {name: table[name] for name in options if name in table}
    if weights or len(problems.lines) == before:
        found = node_problems(
            compose,  # type: ignore[arg-type]  # it says itself what is no name
            weights.items(),
            missing=missing,
            absent=absent.items(),
            options=chosen.items(),
        )
        for line in found:
            key = line.partition(":")[0].partition(".")[0]
            problems.take((*path, key), [f"{dotted(path)}.{line}"])
    must_sum_to = None
    if "weights_must_sum_to" in table:
        where = (*path, "weights_must_sum_to")
        must_sum_to = problems.number(where, table["weights_must_sum_to"], low=0.0)
    if len(problems.lines) == before:
        node = Node(str(compose), weights, missing=missing, absent=absent, options=chosen)
        return NodeTable(node, must_sum_to)
    stand_in = {name: 1.0 for name in weights if is_identifier(name)}
    return NodeTable(Node("weighted_mean", stand_in) if stand_in else None, broken=True)


def _weights(path: Path, table: Mapping[str, object], problems: Problems) -> dict[str, float]:
    """The inputs with their weights; an unusable weight is noted and stands as 1."""
    weights = problems.table((*path, "weights"), table.get("weights"))
    if "of" in table and "weights" in table:
        problems.add(
            (*path, "of"),
            "gives the inputs a second time, beside weights; keep one of the two (an inherited one "
            f'is dropped by without = ["{dotted(path)}.weights"], or .of)',
        )
    if "of" in table:
        return {
            name: 1.0
            for name in problems.names((*path, "of"), table["of"])
            if problems.identifier((*path, "of"), "input", name)
        }
    if "weights" not in table:
        problems.lacking(path, "expected its inputs: weights = { name = number } or of = [names]")
    found = {}
    for name, value in weights.items():
        where = (*path, "weights", name)
        if problems.identifier(where, "input", name):
            number = problems.number(where, value, low=0.0)
            found[name] = 1.0 if number is None else number
    return found


def _missing(path: Path, value: object, problems: Problems) -> MissingPolicy:
    try:
        return parse_missing(value, path=dotted(path))
    except InvalidArgumentError as error:
        problems.take(path, error.problems)
        return Renormalize()


def _absent(path: Path, value: object, problems: Problems) -> dict[str, Override]:
    found = {}
    for name, override in problems.table(path, value).items():
        where = (*path, name)
        try:
            found[name] = parse_override(override, path=dotted(where))
        except InvalidArgumentError as error:
            problems.take(where, error.problems)
    return found


_KEYS = (
    "name", "source", "extends", "without", "reranking", "pool", "evidence", "signals", "score",
    "rerank", "nodes", "floors", "scope", "order", "select",
)  # fmt: skip


@define
class _Draft:
    """The parts as far as they could be read."""

    name: Any
    source: Any
    pool: Pool = field(factory=Pool)
    evidence: dict[str, Evidence] = field(factory=dict)
    signals: dict[str, SignalRecipe] = field(factory=dict)
    nodes: dict[str, Node] = field(factory=dict)
    score: Node | None = None
    rerank: Node | None = None
    reranking: Any = "baseline"
    floors: Floors = field(factory=Floors)
    scope: ScopeBlend = field(factory=ScopeBlend)
    ties: tuple[str, ...] = ()
    select: Select = field(factory=Select)
    must_sum_to: dict[str, float] = field(factory=dict)
    broken: set[Path] = field(factory=set)


def profile_from_tables(merged: Merged, problems: Problems, *, name: str) -> RankingProfile:
    """Read and check everything.

    Args:
        merged: The tables, joined with those they extend.
        problems: Those of the joining; what is found here is added.
        name: The name where the tables give none.

    Raises:
        ProfileError: All problems of joining, reading and checking together.
    """
    tables = merged.tables
    problems.keys((), tables, _KEYS)
    draft = _Draft(tables.get("name", name), tables.get("source", ""))
    draft.reranking = tables.get("reranking", "baseline")
    _pool(tables, draft, problems)
    _evidence(tables, draft, problems)
    _signals(tables, draft, problems)
    _all_nodes(tables, draft, problems)
    _floors(tables, draft, problems)
    _scope(tables, draft, problems)
    order = problems.table(("order",), tables.get("order"))
    problems.keys(("order",), order, ("ties",))
    draft.ties = problems.names(("order", "ties"), order.get("ties", []))
    check_recipe(draft, problems, broken=draft.broken)
    problems.raise_if_any()
    parts = {
        key: getattr(draft, key) for key in _Draft.__annotations__ if key not in ("broken", "name")
    }
    return RankingProfile(draft.name, **parts, origins=origins_of(draft, merged.origins))


def _pool(tables: Mapping[str, Any], draft: _Draft, problems: Problems) -> None:
    pool = problems.table(("pool",), tables.get("pool"))
    problems.keys(("pool",), pool, ("size", "max"))
    size: Any = pool.get("size", Pool().size)
    # A size alone never contradicts a greatest number that nobody wrote.
    most = max(Pool().max, size) if isinstance(size, int) else Pool().max
    draft.pool = Pool(size, pool.get("max", most))  # type: ignore[arg-type]
    select = problems.table(("select",), tables.get("select"))
    keys = ("top", "max_tokens", "duplicate_penalty", "diversity")
    problems.keys(("select",), select, keys)
    draft.select = Select(**{key: select[key] for key in keys if key in select})  # type: ignore[arg-type]


def _evidence(tables: Mapping[str, Any], draft: _Draft, problems: Problems) -> None:
    for name, value in problems.table(("evidence",), tables.get("evidence")).items():
        path = ("evidence", name)
        before = len(problems.lines)
        table = problems.table(path, value)
        problems.identifier(path, "evidence", name)
        problems.keys(path, table, ("unit", "range", "natural_zero", "relevance", "meaning"))
        unit = problems.choice((*path, "unit"), table.get("unit", "signal"), UNITS)
        low, high = _range((*path, "range"), table.get("range", [0.0, 1.0]), problems)
        zero, relevance = table.get("natural_zero", False), table.get("relevance", False)
        for key, flag in (("natural_zero", zero), ("relevance", relevance)):
            if not isinstance(flag, bool):
                problems.expected((*path, key), "true or false", flag)
        meaning = table.get("meaning", "")
        if not isinstance(meaning, str):
            problems.expected((*path, "meaning"), "text", meaning)
        if len(problems.lines) == before:
            draft.evidence[name] = Evidence(
                name, str(unit), low, high, bool(zero), bool(relevance), str(meaning)
            )
        else:
            draft.broken.add(path)


def _range(path: Path, value: object, problems: Problems) -> tuple[float, float]:
    if isinstance(value, list) and len(value) == 2 and value[1] == math.inf:
        low = problems.number((*path, "0"), value[0])
        return (0.0 if low is None else low), math.inf
    if not isinstance(value, list) or len(value) != 2:
        problems.expected(path, "a list of the least and the greatest value", value)
        return 0.0, 1.0
    ends = [problems.number((*path, str(at)), end) for at, end in enumerate(value)]
    low, high = ends
    if low is not None and high is not None and not low < high:
        problems.add(path, f"expected the least value below the greatest, got {low:g} and {high:g}")
    return (low or 0.0), (1.0 if high is None else high)


def _signals(tables: Mapping[str, Any], draft: _Draft, problems: Problems) -> None:
    for name, value in problems.table(("signals",), tables.get("signals")).items():
        path = ("signals", name)
        before = len(problems.lines)
        table = problems.table(path, value)
        problems.keys(path, table, ("evidence", "of", "curve", "merge"))
        evidence = table.get("evidence", [])
        evidence = [evidence] if isinstance(evidence, str) else evidence
        names = problems.names((*path, "evidence"), evidence)
        of = problems.names((*path, "of"), table.get("of", []))
        steps = table.get("curve", [] if of else "identity")
        # { first_present = [names] } names signals; every other curve takes numbers.
        chain = list(steps) if isinstance(steps, list) else [steps]
        if chain and isinstance(chain[0], dict) and list(chain[0]) == ["first_present"]:
            parts = chain[0]["first_present"]
            if not isinstance(parts, dict):
                if of:
                    problems.add((*path, "of"), "names the signals a second time, beside the curve")
                of = problems.names((*path, "curve", "first_present"), parts)
                chain[0] = "first_present"
        elif of and chain[:1] != ["first_present"]:
            chain.insert(0, "first_present")
        curve = chain if isinstance(steps, list) or len(chain) != 1 else chain[0]
        try:
            read = parse_curve(curve, path=dotted((*path, "curve")))
        except InvalidArgumentError as error:
            problems.take((*path, "curve"), error.problems)
            read = ()
        if len(problems.lines) == before:
            merge = table.get("merge", "strongest")
            draft.signals[name] = SignalRecipe(names, of, read, merge)  # type: ignore[arg-type]
        else:
            draft.broken.add(path)


def _all_nodes(tables: Mapping[str, Any], draft: _Draft, problems: Problems) -> None:
    def node(path: Path, value: object) -> Node | None:
        read = read_node(path, value, problems)
        if read.must_sum_to is not None:
            draft.must_sum_to[dotted(path)] = read.must_sum_to
        if read.broken:
            draft.broken.add(path)
        return read.node

    if "score" in tables:
        draft.score = node(("score",), tables["score"])
    else:
        problems.lacking(("score",), "expected a table that says what ranks, it is missing")
    if "rerank" in tables:
        draft.rerank = node(("rerank",), tables["rerank"])
    for name, value in problems.table(("nodes",), tables.get("nodes")).items():
        found = node(("nodes", name), value)
        if found is not None:
            draft.nodes[name] = found


def _floors(tables: Mapping[str, Any], draft: _Draft, problems: Problems) -> None:
    found = {}
    floors = problems.table(("floors",), tables.get("floors"))
    for name, value in floors.items():
        path = ("floors", name)
        if name == "min_score":
            continue
        table = problems.table(path, value)
        if not isinstance(value, Mapping):
            continue
        problems.keys(path, table, ("min", "absent"))
        if "min" in table:
            found[name] = Floor(table["min"], table.get("absent", "pass"))  # type: ignore[arg-type]
        else:
            problems.lacking(path, "expected its least value: min = number")
    draft.floors = Floors(floors.get("min_score"), found)  # type: ignore[arg-type]


def _scope(tables: Mapping[str, Any], draft: _Draft, problems: Problems) -> None:
    scope = problems.table(("scope",), tables.get("scope"))
    keys = ("mode", "half_life_levels", "floor")
    problems.keys(("scope",), scope, keys)
    try:
        draft.scope = ScopeBlend(**{key: scope[key] for key in keys if key in scope})  # type: ignore[arg-type]
    except InvalidArgumentError as error:
        for line in error.problems:
            problems.take(("scope", line.partition(":")[0]), [f"scope.{line}"])

"""From joined tables to a ranking profile, with all problems at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from rankblend.errors import InvalidArgumentError
from rankblend.profiles.check import check_recipe
from rankblend.profiles.extend import Merged
from rankblend.profiles.node_tables import read_node
from rankblend.profiles.problems import Path, Problems, dotted
from rankblend.profiles.profile import RankingProfile
from rankblend.profiles.recipe import Floor, Floors, Pool, Select, SignalRecipe
from rankblend.profiles.tree import origins_of
from rankblend.relevance.blend import ScopeBlend
from rankblend.relevance.composers import Node
from rankblend.relevance.curves import parse_curve
from rankblend.relevance.evidence import UNITS, Evidence

__all__ = ["profile_from_tables"]

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

"""Profiles from plain tables: every problem at once, each with its path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import frozen

from rankblend.checks import At, Problems, Rule
from rankblend.profiles._extend import Merged
from rankblend.profiles._problems import Path, ProfileProblems, rules_of, section
from rankblend.profiles._profile import RankingProfile
from rankblend.profiles._recipe import Floor, Floors, Pool, Select, SignalRecipe
from rankblend.profiles._tree import origins_of
from rankblend.relevance import (
    COMPOSERS,
    UNITS,
    Evidence,
    Node,
    Override,
    Renormalize,
    ScopeBlend,
    node_problems,
    parse_curve,
    parse_missing,
    parse_override,
)
from rankblend.values import dotted, is_identifier

_NODE_KEYS = ("compose", "weights", "of", "missing", "absent", "weights_must_sum_to")
_KEYS = (
    "name", "source", "extends", "without", "reranking", "pool", "evidence", "signals", "score",
    "rerank", "nodes", "floors", "scope", "order", "select",
)  # fmt: skip


def profile_from_tables(merged: Merged, problems: ProfileProblems, *, name: str) -> RankingProfile:
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
    draft = _Draft(tables, problems, {"name": name}, set())
    draft.read()
    made = RankingProfile.read(draft.parts, problems, draft.broken)
    object.__setattr__(made, "origins", origins_of(made, merged.origins))
    return made


@frozen
class _Draft:
    """What the tables give, as far as it can be read.

    Args:
        tables: By section.
        problems: Takes what is wrong.
        parts: The arguments of a `RankingProfile` that were read.
        broken: Where tables stood that could not be read.
    """

    tables: Mapping[str, Any]
    problems: ProfileProblems
    parts: dict[str, Any]
    broken: set[Path]

    def read(self) -> None:
        parts, tables, problems = self.parts, self.tables, self.problems
        parts |= {key: tables[key] for key in rules_of(RankingProfile) if key in tables}
        parts["pool"] = self._pool()
        parts["select"] = section(problems, ("select",), tables.get("select"), Select)
        parts["must_sum_to"] = {}
        for name, read in (("evidence", self._evidence), ("signals", self._signal),
                           ("nodes", self._node)):  # fmt: skip
            found = problems.table((name,), tables.get(name)).items()
            made = {key: read((name, key), value) for key, value in found}
            parts[name] = {key: value for key, value in made.items() if value is not None}
        parts["score"] = self._node(("score",), tables["score"]) if "score" in tables else None
        if "score" not in tables:
            problems.lacking(("score",), "expected a table that says what ranks, it is missing")
        if "rerank" in tables:
            parts["rerank"] = self._node(("rerank",), tables["rerank"])
        parts["floors"] = self._floors()
        scope = problems.table(("scope",), tables.get("scope"))
        names = ("mode", "half_life_levels", "floor")
        problems.keys(("scope",), scope, names)
        given = {key: scope[key] for key in names if key in scope}
        parts["scope"] = problems.attempt(("scope",), partial(ScopeBlend, **given)) or ScopeBlend()
        order = problems.table(("order",), tables.get("order"))
        problems.keys(("order",), order, ("ties",))
        parts["ties"] = problems.names(("order", "ties"), order.get("ties", []))

    def _pool(self) -> Pool:
        written = self.tables.get("pool")
        pool = section(self.problems, ("pool",), written, Pool)
        size: object = pool.size
        if isinstance(size, int) and isinstance(written, Mapping) and "max" not in written:
            # A size alone never contradicts a greatest number that nobody wrote.
            return Pool(size, max(pool.max, size))
        return pool

    def _evidence(self, path: Path, value: object) -> Evidence | None:
        problems = self.problems.at()
        table = problems.table(path, value)
        problems.identifier(path, path[-1], "evidence")
        read = problems.fields(path, table, _EVIDENCE)
        if not problems.clean:
            self.broken.add(path)
            return None
        low, high = read.pop("range", (0.0, 1.0))
        return Evidence(path[-1], low=low, high=high, **read)

    def _signal(self, path: Path, value: object) -> SignalRecipe | None:
        problems = self.problems.at()
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
        read = problems.attempt(path, partial(parse_curve, curve)) or ()
        if problems.clean:
            return SignalRecipe(names, of, read, table.get("merge", "strongest"))
        self.broken.add(path)
        return None

    def _floors(self) -> Floors:
        found = {}
        floors = self.problems.table(("floors",), self.tables.get("floors"))
        for name, value in floors.items():
            path = ("floors", name)
            if name == "min_score":
                continue
            if not isinstance(value, Mapping):
                self.problems.table(path, value)
            elif "min" in value:
                found[name] = section(self.problems, path, value, Floor)
            else:
                self.problems.keys(path, value, rules_of(Floor))
                self.problems.lacking(path, "expected its least value: min = number")
        return Floors(floors.get("min_score"), found)

    def _node(self, path: Path, value: object) -> Node | None:
        """One node; where something is wrong with it, a stand-in with the inputs that were read.

        So that problems elsewhere are found in the same run; None where there are no inputs.
        """
        problems = self.problems.at()
        if not isinstance(value, Mapping):
            problems.expected(path, "a table", value)
            self.broken.add(path)
            return None
        compose = value.get("compose", "weighted_mean")
        composer = COMPOSERS.get(compose) if isinstance(compose, str) else None
        options = [option.name for option in composer.options] if composer else []
        if composer:
            problems.keys(path, value, (*_NODE_KEYS, *options))
        weights = self._weights(path, value)
        given: dict[str, Any] = {
            "missing": problems.attempt(
                path, partial(parse_missing, value.get("missing", "renormalize"))
            )
            or Renormalize(),
            "absent": self._absent((*path, "absent"), value.get("absent")),
            "options": {name: value[name] for name in options if name in value},
        }
        if weights or problems.clean:
            listed = {key: part.items() if isinstance(part, dict) else part
                      for key, part in given.items()}  # fmt: skip
            problems.extend(path, node_problems(compose, weights.items(), **listed))
        if "weights_must_sum_to" in value:
            where = (*path, "weights_must_sum_to")
            promised = problems.number(where, value["weights_must_sum_to"], least=0.0)
            if not math.isnan(promised):
                self.parts["must_sum_to"][dotted(path)] = promised
        if problems.clean:
            return Node(str(compose), weights, **given)
        self.broken.add(path)
        stand_in = {name: 1.0 for name in weights if is_identifier(name)}
        return Node("weighted_mean", stand_in) if stand_in else None

    def _weights(self, path: Path, table: Mapping[str, object]) -> dict[str, float]:
        """The inputs with their weights; an unusable weight is noted and stands as 1."""
        problems = self.problems
        weights = problems.table((*path, "weights"), table.get("weights"))
        if "of" in table and "weights" in table:
            problems.add(
                (*path, "of"),
                "gives the inputs a second time, beside weights; keep one of the two (an inherited "
                f'one is dropped by without = ["{dotted(path)}.weights"], or .of)',
            )
        if "of" in table:
            names = problems.names((*path, "of"), table["of"])
            return {n: 1.0 for n in names if problems.identifier((*path, "of"), n, "input")}
        if "weights" not in table:
            problems.lacking(
                path, "expected its inputs: weights = { name = number } or of = [names]"
            )
        found = {}
        for name, value in weights.items():
            where = (*path, "weights", name)
            if problems.identifier(where, name, "input"):
                number = problems.number(where, value, least=0.0)
                found[name] = 1.0 if math.isnan(number) else number
        return found

    def _absent(self, path: Path, value: object) -> dict[str, Override]:
        given = self.problems.table(path, value).items()
        read = {
            name: self.problems.attempt(
                path, partial(parse_override, override, path=dotted((name,)))
            )
            for name, override in given
        }
        return {name: override for name, override in read.items() if override is not None}


def _range(problems: Problems, at: At, value: object) -> tuple[float, float]:
    path = tuple(at)
    if not isinstance(value, list) or len(value) != 2:
        problems.expected(at, "a list of the least and the greatest value", value)
        return 0.0, 1.0
    low = problems.number((*path, "0"), value[0])
    high = math.inf if value[1] == math.inf else problems.number((*path, "1"), value[1])
    if high <= low:
        problems.add(at, f"expected the least value below the greatest, got {low:g} and {high:g}")
    return low, high


_EVIDENCE: Mapping[str, Rule] = {
    "unit": partial(Problems.choice, choices=UNITS),
    "range": _range,
    "natural_zero": Problems.flag,
    "relevance": Problems.flag,
    "meaning": partial(Problems.text, limit=None, blank=True),
}

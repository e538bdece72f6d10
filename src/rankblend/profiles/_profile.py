"""A ranking profile: the whole recipe of a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import evolve, field, fields, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.profiles._canonical import recipe_hash
from rankblend.profiles._check import check_recipe, check_types, find_evidence, relative_signals
from rankblend.profiles._problems import Problems
from rankblend.profiles._recipe import (
    Floors,
    Pool,
    Select,
    SignalRecipe,
    as_tuple,
    inputs_first,
    reachable,
    read_only,
)
from rankblend.profiles._tree import Row, describe_profile
from rankblend.relevance import Evidence, Node, ScopeBlend, node_inputs, real_number, shown

Path = tuple[str, ...]


@frozen
class Reweighted:
    """Nodes with other weights, and where each changed value stands.

    Args:
        score: The score.
        nodes: All nodes by name.
        changed: Paths of the values given, e.g. ``score.weights.cue``.
    """

    score: Node
    nodes: Mapping[str, Node]
    changed: tuple[str, ...]


def reweigh(
    score: Node, nodes: Mapping[str, Node], weights: Mapping[str, float], problems: Problems
) -> Reweighted:
    """Change weights by name: ``cue`` of the score, ``words.keyword`` of the node ``words``.

    Raises:
        ProfileError: All problems: names that nothing has, with the nearest one; invalid weights.
    """
    held = {"": dict(score.weights), **{name: dict(node.weights) for name, node in nodes.items()}}
    known = [f"{node}.{each}".lstrip(".") for node, inputs in held.items() for each in inputs]
    changed: dict[str, Path] = {}
    named: Iterable[tuple[object, object]] = weights.items()
    for name, value in named:
        given = str(name) if isinstance(name, str) else shown(name)
        node, _, entry = given.rpartition(".")
        path: Path = ("nodes", node, "weights", entry) if node else ("score", "weights", entry)
        if entry not in held.get(node, {}):
            problems.unknown(path, "input", given, known)
        else:
            held[node][entry] = problems.number(path, value, low=0.0) or 0.0
            changed[node] = path[:-2]
    problems.raise_if_any()
    made = {"": score, **nodes}
    for node, where in changed.items():
        try:
            made[node] = evolve(made[node], weights=held[node])
        except InvalidArgumentError as error:
            prefix = ".".join(where)
            problems.take(where, [f"{prefix}.{line}" for line in error.problems])
    problems.raise_if_any()
    paths = [
        ".".join((*changed[node], "weights", entry))
        for node, _, entry in (str(name).rpartition(".") for name in weights)
    ]
    return Reweighted(made.pop(""), made, tuple(paths))


MOST_REWEIGHTED = 64


@frozen(slots=False, unsafe_hash=False)
class RankingProfile:
    """How a ranking is made: derivations, weights, missing policy, floors, blend, pool, ties.

    Args:
        name: 1 to 100 printable characters.
        score: The node that ranks.
        source: Where the numbers come from, and how they differ from there.
        pool: How many candidates are looked at.
        signals: Per name how the signal is derived; kept in an order in which each comes after the
            signals it is made of.
        evidence: Kinds of evidence the profile declares itself, beside the registered ones.
        nodes: Nodes that ``score`` and ``rerank`` may read, by name.
        rerank: The node that replaces ``score`` when reranking is on and admitted.
        reranking: ``baseline`` or ``relevance``.
        floors: What a memory must reach, before the scope is folded in.
        scope: How distance in scope counts.
        ties: Signals that decide ties, in order, descending; then the id, always.
        select: What is returned of the ranked candidates.
        must_sum_to: Sums that weights were promised to have, by ``score``, ``rerank`` or
            ``nodes.x``; kept so that changed weights are held to them. It ranks nothing, so it is
            not part of the hash.
        origins: Per path of a value where it was written: a preset, a file, ``built-in``, ``call``.
            Neither part of equality nor of the hash.

    Raises:
        ProfileError: With everything that is wrong, each with its path.

    Two profiles are equal when their recipes, names and sources are. Of two equal recipes ``hash``
    is the same whatever they are called, and ``hash(profile)`` follows it.
    """

    name: str
    score: Node
    source: str = field(default="", kw_only=True)
    pool: Pool = field(factory=Pool, kw_only=True)
    signals: Mapping[str, SignalRecipe] = field(factory=dict, kw_only=True)
    evidence: Mapping[str, Evidence] = field(factory=dict, kw_only=True, converter=read_only)
    nodes: Mapping[str, Node] = field(factory=dict, kw_only=True, converter=read_only)
    rerank: Node | None = field(default=None, kw_only=True)
    reranking: str = field(default="baseline", kw_only=True)
    floors: Floors = field(factory=Floors, kw_only=True)
    scope: ScopeBlend = field(factory=ScopeBlend, kw_only=True)
    ties: tuple[str, ...] = field(default=(), kw_only=True, converter=as_tuple)
    select: Select = field(factory=Select, kw_only=True)
    must_sum_to: Mapping[str, float] = field(factory=dict, kw_only=True, converter=read_only)
    origins: Mapping[str, str] = field(factory=dict, kw_only=True, eq=False, converter=read_only)

    def __attrs_post_init__(self) -> None:
        name: object = self.name
        problems = Problems(name if isinstance(name, str) else "profile")
        check_types(self, problems)
        problems.raise_if_any()
        check_recipe(self, problems)
        problems.raise_if_any()
        order = inputs_first({name: recipe.of for name, recipe in self.signals.items()})
        ordered = read_only({name: self.signals[name] for name in order})
        object.__setattr__(self, "signals", ordered)

    def __hash__(self) -> int:
        return hash(self.hash)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be pickled or copied; their contents can.
        state = {
            entry.name: dict(value) if isinstance(value, Mapping) else value
            for entry in fields(type(self))
            for value in [getattr(self, entry.name)]
        }
        return _rebuild, (state,)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything that decides the ranking, as 64 hex digits (see ``identity``)."""
        return recipe_hash(self)

    @property
    def merge(self) -> Mapping[str, str]:
        """Per signal what happens when two stores give it for one memory."""
        return {name: recipe.merge for name, recipe in self.signals.items()}

    @cached_property
    def signals_needed(self) -> tuple[str, ...]:
        """The signals that score, rerank, floors or ties use, each after those it is made of."""
        names = [*self.ties, *self.floors.signals]
        for node in (self.score, self.rerank):
            names.extend(node_inputs(node) if node is not None else ())
        used = reachable(names, nodes=self.nodes, signals=self.signals)[1]
        return tuple(name for name in self.signals if name in used)

    @cached_property
    def evidence_needed(self) -> frozenset[str]:
        """The evidence those signals read, as they name it: ``cosine`` or ``store.cosine``."""
        return frozenset(
            name for signal in self.signals_needed for name in self.signals[signal].evidence
        )

    @cached_property
    def signals_scored(self) -> frozenset[str]:
        """The signals that score or rerank use; without those that only decide ties or floors."""
        names: list[str] = []
        for node in (self.score, self.rerank):
            names.extend(node_inputs(node) if node is not None else ())
        return reachable(names, nodes=self.nodes, signals=self.signals)[1]

    @cached_property
    def evidence_scored(self) -> frozenset[str]:
        """The evidence those signals read."""
        return frozenset(
            name for signal in self.signals_scored for name in self.signals[signal].evidence
        )

    def is_relevance(self, signal: str) -> bool:
        """Whether a signal speaks about the match with the query, not about the memory alone."""
        recipe = self.signals[signal]
        if recipe.of:
            return all(map(self.is_relevance, recipe.of))
        return all(kind.relevance for kind in self.kinds(signal))

    def kinds(self, signal: str) -> tuple[Evidence, ...]:
        """What the curve of a signal reads, with units and ranges; other signals are ready ones.

        Raises:
            KeyError: The profile has no such signal.
        """
        recipe = self.signals[signal]
        found = (find_evidence(name, self.evidence) for name in recipe.evidence)
        return (*(kind for kind in found if kind is not None), *map(Evidence, recipe.of))

    @cached_property
    def batch_relative(self) -> frozenset[str]:
        """The signals whose values depend on which other candidates the query has."""
        return relative_signals(self.signals)

    def with_weights(self, weights: Mapping[str, float]) -> RankingProfile:
        """The same profile with other weights in its score, and a hash of its own.

        Args:
            weights: By input of the score (``similarity``), or of a node below it
                (``words.keyword``), finite and ≥ 0; inputs not named keep theirs.

        Raises:
            ProfileError: All problems: an input that is not there, an invalid weight, a promised
                sum that is not met.
        """
        problems = Problems(self.name)
        if not isinstance(weights, Mapping):
            problems.expected(("score", "weights"), "a table of weights", weights)
            problems.raise_if_any()
        # A recall may give the same weights every time, and checking and hashing cost a millisecond.
        key = tuple((name, type(value), real_number(value)) for name, value in weights.items())
        made = self._reweighted.get(key)
        if made is None:
            other = reweigh(self.score, self.nodes, weights, problems)
            origins = self._origins_after(other)
            made = evolve(self, score=other.score, nodes=other.nodes, origins=origins)
            if len(self._reweighted) >= MOST_REWEIGHTED:
                self._reweighted.clear()
            self._reweighted[key] = made
        return made

    @cached_property
    def _reweighted(self) -> dict[object, RankingProfile]:
        return {}

    def _origins_after(self, other: Reweighted) -> dict[str, str]:
        origins = dict(self.origins)
        named = {"score": self.score, **{f"nodes.{n}": node for n, node in self.nodes.items()}}
        for where in {path.rpartition(".weights.")[0] for path in other.changed}:
            listed = origins.pop(f"{where}.of", None)
            if listed is not None:  # a list of inputs becomes a table of weights
                for name, _ in named[where].weights:
                    origins.setdefault(f"{where}.weights.{name}", listed)
        return origins | dict.fromkeys(other.changed, "call")

    def describe(self) -> tuple[Row, ...]:
        """Every value in effect as (path, value, origin), in the order of a profile file."""
        return describe_profile(self, self.origins)


def _rebuild(state: dict[str, Any]) -> RankingProfile:
    return RankingProfile(**state)

"""A ranking profile: the whole recipe of a ranking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from attrs import Factory, evolve, field, fields, frozen

from rankblend.caches import Lru
from rankblend.checks import At, Problems
from rankblend.profiles._canonical import recipe_hash
from rankblend.profiles._check import check_recipe, check_types, find_evidence, relative_signals
from rankblend.profiles._problems import Path, ProfileProblems, must
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
from rankblend.relevance import Evidence, Node, ScopeBlend, node_inputs
from rankblend.values import dotted, is_text, real_number, shown

MOST_REWEIGHTED = 64
MAX_NAME = 100


def _read_text(problems: Problems, at: At, value: object) -> str:
    if not isinstance(value, str):
        problems.expected(at, "text", value)
    elif not is_text(value):
        problems.add(at, "lone surrogates are no text")
    else:
        return value
    return ""


def _read_name(problems: Problems, at: At, value: object) -> str:
    name = _read_text(problems, at, value)
    if is_text(value) and not (name.strip() and len(name) <= MAX_NAME and name.isprintable()):
        problems.expected(at, f"1 to {MAX_NAME} printable characters", value)
    return name


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

    name: str = field(metadata=must(_read_name))
    score: Node
    source: str = field(default="", kw_only=True, metadata=must(_read_text))
    pool: Pool = field(factory=Pool, kw_only=True)
    signals: Mapping[str, SignalRecipe] = field(factory=dict, kw_only=True)
    evidence: Mapping[str, Evidence] = field(factory=dict, kw_only=True, converter=read_only)
    nodes: Mapping[str, Node] = field(factory=dict, kw_only=True, converter=read_only)
    rerank: Node | None = field(default=None, kw_only=True)
    reranking: str = field(
        default="baseline",
        kw_only=True,
        metadata=must(Problems.choice, choices=("baseline", "relevance")),
    )
    floors: Floors = field(factory=Floors, kw_only=True)
    scope: ScopeBlend = field(factory=ScopeBlend, kw_only=True)
    ties: tuple[str, ...] = field(default=(), kw_only=True, converter=as_tuple)
    select: Select = field(factory=Select, kw_only=True)
    must_sum_to: Mapping[str, float] = field(factory=dict, kw_only=True, converter=read_only)
    origins: Mapping[str, str] = field(factory=dict, kw_only=True, eq=False, converter=read_only)

    def __attrs_post_init__(self) -> None:
        name: object = self.name
        problems = ProfileProblems(name if isinstance(name, str) else "profile")
        check_types(self, problems)
        problems.raise_if_any()
        self._settle(problems)

    @classmethod
    def read(
        cls, parts: Mapping[str, Any], problems: ProfileProblems, broken: Collection[Path]
    ) -> RankingProfile:
        """A profile from parts of the right types; ``score`` may be missing where it was broken.

        Args:
            parts: By name of an argument.
            problems: What was found before; raised together with what is found now.
            broken: Where parts stood that could not be read.

        Raises:
            ProfileError: Everything that is wrong.
        """
        made = object.__new__(cls)
        for each in fields(cls):
            default: Any = each.default
            made_of = default.factory() if isinstance(default, Factory) else default  # type: ignore[arg-type]
            value = parts.get(each.name, made_of)
            object.__setattr__(made, each.name, each.converter(value) if each.converter else value)
        made._settle(problems, broken)
        return made

    def _settle(self, problems: ProfileProblems, broken: Collection[Path] = ()) -> None:
        check_recipe(self, problems, broken=broken)
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
    def _scored(self) -> tuple[frozenset[str], frozenset[str]]:
        """The nodes, and the signals, that score or rerank use."""
        roots = [node for node in (self.score, self.rerank) if node is not None]
        names = [name for node in roots for name in node_inputs(node)]
        return reachable(names, nodes=self.nodes, signals=self.signals)

    @cached_property
    def signals_needed(self) -> tuple[str, ...]:
        """The signals that score, rerank, floors or ties use, each after those it is made of."""
        named = [*self.ties, *self.floors.signals]
        used = self._scored[1] | reachable(named, nodes={}, signals=self.signals)[1]
        return tuple(name for name in self.signals if name in used)

    @cached_property
    def evidence_needed(self) -> frozenset[str]:
        """The evidence those signals read, as they name it: ``cosine`` or ``store.cosine``."""
        return self._evidence_of(self.signals_needed)

    @property
    def nodes_needed(self) -> frozenset[str]:
        """The nodes that score or rerank use."""
        return self._scored[0]

    @property
    def signals_scored(self) -> frozenset[str]:
        """The signals that score or rerank use; without those that only decide ties or floors."""
        return self._scored[1]

    @cached_property
    def evidence_scored(self) -> frozenset[str]:
        """The evidence those signals read."""
        return self._evidence_of(self.signals_scored)

    def _evidence_of(self, signals: Iterable[str]) -> frozenset[str]:
        return frozenset(name for signal in signals for name in self.signals[signal].evidence)

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
        problems = ProfileProblems(self.name)
        if not isinstance(weights, Mapping):
            problems.expected(("score", "weights"), "a table of weights", weights)
            problems.raise_if_any()
        # A recall may give the same weights every time, and checking and hashing cost a millisecond.
        key = tuple((name, type(value), real_number(value)) for name, value in weights.items())
        return self._reweighted.get(key, partial(self._reweigh, weights, problems))

    @cached_property
    def _reweighted(self) -> Lru[object, RankingProfile]:
        return Lru(MOST_REWEIGHTED)

    def _reweigh(self, weights: Mapping[Any, object], problems: ProfileProblems) -> RankingProfile:
        nodes = {"": self.score, **self.nodes}
        held = {name: dict(node.weights) for name, node in nodes.items()}
        known = [f"{node}.{each}".lstrip(".") for node, inputs in held.items() for each in inputs]
        changed: dict[str, Path] = {}
        origins = dict(self.origins)
        for name, value in weights.items():
            given = name if isinstance(name, str) else shown(name)
            node, _, entry = given.rpartition(".")
            where: Path = ("nodes", node) if node else ("score",)
            path = (*where, "weights", entry)
            if entry not in held.get(node, {}):
                problems.unknown(path, "input", given, known)
            else:
                held[node][entry] = problems.number(path, value, least=0.0)
                changed[node] = where
        problems.raise_if_any()
        for node, where in changed.items():
            change = partial(evolve, nodes[node], weights=held[node])
            nodes[node] = problems.attempt(where, change) or nodes[node]
            listed = origins.pop(dotted((*where, "of")), None)
            if listed is not None:  # a list of inputs becomes a table of weights
                for entry in held[node]:
                    origins.setdefault(dotted((*where, "weights", entry)), listed)
        problems.raise_if_any()
        for name in weights:
            node, _, entry = str(name).rpartition(".")
            origins[dotted((*changed[node], "weights", entry))] = "call"
        return evolve(self, score=nodes.pop(""), nodes=nodes, origins=origins)

    def describe(self) -> tuple[Row, ...]:
        """Every value in effect as (path, value, origin), in the order of a profile file."""
        return describe_profile(self, self.origins)


def _rebuild(state: dict[str, Any]) -> RankingProfile:
    return RankingProfile(**state)

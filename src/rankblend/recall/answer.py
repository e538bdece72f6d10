"""One recall, step by step: visibility, propose, join, observe, rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, cast

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rankblend.errors import MemoryContractError
from rankblend.profiles import RankingProfile
from rankblend.recall.asking import Failure, Outcome, Request, Round
from rankblend.recall.candidates import Candidates, EvidenceColumn, group_equivalents
from rankblend.recall.engine import CATALOG_STORES, Engine
from rankblend.recall.match import Recall, matches_from
from rankblend.recall.pool import SEEDS_PER_STORE, Proposals, join_proposals, seeds_from
from rankblend.recall.ranking import rank_candidates
from rankblend.recall.trace import Trace
from rankblend.relevance.blend import ScopeBlendMode
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Filters
from rankblend.stores.graph import GraphStore
from rankblend.stores.layers import LayerPolicy
from rankblend.stores.protocol import (
    Key,
    Observation,
    Reach,
    Reason,
    Seed,
    Statistics,
    Store,
    StoreQuery,
)
from rankblend.stores.vectors import VectorStore

__all__ = ["Question", "Reranker", "Serving", "answer"]


@frozen
class Serving:
    """What a reranker decided: which part of the profile scores, and what the trace says."""

    node: str
    trace: str


class Reranker(Protocol):
    """Decides whether a profile's ``rerank`` score may serve; asked once a recall."""

    def __call__(self, profile: RankingProfile) -> Serving:
        """``Serving("score", reason)`` for the baseline, ``Serving("rerank", name)`` otherwise."""
        ...


@frozen(eq=False)
class Question:
    """A validated recall.

    Args:
        text: The query; blank for a cold start.
        scopes: Whose memories.
        profile: The recipe, per-call weights included.
        reach, statistics, now, as_of, seeds: See `Memory.recall`; times in seconds.
        top: Result size, or None for the profile's.
        filters: Hard conditions.
        prefer: Soft ones, as they were given.
        include_expired: Show expired memories too.
        embed: Text → unit vector, or None without an embedder.
        reranker: See `Reranker`.
        count_tokens: Text → length, for token caps.
    """

    text: str
    scopes: tuple[Scope, ...]
    profile: RankingProfile
    reach: Reach = Reach.ANCESTORS
    statistics: Statistics = Statistics.ROOT
    now: float = 0.0
    as_of: float | None = None
    top: int | None = None
    filters: Filters = field(factory=Filters)
    prefer: Mapping[str, object] = field(factory=dict)
    seeds: tuple[Seed, ...] = ()
    include_expired: bool = False
    embed: Callable[[str], NDArray[np.float32] | None] | None = None
    reranker: Reranker | None = None
    count_tokens: Callable[[str], int] = len


@frozen(eq=False)
class _Proposed:
    levels: Proposals
    overall: Sequence[str]


def answer(engine: Engine, question: Question) -> Round[Recall]:
    """The recall as rounds of requests; see `rankblend.recall.asking`."""
    failures: list[Failure] = []
    notes: list[str] = []
    vector = yield from _embed(question, failures)
    with engine.lock.reading():
        query = StoreQuery(
            question.text,
            question.scopes,
            now=question.now,
            vector=vector,
            reach=question.reach,
            statistics=question.statistics,
            preferred=question.prefer,
        )
        asked = _Asked(engine, question, query)
        proposals, overall = yield from _propose(asked, failures, notes)
        sources = join_proposals(proposals, question.profile.pool.max)
        ids = tuple(sources)
        keys = asked.keys(ids)
        candidates = yield from _observe(asked, ids, keys, overall, failures)
        serving = _serving(question)
        ranking = rank_candidates(
            question.profile, candidates, top=question.top, node=serving.node
        )
        shown = [keys[int(ranking.rows[row])] for row in ranking.shown]
        records = {r.id: r for r in engine.view.records(shown) if r is not None}
    trace = Trace(
        question.profile.hash,
        tuple(map(str, question.scopes)),
        question.reach.value,
        question.statistics.value,
        question.now,
        question.as_of,
        {
            name: len({i for ids in levels.values() for i in ids})
            for name, levels in proposals.items()
        },
        len(ids),
        sources,
        tuple(failures),
        tuple(notes),
        serving.trace,
    )
    return Recall(
        matches_from(ranking, records), question.profile, trace, ranking, asked.sees
    )


def _embed(
    question: Question, failures: list[Failure]
) -> Round[NDArray[np.float32] | None]:
    if question.embed is None or not question.text.strip():
        return None
    (outcome,) = yield [Request("embedder", "embed", partial(question.embed, question.text))]
    if outcome.failure is not None:
        failures.append(outcome.failure)
    return cast("NDArray[np.float32] | None", outcome.value)


class _Asked:
    """What the stores are asked: who is asked for what, and with which limits on what they see."""

    def __init__(self, engine: Engine, question: Question, query: StoreQuery) -> None:
        self.engine = engine
        self.question = question
        self._unlimited = query
        self._limited: dict[frozenset[str], StoreQuery] = {}
        self._seeded: dict[str, StoreQuery] = {}
        self.query = self._without(frozenset())
        needed, scored = question.profile.evidence_needed, question.profile.evidence_scored
        blank = not question.text.strip()
        working = {n: s for n, s in engine.stores.items() if n not in engine.behind}
        self.observers = {n: store for n, store in working.items() if _reads(needed, store)}
        self.proposers = {
            name: store
            for name, store in working.items()
            if _reads(scored, store) or (blank and name in CATALOG_STORES)
        }

    def query_for(self, store: Store) -> StoreQuery:
        """The query, without memories of layers that may contribute nothing this store emits."""
        return self._without(barred_layers(self.engine, store))

    def seeded_query_for(self, store: Store, seeds: tuple[Seed, ...]) -> StoreQuery:
        """The query with seeds, one object for both phases: a graph keeps its walk by query."""
        if store.name not in self._seeded:
            self._seeded[store.name] = self.query_for(store).with_seeds(seeds)
        return self._seeded[store.name]

    def _without(self, layers: frozenset[str]) -> StoreQuery:
        if layers not in self._limited:
            self._limited[layers] = self.engine.admit(
                self._unlimited,
                filters=self.question.filters,
                include_expired=self.question.include_expired,
                without_layers=layers,
            )
        return self._limited[layers]

    def levels(self) -> Sequence[int] | None:
        """The distances to ask one by one, or None to ask for all at once."""
        if self.question.profile.scope.mode is ScopeBlendMode.OFF:
            return None
        return range(max(len(scope) for scope in self.question.scopes))

    def keys(self, ids: Sequence[str]) -> tuple[Key, ...]:
        """The memory behind each proposed id.

        Raises:
            MemoryContractError: One of them is not visible to this query.
        """
        found = self.engine.view.locate(self.query, ids)
        if any(key is None for key in found):
            raise MemoryContractError(
                "a store proposed a memory that this query may not see; stores must apply "
                "visibility and query.admitted before the limit"
            )
        return tuple(key for key in found if key is not None)

    def sees(self, identifier: str) -> bool:
        """Whether the query may see a memory of this id, now."""
        return self.engine.view.locate(self.query, [identifier])[0] is not None


def barred_layers(engine: Engine, store: Store) -> frozenset[str]:
    """Layers whose policy permits nothing that a store emits: it is not asked about them."""
    return frozenset(
        layer
        for layer, policy in engine.layers.items()
        if not any(_permits(policy, store, name) for name in store.emits)
    )


def _permits(policy: LayerPolicy, store: Store, evidence: str) -> bool:
    return policy.permits(evidence) or policy.permits(f"{store.name}.{evidence}")


def _reads(evidence: frozenset[str], store: Store) -> bool:
    return any(
        bare in store.emits and qualifier in ("", store.name)
        for qualifier, _, bare in (name.rpartition(".") for name in evidence)
    )


def _propose(
    asked: _Asked, failures: list[Failure], notes: list[str]
) -> Round[tuple[dict[str, Proposals], tuple[Seed, ...]]]:
    """Unseeded stores first; then the seeded ones, with the others' best as seeds."""
    seeded = {n: s for n, s in asked.proposers.items() if getattr(s, "seeded", False)}
    unseeded = {n: s for n, s in asked.proposers.items() if n not in seeded}
    proposals: dict[str, Proposals] = {}
    seeds = list(asked.question.seeds)

    outcomes = yield [
        _proposing(asked, store, asked.query_for(store), seeds_wanted=True)
        for store in unseeded.values()
    ]
    for name, proposed in _proposed(unseeded, outcomes, failures):
        proposals[name] = _known(asked, name, proposed.levels, notes)
        seeds += seeds_from(name, proposed.overall)
    given = tuple(seeds)
    outcomes = yield [
        _proposing(asked, store, asked.seeded_query_for(store, given))
        for store in seeded.values()
    ]
    for name, proposed in _proposed(seeded, outcomes, failures):
        proposals[name] = _known(asked, name, proposed.levels, notes)
    return proposals, given


def _proposing(
    asked: _Asked, store: Store, query: StoreQuery, *, seeds_wanted: bool = False
) -> Request:
    size, levels = asked.question.profile.pool.size, asked.levels()

    def call() -> _Proposed:
        if levels is None:
            everything = store.propose(query, max(size, SEEDS_PER_STORE if seeds_wanted else 0))
            return _Proposed({None: everything[:size]}, everything[:SEEDS_PER_STORE])
        per_level: dict[int | None, Sequence[str]] = {
            level: store.propose(query, size, level=level) for level in levels
        }
        overall = store.propose(query, SEEDS_PER_STORE) if seeds_wanted else ()
        return _Proposed(per_level, overall)

    return Request(store.name, "propose", call)


def _proposed(
    stores: Mapping[str, Store], outcomes: Sequence[Outcome], failures: list[Failure]
) -> list[tuple[str, _Proposed]]:
    found = []
    for name, outcome in zip(stores, outcomes, strict=True):
        if outcome.failure is not None:
            failures.append(outcome.failure)
        else:
            found.append((name, cast(_Proposed, outcome.value)))
    return found


def _known(asked: _Asked, name: str, proposals: Proposals, notes: list[str]) -> Proposals:
    """Proposals without ids the catalog does not hold at all: a store of the user's may lag."""
    everything = [identifier for ids in proposals.values() for identifier in ids]
    strangers = asked.engine.view.strangers(everything)
    if not strangers:
        return proposals
    notes.append(f"store {name!r} proposed ids that do not exist; they were left out")
    return {
        level: [identifier for identifier in ids if identifier not in strangers]
        for level, ids in proposals.items()
    }


def _observe(
    asked: _Asked,
    ids: tuple[str, ...],
    keys: tuple[Key, ...],
    seeds: tuple[Seed, ...],
    failures: list[Failure],
) -> Round[Candidates]:
    """Ask every store for its evidence on the whole union."""
    engine, question = asked.engine, asked.question
    layers = tuple(layer or "" for layer in engine.view.layers_of(asked.query, ids))
    wanted = frozenset(name.rpartition(".")[2] for name in question.profile.evidence_needed)
    positions = {
        name: _permitted_positions(engine, store, layers) for name, store in asked.observers.items()
    }
    outcomes = yield [
        _observing(asked, store, [ids[i] for i in positions[name]], seeds, wanted)
        for name, store in asked.observers.items()
    ]
    evidence: dict[str, list[EvidenceColumn]] = {name: [] for name in sorted(wanted)}
    for (name, store), outcome in zip(asked.observers.items(), outcomes, strict=True):
        if outcome.failure is not None:
            failures.append(outcome.failure)
        for emitted in store.emits:
            if emitted in wanted:
                column = _column(store, emitted, outcome, positions[name], len(ids))
                evidence[emitted].append(_masked(engine, store, column, emitted, layers))
    for name, kind in engine.behind.items():
        failures.append(Failure(name, "write", Reason.FAILED, kind))

    select = question.profile.select
    vectors = None
    if select.duplicate_penalty > 0 or select.diversity > 0:
        vectors = _vectors(engine, asked.query, ids)
    tokens = None
    if select.max_tokens is not None:
        texts = [record.text if record else "" for record in engine.view.records(keys)]
        tokens = np.array([question.count_tokens(text) for text in texts], np.int64)
    return Candidates(
        keys,
        np.array([asked.query.distance(key.scope) for key in keys], np.int64),
        layers,
        {name: tuple(columns) for name, columns in evidence.items()},
        group_equivalents(
            ids,
            [digest or 0 for digest in engine.view.digests(asked.query, ids)],
            engine.equivalents.pairs(asked.query, keys),
        ),
        vectors,
        tokens,
    )


def _observing(
    asked: _Asked, store: Store, ids: list[str], seeds: tuple[Seed, ...], wanted: frozenset[str]
) -> Request:
    if getattr(store, "seeded", False):
        query = asked.seeded_query_for(store, seeds)
    else:
        query = asked.query_for(store)
    if isinstance(store, GraphStore):
        return Request(store.name, "observe", partial(store.observe, query, ids, wanted=wanted))
    return Request(store.name, "observe", partial(store.observe, query, ids))


def _permitted_positions(engine: Engine, store: Store, layers: Sequence[str]) -> NDArray[np.int64]:
    """Candidates a store is asked about: nothing is read that a layer may not contribute."""
    barred = barred_layers(engine, store)
    if not barred:
        return np.arange(len(layers))
    return np.array([i for i, layer in enumerate(layers) if layer not in barred], np.int64)


def _column(
    store: Store, emitted: str, outcome: Outcome, positions: NDArray[np.int64], n: int
) -> EvidenceColumn:
    if outcome.failure is not None:
        return EvidenceColumn.absent(store.name, n, outcome.failure.reason)
    observation = cast(Observation, outcome.value)
    if emitted not in observation.columns:
        return EvidenceColumn.absent(store.name, n, Reason.NOT_EMITTED)
    given = np.asarray(observation.columns[emitted], np.float64)
    if given.shape != positions.shape:
        raise MemoryContractError(
            f"store {store.name!r}: expected {positions.size} values of {emitted!r}, "
            f"got {given.shape}"
        )
    column = EvidenceColumn.absent(store.name, n, Reason.NOT_PERMITTED)
    column.values[positions] = given
    column.reasons[positions] = observation.reason(emitted)
    return column


def _masked(
    engine: Engine, store: Store, column: EvidenceColumn, emitted: str, layers: Sequence[str]
) -> EvidenceColumn:
    forbidden = {
        layer
        for layer, policy in engine.layers.items()
        if not _permits(policy, store, emitted)
    }
    if forbidden:
        hidden = np.array([layer in forbidden for layer in layers], np.bool_)
        column.values[hidden] = np.nan
        column.reasons[hidden] = Reason.NOT_PERMITTED
    return column


def _vectors(engine: Engine, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.float32] | None:
    for store in engine.stores.values():
        if isinstance(store, VectorStore) and len(store):
            return store.vectors_of(query, ids)
    return None


def _serving(question: Question) -> Serving:
    profile = question.profile
    if profile.reranking != "relevance":
        return Serving("score", "baseline")
    if question.reranker is None:
        return Serving("score", "baseline: no reranker was given")
    return question.reranker(profile)

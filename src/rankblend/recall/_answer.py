"""From a question to an answer: propose, observe, rank, and what happened on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import cast

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend.errors import MemoryContractError
from rankblend.profiles import RankingProfile
from rankblend.recall._ask import Failure, Outcome, Request, Round, asked_by
from rankblend.recall._candidates import Candidates, EvidenceColumn, group_equivalents, read_column
from rankblend.recall._engine import CATALOG_STORES, Engine
from rankblend.recall._match import Recall, Shadow, Trace, matches_from
from rankblend.recall._pool import SEEDS_PER_STORE, Proposals, join_proposals, seeds_from
from rankblend.recall._question import Question, Serving
from rankblend.recall._rank import Ranking, rank_candidates
from rankblend.relevance import ScopeBlendMode
from rankblend.stores import NumberedIds, Reason, Seed, Store, StoreQuery
from rankblend.stores.catalog import Seen
from rankblend.stores.graph import GraphStore
from rankblend.stores.vectors import VectorStore


class Asked:
    """What the stores are asked: who is asked for what, and with which limits on what they see."""

    def __init__(self, engine: Engine, question: Question, query: StoreQuery) -> None:
        self.engine = engine
        self.question = question
        self._unlimited = query
        self._limited: dict[frozenset[str], StoreQuery] = {}
        self.seeded: dict[str, StoreQuery] = {}
        self.query = self._without(frozenset())
        observers, proposers = asked_stores(question.profile, engine.emits)
        working = {n: store for n, store in engine.stores.items() if n not in engine.behind}
        self.observers = {n: store for n, store in working.items() if n in observers}
        if question.blank:
            proposers = frozenset(CATALOG_STORES)
        self.proposers = {n: store for n, store in working.items() if n in proposers}

    def query_for(self, store: Store) -> StoreQuery:
        """The query, without memories of layers that may contribute nothing this store emits."""
        return self._without(self.engine.permissions.barred(store))

    def seeded_query_for(self, store: Store, seeds: tuple[Seed, ...]) -> StoreQuery:
        """The query with seeds, one object for both phases: a graph keeps its walk by query."""
        if store.name not in self.seeded:
            self.seeded[store.name] = self.query_for(store).with_seeds(seeds)
        return self.seeded[store.name]

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

    def known(
        self, proposals: Mapping[str, Proposals]
    ) -> tuple[Mapping[str, Proposals], dict[str, int]]:
        """What the stores propose; what one may not propose is an error, whatever else holds.

        A store of the user's answers a query "as of" a time from the present: what this query sees
        now and did not see then is left out.

        Returns:
            The proposals, and the serial of each memory among them.

        Raises:
            MemoryContractError: Something else than ids, or an id that is not visible to this query
                or unknown: the same words for both, so that neither tells that it exists.
        """
        lists = [(name, ids) for name, levels in proposals.items() for ids in levels.values()]
        if all(isinstance(ids, NumberedIds) for _, ids in lists):
            everything: Sequence[str] = NumberedIds.joined(ids for _, ids in lists)  # type: ignore[misc]
        else:
            everything = [i for name, ids in lists for i in _texts(name, ids)]
        serials = self.engine.view.serials_of(self.query, everything)
        serial_of = dict(zip(everything, serials.tolist(), strict=True))
        if serials.min(initial=0) >= 0:
            return proposals, serial_of
        known = {
            name: {level: self._without_late(name, ids, serial_of) for level, ids in levels.items()}
            for name, levels in proposals.items()
        }
        return known, serial_of

    def _without_late(
        self, store: str, ids: Sequence[str], serial_of: Mapping[str, int]
    ) -> Sequence[str]:
        missing = [identifier for identifier in ids if serial_of[identifier] < 0]
        if missing and self.engine.present is not None:
            query = evolve(self.query, admitted=None)
            now = self.engine.present.serials_of(query, missing)
            missing = [i for i, serial in zip(missing, now.tolist(), strict=True) if serial < 0]
        if missing:
            raise MemoryContractError(
                f"store {store!r} proposed a memory that is not visible to this query or unknown; "
                "a store applies visibility and query.admitted before the limit, and drops what "
                "was removed"
            )
        return [identifier for identifier in ids if serial_of[identifier] >= 0]

    def sees(self, identifier: str) -> bool:
        """Whether the query may see a memory of this id, now."""
        return bool(self.engine.view.serials_of(self.query, [identifier])[0] >= 0)


def _texts(store: str, ids: Sequence[object]) -> list[str]:
    texts = [each for each in ids if isinstance(each, str)]
    if len(texts) < len(ids):
        raise MemoryContractError(f"store {store!r}: expected ids as text from propose")
    return texts


@lru_cache(maxsize=256)
def asked_stores(
    profile: RankingProfile, emits: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the stores a profile has observe, and propose."""
    return (
        frozenset(name for name, given in emits if reads(profile.evidence_needed, name, given)),
        frozenset(name for name, given in emits if reads(profile.evidence_scored, name, given)),
    )


def reads(evidence: Iterable[str], store: str, emits: Sequence[str]) -> bool:
    """Whether a store gives any of this evidence, named ``cosine`` or ``store.cosine``.

    A profile asks a store to propose when its score reads it, and to observe when anything does.
    """
    return any(
        bare in emits and qualifier in ("", store)
        for qualifier, _, bare in (name.rpartition(".") for name in evidence)
    )


_ATTEMPTS = 4


@frozen(eq=False)
class _Proposed:
    levels: Proposals
    overall: Sequence[str]


def answer(engine: Engine, question: Question) -> Round[Recall]:
    """The recall as rounds of requests; see `rankblend.recall._ask`.

    When another process writes while it is going on, texts and decisions could differ, and it is
    done again; the last attempt stands, without what was erased meanwhile.
    """
    serving = _serving(question)  # before anything is locked: an admission may take its time
    for _ in range(_ATTEMPTS - 1):
        recall = yield from _attempt(engine, question, serving)
        if engine.view.is_current():
            return recall
        engine.refresh()
    return (yield from _attempt(engine, question, serving))


def _attempt(engine: Engine, question: Question, serving: Serving) -> Round[Recall]:
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
            wanted=_bare(question.profile.evidence_needed),
        )
        asked = Asked(engine, question, query)
        proposed, overall = yield from _propose(asked, failures)
        proposals, serial_of = asked.known(proposed)
        sources = join_proposals(proposals, question.profile.pool.max)
        serials = np.array([serial_of[identifier] for identifier in sources], np.int64)
        seen = engine.view.seen(asked.query, NumberedIds(sources, serials))
        candidates = yield from _observe(asked, seen, overall, failures)
        notes += _walk_notes(asked)
        ranking = rank_candidates(question.profile, candidates, top=question.top, node=serving.node)
        shadow = _shadow(question, candidates, ranking) if serving.shadow else None
        shown = ranking.rows[ranking.shown]
        records = engine.view.contents(seen.ids.serials[shown])
    trace = Trace(
        question.profile.hash,
        tuple(map(str, question.scopes)),
        question.reach.value,
        question.statistics.value,
        question.now,
        question.as_of,
        {
            name: len(set(chain.from_iterable(levels.values())))
            for name, levels in proposals.items()
        },
        len(sources),
        sources,
        tuple(dict.fromkeys(failures)),
        tuple(notes),
        serving.trace,
        serving.evidence,
        shadow,
    )
    return Recall(matches_from(ranking, records), question.profile, trace, ranking, asked.sees)


@lru_cache(maxsize=256)
def _bare(evidence: frozenset[str]) -> frozenset[str]:
    """Names of evidence without the stores they may name."""
    return frozenset(name.rpartition(".")[2] for name in evidence)


def _embed(question: Question, failures: list[Failure]) -> Round[NDArray[np.float32] | None]:
    if question.embed is None or question.blank:
        return None
    (outcome,) = yield [Request("embedder", "embed", partial(question.embed, question.text))]
    if outcome.failure is not None:
        failures.append(outcome.failure)
    return cast("NDArray[np.float32] | None", outcome.value)


def _propose(
    asked: Asked, failures: list[Failure]
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
        proposals[name] = proposed.levels
        seeds += seeds_from(name, proposed.overall)
    given = tuple(seeds)
    outcomes = yield [
        _proposing(asked, store, asked.seeded_query_for(store, given)) for store in seeded.values()
    ]
    for name, proposed in _proposed(seeded, outcomes, failures):
        proposals[name] = proposed.levels
    return proposals, given


def _proposing(
    asked: Asked, store: Store, query: StoreQuery, *, seeds_wanted: bool = False
) -> Request:
    size, levels = asked.question.profile.pool.size, asked.levels()

    def call() -> _Proposed:
        if levels is None:
            everything = store.propose(query, max(size, SEEDS_PER_STORE if seeds_wanted else 0))
            best = everything if len(everything) <= size else everything[:size]
            return _Proposed({None: best}, everything[:SEEDS_PER_STORE])
        per_level: dict[int | None, Sequence[str]] = {
            level: store.propose(query, size, level=level) for level in levels
        }
        overall = store.propose(query, SEEDS_PER_STORE) if seeds_wanted else ()
        return _Proposed(per_level, overall)

    return Request(store.name, "propose", asked_by(asked.engine.lock, call))


def _proposed(
    stores: Mapping[str, Store], outcomes: Sequence[Outcome], failures: list[Failure]
) -> list[tuple[str, _Proposed]]:
    found = []
    for name, outcome in zip(stores, outcomes, strict=True):
        if outcome.failure is not None:
            failures.append(outcome.failure)
        else:
            found.append((name, cast("_Proposed", outcome.value)))
    return found


def _observe(
    asked: Asked, seen: Seen, seeds: tuple[Seed, ...], failures: list[Failure]
) -> Round[Candidates]:
    """Ask every store for its evidence on the whole union."""
    engine, question, permissions = asked.engine, asked.question, asked.engine.permissions
    ids, layers, n = seen.ids, seen.layers, len(seen.ids)
    positions = {name: permissions.positions(s, layers) for name, s in asked.observers.items()}
    outcomes = yield [
        _observing(asked, store, ids if at is None else ids.take(at), seeds)
        for store, at in zip(asked.observers.values(), positions.values(), strict=True)
    ]
    evidence: dict[str, list[EvidenceColumn]] = {
        name: [] for name in sorted(asked.query.wanted or ())
    }
    for (name, store), outcome in zip(asked.observers.items(), outcomes, strict=True):
        if outcome.failure is not None:
            failures.append(outcome.failure)
        for emitted in asked.query.wants(store.emits):
            column = read_column(store, emitted, outcome, positions[name], n)
            evidence[emitted].append(permissions.masked(store, emitted, column, layers))
    for name, kind in engine.behind.items():
        failures.append(Failure(name, "write", Reason.FAILED, kind))

    select = question.profile.select
    vectors = None
    if select.duplicate_penalty > 0 or select.diversity > 0:
        vectors = _vectors(asked, ids)
    tokens = None
    if select.max_tokens is not None:
        records = engine.view.contents(ids.serials)
        texts = [record.text if record else "" for record in records]
        tokens = np.array([question.count_tokens(text) for text in texts], np.int64)
    verified = engine.equivalents.pairs(asked.query, seen.keys)
    return Candidates(
        seen.keys,
        seen.distances,
        layers,
        {name: tuple(columns) for name, columns in evidence.items()},
        group_equivalents(ids, seen.digests, verified),
        vectors,
        tokens,
        seen.digests,
        tuple(verified),
    )


def _walk_notes(asked: Asked) -> list[str]:
    """What cut a graph's walk short, beside its ordinary number of hops."""
    notes = []
    for name, query in asked.seeded.items():
        store = asked.engine.stores[name]
        if isinstance(store, GraphStore) and name in asked.observers:
            cuts = [cut for cut in store.trace(query)["capped"] if cut != "hops"]
            if cuts:
                notes.append(f"store {name!r}: the walk was cut by {' and '.join(cuts)}")
    return notes


def _observing(asked: Asked, store: Store, ids: list[str], seeds: tuple[Seed, ...]) -> Request:
    if getattr(store, "seeded", False):
        query = asked.seeded_query_for(store, seeds)
    else:
        query = asked.query_for(store)
    call = partial(store.observe, query, ids)
    return Request(store.name, "observe", asked_by(asked.engine.lock, call))


def _vectors(asked: Asked, ids: Sequence[str]) -> NDArray[np.float32] | None:
    for store in asked.engine.stores.values():
        if not isinstance(store, VectorStore) or store.name in asked.engine.behind:
            continue
        if store.dimension is not None:  # there are vectors, or were
            return store.vectors_of(asked.query_for(store), ids)
    return None


def _serving(question: Question) -> Serving:
    profile = question.profile
    if profile.reranking != "relevance":
        return Serving("score", "baseline")
    if question.reranker is None:
        return Serving("score", "baseline: no reranker was given")
    if question.blank:  # candidates come from the catalog alone, by time, and keep that order
        return Serving("score", "baseline: nothing was asked")
    return question.reranker(profile)


def _shadow(question: Question, candidates: Candidates, served: Ranking) -> Shadow:
    reranked = rank_candidates(question.profile, candidates, top=question.top, node="rerank")
    return Shadow(served.shown_ids, reranked.shown_ids)

"""Inquiry the candidates of a question with all evidence, from the stores of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain
from typing import cast

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend.errors import MemoryContractError
from rankblend.profiles import RankingProfile
from rankblend.recall._ask import Failure, Outcome, Request, Rounds
from rankblend.recall._candidates import Candidates, EvidenceColumn, group_equivalents
from rankblend.recall._engine import CATALOG_STORES, Engine, is_immediate
from rankblend.recall._observe import read_column
from rankblend.recall._propose import (
    SEEDS_PER_STORE,
    Proposals,
    Sources,
    StoreProposals,
    join_proposals,
    propose,
    seeds_from,
)
from rankblend.recall._question import Question
from rankblend.recall._result import Visibility
from rankblend.relevance import ScopeBlendMode
from rankblend.stores import (
    NumberedIds,
    Reason,
    Record,
    Seed,
    Store,
    StoreQuery,
    SupportsVectors,
)
from rankblend.stores.catalog import Seen


@frozen(eq=False)
class Gathered:
    """What an engine gathers for one question: all that ranking, trace and explanations need.

    An engine may answer whole phases itself (another process, a database); this is what it owes.

    Attributes:
        candidates: The pool with all evidence.
        sources: Who proposed whom.
        proposed: Store → how many ids it proposed in all.
        failures: Stores that could not answer.
        notes: Further remarks for the trace.
        visibility: Says of any other memory whether the question may see it.
        contents: Positions in the pool, int64, shape (k,) → the memories there, None for one that
            was erased a moment ago.
    """

    candidates: Candidates
    sources: Sources
    proposed: Mapping[str, int]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    visibility: Visibility
    contents: Callable[[NDArray[np.int64]], Sequence[Record | None]]


class Moved(Exception):  # noqa: N818 - no error
    """Somebody wrote while a store was waited for."""


class Inquiry:
    """One question to the stores of this process: who is asked for what, and what came of it.

    Args:
        engine: Whose memories and stores.
        question: The question.
        rounds: How the stores are asked.
        first: Whether no other came before it.
        last: Whether it stands, whatever is written meanwhile; else `Moved` is raised.
    """

    def __init__(
        self, engine: Engine, question: Question, rounds: Rounds, *, first: bool, last: bool = False
    ) -> None:
        self.engine, self.question, self.rounds = engine, question, rounds
        self.first, self.last = first, last
        self.failures: list[Failure] = []
        self.seeds: tuple[Seed, ...] = ()

    @contextmanager
    def gathered(self) -> Iterator[Gathered]:
        """What was found; nobody writes to it in the block."""
        engine, question = self.engine, self.question
        vector = self.embed()
        with engine.lock.reading() as hold:
            self.hold, self.generation = hold, engine.generation
            self.limits = _Limits(engine, question, vector)
            proposals, serial_of = self.known(self.propose())
            sources = join_proposals(proposals, question.profile.pool.max)
            serials = np.array([serial_of[identifier] for identifier in sources], np.int64)
            seen = engine.view.seen(self.limits.query, NumberedIds(sources, serials))
            candidates = self.observe(seen)
            yield Gathered(
                candidates,
                sources,
                {
                    name: len(set(chain.from_iterable(levels.values())))
                    for name, levels in proposals.items()
                },
                tuple(dict.fromkeys(self.failures)),
                self.walk_notes(),
                Visibility(engine.view, self.limits.query),
                lambda positions: engine.view.contents(seen.ids.serials[positions]),
            )

    def embed(self) -> NDArray[np.float32] | None:
        """The vector of the question; None where there is none."""
        question = self.question
        if question.embed is None or question.blank:
            return None
        request = Request("embedder", "embed", partial(question.embed, question.text))
        (outcome,) = self.rounds.ask([request])
        if outcome.failure is not None:
            self.failures.append(outcome.failure)
        return cast("NDArray[np.float32] | None", outcome.value)

    def propose(self) -> dict[str, Proposals]:
        """Unseeded stores first; then the seeded ones, with the others' best as seeds."""
        question, proposals = self.question, dict[str, Proposals]()
        proposers, seeds = self.limits.proposers, list(question.seeds)
        for seeded in (False, True):
            stores = [s for s in proposers.values() if _is_seeded(s) is seeded]
            requests = [
                self.request(
                    store,
                    "propose",
                    partial(
                        propose,
                        store,
                        self.limits.query_for(store, self.seeds),
                        question.profile.pool.size,
                        levels=self.limits.levels,
                        seeds=0 if seeded else SEEDS_PER_STORE,
                    ),
                )
                for store in stores
            ]
            for store, outcome in zip(stores, self.ask(requests), strict=True):
                if outcome.failure is not None:
                    self.failures.append(outcome.failure)
                    continue
                found = cast("StoreProposals", outcome.value)
                proposals[store.name] = found.levels
                if not seeded:
                    seeds += seeds_from(store.name, found.overall)
            self.seeds = tuple(seeds)
        return proposals

    def known(
        self, proposals: Mapping[str, Proposals]
    ) -> tuple[Mapping[str, Proposals], dict[str, int]]:
        """What the stores propose; what one may not propose is an error, whatever else holds.

        A store of the user's answers a query "as of" a time from the present: what this query sees
        now and did not see then is left out. So is what was erased since it was asked.

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
        serials = self.engine.view.serials_of(self.limits.query, everything)
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
            query = evolve(self.limits.query, admitted=None)
            now = self.engine.present.serials_of(query, missing)
            missing = [i for i, serial in zip(missing, now.tolist(), strict=True) if serial < 0]
        moved = not self.first or self.engine.generation != self.generation
        if missing and not moved:
            raise MemoryContractError(
                f"store {store!r} proposed a memory that is not visible to this query or unknown; "
                "a store applies visibility and query.admitted before the limit, and drops what "
                "was removed"
            )
        return [identifier for identifier in ids if serial_of[identifier] >= 0]

    def observe(self, seen: Seen) -> Candidates:
        """Ask every store for its evidence on the whole union."""
        engine, question, limits = self.engine, self.question, self.limits
        permissions = engine.permissions
        ids, layers, n = seen.ids, seen.layers, len(seen.ids)
        stores = limits.observers.values()
        places = [permissions.positions(store, layers) for store in stores]
        requests = [
            self.request(
                store,
                "observe",
                partial(
                    store.observe,
                    limits.query_for(store, self.seeds),
                    ids if at is None else ids.take(at),
                ),
                about=tuple(ids),
            )
            for store, at in zip(stores, places, strict=True)
        ]
        evidence: dict[str, list[EvidenceColumn]] = {
            name: [] for name in sorted(limits.query.wanted or ())
        }
        for store, at, outcome in zip(stores, places, self.ask(requests), strict=True):
            if outcome.failure is not None:
                self.failures.append(outcome.failure)
            for emitted in limits.query.wants(store.emits):
                column = read_column(store, emitted, outcome, at, n)
                evidence[emitted].append(permissions.masked(store, emitted, column, layers))
        for name, kind in engine.behind.items():
            self.failures.append(Failure(name, "write", Reason.FAILED, kind))

        select = question.profile.select
        vectors = None
        if select.duplicate_penalty > 0 or select.diversity > 0:
            vectors = self.vectors(ids)
        tokens = None
        if select.max_tokens is not None:
            records = engine.view.contents(ids.serials)
            texts = [record.text if record else "" for record in records]
            tokens = np.array([question.count_tokens(text) for text in texts], np.int64)
        verified = engine.equivalents.pairs(limits.query, seen.keys)
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

    def vectors(self, ids: Sequence[str]) -> NDArray[np.float32] | None:
        """float32, shape (n, d): the vectors of some ids, NaN rows where there is none.

        Of the first store that has any; None: no store has, or it failed.
        """
        for name, store in self.engine.stores.items():
            if name in self.engine.behind or not isinstance(store, SupportsVectors):
                continue
            if store.dimension is None:
                continue
            call = partial(store.vectors_of, self.limits.query_for(store), ids)
            (outcome,) = self.ask([self.request(store, "vectors", call, tuple(ids))])
            failure, given = outcome.failure, cast("NDArray[np.float32]", outcome.value)
            if failure is None and np.shape(given)[:1] != (len(ids),):
                failure = Failure(name, "vectors", Reason.FAILED, "InvalidArrayError")
            if failure is None:
                return given
            self.failures.append(failure)
        return None

    def walk_notes(self) -> tuple[str, ...]:
        """What cut a graph's walk short, beside its ordinary number of hops."""
        notes = []
        for name, store in self.engine.walkers():
            if name in self.limits.observers and name in self.limits.seeded:
                traced = store.trace(self.limits.seeded[name])
                cuts = [cut for cut in traced["capped"] if cut != "hops"]
                if cuts:
                    notes.append(f"store {name!r}: the walk was cut by {' and '.join(cuts)}")
        return tuple(notes)

    def request(
        self, store: Store, during: str, call: Callable[[], object], about: Sequence[str] = ()
    ) -> Request:
        """A call of a store, which may be one that is shown a write while others are asked."""
        # What somebody slow said stands when it is all done again, where the same is asked.
        once = (store.name, during, self.seeds if _is_seeded(store) else (), about)
        immediate = is_immediate(store)
        marked = self.engine.asked(store.name, call)
        return Request(store.name, during, marked, immediate, None if immediate else once)

    def ask(self, requests: Sequence[Request]) -> list[Outcome]:
        """One round; without the lock while somebody is waited for.

        Raises:
            Moved: Somebody wrote meanwhile, and there is another attempt.
        """
        outcomes = self.rounds.ask(requests, self.hold)
        if self.engine.generation != self.generation and not self.last:
            raise Moved
        return outcomes


class _Limits:
    """Who is asked for what, and with which limits on what they see."""

    def __init__(
        self, engine: Engine, question: Question, vector: NDArray[np.float32] | None
    ) -> None:
        self._engine, self._question = engine, question
        self._unlimited = StoreQuery(
            question.text,
            question.scopes,
            now=question.now,
            vector=vector,
            reach=question.reach,
            statistics=question.statistics,
            preferred=question.prefer,
            wanted=_bare(question.profile.evidence_needed),
        )
        self._limited: dict[frozenset[str], StoreQuery] = {}
        self.seeded: dict[str, StoreQuery] = {}
        self.query = self._without(frozenset())
        observers, proposers = _stores_of(question.profile, engine.emits)
        if question.blank:
            proposers = frozenset(CATALOG_STORES)
        working = {n: store for n, store in engine.stores.items() if n not in engine.behind}
        self.observers = {n: store for n, store in working.items() if n in observers}
        self.proposers = {n: store for n, store in working.items() if n in proposers}

    @property
    def levels(self) -> Sequence[int] | None:
        """The distances to ask one by one, or None to ask for all at once."""
        if self._question.profile.scope.mode is ScopeBlendMode.OFF:
            return None
        return range(max(len(scope) for scope in self._question.scopes))

    def query_for(self, store: Store, seeds: tuple[Seed, ...] = ()) -> StoreQuery:
        """The query, without memories of layers that may contribute nothing this store emits.

        With seeds it is one object for both phases: a graph keeps its walk by query.
        """
        query = self._without(self._engine.permissions.barred(store))
        if not _is_seeded(store):
            return query
        if store.name not in self.seeded:
            self.seeded[store.name] = query.with_seeds(seeds)
        return self.seeded[store.name]

    def _without(self, layers: frozenset[str]) -> StoreQuery:
        if layers not in self._limited:
            self._limited[layers] = self._engine.admit(
                self._unlimited,
                filters=self._question.filters,
                include_expired=self._question.include_expired,
                without_layers=layers,
            )
        return self._limited[layers]


def _is_seeded(store: Store) -> bool:
    return bool(getattr(store, "seeded", False))


def _texts(store: str, ids: Sequence[object]) -> list[str]:
    texts = [each for each in ids if isinstance(each, str)]
    if len(texts) < len(ids):
        raise MemoryContractError(f"store {store!r}: expected ids as text from propose")
    return texts


@lru_cache(maxsize=256)
def _bare(evidence: frozenset[str]) -> frozenset[str]:
    """Names of evidence without the stores they may name."""
    return frozenset(name.rpartition(".")[2] for name in evidence)


@lru_cache(maxsize=256)
def _stores_of(
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

"""The reading half of `Memory`: recall, and single memories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend import checks
from rankblend.embedders import Embedder
from rankblend.errors import (
    InvalidArgumentError,
    MemoryNotFoundError,
    StoreClosedError,
    StoreError,
    StoreFailedError,
)
from rankblend.limits import LIMITS
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import _arguments as arguments
from rankblend.recall._answer import answer
from rankblend.recall._arguments import Problems
from rankblend.recall._ask import away, drive
from rankblend.recall._embedding import EMBEDDER, embed_query
from rankblend.recall._engine import Engine
from rankblend.recall._live import LiveEngine, Snapshots
from rankblend.recall._match import Recall, StoredMemory
from rankblend.recall._question import Question, Reranker
from rankblend.relevance import Scope
from rankblend.stores import Key, Seed, Statistics, Store

if TYPE_CHECKING:
    import networkx as nx

ScopeLike = Scope | str
ProfileLike = RankingProfile | str | os.PathLike[str]


class MemoryReader:
    """What can be asked of an open memory; see `Memory`."""

    def __init__(
        self,
        engine: LiveEngine,
        *,
        embedder: Embedder | None,
        profile: RankingProfile,
        reranker: Reranker | None,
        clock: Callable[[], datetime],
        store_timeout: float | None,
        statistics: Statistics,
        allow_subtree: bool,
        count_tokens: Callable[[str], int],
    ) -> None:
        self._engine = engine
        self._embedder = embedder
        self._profile = profile
        self._reranker = reranker
        self._clock = clock
        self._store_timeout = store_timeout
        self._statistics = statistics
        self._allow_subtree = allow_subtree
        self._count_tokens = count_tokens
        self._snapshots = Snapshots(engine)
        self._closed = False

    def recall(
        self,
        query: str,
        *,
        scope: ScopeLike | Iterable[ScopeLike],
        reach: str = "ancestors",
        top: int | None = None,
        profile: ProfileLike | None = None,
        weights: Mapping[str, float] | None = None,
        filters: Mapping[str, object] | None = None,
        prefer: Mapping[str, object] | None = None,
        seeds: Sequence[str | Seed] = (),
        as_of: datetime | str | None = None,
        now: datetime | str | None = None,
        include_expired: bool = False,
        reinforce: bool = False,
        strict: bool = False,
    ) -> Recall:
        """What a scope may see that is worth most for a query, best first.

        Args:
            query: The question. Blank is a cold start: memories come from activity and salience.
            scope: One scope or several; the union of what they see is visible.
            reach: ``subtree`` also shows memories stored below the scope, where permitted.
            top: At most this many; None for the profile's number; 0 returns nothing.
            profile: Another recipe for this call: a name, a path or a profile.
            weights: Weights to change for this call: of the score (``similarity``) or of a node
                below it (``words.keyword``).
            filters: Hard conditions, ``{field: value | [values] | {"gte": …}}`` over metadata,
                layer and times.
            prefer: The same, soft: the satisfied share is the ``structured`` evidence.
            seeds: Ids of memories or names of entities for the graph to start from.
            as_of: Answer as of this valid time: revisions valid then, ages measured to then.
            now: The present; None for the clock.
            include_expired: Show expired memories too.
            reinforce: Count one use, at the present, of each returned memory stored exactly at a
                query's scope.
            strict: Raise when a store fails instead of going on without its evidence.

        Returns:
            Matches with scores and contributions; explains itself; says when it is degraded.

        Raises:
            InvalidArgumentError, InvalidScopeError, UnknownNameError, ProfileError: The arguments.
            StoreFailedError, StoreTimeoutError: With ``strict`` only.
            MemoryContractError: A store proposed what this query may not see; always.
        """
        ask = partial(
            self._question, query, scope, reach, top, profile, weights, filters, prefer, seeds,
            as_of, now, include_expired=include_expired,
        )  # fmt: skip
        return self._answered(ask, reinforce=reinforce, strict=strict)

    async def arecall(
        self,
        query: str,
        *,
        scope: ScopeLike | Iterable[ScopeLike],
        reach: str = "ancestors",
        top: int | None = None,
        profile: ProfileLike | None = None,
        weights: Mapping[str, float] | None = None,
        filters: Mapping[str, object] | None = None,
        prefer: Mapping[str, object] | None = None,
        seeds: Sequence[str | Seed] = (),
        as_of: datetime | str | None = None,
        now: datetime | str | None = None,
        include_expired: bool = False,
        reinforce: bool = False,
        strict: bool = False,
    ) -> Recall:
        """`recall` without blocking the event loop: stores side by side, the same answer."""
        ask = partial(
            self._question, query, scope, reach, top, profile, weights, filters, prefer, seeds,
            as_of, now, include_expired=include_expired,
        )  # fmt: skip
        return await away(partial(self._answered, ask, reinforce=reinforce, strict=strict))

    def get(self, id: str, *, scope: ScopeLike) -> StoredMemory:
        """One memory by id: one stored at exactly this scope, else what a recall from it may show.

        Raises:
            MemoryNotFoundError: Unknown or not visible from here.
        """
        engine = self._open_engine()
        problems = Problems()
        if not isinstance(id, str):
            problems.add(f"id: expected text, got {type(id).__name__}")
        where = arguments.read_scope(problems, "scope", scope)
        problems.raise_if_any()
        engine.catch_up()
        if where is not None:
            key: Key | None = Key(where, id)
            if key is not None and not engine.holds(key):
                key = engine.catalog.locate(engine.sight(where, self._now(None)), [id])[0]
            record = engine.catalog.get(key) if key is not None else None
            if record is not None:
                return StoredMemory.of(record)
        raise MemoryNotFoundError([id], str(where))

    def to_networkx(self, *, scope: ScopeLike) -> nx.MultiDiGraph:
        """The graph of links that a scope sees, for any networkx algorithm; a copy.

        Edges carry ``kind``, ``weight``, ``verified``, ``scope``, and ``memory`` where a memory
        owns them; nodes that are memories carry ``memory=True``.
        """
        engine, where = self._open_engine(), Scope.of(scope)
        engine.refresh()
        with engine.lock.reading():
            for graph in engine.graphs():
                return graph.to_networkx(engine.sight(where, self._now(None)))
        raise InvalidArgumentError("to_networkx: this memory was opened without a graph store")

    def __len__(self) -> int:
        """How many memories are stored, at all scopes."""
        engine = self._open_engine()
        engine.catch_up()
        return len(engine.catalog)

    def __bool__(self) -> bool:
        """True, also while it is empty: ``if memory`` asks whether there is one."""
        return True

    @property
    def profile(self) -> RankingProfile:
        """The recipe used when a recall names none."""
        return self._profile

    @property
    def stores(self) -> Mapping[str, Store]:
        """The stores that are asked, by name, in the order in which their proposals become seeds."""
        engine = self._open_engine()
        engine.refresh()
        return MappingProxyType(engine.stores)

    @property
    def embedder(self) -> str | None:
        """Identity of the embedder the memories were written with, ``name/dimension``, if any."""
        return self._open_engine().catalog.get_meta(EMBEDDER)

    @property
    def statistics(self) -> str:
        """Over which memories keyword statistics are taken."""
        return self._statistics.value

    def _answered(
        self,
        ask: Callable[[], tuple[Engine, Question]],
        abandoned: Future[None] | None = None,
        *,
        reinforce: bool,
        strict: bool,
    ) -> Recall:
        engine, question = ask()
        if strict:
            for name in engine.behind:
                raise StoreFailedError(name, "write")
        try:
            result = drive(
                answer(engine, question),
                timeout=self._store_timeout,
                strict=strict,
                abandoned=abandoned,
            )
        except Exception:
            raise
        except BaseException:
            # Ctrl-C may have stopped a store while it was putting its rows in order.
            self._engine.distrust()
            self._snapshots.clear()
            raise
        return self._reinforced(result, question) if reinforce else result

    def _open_engine(self) -> LiveEngine:
        if self._closed:
            raise StoreClosedError("this memory is closed; open it again with Memory.open")
        return self._engine

    def _now(self, given: float | None) -> float:
        if given is not None:
            return given
        now: object = self._clock()
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise InvalidArgumentError("clock: expected it to return an aware datetime")
        return now.timestamp()

    def _question(
        self,
        query: str,
        scope: object,
        reach: str,
        top: int | None,
        profile: ProfileLike | None,
        weights: Mapping[str, float] | None,
        filters: Mapping[str, object] | None,
        prefer: Mapping[str, object] | None,
        seeds: Sequence[str | Seed],
        as_of: datetime | str | None,
        now: datetime | str | None,
        *,
        include_expired: bool,
    ) -> tuple[Engine, Question]:
        live = self._open_engine()
        problems = Problems()
        text = arguments.read_query(problems, query)
        scopes = arguments.read_scopes(problems, scope)
        reached = arguments.read_reach(problems, reach, allowed=self._allow_subtree)
        numbers = checks.Problems()
        LIMITS["shown"].hold(numbers, "top", top, optional=True)
        problems.found += numbers.lines
        hard = arguments.read_filters(problems, "filters", filters)
        arguments.read_filters(problems, "prefer", prefer)
        starts = arguments.read_seeds(problems, seeds)
        valid_at = arguments.read_time(problems, "as_of", as_of)
        asked_at = arguments.read_time(problems, "now", now)
        if weights is not None and not isinstance(weights, Mapping):
            problems.add("weights: expected a mapping from signals to numbers")
        problems.raise_if_any()
        recipe = self._profile if profile is None else load_profile(profile)
        if weights:
            recipe = recipe.with_weights(weights)
        live.refresh()
        engine: Engine = live
        if valid_at is not None:
            engine = self._snapshots.at(valid_at, {scope.root for scope in scopes})
        present = self._now(asked_at)
        question = Question(
            text,
            scopes,
            recipe,
            reached,
            self._statistics,
            valid_at if valid_at is not None else present,
            present,
            valid_at,
            top,
            hard,
            dict(prefer or {}),
            starts,
            bool(include_expired),
            self._embed_query if self._embedder is not None else None,
            self._reranker,
            self._count_tokens,
        )
        return engine, question

    def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        catalog, embedder = self._engine.catalog, self._embedder
        return None if embedder is None else embed_query(catalog, embedder, text)

    def _reinforced(self, result: Recall, question: Question) -> Recall:
        """Count the uses; a result that was found is not lost because that could not be written."""
        owned = [
            Key(match.memory.scope, match.memory.id)
            for match in result
            if match.memory.scope in question.scopes
        ]
        try:
            if owned:
                self._engine.reinforce(owned, question.present)
        except StoreError as error:
            note = f"uses were not counted: {error}"
            trace = evolve(result.trace, notes=(*result.trace.notes, note))
            return evolve(result, trace=trace)
        return result

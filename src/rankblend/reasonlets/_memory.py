"""`ReasonletMemory`: remember, judge, recall, review and keep procedures."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankblend.embedders import Embedder, identity, name_problem
from rankblend.errors import (
    ReasonletAdapterError,
    ReasonletError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    code_of,
    raise_invalid,
)
from rankblend.limits import LIMITS
from rankblend.reasonlets._advisors import (
    RECALL,
    Advice,
    CaptureGuard,
    IntentExtractor,
    RunEvaluator,
)
from rankblend.reasonlets._evidence import select, told_of
from rankblend.reasonlets._options import ReasonletOptions
from rankblend.reasonlets._portable import read_entries, write_entries
from rankblend.recall import system_clock
from rankblend.relevance import Scope
from rankblend.stores.procedures import (
    MAX_INTENT,
    MAX_REFERENCE,
    Candidate,
    Capture,
    Checks,
    Draft,
    Erased,
    Feedback,
    InMemoryReasonletStore,
    Outcome,
    Provenance,
    Reasonlet,
    ReasonletMatch,
    ReasonletStatistics,
    ReasonletStore,
    Receipt,
    Recorded,
    Run,
    Search,
    Status,
    VerdictSource,
    named_after,
)

T = TypeVar("T")
ScopeLike = Scope | str


class ReasonletMemory:
    """Procedures that answered questions, ranked by similarity, success rate and freshness.

    Every call is a coroutine; `SyncReasonletMemory` has the same calls without. Errors carry a
    ``code`` and surface when the call is awaited; none of them, and nothing else that is emitted,
    contains a question, an answer, an argument value or another exception's message.

    Args:
        embedder: Texts → vectors, a function or an ``async`` callable.
        store: Keeps the procedures; None: in memory. Closed with the memory.
        options: How to rank, wait and review.
        guard: Sees every capture first and may block it.
        extractor: Names the intent of a question that comes with none.
        evaluator: Judges runs that bring an answer.
        clock: Returns the present as an aware datetime; None: the system's clock.

    Raises:
        ReasonletValidationError: All problems with the arguments at once.
    """

    def __init__(
        self,
        embedder: Embedder | Callable[..., object],
        store: ReasonletStore | None = None,
        *,
        options: ReasonletOptions | None = None,
        guard: CaptureGuard | None = None,
        extractor: IntentExtractor | None = None,
        evaluator: RunEvaluator | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        store = InMemoryReasonletStore() if store is None else store
        options = ReasonletOptions() if options is None else options
        checks = Checks()
        checks.callable("embedder", embedder)
        unnamed = name_problem(embedder)
        if unnamed is not None and not isinstance(store, InMemoryReasonletStore):
            checks.add("embedder", unnamed)
        if not isinstance(store, ReasonletStore):
            checks.add("store", f"expected a ReasonletStore, got {type(store).__name__}")
        checks.instance("options", options, ReasonletOptions)
        parts = {"guard": guard, "extractor": extractor, "evaluator": evaluator, "clock": clock}
        for name, part in parts.items():
            if part is not None:
                checks.callable(name, part)
        checks.raise_if_any()
        self.store = store
        self._clock = clock or system_clock
        self.options = options
        self._advice = Advice(embedder, guard, extractor, evaluator, options)

    async def remember(self, capture: Capture) -> Receipt:
        """Remember an answered question, and the run that answered it.

        Without a parent it becomes a new procedure; with a parent of another graph a new version of
        it; with a parent of the same graph only a run of the parent.

        Raises:
            ReasonletValidationError: Everything that is wrong with the capture.
            CaptureBlockedError: The guard blocked it.
            ReasonletUnavailableError: Guard, extractor, embedder or store is down.
            ReasonletNotFoundError: The parent is not in the scope.
            ReasonletAdapterError: A dependency broke its contract.
            Nothing is stored in any of these cases.
        """
        if not isinstance(capture, Capture):
            raise_invalid([f"capture: expected a Capture, got {type(capture).__name__}"])
        raise_invalid(capture.validate())
        now = self._now()
        await self._advice.admit(capture)
        intent = await self._advice.intent(capture)
        vector = await self._advice.embed(capture.question, await self._dimension())
        verdict = await self._advice.judge(capture.question, capture.answer)
        pending = self.options.require_review
        recorded = await stored(
            self.store.remember(
                Draft(
                    capture.scope,
                    capture.question,
                    capture.graph,
                    intent,
                    named_after(capture.name, capture.question),
                    capture.provenance,
                    capture.parent_id,
                    vector,
                    Status.PENDING_REVIEW if pending else Status.ACTIVE,
                    Run(now, capture.outcome, capture.provenance, verdict),
                    self._identity(vector),
                )
            )
        )
        return _receipt(recorded, capture.outcome, verdict)

    async def recall(
        self,
        question: str,
        *,
        scope: ScopeLike,
        intent: str | None = None,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> list[ReasonletMatch]:
        """The procedures most worth trying for a question, best first.

        Args:
            question: Not blank, at most 32,000 code points.
            scope: Exactly this scope, unless the options blend in those above.
            intent: Only procedures of this intent; None: of a confidently extracted one, else any.
            top: At most this many, 1 to 50; None: as the options say.
            min_similarity: In [0, 1]; None: as the options say.

        Returns:
            An empty list when nothing is similar enough: there is no known procedure.

        Raises:
            ReasonletValidationError: Everything that is wrong with the arguments.
            ReasonletUnavailableError: The embedder or the store is down.
            ReasonletAdapterError: The extractor or the store broke its contract.
        """
        with RECALL.observe() as observed:
            checks = Checks()
            checks.question("question", question)
            checks.text("intent", intent, limit=MAX_INTENT, optional=True)
            LIMITS["procedures"].hold(checks, "top", top, optional=True)
            min_similarity = checks.unit("min_similarity", min_similarity, optional=True)
            where = _read(checks, scope)
            now = self._now()
            wanted = await self._advice.filter(question, intent)
            vector = await self._advice.embed(question, await self._dimension())
            profile = self.options.profile(min_similarity)
            top = self.options.top if top is None else int(top)
            limit = min(max(profile.pool.size, top), profile.pool.max)
            blended = profile.scope.mode.value != "off"
            search = Search(where, vector, limit, wanted, blended, self._identity(vector))
            found = await stored(self.store.search(search))
            ranking = select(profile, search, found, now=now, top=top)
            observed.counts["candidates"] = len(found)
            shown = [(int(row), found[int(ranking.rows[row])]) for row in ranking.shown]
            matches = [
                ReasonletMatch(await stored(_defined(each)), *told_of(ranking, row, each))
                for row, each in shown
            ]
            observed.counts["returned"] = len(matches)
            return matches

    async def record_execution(
        self,
        scope: ScopeLike,
        id: str,
        outcome: Outcome,
        provenance: Provenance,
        *,
        question: str | None = None,
        answer: str | None = None,
    ) -> Receipt:
        """Record one more run of a procedure.

        Args:
            scope: The procedure's.
            id: The procedure.
            outcome: How it went, as the agent sees it.
            provenance: Where the run comes from.
            question: For the evaluator, when there is one; it is not stored.
            answer: For the evaluator, too; never stored.

        Raises:
            ReasonletValidationError: Everything that is wrong with the arguments.
            ReasonletNotFoundError: It is not in the scope.
            ReasonletUnavailableError: The store is down.
            ReasonletAdapterError: The evaluator broke its contract.
        """
        checks = Checks()
        checks.id("id", id)
        checks.part("outcome", outcome, Outcome)
        checks.part("provenance", provenance, Provenance)
        checks.question("question", question, optional=True)
        if answer is not None and not isinstance(answer, str):
            checks.add("answer", f"expected text or None, got {type(answer).__name__}")
        where = _read(checks, scope)
        now = self._now()
        verdict = await self._advice.judge(question, answer)
        run = Run(now, outcome, provenance, verdict)
        return _receipt(await stored(self.store.record(where, id, run)), outcome, verdict)

    async def record_feedback(
        self,
        scope: ScopeLike,
        execution: str,
        utility: float,
        correctness: float,
        reusability: float,
        worked: bool | None = None,
    ) -> None:
        """Record what a person says about a run; a verdict counts before all others.

        Args:
            scope: The procedure's.
            execution: The run's id, from its receipt.
            utility: In [0, 1]; stored, not ranked by, like the next two.
            correctness: In [0, 1].
            reusability: In [0, 1].
            worked: The verdict; None keeps an earlier one.

        Raises:
            ReasonletValidationError: Everything that is wrong with the arguments.
            ReasonletNotFoundError: No such run in the scope, or it was pruned.
        """
        feedback = Feedback(utility, correctness, reusability, worked)
        checks = Checks()
        checks.id("execution", execution)
        checks.extend("", feedback.validate())
        where = _read(checks, scope)
        await stored(self.store.feedback(where, execution, feedback))

    async def list_pending(
        self, scope: ScopeLike, limit: int = 20, *, after: str | None = None
    ) -> list[Reasonlet]:
        """Procedures that wait for review, by id, each with its own track record.

        Args:
            scope: Exactly this scope.
            limit: 1 to 100.
            after: The last id of the page before.
        """
        checks = Checks()
        LIMITS["page"].hold(checks, "limit", limit)
        checks.id("after", after, optional=True)
        where = _read(checks, scope)
        return list(await stored(self.store.pending(where, int(limit), after)))

    async def approve(self, scope: ScopeLike, id: str) -> None:
        """Make a procedure recallable from the next query on; an active one stays as it is.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
        """
        await stored(self.store.approve(_place(scope, id=id), id))

    async def reject(self, scope: ScopeLike, id: str) -> None:
        """Delete a procedure that waits for review, with its runs and their feedback.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
            ReasonletConflictError: It is active, or has versions below it.
        """
        await stored(self.store.reject(_place(scope, id=id), id))

    async def get(self, scope: ScopeLike, id: str) -> Reasonlet:
        """One procedure of a scope, whatever its status.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
        """
        where = _place(scope, id=id)
        (found,) = await stored(self.store.get([id]))
        if found is None or found.scope != where:
            raise ReasonletNotFoundError("reasonlet")
        return found

    async def lineage(self, scope: ScopeLike, id: str) -> list[Reasonlet]:
        """All versions of the procedure a version belongs to, by version number.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
        """
        return list(await stored(self.store.family(_place(scope, id=id), id)))

    async def statistics(self, scope: ScopeLike | None = None) -> ReasonletStatistics:
        """Counts over exactly this scope; None: over the whole store."""
        where = None if scope is None else _place(scope)
        return await stored(self.store.statistics(where))

    async def prune(
        self,
        *,
        scope: ScopeLike | None = None,
        older_than: timedelta | float | None = None,
        keep: int | None = None,
    ) -> int:
        """Drop runs by age, by number, or by both; they stay in all counters.

        Args:
            scope: Exactly this scope; None: all.
            older_than: Runs before now minus this (a duration, or seconds) go.
            keep: How many of each procedure's newest runs stay, ≥ 0.

        Returns:
            How many runs went.
        """
        checks = Checks()
        if older_than is None and keep is None:
            checks.add("older_than, keep", "expected at least one of them")
        age = checks.duration("older_than", older_than, optional=True)
        LIMITS["keep"].hold(checks, "keep", keep, optional=True)
        if scope is None:
            checks.raise_if_any()
        where = None if scope is None else _read(checks, scope)
        before = None if age is None else self._now() - age.total_seconds()
        return await stored(
            self.store.prune(where, before=before, keep=None if keep is None else int(keep))
        )

    async def erase_subject(
        self, scope: ScopeLike, subject_id: str, *, purge: bool = False
    ) -> Erased:
        """Erase a person from a scope: their procedures, and their runs of others' procedures.

        Doing it again finds nothing. Runs that were pruned before are anonymous counts.

        Args:
            scope: Exactly this scope.
            subject_id: As in the provenance.
            purge: Also clean what the file has freed; takes as long as rewriting it.
        """
        checks = Checks()
        checks.text("subject_id", subject_id, limit=MAX_REFERENCE)
        checks.flag("purge", purge)
        where = _read(checks, scope)
        return await stored(self.store.erase_subject(where, subject_id, purge=purge))

    async def rebuild_judged_counters(self) -> int:
        """Count judged runs anew from the runs still stored; returns how many procedures differed.

        Runs that were pruned then count as the agent's word only.
        """
        return await stored(self.store.rebuild_judged_counters())

    async def export(self, path: str | os.PathLike[str]) -> int:
        """Write everything as JSON lines; returns how many procedures.

        The file appears under its name only when it is complete.
        """
        entries = await stored(self.store.dump())
        return await asyncio.to_thread(write_entries, path, entries)

    async def import_(self, path: str | os.PathLike[str]) -> int:
        """Add what `export` wrote, in one transaction; returns how many procedures.

        Raises:
            ReasonletValidationError: Every problem with the number of its line; nothing is stored.
            ReasonletConflictError: Some of it is stored already; nothing is stored.
        """
        entries = await asyncio.to_thread(read_entries, path)
        await stored(self.store.load(entries))
        return len(entries)

    async def aclose(self) -> None:
        """Close the store; closing twice is harmless."""
        await self.store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _now(self) -> float:
        checks = Checks()
        now = checks.clock(self._clock)
        checks.raise_if_any()
        return now

    async def _dimension(self) -> int | None:
        return await stored(self.store.dimension())

    def _identity(self, vector: NDArray[np.float32]) -> str:
        return identity(self._advice.embedder, dimension=len(vector))


async def stored(call: Awaitable[T]) -> T:
    """What a store answers; its errors pass with their code, any other exception means it is down.

    Raises:
        ReasonletError, ReasonletAdapterError: As raised.
        ReasonletUnavailableError: It raised something else, of which only the type is told.
    """
    try:
        return await call
    except (ReasonletError, ReasonletAdapterError):
        raise
    except Exception as error:
        if code_of(error) is not None:
            raise
        kind = type(error).__name__
    raise ReasonletUnavailableError("store", kind)


def _place(scope: object, **ids: object) -> Scope:
    """The scope of a call, whose only other arguments are ids; see `_read`."""
    checks = Checks()
    for name, value in ids.items():
        checks.id(name, value)
    return _read(checks, scope)


def _read(checks: Checks, scope: object) -> Scope:
    """The scope of a call whose other arguments have been checked.

    Raises:
        ReasonletValidationError: Everything that is wrong with all of them.
    """
    every = Checks()
    read = every.scope("scope", scope)
    every.extend("", checks.lines)
    every.raise_if_any()
    assert read is not None
    return read


async def _defined(candidate: Candidate) -> Reasonlet:
    """What a candidate stands for."""
    made: object = candidate.definition()
    if not isinstance(made, Reasonlet) or made.id != candidate.id:
        raise ReasonletAdapterError("store", "definition: expected the Reasonlet of that id")
    return made


def _receipt(recorded: Recorded, outcome: Outcome, verdict: bool | None) -> Receipt:
    return Receipt(
        recorded.id,
        recorded.version,
        recorded.status,
        recorded.produced,
        recorded.execution,
        VerdictSource.AGENT if verdict is None else VerdictSource.EVALUATOR,
        outcome.success if verdict is None else verdict,
    )

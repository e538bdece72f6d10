"""`ReasonletMemory`: remember procedures, recall the best, learn from runs and people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rankblend.embedders import Embedder
from rankblend.reasonlets.advice import Advice
from rankblend.reasonlets.capture import Capture, Outcome, Provenance, named_after
from rankblend.reasonlets.errors import (
    ReasonletAdapterError,
    raise_invalid,
)
from rankblend.reasonlets.keeping import KeptReasonlets, ScopeLike, stored
from rankblend.reasonlets.options import ReasonletOptions
from rankblend.reasonlets.protocols import CaptureGuard, IntentExtractor, RunEvaluator
from rankblend.reasonlets.reasonlet import (
    Feedback,
    Reasonlet,
    ReasonletMatch,
    Receipt,
    Status,
    VerdictSource,
)
from rankblend.reasonlets.requests import (
    read_feedback,
    read_question,
    read_run,
)
from rankblend.reasonlets.selector import select, told_of
from rankblend.reasonlets.store.in_memory import InMemoryReasonletStore
from rankblend.reasonlets.store.protocol import (
    Candidate,
    Draft,
    ReasonletStore,
    Recorded,
    Run,
    Search,
)
from rankblend.reasonlets.telemetry import RECALL
from rankblend.recall.opening import system_clock

__all__ = ["ReasonletMemory"]


class ReasonletMemory(KeptReasonlets):
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
        callables: dict[str, object] = {
            "guard": guard,
            "extractor": extractor,
            "evaluator": evaluator,
            "clock": clock,
        }
        problems = [
            f"{name}: expected a callable, got {type(value).__name__}"
            for name, value in callables.items()
            if value is not None and not callable(value)
        ]
        if not callable(embedder):
            problems.append(f"embedder: expected a callable, got {type(embedder).__name__}")
        if not isinstance(store, ReasonletStore):
            problems.append(f"store: expected a ReasonletStore, got {type(store).__name__}")
        if not isinstance(options, ReasonletOptions):
            problems.append(f"options: expected ReasonletOptions, got {type(options).__name__}")
        raise_invalid(problems)
        super().__init__(store, clock or system_clock)
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
            where = read_question(question, scope, intent, top, min_similarity)
            now = self._now()
            wanted = await self._advice.filter(question, intent)
            vector = await self._advice.embed(question, await self._dimension())
            profile = self.options.profile(min_similarity)
            top = self.options.top if top is None else top
            limit = min(max(profile.pool.size, top), profile.pool.max)
            blended = profile.scope.mode.value != "off"
            search = Search(where, vector, limit, wanted, ancestors=blended)
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
        where = read_run(scope, id, outcome, provenance, question, answer)
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
        where = read_feedback(scope, execution, feedback)
        await stored(self.store.feedback(where, execution, feedback))

    async def _dimension(self) -> int | None:
        return await stored(self.store.dimension())


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

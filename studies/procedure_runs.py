"""Real runs of an agent replayed into a procedural memory: remembered, run again, judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from attrs import define, evolve, field, frozen

from rankblend.chat import CaptureDetails, NoToolCallsError, transcript_to_capture
from rankblend.embedders import Embedder
from rankblend.experiment.datasets import TaskRun
from rankblend.experiment.results import Results
from rankblend.reasonlets import (
    Capture,
    InMemoryReasonletStore,
    Outcome,
    Provenance,
    ReasonletMemory,
    ReasonletOptions,
    Receipt,
)
from studies.procedure_arms import FLOORLESS, SIMILARITY_ONLY, Asked, measured, ranked

__all__ = ["Replayed", "capture_of", "replayed"]

SCOPE = "dataset:taubench-airline"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_BETWEEN = timedelta(minutes=10)
_RATE_ONLY = ReasonletOptions(
    similarity_weight=0.6, success_rate_weight=0.4, freshness_weight=0.0, min_similarity=0.0
)
BEFORE: Mapping[str, ReasonletOptions] = {
    "similarity only": SIMILARITY_ONLY,
    "before any verdict": FLOORLESS,
}
AFTER: Mapping[str, ReasonletOptions] = {
    "after the verdicts": FLOORLESS,
    "after the verdicts, without freshness": _RATE_ONLY,
}


@frozen(eq=False)
class Replayed:
    """What came of replaying all runs but one trial, for each trial in turn.

    Attributes:
        results: Every arm on every held-out run that succeeded.
        produced: What the remembered runs became, over all folds.
        skipped: Training runs that hold no procedure, over all folds.
        unanswerable: Successful held-out runs whose way had not been seen before.
    """

    results: Results
    produced: Mapping[str, int]
    skipped: int
    unanswerable: int


async def replayed(
    runs: Sequence[TaskRun], embedder: Embedder, *, instructions: bool = False
) -> Replayed:
    """Learn from the runs of all trials but one, then ask for the successful runs of that one.

    Args:
        runs: By trial, then by task.
        embedder: Of questions.
        instructions: A run's question is what the customer was told to want, the same in every
            trial, instead of the first thing the customer said.
    """
    asked: list[Asked] = []
    produced: Counter[str] = Counter()
    skipped = unanswerable = 0
    for trial in sorted({run.trial for run in runs}):
        learned = _Learned(embedder)
        for run in runs:
            if run.trial != trial:
                capture = capture_of(run, instructions=instructions)
                if capture is None:
                    skipped += 1
                else:
                    await learned.remember(capture, run)
        produced.update(str(receipt.produced) for receipt, _ in learned.receipts)
        wanted = []
        for run in runs:
            capture = capture_of(run, instructions=instructions)
            if run.trial == trial and run.success and capture is not None:
                wanted.append((run, capture, await learned.following(capture)))
        unanswerable += sum(not relevant for _, _, relevant in wanted)
        rankings = [await learned.rankings(capture, BEFORE) for _, capture, _ in wanted]
        await learned.judge()
        for (run, capture, relevant), before in zip(wanted, rankings, strict=True):
            if relevant:
                after = await learned.rankings(capture, AFTER)
                name = f"{run.task}, trial {run.trial}"
                asked.append(Asked(name, run.task, relevant, {**before, **after}))
    return Replayed(measured(asked), produced, skipped, unanswerable)


def capture_of(run: TaskRun, *, instructions: bool = False) -> Capture | None:
    """A whole run as one capture by the rules for transcripts; None where it holds no procedure.

    What the customer says after the first message belongs to the way, not to the question.
    """
    said = [message for message in run.messages if message["role"] == "user"]
    question = {"role": "user", "content": run.instruction} if instructions else said[0]
    rest = [message for message in run.messages if message["role"] in ("assistant", "tool")]
    # The agent does not know how it went; it takes what it did for a success.
    details = CaptureDetails(
        SCOPE, Provenance("gpt-4o", run_id=f"{run.task}/{run.trial}"), Outcome(success=True)
    )
    try:
        return transcript_to_capture([question, *rest], details)
    except NoToolCallsError:
        return None


@define(eq=False)
class _Learned:
    """A memory that is being taught, with a clock of its own."""

    embedder: Embedder
    store: InMemoryReasonletStore = field(factory=InMemoryReasonletStore)
    receipts: list[tuple[Receipt, TaskRun]] = field(factory=list)
    now: datetime = _BEGIN

    @property
    def memory(self) -> ReasonletMemory:
        return ReasonletMemory(self.embedder, self.store, clock=lambda: self.now)

    async def remember(self, capture: Capture, run: TaskRun) -> None:
        """As a chat pipeline does: the procedure that was offered is the parent."""
        offered = await self.memory.recall(capture.question, scope=SCOPE, top=1)
        parent = offered[0].reasonlet.id if offered else None
        receipt = await self.memory.remember(evolve(capture, parent_id=parent))
        self.receipts.append((receipt, run))
        self.now += _BETWEEN

    async def judge(self) -> None:
        """The environment's verdict on every run."""
        for receipt, run in self.receipts:
            mark = float(run.success)
            await self.memory.record_feedback(
                SCOPE, receipt.execution, utility=mark, correctness=mark, reusability=mark,
                worked=run.success,
            )  # fmt: skip

    async def following(self, capture: Capture) -> dict[str, float]:
        """The procedures that go the way of a capture."""
        there = await self.store.dump()
        return {
            entry.reasonlet.id: 1.0
            for entry in there
            if entry.reasonlet.graph.is_same_procedure(capture.graph)
        }

    async def rankings(
        self, capture: Capture, arms: Mapping[str, ReasonletOptions]
    ) -> dict[str, list[str]]:
        """Ids by arm, best first."""
        found = {}
        for name, options in arms.items():
            matches = await ranked(
                self.store, self.embedder, capture.question, SCOPE, options,
                clock=lambda: self.now,
            )  # fmt: skip
            found[name] = [match.reasonlet.id for match in matches]
        return found

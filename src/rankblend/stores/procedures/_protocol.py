"""The contract between a procedural memory and what keeps its procedures.

A store keeps procedures and their runs, finds the nearest ones, and moves counters together with
what they count. It never embeds, judges, ranks or reads the clock: everything it needs is in the
call. Each call that writes is one transaction: all of it happened, or, when it raises, nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores.procedures._capture import Outcome, Provenance
from rankblend.stores.procedures._graph import Graph
from rankblend.stores.procedures._reasonlet import (
    Erased,
    Feedback,
    Produced,
    Reasonlet,
    ReasonletStatistics,
    Status,
)


@frozen
class Counts:
    """Runs of a procedure: all, those that worked, those judged, those judged to have worked."""

    runs: int = 0
    successes: int = 0
    judged_runs: int = 0
    judged_successes: int = 0

    @property
    def row(self) -> tuple[int, int, int, int]:
        """All four, in this order; several times as fast as `attrs.astuple`."""
        return self.runs, self.successes, self.judged_runs, self.judged_successes


def is_sound(counts: object) -> bool:
    """Whether counts can be: whole, and no part greater than its whole."""
    if type(counts) is not Counts:
        return False
    runs, successes, judged, judged_successes = counts.row
    if not type(runs) is type(successes) is type(judged) is type(judged_successes) is int:
        return False
    return 0 <= judged_successes <= successes and 0 <= judged - judged_successes <= runs - successes


LAYER = "procedure"
"""Of memories that stand for procedures."""


@frozen
class Run:
    """One run as it is recorded.

    Attributes:
        at: When, in seconds since the epoch (UTC).
        outcome: The agent's own account.
        provenance: Where it comes from.
        evaluator: An evaluator's verdict, or None.
    """

    at: float
    outcome: Outcome
    provenance: Provenance
    evaluator: bool | None = None


@frozen(eq=False)
class Draft:
    """A capture with everything resolved: checked, named, embedded, judged.

    Attributes:
        scope, question, graph, intent, name, provenance, parent_id: As in a capture.
        vector: float32, shape (d,), unit length: of the question.
        status: Of what it creates; it never changes the status of a procedure that is there.
        run: The run it records.
        embedder: Identity of what made the vector, ``name/dimension``; None: nobody says.
    """

    scope: Scope
    question: str = field(repr=False)
    graph: Graph = field(repr=False)
    intent: str
    name: str = field(repr=False)
    provenance: Provenance
    parent_id: str | None
    vector: NDArray[np.float32] = field(repr=False)
    status: Status
    run: Run
    embedder: str | None = None


@frozen
class Recorded:
    """Where a run went.

    Attributes:
        id, version, status: Of the procedure.
        produced: What the capture became.
        execution: Id of the run.
    """

    id: str
    version: str
    status: Status
    produced: Produced
    execution: str


@frozen(eq=False)
class Search:
    """What is looked for among the active procedures.

    Attributes:
        scope: Exactly this scope.
        vector: float32, shape (d,), unit length.
        limit: ≥ 1.
        intent: Only procedures of this intent; None: of any.
        ancestors: Also those stored at the scopes above.
        embedder: Identity of what made the vector; None: nobody says.
    """

    scope: Scope
    vector: NDArray[np.float32]
    limit: int
    intent: str | None = None
    ancestors: bool = False
    embedder: str | None = None


@frozen
class Candidate:
    """An active procedure with what ranking reads.

    Attributes:
        id, scope: Which one.
        similarity: Cosine of the questions, in [−1, 1]; NaN where no question was asked.
        counts: Its own runs.
        parent: The parent's runs, whatever its status; None for a root.
        last_run: Seconds since the epoch.
        definition: Makes the procedure as it was at that moment; called for what is returned only.
    """

    id: str
    scope: Scope
    similarity: float
    counts: Counts
    parent: Counts | None
    last_run: float
    definition: Callable[[], Reasonlet] = field(eq=False, repr=False)


@frozen
class StoredRun:
    """A run with its feedback, as it is moved between stores.

    Attributes:
        id: The execution's.
        run: As recorded.
        feedback: The scores given last, and the person's verdict in effect; None without any.
    """

    id: str
    run: Run
    feedback: Feedback | None = None


@frozen(eq=False)
class Entry:
    """One procedure as it is moved between stores.

    Attributes:
        reasonlet: Its definition; the metrics are told by a dump, and counted anew by a load.
        vector: float32, shape (d,), unit length.
        pruned: What the runs that are no longer stored count.
        pruned_last_run, pruned_last_success: Times of the latest of them, seconds since the epoch.
        runs: Those still stored, in the order of their ids.
        embedder: Identity of what made the vector, ``name/dimension``; None: nobody knows.
    """

    reasonlet: Reasonlet
    vector: NDArray[np.float32] = field(repr=False)
    pruned: Counts
    pruned_last_run: float | None
    pruned_last_success: float | None
    runs: tuple[StoredRun, ...]
    embedder: str | None = None


@runtime_checkable
class ReasonletStore(Protocol):
    """What keeps procedures.

    Errors carry a ``code`` (`rankblend.errors`): ``not_found`` and ``conflict`` as the methods say,
    ``unavailable`` when the engine fails, and when vectors are written or sought that another
    embedder made than those that are stored. Their text holds no stored value and nothing of the
    engine's own messages.
    """

    async def dimension(self) -> int | None:
        """Length of the stored vectors; None while there is none."""
        ...

    async def remember(self, draft: Draft) -> Recorded:
        """Keep a procedure and its first run, or a run.

        No parent: a new procedure 1.0, the first of its family. A parent with the same graph: a run
        of the parent. A parent with another graph: a new version with the next minor number of the
        family, also when several processes remember at once.

        Raises:
            ReasonletNotFoundError: ``parent`` is not in the scope.
        """
        ...

    async def record(self, scope: Scope, id: str, run: Run) -> Recorded:
        """Keep one more run of a procedure.

        Raises:
            ReasonletNotFoundError: ``reasonlet`` is not in the scope.
        """
        ...

    async def feedback(self, scope: Scope, execution: str, feedback: Feedback) -> None:
        """Keep what a person says about a run, and move the counters with the verdict.

        Raises:
            ReasonletNotFoundError: ``execution`` is not in the scope (any more).
        """
        ...

    async def search(self, search: Search) -> Sequence[Candidate]:
        """The nearest active procedures: similarity descending, then id; what is asked for only.

        Sees every write that was acknowledged before the call, by whichever process.
        """
        ...

    async def lookup(self, ids: Sequence[str]) -> Sequence[Candidate | None]:
        """The active procedures with these ids, in any scope; None for what is not there."""
        ...

    async def get(self, ids: Sequence[str]) -> Sequence[Reasonlet | None]:
        """Procedures by id, of any status and scope; None for what is not there."""
        ...

    async def family(self, scope: Scope, id: str) -> Sequence[Reasonlet]:
        """All versions of the procedure a version belongs to, by version number.

        Raises:
            ReasonletNotFoundError: ``reasonlet`` is not in the scope.
        """
        ...

    async def pending(self, scope: Scope, limit: int, after: str | None) -> Sequence[Reasonlet]:
        """Procedures that wait for review, by id, at most ``limit``, those after ``after``."""
        ...

    async def approve(self, scope: Scope, id: str) -> None:
        """Make a procedure active; one that is stays as it is.

        Raises:
            ReasonletNotFoundError: ``reasonlet`` is not in the scope.
        """
        ...

    async def reject(self, scope: Scope, id: str) -> None:
        """Delete a procedure that waits for review, with its runs and their feedback.

        Raises:
            ReasonletNotFoundError: ``reasonlet`` is not in the scope.
            ReasonletConflictError: It is ``active``, or ``has versions`` below it.
        """
        ...

    async def prune(self, scope: Scope | None, *, before: float | None, keep: int | None) -> int:
        """Drop runs that are older, or beyond the newest few of their procedure; counters stay.

        Args:
            scope: Exactly this scope; None: all.
            before: Seconds since the epoch: earlier runs go; None: no limit.
            keep: ≥ 0: how many of each procedure's newest runs stay; None: no limit.

        Returns:
            How many runs went.
        """
        ...

    async def erase_subject(self, scope: Scope, subject_id: str, *, purge: bool) -> Erased:
        """Erase a person from a scope: their procedures, and their runs of others'.

        Counters move back with the runs. Versions of an erased parent become roots, and
        a family whose first procedure goes is called after the oldest left. What has no run
        left counts its creation as its last run.

        Args:
            scope: Exactly this scope.
            subject_id: Whom.
            purge: Also leave no copy behind in what the engine has freed.
        """
        ...

    async def rebuild_judged_counters(self) -> int:
        """Count the judged runs anew from the runs still stored; returns how many rows differed.

        Pruned runs then count as the agent's word only.
        """
        ...

    async def statistics(self, scope: Scope | None) -> ReasonletStatistics:
        """Counts over exactly this scope; None: over all."""
        ...

    async def dump(self) -> Sequence[Entry]:
        """Everything, by id, as of one moment."""
        ...

    async def load(self, entries: Sequence[Entry]) -> None:
        """Add what `dump` gave, ids and numbers included; all of it, or nothing.

        Raises:
            ReasonletConflictError: An id or a version is ``already stored``.
            ReasonletNotFoundError: A ``parent`` is neither stored nor among the entries.
        """
        ...

    async def aclose(self) -> None:
        """Release what the store holds; closing twice is harmless."""
        ...

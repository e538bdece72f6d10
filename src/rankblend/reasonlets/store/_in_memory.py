"""Procedures in memory: the reference for every other store of procedures."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from attrs import define, evolve, field

from rankblend.reasonlets._capture import Provenance
from rankblend.reasonlets._errors import (
    ReasonletConflictError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
)
from rankblend.reasonlets._identifiers import next_id
from rankblend.reasonlets._reasonlet import (
    Erased,
    Feedback,
    Metrics,
    Produced,
    Reasonlet,
    ReasonletStatistics,
    Status,
)
from rankblend.reasonlets._verdicts import count_runs, verdict_of, with_feedback
from rankblend.reasonlets.store._index import ActiveIndex, Indexed
from rankblend.reasonlets.store._moving import as_time, check_dimension, check_entries, latest
from rankblend.reasonlets.store._protocol import (
    NO_RUNS,
    Candidate,
    Counts,
    Draft,
    Entry,
    Recorded,
    Run,
    Search,
    StoredRun,
)
from rankblend.relevance import Scope


@define(eq=False)
class Kept:
    """A procedure; its metrics are never kept, always counted."""

    entry: Entry
    serial: int
    runs: dict[str, StoredRun] = field(factory=dict)

    @property
    def definition(self) -> Reasonlet:
        """The procedure; its own metrics are those it was made with."""
        return self.entry.reasonlet

    @property
    def counts(self) -> Counts:
        """Its runs, pruned ones included."""
        return count_runs(self.runs.values(), self.entry.pruned)

    @property
    def last_run(self) -> float:
        """Seconds since the epoch; its creation while there was no run."""
        times = (stored.run.at for stored in self.runs.values())
        last = latest(self.entry.pruned_last_run, *times)
        return self.definition.created.timestamp() if last is None else last

    @property
    def last_success(self) -> float | None:
        """Seconds since the epoch, or None."""
        worked = (s.run.at for s in self.runs.values() if verdict_of(s).success)
        return latest(self.entry.pruned_last_success, *worked)

    @property
    def reasonlet(self) -> Reasonlet:
        """The procedure with its metrics as they are now."""
        counts, success = self.counts, self.last_success
        metrics = Metrics(
            counts.runs, counts.successes, counts.judged_runs, counts.judged_successes,
            as_time(self.last_run), None if success is None else as_time(success),
        )  # fmt: skip
        return evolve(self.definition, metrics=metrics)

    def change(self, **changes: object) -> None:
        """Change fields of the definition."""
        self.entry = evolve(self.entry, reasonlet=evolve(self.definition, **changes))  # type: ignore[arg-type]


def minor_of(kept: Kept) -> int:
    """The second part of the version number."""
    return int(kept.definition.version.partition(".")[2])


def is_of(provenance: Provenance, subject_id: str) -> bool:
    """Whether something comes from a person."""
    return provenance.subject_id == subject_id


def count_feedback(runs: Iterable[StoredRun]) -> int:
    """How many runs have feedback."""
    return sum(stored.feedback is not None for stored in runs)


def prune(kept: Kept, before: float | None, keep: int | None, owner: dict[str, str]) -> int:
    """Drop old runs of a procedure, here and from their owner's table; counters stay."""
    newest_first = sorted(kept.runs.values(), key=lambda s: (s.run.at, s.id), reverse=True)
    doomed = [
        stored
        for place, stored in enumerate(newest_first)
        if (before is not None and stored.run.at < before) or (keep is not None and place >= keep)
    ]
    worked = (stored.run.at for stored in doomed if verdict_of(stored).success)
    kept.entry = evolve(
        kept.entry,
        pruned=count_runs(doomed, kept.entry.pruned),
        pruned_last_run=latest(kept.entry.pruned_last_run, *(s.run.at for s in doomed)),
        pruned_last_success=latest(kept.entry.pruned_last_success, *worked),
    )
    for stored in doomed:
        del kept.runs[stored.id], owner[stored.id]
    return len(doomed)


class InMemoryReasonletStore:
    """A `ReasonletStore` for tests and small uses; nothing outlives the process.

    It may be used from several threads and event loops.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kept: dict[str, Kept] = {}
        self._owner: dict[str, str] = {}  # execution → procedure
        self._index = ActiveIndex()
        self._dimension: int | None = None
        self._serial = 0
        self._last_execution: str | None = None
        self._closed = False

    async def dimension(self) -> int | None:
        """Length of the stored vectors; None while there is none."""
        return self._dimension

    async def remember(self, draft: Draft) -> Recorded:
        """Keep a procedure and its first run, or a run; see `ReasonletStore.remember`."""
        with self._open():
            check_dimension(self._dimension, draft.vector)
            parent = None
            if draft.parent_id is not None:
                parent = self._in_scope(draft.scope, draft.parent_id, "parent")
                if parent.definition.graph.digest == draft.graph.digest:
                    return self._run(parent, draft.run, Produced.EXECUTION)
            produced = Produced.CREATED if parent is None else Produced.VERSION
            identifier = next_id(draft.run.at, max(self._kept, default=None))
            family = identifier if parent is None else parent.definition.family
            minor = 0 if parent is None else 1 + max(map(minor_of, self._versions(family)))
            made = Reasonlet(
                identifier, draft.scope, draft.question, draft.graph, draft.intent, draft.name,
                f"1.{minor}", family, draft.parent_id, draft.provenance, draft.status,
                as_time(draft.run.at), Metrics(0, 0, 0, 0, as_time(draft.run.at)),
            )  # fmt: skip
            kept = self._keep(Entry(made, draft.vector, NO_RUNS, None, None, ()))
            return self._run(kept, draft.run, produced)

    async def record(self, scope: Scope, id: str, run: Run) -> Recorded:
        """Keep one more run of a procedure."""
        with self._open():
            return self._run(self._in_scope(scope, id), run, Produced.EXECUTION)

    async def feedback(self, scope: Scope, execution: str, feedback: Feedback) -> None:
        """Keep what a person says about a run."""
        with self._open():
            kept = self._kept.get(self._owner.get(execution, ""))
            if kept is None or kept.definition.scope != scope:
                raise ReasonletNotFoundError("execution")
            kept.runs[execution] = with_feedback(kept.runs[execution], feedback)

    async def search(self, search: Search) -> list[Candidate]:
        """The nearest active procedures."""
        with self._open():
            return [
                self._candidate(self._kept[identifier], cosine)
                for identifier, cosine in self._index.nearest(search)
            ]

    async def lookup(self, ids: Sequence[str]) -> list[Candidate | None]:
        """The active procedures with these ids, in any scope."""
        with self._open():
            found = [self._kept.get(identifier) for identifier in ids]
            return [
                None
                if kept is None or kept.definition.status is not Status.ACTIVE
                else self._candidate(kept, float("nan"))
                for kept in found
            ]

    async def get(self, ids: Sequence[str]) -> list[Reasonlet | None]:
        """Procedures by id, of any status and scope."""
        with self._open():
            found = [self._kept.get(identifier) for identifier in ids]
            return [None if kept is None else kept.reasonlet for kept in found]

    async def family(self, scope: Scope, id: str) -> list[Reasonlet]:
        """All versions of the procedure a version belongs to, by version number."""
        with self._open():
            family = self._in_scope(scope, id).definition.family
            return [kept.reasonlet for kept in sorted(self._versions(family), key=minor_of)]

    async def pending(self, scope: Scope, limit: int, after: str | None) -> list[Reasonlet]:
        """Procedures that wait for review, by id."""
        with self._open():
            waiting = sorted(
                kept.definition.id
                for kept in self._within(scope)
                if kept.definition.status is Status.PENDING_REVIEW
                and (after is None or kept.definition.id > after)
            )
            return [self._kept[identifier].reasonlet for identifier in waiting[:limit]]

    async def approve(self, scope: Scope, id: str) -> None:
        """Make a procedure active."""
        with self._open():
            kept = self._in_scope(scope, id)
            if kept.definition.status is not Status.ACTIVE:
                kept.change(status=Status.ACTIVE)
                self._show(kept)

    async def reject(self, scope: Scope, id: str) -> None:
        """Delete a procedure that waits for review."""
        with self._open():
            kept = self._in_scope(scope, id)
            if kept.definition.status is Status.ACTIVE:
                raise ReasonletConflictError("active", "only what waits for review is rejected")
            if any(other.definition.parent_id == id for other in self._kept.values()):
                raise ReasonletConflictError(
                    "has versions", "approve or reject the versions below it first"
                )
            self._delete(kept)

    async def prune(self, scope: Scope | None, *, before: float | None, keep: int | None) -> int:
        """Drop old runs; counters stay."""
        with self._open():
            return sum(prune(kept, before, keep, self._owner) for kept in self._within(scope))

    async def erase_subject(self, scope: Scope, subject_id: str, *, purge: bool) -> Erased:
        """Erase a person from a scope; nothing is ever freed without being gone, purge or not."""
        del purge
        with self._open():
            own = [k for k in self._within(scope) if is_of(k.definition.provenance, subject_id)]
            gone = {kept.definition.id for kept in own}
            executions = sum(len(kept.runs) for kept in own)
            feedback = sum(count_feedback(kept.runs.values()) for kept in own)
            for kept in own:
                self._delete(kept)
            for family in {kept.definition.family for kept in own} - self._kept.keys():
                left = list(self._versions(family))
                oldest = min((kept.definition.id for kept in left), default=family)
                for kept in left:
                    kept.change(family=oldest)
            detached = [k for k in self._within(scope) if k.definition.parent_id in gone]
            for kept in detached:
                kept.change(parent_id=None)
            for kept in self._within(scope):
                theirs = [s for s in kept.runs.values() if is_of(s.run.provenance, subject_id)]
                executions, feedback = (
                    executions + len(theirs), feedback + count_feedback(theirs),
                )  # fmt: skip
                for stored in theirs:
                    del kept.runs[stored.id], self._owner[stored.id]
            return Erased(len(gone), executions, feedback, len(detached))

    async def rebuild_judged_counters(self) -> int:
        """Count the judged runs anew from the runs still stored."""
        with self._open():
            changed = 0
            for kept in self._kept.values():
                pruned = kept.entry.pruned
                if pruned.judged_runs or pruned.judged_successes:
                    unjudged = evolve(pruned, judged_runs=0, judged_successes=0)
                    kept.entry = evolve(kept.entry, pruned=unjudged)
                    changed += 1
            return changed

    async def statistics(self, scope: Scope | None) -> ReasonletStatistics:
        """Counts over exactly this scope; None: over all."""
        with self._open():
            kept = self._within(scope)
            counts = [each.counts for each in kept]
            active = sum(each.definition.status is Status.ACTIVE for each in kept)
            return ReasonletStatistics(
                active,
                len(kept) - active,
                len({each.definition.family for each in kept}),
                sum(each.runs for each in counts),
                sum(each.successes for each in counts),
                sum(each.judged_runs for each in counts),
                sum(each.judged_successes for each in counts),
                sum(len(each.runs) for each in kept),
            )

    async def dump(self) -> list[Entry]:
        """Everything, by id."""
        with self._open():
            return [
                evolve(
                    kept.entry,
                    reasonlet=kept.reasonlet,
                    runs=tuple(run for _, run in sorted(kept.runs.items())),
                )
                for _, kept in sorted(self._kept.items())
            ]

    async def load(self, entries: Sequence[Entry]) -> None:
        """Add what `dump` gave; all of it, or nothing."""
        with self._open():
            there = [kept.definition for kept in self._kept.values()]
            check_entries(
                entries,
                self._dimension,
                {each.id: (each.scope, each.family) for each in there},
                {(each.family, each.version) for each in there},
                set(self._owner),
            )
            for entry in entries:
                kept = self._keep(evolve(entry, runs=()))
                for stored in entry.runs:
                    self._put_run(kept, stored)

    async def aclose(self) -> None:
        """Forget everything; closing twice is harmless."""
        with self._lock:
            self._closed = True
            self._kept, self._owner, self._index = {}, {}, ActiveIndex()

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise ReasonletUnavailableError("store", "closed")
            yield

    def _in_scope(self, scope: Scope, id: str, what: str = "reasonlet") -> Kept:
        kept = self._kept.get(id)
        if kept is None or kept.definition.scope != scope:
            raise ReasonletNotFoundError(what)
        return kept

    def _within(self, scope: Scope | None) -> list[Kept]:
        return [k for k in self._kept.values() if scope is None or k.definition.scope == scope]

    def _versions(self, family: str) -> Iterator[Kept]:
        return (kept for kept in self._kept.values() if kept.definition.family == family)

    def _keep(self, entry: Entry) -> Kept:
        kept = Kept(entry, self._serial)
        self._serial += 1
        self._dimension = len(entry.vector)
        self._kept[kept.definition.id] = kept
        if kept.definition.status is Status.ACTIVE:
            self._show(kept)
        return kept

    def _show(self, kept: Kept) -> None:
        made = kept.definition
        item = Indexed(made.id, made.scope, kept.serial, made.intent, kept.entry.vector)
        self._index.put([item])

    def _delete(self, kept: Kept) -> None:
        del self._kept[kept.definition.id]
        for execution in kept.runs:
            del self._owner[execution]
        self._index.drop([kept.definition.id])

    def _run(self, kept: Kept, run: Run, produced: Produced) -> Recorded:
        stored = StoredRun(next_id(run.at, self._last_execution), run)
        self._put_run(kept, stored)
        made = kept.definition
        return Recorded(made.id, made.version, made.status, produced, stored.id)

    def _put_run(self, kept: Kept, stored: StoredRun) -> None:
        kept.runs[stored.id] = stored
        self._owner[stored.id] = kept.definition.id
        self._last_execution = max(stored.id, self._last_execution or "")

    def _candidate(self, kept: Kept, cosine: float) -> Candidate:
        made = kept.definition
        parent = None if made.parent_id is None else self._kept[made.parent_id].counts
        told = kept.reasonlet
        return Candidate(
            made.id, made.scope, cosine, kept.counts, parent, kept.last_run, lambda: told
        )

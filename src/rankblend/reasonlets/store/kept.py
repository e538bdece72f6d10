"""One procedure in memory, with its runs."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, evolve, field

from rankblend.reasonlets.capture import Provenance
from rankblend.reasonlets.reasonlet import Metrics, Reasonlet
from rankblend.reasonlets.store.protocol import Counts, Entry, StoredRun
from rankblend.reasonlets.store.times import as_time, latest
from rankblend.reasonlets.verdicts import count_runs, verdict_of

__all__ = ["Kept", "count_feedback", "is_of", "minor_of", "prune"]


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

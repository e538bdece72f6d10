"""A store of one's own in a page: counts of runs, read from the memories' metadata."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from rankblend.stores.protocol import Key, Observation, Reason, Record, StoreQuery

__all__ = ["TrackRecord"]

_COUNTS = (
    "runs", "successes", "judged_runs", "judged_successes",
    "parent_runs", "parent_successes", "parent_judged_runs", "parent_judged_successes",
)  # fmt: skip


class TrackRecord:
    """How often procedures ran and worked; it observes, and leaves proposing to others."""

    name = "track_record"
    emits: tuple[str, ...] = (*_COUNTS, "age_last_run")

    def __init__(self) -> None:
        self._records: dict[Key, Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def add(self, records: Sequence[Record]) -> None:
        """Keep the procedures among them."""
        for record in records:
            self._records.pop(record.key, None)
            if "runs" in record.metadata:
                self._records[record.key] = record

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop them."""
        for key in keys:
            self._records.pop(key, None)

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> list[str]:
        """Nothing: a good track record alone does not make a procedure fit a question."""
        del query, limit, level
        return []

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """Counts and the age of the last run; what never ran has no last run."""
        columns = {name: np.full(len(ids), np.nan) for name in self.emits}
        reasons = {name: np.full(len(ids), Reason.UNKNOWN, np.int8) for name in self.emits}
        visible = [record for record in self._records.values() if query.admits(record)]
        # Of one id the nearest comes last; the path decides between scopes that are equally near.
        visible.sort(key=lambda r: (query.rank_of_scope(r.scope), r.scope.path), reverse=True)
        by_id = {record.id: record for record in visible}
        for row, identifier in enumerate(ids):
            record = by_id.get(identifier)
            if record is None:
                continue
            values: dict[str, object] = dict(record.metadata)
            if isinstance(last := values.get("last_run"), str):
                values["age_last_run"] = query.now - datetime.fromisoformat(last).timestamp()
            for name in self.emits:
                value = values.get(name)
                known = isinstance(value, int | float)
                columns[name][row] = float(value) if known else np.nan  # type: ignore[arg-type]
                reasons[name][row] = Reason.PRESENT if known else Reason.NOT_APPLICABLE
        return Observation(columns, reasons)

    def close(self) -> None:
        """Nothing to release."""

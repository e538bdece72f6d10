"""The demo memory: opening it, and a store of one's own in a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import as_file, files

import numpy as np

from rankblend.embedders import Embedder
from rankblend.recall import Memory, default_stores, read_lines
from rankblend.relevance import Scope
from rankblend.stores import Key, Observation, Reason, Record, StoreQuery

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


QUESTION = "The espresso machine is broken and Ana wants her money back. What do we do?"
SCOPE = Scope.parse("tenant:northwind/user:ana/session:2026-06-29")
ASKED_AT = datetime(2026, 6, 29, 9, 0, tzinfo=UTC)

# What support looked up lately: scope → ids that were of use.
_USED = {
    "tenant:northwind": ("refund-broken", "refund-broken", "refund-broken", "iban-by-phone",
                         "iban-by-phone", "proc-iban", "tone", "tone", "tone", "tone"),
    "tenant:northwind/user:ana": ("ana-transfer",),
}  # fmt: skip


def open_demo(
    path: str | os.PathLike[str] = ":memory:", *, embedder: Embedder | None = None
) -> Memory:
    """The demo memory in a new file (or in RAM), its clock standing at `ASKED_AT`.

    The tickets of ``imported.jsonl`` come from a system that had no embedder: similarity is absent
    for them, which is not the same as 0.
    """
    memory = Memory.open(
        path,
        embedder=embedder,
        stores=[*default_stores(), TrackRecord()],
        clock=lambda: ASKED_AT,
        allow_subtree=True,
    )
    for name in ("memories.jsonl", "imported.jsonl"):
        with as_file(files("rankblend.demo") / name) as source:
            memories, links = read_lines(source)
        memory.remember_many(memories, embed=name == "memories.jsonl")
        for link in links:
            scope = str(link["scope"])
            memory.link_many([{k: v for k, v in link.items() if k != "scope"}], scope=scope)
    for used_at, ids in _USED.items():
        for identifier in ids:
            memory.reinforce(identifier, scope=used_at)
    return memory

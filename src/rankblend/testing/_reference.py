"""A store to hold others against: small enough to be seen to be right, and slow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rankblend.relevance import Scope
from rankblend.stores import Key, Observation, Reason, Record, StoreQuery


def visible_records(records: Iterable[Record], query: StoreQuery) -> dict[str, Record]:
    """What a query may be shown, by id: of several memories with one id the nearest.

    Args:
        records: All that is held, at whatever scopes; no key twice.
        query: Its scopes, reach and admitted mask decide.
    """
    nearest: dict[str, Record] = {}
    for record in records:
        if not query.admits(record):
            continue
        held = nearest.get(record.id)
        if held is None or _nearness(query, record.scope) < _nearness(query, held.scope):
            nearest[record.id] = record
    return nearest


def _nearness(query: StoreQuery, scope: Scope) -> tuple[tuple[int, int], str]:
    return query.rank_of_scope(scope), scope.path


class ReferenceStore:
    """Holds memories in a dictionary and looks at each of them for every question.

    Evidence: ``coverage``, the share of the query's words that occur in the text (absent for a
    query without words), and ``salience``. It proposes what covers at least one word, best first.
    The kit assumes that it is right about who sees what.
    """

    name = "reference"
    emits: tuple[str, ...] = ("coverage", "salience")

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}

    def __len__(self) -> int:
        """How many memories it holds."""
        return len(self.records)

    def add(self, records: Sequence[Record]) -> None:
        """Add memories, replacing those with the same key."""
        for record in records:
            self.records[record.key] = record

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop memories; unknown keys are ignored."""
        for key in keys:
            self.records.pop(key, None)

    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        """What the query may be shown, by id; at exactly ``level`` where that is given."""
        return {
            record.id: record
            for record in visible_records(self.records.values(), query).values()
            if level in (None, query.distance(record.scope))
        }

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        """Visible memories that cover a word of the query: best first, then by id."""
        strengths = {
            record.id: self.coverage(query, record)
            for record in self.visible(query, level).values()
        }
        matching = [id_ for id_, strength in strengths.items() if strength > 0.0]
        return sorted(matching, key=lambda id_: (-strengths[id_], id_))[:limit]

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """Coverage and salience of each id; see `rankblend.stores.Store.observe`."""
        visible = self.visible(query)
        values = np.full((len(self.emits), len(ids)), np.nan)
        reasons = np.full(values.shape, Reason.UNKNOWN, dtype=np.int8)
        for column, id_ in enumerate(ids):
            if id_ in visible:
                values[:, column] = self.evidence(query, visible[id_])
                absent = np.isnan(values[:, column])
                reasons[:, column] = np.where(absent, Reason.NOT_APPLICABLE, Reason.PRESENT)
        return Observation(
            dict(zip(self.emits, values, strict=True)), dict(zip(self.emits, reasons, strict=True))
        )

    def propose_many(
        self, queries: Sequence[StoreQuery], limit: int, *, level: int | None = None
    ) -> list[Sequence[str]]:
        """`propose` for each query."""
        return [self.propose(query, limit, level=level) for query in queries]

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        """`observe` for each query."""
        for query, asked in zip(queries, ids, strict=True):
            yield self.observe(query, asked)

    def close(self) -> None:
        """Nothing to release."""

    def evidence(self, query: StoreQuery, record: Record) -> tuple[float, ...]:
        """The values of one visible memory, in the order of ``emits``; NaN where absent."""
        salience = np.nan if record.salience is None else record.salience
        return self.coverage(query, record), salience

    def coverage(self, query: StoreQuery, record: Record) -> float:
        """Share of the query's words that the text has; NaN for a query without words."""
        words = set(query.text.casefold().split())
        if not words:
            return float("nan")
        return len(words & set(record.text.casefold().split())) / len(words)

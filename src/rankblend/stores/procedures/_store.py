"""Procedures in an SQLite file, a catalog's own if wished, with an exact index in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from sqlite3 import Connection
from typing import Any, Self, TypeVar

import numpy as np
from attrs import evolve

from rankblend.errors import (
    CatalogBusyError,
    ReasonletNotFoundError,
)
from rankblend.relevance import Scope
from rankblend.stores._arrays import grown
from rankblend.stores._protocol import StoreQuery
from rankblend.stores._record import Key, Record
from rankblend.stores.catalog import MEMORY, Database, ScopeReader
from rankblend.stores.procedures import _rules as rules
from rankblend.stores.procedures._protocol import (
    Candidate,
    Draft,
    Entry,
    Recorded,
    Run,
    Search,
    StoredRun,
)
from rankblend.stores.procedures._reasonlet import (
    Erased,
    Feedback,
    Reasonlet,
    ReasonletStatistics,
    Status,
)
from rankblend.stores.procedures._schema import (
    CANDIDATE,
    ENTRY,
    PROCEDURE,
    RUN,
    State,
    candidate_of,
    entry_of,
    reasonlet_of,
    run_of,
    shielded,
    state_of,
    to_json,
    vector_of,
)
from rankblend.stores.vectors import VectorStore

T = TypeVar("T")

# Numbers in all vectors up to which a search is not worth the way to a thread and back: 10,000 × 384
# take half a millisecond, the way .3 more (two cores).
_SMALL = 4_000_000
_NOTHING = State(0, 0, 0, None, None)


class SqliteReasonletStore:
    """A `ReasonletStore` in one SQLite file.

    A write is on the disk when it is acknowledged. Several tasks, threads and processes may use one
    file; each search sees what any of them has written. Open it with `SqliteReasonletStore.open`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # All are read and changed inside `Database.read` only, whose lock is theirs; the length may
        # be looked at outside.
        self._index = _ActiveIndex()
        self._state = _NOTHING
        self._scopes = ScopeReader()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, busy_timeout: float = 30.0) -> Self:
        """Open a file, or make one where there is none.

        Args:
            path: A file, which may be that of a `rankblend.Memory`; or ``":memory:"``.
            busy_timeout: Seconds a write waits for the writer of another process.

        Raises:
            StoreError: As when a catalog is opened.
        """
        return cls(Database.open(path, busy_timeout=busy_timeout))

    async def dimension(self) -> int | None:
        """Length of the stored vectors; None while there is none."""
        return (await self._noted()).dimension

    async def embedder(self) -> str | None:
        """Identity of what made the stored vectors, ``name/dimension``; None: nobody knows."""
        return (await self._noted()).embedder

    async def remember(self, draft: Draft) -> Recorded:
        """Keep a procedure and its first run, or a run; see `ReasonletStore.remember`."""
        return await self._write(rules.remember, draft)

    async def record(self, scope: Scope, id: str, run: Run) -> Recorded:
        """Keep one more run of a procedure."""
        return await self._write(rules.record, scope, id, run)

    async def feedback(self, scope: Scope, execution: str, feedback: Feedback) -> None:
        """Keep what a person says about a run."""
        await self._write(rules.keep_feedback, scope, execution, feedback)

    async def search(self, search: Search) -> list[Candidate]:
        """The nearest active procedures; in a small index found without the way to a thread."""
        if len(self._index) * len(search.vector) <= _SMALL:
            found = shielded(partial(self._search_at_once, search))
            if found is not None:
                return found
        return await self._read(self._search, search)

    async def lookup(self, ids: Sequence[str]) -> list[Candidate | None]:
        """The active procedures with these ids, in any scope."""
        nothing = dict.fromkeys(ids, float("nan"))
        found = {each.id: each for each in await self._read(self._candidates, nothing)}
        return [found.get(identifier) for identifier in ids]

    async def get(self, ids: Sequence[str]) -> list[Reasonlet | None]:
        """Procedures by id, of any status and scope."""
        where = "WHERE r.id IN (SELECT value FROM json_each(?))"
        rows = await self._read(self._reasonlets, where, to_json(list(ids)))
        found = {each.id: each for each in rows}
        return [found.get(identifier) for identifier in ids]

    async def family(self, scope: Scope, id: str) -> list[Reasonlet]:
        """All versions of the procedure a version belongs to, by version number."""
        where = (
            "WHERE r.family = (SELECT family FROM procedures WHERE id = ? AND scope = ?)"
            " ORDER BY r.minor"
        )
        versions = await self._read(self._reasonlets, where, id, scope.path)
        if not versions:
            raise ReasonletNotFoundError("reasonlet")
        return versions

    async def pending(self, scope: Scope, limit: int, after: str | None) -> list[Reasonlet]:
        """Procedures that wait for review, by id."""
        where = "WHERE r.scope = ? AND r.status = ? AND r.id > ? ORDER BY r.id LIMIT ?"
        waiting = str(Status.PENDING_REVIEW)
        return await self._read(self._reasonlets, where, scope.path, waiting, after or "", limit)

    async def approve(self, scope: Scope, id: str) -> None:
        """Make a procedure active."""
        await self._write(rules.approve, scope, id)

    async def reject(self, scope: Scope, id: str) -> None:
        """Delete a procedure that waits for review."""
        await self._write(rules.reject, scope, id)

    async def prune(self, scope: Scope | None, *, before: float | None, keep: int | None) -> int:
        """Drop old runs; counters stay."""
        return await self._write(rules.prune, scope, before, keep)

    async def erase_subject(self, scope: Scope, subject_id: str, *, purge: bool) -> Erased:
        """Erase a person from a scope; with ``purge`` the file is rewritten without a trace.

        Memories of the same file that stand for erased procedures go in the same transaction.
        """
        erased = await self._write(rules.erase_subject, scope, subject_id)
        if purge:
            compaction = await asyncio.to_thread(shielded, self._database.compact)
            erased = evolve(erased, waiting=compaction.waiting)
        # The index lets go at once, not with the next search.
        await self._read(self._follow)
        return erased

    async def rebuild_judged_counters(self) -> int:
        """Count the judged runs anew from the runs still stored."""
        return await self._write(rules.rebuild_judged_counters)

    async def statistics(self, scope: Scope | None) -> ReasonletStatistics:
        """Counts over exactly this scope; None: over all."""
        return await self._read(_statistics, None if scope is None else scope.path)

    async def dump(self) -> list[Entry]:
        """Everything, by id."""
        return await self._read(entries_of)

    async def load(self, entries: Sequence[Entry]) -> None:
        """Add what `dump` gave; all of it, or nothing."""
        await self._write(rules.load, entries)

    async def aclose(self) -> None:
        """Close the file; closing twice is harmless."""
        await asyncio.to_thread(self._database.close)

    async def _noted(self) -> State:
        """One row: read where it is asked, unless that would have to wait."""
        found = shielded(self._noted_at_once)
        return await self._read(state_of) if found is None else found

    def _noted_at_once(self) -> State | None:
        try:
            with self._database.read_if_free() as connection:
                return None if connection is None else state_of(connection)
        except CatalogBusyError:
            return None

    async def _read(self, call: Callable[..., T], *arguments: Any) -> T:
        def read() -> T:
            with self._database.read() as connection:
                return call(connection, *arguments)

        return await asyncio.to_thread(shielded, read)

    async def _write(self, call: Callable[..., T], *arguments: Any) -> T:
        def write() -> T:
            with self._database.write() as connection:
                return call(connection, *arguments)

        return await asyncio.to_thread(shielded, write)

    def _search(self, connection: Connection, search: Search) -> list[Candidate]:
        self._follow(connection)
        return self._found(connection, search)

    def _search_at_once(self, search: Search) -> list[Candidate] | None:
        """What `_search` finds, or None where that would have to wait or to read a lot."""
        try:
            with self._database.read_if_free() as connection:
                if connection is None or state_of(connection) != self._state:
                    return None
                return self._found(connection, search)
        except CatalogBusyError:
            return None

    def _found(self, connection: Connection, search: Search) -> list[Candidate]:
        rules.check_embedder(self._state.embedder, search.embedder)
        return self._candidates(connection, dict(self._index.nearest(search)))

    def _follow(self, connection: Connection) -> None:
        """Bring the index up to what the file says."""
        now, known = state_of(connection), self._state
        if now == known:
            return
        since = known.generation
        if now.embedded > since:
            self._index, since = _ActiveIndex(), -1
        elif now.erased > since:
            there = connection.execute("SELECT id FROM procedures WHERE status = 'active'")
            self._index.drop(self._index.scopes.keys() - {row[0] for row in there})
        changed = connection.execute(
            "SELECT scope, id, serial, intent, vector FROM procedures"
            " WHERE generation > ? AND status = 'active' ORDER BY scope, id",
            (since,),
        )
        self._index.put(
            [
                (Record(Key(self._scopes(path), id_), "", serial, vector=vector_of(vector)), intent)
                for path, id_, serial, intent, vector in changed
            ]
        )
        self._state = now

    def _candidates(self, connection: Connection, asked: dict[str, float]) -> list[Candidate]:
        """Candidates in the order asked, with the similarity given for each."""
        rows = {row[0]: row for row in connection.execute(CANDIDATE, (to_json(list(asked)),))}
        return [
            candidate_of(rows[identifier], self._scopes, similarity)
            for identifier, similarity in asked.items()
            if identifier in rows
        ]

    def _reasonlets(self, connection: Connection, where: str, *values: object) -> list[Reasonlet]:
        rows = connection.execute(PROCEDURE + where, values)
        return [reasonlet_of(row, self._scopes(row[1])) for row in rows]


class InMemoryReasonletStore(SqliteReasonletStore):
    """A `SqliteReasonletStore` in memory, for tests and small uses; nothing outlives the process.

    It may be used from several threads and event loops.
    """

    def __init__(self, database: Database | None = None) -> None:
        super().__init__(Database.open(MEMORY) if database is None else database)


class _ActiveIndex:
    """A `VectorStore` over the active procedures, and their intents for filtering."""

    def __init__(self) -> None:
        self._vectors = VectorStore()
        self.scopes: dict[str, Scope] = {}
        self._codes: dict[str, int] = {}
        self._intents = np.zeros(0, np.int32)  # by serial; 0: none

    def __len__(self) -> int:
        """How many procedures it holds."""
        return len(self.scopes)

    def put(self, items: Sequence[tuple[Record, str]]) -> None:
        """Add procedures with their intents, or replace them."""
        room = 1 + max((record.serial for record, _ in items), default=-1)
        if room > len(self._intents):
            self._intents = grown(self._intents, max(room, 2 * len(self._intents)))
        for record, intent in items:
            self.scopes[record.id] = record.key.scope
            self._intents[record.serial] = self._codes.setdefault(intent, len(self._codes) + 1)
        self._vectors.add([record for record, _ in items])

    def drop(self, ids: set[str]) -> None:
        """Take procedures out."""
        self._vectors.remove([Key(self.scopes.pop(id_), id_) for id_ in ids])

    def nearest(self, search: Search) -> list[tuple[str, float]]:
        """Ids with their cosines, best first, ties by id; at most ``search.limit``."""
        admitted = None
        if search.intent is not None:
            admitted = self._intents == self._codes.get(search.intent, -1)
        query = StoreQuery("", (search.scope,), vector=search.vector, admitted=admitted)
        level = None if search.ancestors else 0
        ids, cosines = self._vectors.nearest(query, search.limit, level=level)
        return list(zip(ids, cosines.tolist(), strict=True))


def entries_of(connection: Connection) -> list[Entry]:
    """Every procedure of a file with its runs, by id."""
    scopes = ScopeReader()
    runs: dict[int, list[StoredRun]] = {}
    for serial, *row in connection.execute(
        RUN.replace("SELECT", "SELECT procedure,", 1) + "ORDER BY id"
    ):
        runs.setdefault(serial, []).append(run_of(row))
    embedder = state_of(connection).embedder
    return [
        entry_of(row, scopes(row[1]), runs.get(row[21], ()), embedder)
        for row in connection.execute(ENTRY)
    ]


def _statistics(connection: Connection, path: str | None) -> ReasonletStatistics:
    row = connection.execute(
        "SELECT total(status = 'active'), total(status <> 'active'), count(DISTINCT family),"
        " total(runs), total(successes), total(judged_runs), total(judged_successes)"
        " FROM procedures WHERE :path IS NULL OR scope = :path",
        {"path": path},
    ).fetchone()
    stored = connection.execute(
        "SELECT count(*) FROM runs AS r JOIN procedures AS o ON o.serial = r.procedure"
        " WHERE :path IS NULL OR o.scope = :path",
        {"path": path},
    ).fetchone()
    return ReasonletStatistics(*map(int, (*row, *stored)))

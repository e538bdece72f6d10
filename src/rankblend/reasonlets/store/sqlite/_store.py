"""Procedures in an SQLite file, a catalog's own if wished, with an exact index in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from sqlite3 import Connection
from typing import Any, Self, TypeVar

from rankblend.errors import CatalogBusyError
from rankblend.reasonlets._errors import ReasonletNotFoundError
from rankblend.reasonlets._reasonlet import Erased, Feedback, Reasonlet, ReasonletStatistics, Status
from rankblend.reasonlets.store._index import ActiveIndex, Indexed
from rankblend.reasonlets.store._protocol import (
    Candidate,
    Counts,
    Draft,
    Entry,
    Recorded,
    Run,
    Search,
)
from rankblend.reasonlets.store.sqlite import _lifecycle as lifecycle
from rankblend.reasonlets.store.sqlite import _writing as writing
from rankblend.reasonlets.store.sqlite._rows import (
    CANDIDATE,
    REASONLET,
    RUN,
    candidate_of,
    reasonlet_of,
    run_of,
    shielded,
    to_json,
    vector_of,
)
from rankblend.reasonlets.store.sqlite._schema import is_current, migrate
from rankblend.relevance import Scope
from rankblend.stores.catalog import Database, ScopeReader

T = TypeVar("T")

_STATE = "SELECT generation, deleted FROM reasonlet_state"
# Numbers in all vectors up to which a search is not worth the way to a thread and back: 10,000 × 384
# take half a millisecond, the way .3 more (two cores).
_SMALL = 4_000_000


class SqliteReasonletStore:
    """A `ReasonletStore` in one SQLite file.

    A write is on the disk when it is acknowledged. Several tasks, threads and processes may use one
    file; each search sees what any of them has written. Open it with `SqliteReasonletStore.open`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # Both are read and changed inside `Database.read` only, whose lock is theirs; the length may
        # be looked at outside.
        self._index = ActiveIndex()
        self._generation = 0
        self._scopes = ScopeReader()
        self._dimension: int | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, busy_timeout: float = 30.0) -> Self:
        """Open a file, or make one where there is none.

        Args:
            path: A file, which may be that of a `rankblend.Memory`; or ``":memory:"``.
            busy_timeout: Seconds a write waits for the writer of another process.

        Raises:
            StoreError: As when a catalog is opened.
        """
        database = Database.open(path, busy_timeout=busy_timeout)
        try:
            with database.read() as connection:
                current = is_current(connection)
            if not current:
                with database.write() as connection:
                    migrate(connection)
        except BaseException:
            database.close()
            raise
        return cls(database)

    async def dimension(self) -> int | None:
        """Length of the stored vectors; None while there is none."""
        if self._dimension is None:
            self._dimension = await self._read(writing.stored_dimension)
        return self._dimension

    async def remember(self, draft: Draft) -> Recorded:
        """Keep a procedure and its first run, or a run; see `ReasonletStore.remember`."""
        return await self._write(writing.remember, draft)

    async def record(self, scope: Scope, id: str, run: Run) -> Recorded:
        """Keep one more run of a procedure."""
        return await self._write(writing.write_run, scope, id, run)

    async def feedback(self, scope: Scope, execution: str, feedback: Feedback) -> None:
        """Keep what a person says about a run."""
        await self._write(writing.keep_feedback, scope, execution, feedback)

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
            "WHERE r.family = (SELECT family FROM reasonlets WHERE id = ? AND scope = ?)"
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
        await self._write(writing.approve, scope, id)

    async def reject(self, scope: Scope, id: str) -> None:
        """Delete a procedure that waits for review."""
        await self._write(writing.reject, scope, id)

    async def prune(self, scope: Scope | None, *, before: float | None, keep: int | None) -> int:
        """Drop old runs; counters stay."""
        return await self._write(lifecycle.prune, scope, before, keep)

    async def erase_subject(self, scope: Scope, subject_id: str, *, purge: bool) -> Erased:
        """Erase a person from a scope; with ``purge`` the file is rewritten without a trace."""
        erased = await self._write(lifecycle.erase_subject, scope, subject_id)
        if purge:
            await asyncio.to_thread(shielded, self._database.compact)
        # The index lets go at once, not with the next search.
        await self._read(self._follow)
        return erased

    async def rebuild_judged_counters(self) -> int:
        """Count the judged runs anew from the runs still stored."""
        return await self._write(lifecycle.rebuild_judged_counters)

    async def statistics(self, scope: Scope | None) -> ReasonletStatistics:
        """Counts over exactly this scope; None: over all."""
        return await self._read(_statistics, None if scope is None else scope.path)

    async def dump(self) -> list[Entry]:
        """Everything, by id."""
        return await self._read(self._entries)

    async def load(self, entries: Sequence[Entry]) -> None:
        """Add what `dump` gave; all of it, or nothing."""
        await self._write(writing.load, entries)

    async def aclose(self) -> None:
        """Close the file; closing twice is harmless."""
        await asyncio.to_thread(self._database.close)

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
        return self._candidates(connection, dict(self._index.nearest(search)))

    def _search_at_once(self, search: Search) -> list[Candidate] | None:
        """The answer where nobody is waited for and nothing has to be caught up with, else None."""
        try:
            with self._database.read_if_free() as connection:
                if connection is None:
                    return None
                if connection.execute(_STATE).fetchone()[0] != self._generation:
                    return None
                return self._candidates(connection, dict(self._index.nearest(search)))
        except CatalogBusyError:
            return None

    def _follow(self, connection: Connection) -> None:
        """Bring the index up to what the file says."""
        generation, deleted = connection.execute(_STATE).fetchone()
        if generation == self._generation:
            return
        if deleted > self._generation:
            there = connection.execute("SELECT id FROM reasonlets WHERE status = 'active'")
            self._index.drop(self._index.ids - {row[0] for row in there})
        changed = connection.execute(
            "SELECT id, scope, serial, intent, vector FROM reasonlets"
            " WHERE generation > ? AND status = 'active' ORDER BY scope, id",
            (self._generation,),
        )
        self._index.put(
            [
                Indexed(id_, self._scopes(path), serial, intent, vector_of(vector))
                for id_, path, serial, intent, vector in changed
            ]
        )
        self._generation = generation

    def _candidates(self, connection: Connection, asked: dict[str, float]) -> list[Candidate]:
        """Candidates in the order asked, with the similarity given for each."""
        rows = {row[0]: row for row in connection.execute(CANDIDATE, (to_json(list(asked)),))}
        return [
            candidate_of(rows[identifier], self._scopes, similarity)
            for identifier, similarity in asked.items()
            if identifier in rows
        ]

    def _reasonlets(self, connection: Connection, where: str, *values: object) -> list[Reasonlet]:
        rows = connection.execute(f"{REASONLET} {where}", values)
        return [reasonlet_of(row, self._scopes(row[1])) for row in rows]

    def _entries(self, connection: Connection) -> list[Entry]:
        rest = connection.execute(
            "SELECT id, serial, vector, pruned_runs, pruned_successes, pruned_judged_runs,"
            " pruned_judged_successes, pruned_last_run, pruned_last_success FROM reasonlets"
        )
        beside = {row[0]: row[1:] for row in rest}
        entries = []
        for made in self._reasonlets(connection, "ORDER BY r.id"):
            serial, vector, *pruned, last_run, last_success = beside[made.id]
            runs = connection.execute(f"{RUN} WHERE reasonlet = ? ORDER BY id", (serial,))
            entries.append(
                Entry(
                    made,
                    vector_of(vector),
                    Counts(*pruned),
                    last_run,
                    last_success,
                    tuple(map(run_of, runs)),
                )
            )
        return entries


def _statistics(connection: Connection, path: str | None) -> ReasonletStatistics:
    row = connection.execute(
        "SELECT total(status = 'active'), total(status <> 'active'), count(DISTINCT family),"
        " total(runs), total(successes), total(judged_runs), total(judged_successes)"
        " FROM reasonlets WHERE :path IS NULL OR scope = :path",
        {"path": path},
    ).fetchone()
    stored = connection.execute(
        "SELECT count(*) FROM reasonlet_runs AS r JOIN reasonlets AS o ON o.serial = r.reasonlet"
        " WHERE :path IS NULL OR o.scope = :path",
        {"path": path},
    ).fetchone()
    return ReasonletStatistics(*map(int, (*row, *stored)))

"""What people do with stored procedures: look, review, prune, erase, move."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self, TypeVar

from rankblend.reasonlets.checks import read_duration
from rankblend.reasonlets.errors import (
    ReasonletAdapterError,
    ReasonletError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    code_of,
    raise_invalid,
)
from rankblend.reasonlets.portable import read_entries, write_entries
from rankblend.reasonlets.reasonlet import Erased, Reasonlet, ReasonletStatistics
from rankblend.reasonlets.requests import check_prune, read_erasure, read_page, read_place
from rankblend.reasonlets.store.protocol import ReasonletStore
from rankblend.relevance.scope import Scope

__all__ = ["KeptReasonlets", "ScopeLike", "stored"]

T = TypeVar("T")
ScopeLike = Scope | str


class KeptReasonlets:
    """The half of `ReasonletMemory` that needs its store and its clock only."""

    def __init__(self, store: ReasonletStore, clock: Callable[[], datetime]) -> None:
        self.store = store
        self._clock = clock

    async def list_pending(
        self, scope: ScopeLike, limit: int = 20, *, after: str | None = None
    ) -> list[Reasonlet]:
        """Procedures that wait for review, by id, each with its own track record.

        Args:
            scope: Exactly this scope.
            limit: 1 to 100.
            after: The last id of the page before.
        """
        where = read_page(scope, limit, after)
        return list(await stored(self.store.pending(where, limit, after)))

    async def approve(self, scope: ScopeLike, id: str) -> None:
        """Make a procedure recallable from the next query on; an active one stays as it is.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
        """
        await stored(self.store.approve(read_place(scope, id), id))

    async def reject(self, scope: ScopeLike, id: str) -> None:
        """Delete a procedure that waits for review, with its runs and their feedback.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
            ReasonletConflictError: It is active, or has versions below it.
        """
        await stored(self.store.reject(read_place(scope, id), id))

    async def get(self, scope: ScopeLike, id: str) -> Reasonlet:
        """One procedure of a scope, whatever its status.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
        """
        where = read_place(scope, id)
        (found,) = await stored(self.store.get([id]))
        if found is None or found.scope != where:
            raise ReasonletNotFoundError("reasonlet")
        return found

    async def lineage(self, scope: ScopeLike, id: str) -> list[Reasonlet]:
        """All versions of the procedure a version belongs to, by version number.

        Raises:
            ReasonletNotFoundError: It is not in the scope.
        """
        return list(await stored(self.store.family(read_place(scope, id), id)))

    async def statistics(self, scope: ScopeLike | None = None) -> ReasonletStatistics:
        """Counts over exactly this scope; None: over the whole store."""
        where = None if scope is None else read_place(scope)
        return await stored(self.store.statistics(where))

    async def prune(
        self,
        *,
        scope: ScopeLike | None = None,
        older_than: timedelta | float | None = None,
        keep: int | None = None,
    ) -> int:
        """Drop runs by age, by number, or by both; they stay in all counters.

        Args:
            scope: Exactly this scope; None: all.
            older_than: Runs before now minus this (a duration, or seconds) go.
            keep: How many of each procedure's newest runs stay, ≥ 0.

        Returns:
            How many runs went.
        """
        where = check_prune(scope, older_than, keep)
        age: timedelta | None = read_duration(older_than)
        before = None if age is None else self._now() - age.total_seconds()
        return await stored(self.store.prune(where, before=before, keep=keep))

    async def erase_subject(
        self, scope: ScopeLike, subject_id: str, *, purge: bool = False
    ) -> Erased:
        """Erase a person from a scope: their procedures, and their runs of others' procedures.

        Doing it again finds nothing. Runs that were pruned before are anonymous counts.

        Args:
            scope: Exactly this scope.
            subject_id: As in the provenance.
            purge: Also clean what the file has freed; takes as long as rewriting it.
        """
        where = read_erasure(scope, subject_id, purge)
        return await stored(self.store.erase_subject(where, subject_id, purge=purge))

    async def rebuild_judged_counters(self) -> int:
        """Count judged runs anew from the runs still stored; returns how many procedures differed.

        Runs that were pruned then count as the agent's word only.
        """
        return await stored(self.store.rebuild_judged_counters())

    async def export(self, path: str | os.PathLike[str]) -> int:
        """Write everything as JSON lines; returns how many procedures.

        The file appears under its name only when it is complete.
        """
        entries = await stored(self.store.dump())
        return await asyncio.to_thread(write_entries, path, entries)

    async def import_(self, path: str | os.PathLike[str]) -> int:
        """Add what `export` wrote, in one transaction; returns how many procedures.

        Raises:
            ReasonletValidationError: Every problem with the number of its line; nothing is stored.
            ReasonletConflictError: Some of it is stored already; nothing is stored.
        """
        entries = await asyncio.to_thread(read_entries, path)
        await stored(self.store.load(entries))
        return len(entries)

    async def aclose(self) -> None:
        """Close the store; closing twice is harmless."""
        await self.store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _now(self) -> float:
        now: object = self._clock()
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise_invalid(["clock: expected it to return an aware datetime"])
        assert isinstance(now, datetime)
        return now.timestamp()


async def stored(call: Awaitable[T]) -> T:
    """What a store answers; its errors pass with their code, any other exception means it is down.

    Raises:
        ReasonletError, ReasonletAdapterError: As raised.
        ReasonletUnavailableError: It raised something else, of which only the type is told.
    """
    try:
        return await call
    except (ReasonletError, ReasonletAdapterError):
        raise
    except Exception as error:
        if code_of(error) is not None:
            raise
        kind = type(error).__name__
    raise ReasonletUnavailableError("store", kind)

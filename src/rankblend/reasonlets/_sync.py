"""The same memory for code without an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from rankblend.errors import ReasonletUnavailableError
from rankblend.forks import guard
from rankblend.reasonlets._memory import ReasonletMemory, ScopeLike
from rankblend.stores.procedures import (
    Capture,
    Erased,
    Outcome,
    Provenance,
    Reasonlet,
    ReasonletMatch,
    ReasonletStatistics,
    Receipt,
)

T = TypeVar("T")
_LEFT_BEHIND: list[asyncio.AbstractEventLoop] = []
_GRACE = 1.0  # seconds a cancelled task is waited for


class LoopThread:
    """An event loop in a daemon thread, for calls from code that has none (or is inside one)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._calls: set[Future[Any]] = set()
        self._thread: threading.Thread | None = None
        guard(self, "_lock")
        self._start()

    def _start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, daemon=True, name="rankblend-reasonlets"
        )
        self._thread.start()

    def after_fork(self, *, quiet: bool) -> None:  # noqa: ARG002 - its state is whole or new
        """In the child: another loop and thread, from the next call on."""
        # Not closed: the parent's loop would hear of that, its selector is the same.
        _LEFT_BEHIND.append(self._loop)
        self._calls.clear()
        self._thread = None

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it; an interrupted wait cancels it.

        Raises:
            ReasonletUnavailableError: It is closed, or was closed before the coroutine ended.
        """
        with self._lock:
            if self._closed:
                call.close()
                raise ReasonletUnavailableError("store", "closed")
            if self._thread is None:
                self._start()
            future = asyncio.run_coroutine_threadsafe(call, self._loop)
            self._calls.add(future)
        try:
            return future.result()
        except CancelledError:
            if not self._closed:
                raise
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._calls.discard(future)
        raise ReasonletUnavailableError("store", "closed")

    @property
    def is_current(self) -> bool:
        """Whether this is asked inside its thread, where `run` would wait for itself."""
        return threading.current_thread() is self._thread

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Cancel what still runs and end the loop; closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._thread is None:
                return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        with self._lock:
            left = tuple(self._calls)
        for call in left:  # what ignored its cancellation; nobody is to wait for it
            call.cancel()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE)


class SyncReasonletMemory:
    """`ReasonletMemory` with calls that wait; from any thread, inside a running loop or not.

    Args:
        memory: Not used anywhere else from now on; closed with this one.
    """

    def __init__(self, memory: ReasonletMemory) -> None:
        self.memory = memory
        self._closing = threading.Lock()
        self._loop = LoopThread()
        guard(self, "_closing")

    def remember(self, capture: Capture) -> Receipt:
        """See `ReasonletMemory.remember`."""
        return self._loop.run(self.memory.remember(capture))

    def recall(
        self,
        question: str,
        *,
        scope: ScopeLike,
        intent: str | None = None,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> list[ReasonletMatch]:
        """See `ReasonletMemory.recall`."""
        return self._loop.run(
            self.memory.recall(
                question, scope=scope, intent=intent, top=top, min_similarity=min_similarity
            )
        )

    def record_execution(
        self,
        scope: ScopeLike,
        id: str,
        outcome: Outcome,
        provenance: Provenance,
        *,
        question: str | None = None,
        answer: str | None = None,
    ) -> Receipt:
        """See `ReasonletMemory.record_execution`."""
        return self._loop.run(
            self.memory.record_execution(
                scope,
                id,
                outcome=outcome,
                provenance=provenance,
                question=question,
                answer=answer,
            )
        )

    def record_feedback(
        self,
        scope: ScopeLike,
        execution: str,
        utility: float,
        correctness: float,
        reusability: float,
        worked: bool | None = None,
    ) -> None:
        """See `ReasonletMemory.record_feedback`."""
        self._loop.run(
            self.memory.record_feedback(
                scope,
                execution,
                utility=utility,
                correctness=correctness,
                reusability=reusability,
                worked=worked,
            )
        )

    def list_pending(
        self, scope: ScopeLike, limit: int = 20, *, after: str | None = None
    ) -> list[Reasonlet]:
        """See `ReasonletMemory.list_pending`."""
        return self._loop.run(self.memory.list_pending(scope, limit, after=after))

    def approve(self, scope: ScopeLike, id: str) -> None:
        """See `ReasonletMemory.approve`."""
        self._loop.run(self.memory.approve(scope, id))

    def reject(self, scope: ScopeLike, id: str) -> None:
        """See `ReasonletMemory.reject`."""
        self._loop.run(self.memory.reject(scope, id))

    def get(self, scope: ScopeLike, id: str) -> Reasonlet:
        """See `ReasonletMemory.get`."""
        return self._loop.run(self.memory.get(scope, id))

    def lineage(self, scope: ScopeLike, id: str) -> list[Reasonlet]:
        """See `ReasonletMemory.lineage`."""
        return self._loop.run(self.memory.lineage(scope, id))

    def statistics(self, scope: ScopeLike | None = None) -> ReasonletStatistics:
        """See `ReasonletMemory.statistics`."""
        return self._loop.run(self.memory.statistics(scope))

    def prune(
        self,
        *,
        scope: ScopeLike | None = None,
        older_than: timedelta | float | None = None,
        keep: int | None = None,
    ) -> int:
        """See `ReasonletMemory.prune`."""
        return self._loop.run(self.memory.prune(scope=scope, older_than=older_than, keep=keep))

    def erase_subject(self, scope: ScopeLike, subject_id: str, *, purge: bool = False) -> Erased:
        """See `ReasonletMemory.erase_subject`."""
        return self._loop.run(self.memory.erase_subject(scope, subject_id, purge=purge))

    def rebuild_judged_counters(self) -> int:
        """See `ReasonletMemory.rebuild_judged_counters`."""
        return self._loop.run(self.memory.rebuild_judged_counters())

    def export(self, path: str | os.PathLike[str]) -> int:
        """See `ReasonletMemory.export`."""
        return self._loop.run(self.memory.export(path))

    def import_(self, path: str | os.PathLike[str]) -> int:
        """See `ReasonletMemory.import_`."""
        return self._loop.run(self.memory.import_(path))

    def close(self) -> None:
        """Close the memory; closing twice is harmless."""
        with self._closing:
            if not self._loop.closed:
                try:
                    self._loop.run(self.memory.aclose())
                finally:
                    self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

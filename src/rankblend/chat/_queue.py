"""Remembering in the background: a bounded queue of captures and the one worker that empties it."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from rankblend.chat._exchange import CAPTURES
from rankblend.chat._provided import Provided, SupportsRemember
from rankblend.forks import guard
from rankblend.limits import LIMITS
from rankblend.reasonlets import Capture, Checks, Down, Refused, consult, read_duration


class CaptureQueue:
    """Takes captures without waiting, and has a memory remember them one at a time.

    The worker starts with the first capture that is offered and is gone when there is none left, so
    nothing runs while there is nothing to do. Use a queue from one event loop at a time, and close
    it, or leave its ``async with`` block, before the memory is closed. Whatever becomes of a capture
    is counted on the metric ``mnemosyne.capture.queue``; nothing is raised to those who offer.

    Args:
        memory: Remembers; or a factory of it, called in a thread for the first capture.
        capacity: How many captures may wait, ≥ 1; a new one is dropped when there is no room.
        drain_timeout: How long `aclose` lets the memory go on (a duration, or seconds), > 0.
        cancel_timeout: How long it then waits for the memory to notice that it is cancelled, > 0.

    Raises:
        ReasonletValidationError: All invalid arguments at once.
    """

    def __init__(
        self,
        memory: SupportsRemember | Callable[[], SupportsRemember],
        *,
        capacity: int = 256,
        drain_timeout: timedelta | float = timedelta(seconds=30),
        cancel_timeout: timedelta | float = timedelta(seconds=1),
    ) -> None:
        self._memory: Provided[SupportsRemember] = Provided(
            "memory", memory, SupportsRemember, like="ReasonletMemory"
        )
        self._drain_timeout = read_duration(drain_timeout)
        self._cancel_timeout = read_duration(cancel_timeout)
        checks = Checks()
        checks.extend("", self._memory.problems)
        LIMITS["capacity"].hold(checks, "capacity", capacity)
        checks.duration("drain_timeout", self._drain_timeout)
        checks.duration("cancel_timeout", self._cancel_timeout)
        checks.raise_if_any()
        self._capacity = int(capacity)
        self._waiting: deque[Capture] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._current: Capture | None = None
        self._left_memory: asyncio.Event | None = None
        self._closed = False
        guard(self)

    def after_fork(self, *, quiet: bool) -> None:  # noqa: ARG002 - it has no lock
        """In the child: what waits is remembered by the parent, whose loop and worker it has not."""
        self._waiting.clear()
        self._worker = self._current = self._left_memory = None

    def __len__(self) -> int:
        """How many captures wait, without the one that is being remembered."""
        return len(self._waiting)

    def offer(self, capture: Capture) -> bool:
        """Take a capture, to be remembered soon; call it inside a running event loop.

        Returns:
            False when it was dropped, because there is no room or the queue is closed.
        """
        if self._closed:
            CAPTURES.add("dropped_shutdown")
            return False
        if len(self._waiting) >= self._capacity:
            CAPTURES.add("dropped_full")
            return False
        loop = asyncio.get_running_loop()
        self._waiting.append(capture)
        if self._worker is None or self._worker.done():
            # Not in the context of whoever came first: its span and its scope are its own.
            self._worker = loop.create_task(self._work(), context=contextvars.Context())
        return True

    async def join(self) -> None:
        """Wait until everything that was offered is done."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait({self._worker})

    async def aclose(self) -> None:
        """Take nothing more, let the memory go on for the drain time-out, then cancel and drop.

        Closing twice is harmless.
        """
        self._closed = True
        if self._worker is None or self._worker.done():
            return
        try:
            await asyncio.wait({self._worker}, timeout=self._drain_timeout.total_seconds())
        finally:
            if not self._worker.done():
                self._worker.cancel()
        await asyncio.wait({self._worker})
        if self._left_memory is not None:
            waiter = asyncio.ensure_future(self._left_memory.wait())
            await asyncio.wait({waiter}, timeout=self._cancel_timeout.total_seconds())
            waiter.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _work(self) -> None:
        try:
            while self._waiting:
                self._current = self._waiting.popleft()
                await self._remember(self._current)
                self._current = None
        finally:
            # Cancelled, by `aclose` or by a loop that ends: nothing is lost without being counted.
            for _ in range(len(self._waiting) + (self._current is not None)):
                CAPTURES.add("dropped_shutdown")
            self._waiting.clear()
            self._current = None

    async def _remember(self, capture: Capture) -> None:
        made = await self._memory.ready()
        if isinstance(made, Down):
            CAPTURES.add("exception", error_type=made.kind)
            return
        memory = made.value
        left = self._left_memory = asyncio.Event()
        remembered = False

        async def remember() -> None:
            nonlocal remembered
            try:
                await memory.remember(capture)
                remembered = True
            finally:
                left.set()

        try:
            # Its own task: a memory that ignores being cancelled does not keep the worker.
            answer = await consult(remember)
        except asyncio.CancelledError:
            if remembered:  # in the very moment of being cancelled
                CAPTURES.add("remembered")
                self._current = None
            raise
        if isinstance(answer, Refused):
            CAPTURES.add("error", error_type=answer.code)
        elif isinstance(answer, Down) and answer.kind is None:
            CAPTURES.add("error", error_type="unavailable")
        elif isinstance(answer, Down):
            CAPTURES.add("exception", error_type=answer.kind)
        else:
            CAPTURES.add("remembered")

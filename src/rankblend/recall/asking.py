"""Asking stores: one after the other, or side by side with a time-out each, with one set of rules.

The recall itself is a generator that yields rounds of `Request`s and is sent their `Outcome`s. It
does not know whether `drive` or `drive_async` runs it, so both give the same answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from typing import TypeVar

from attrs import frozen

from rankblend.errors import MemoryContractError, StoreFailedError, StoreTimeoutError
from rankblend.stores.protocol import Reason

__all__ = ["Failure", "Outcome", "Request", "Round", "drive", "drive_async"]

T = TypeVar("T")


@frozen
class Request:
    """One call of one store (or of the embedder).

    Args:
        store: Whom to ask; named in failures.
        during: ``propose``, ``observe`` or ``embed``.
        call: The call itself, without arguments.
    """

    store: str
    during: str
    call: Callable[[], object]


@frozen
class Failure:
    """A store that could not answer.

    Attributes:
        store, during: Which call.
        reason: FAILED or TIMED_OUT.
        kind: Class name of the exception; its message may contain the query and is not kept.
    """

    store: str
    during: str
    reason: Reason
    kind: str

    @property
    def words(self) -> str:
        """One line for people."""
        what = "timed out" if self.reason is Reason.TIMED_OUT else f"failed ({self.kind})"
        return f"store {self.store!r} {what} during {self.during}"


@frozen
class Outcome:
    """What came of a request: a value, or a failure."""

    value: object = None
    failure: Failure | None = None


Round = Generator[list[Request], list[Outcome], T]


def drive(recall: Round[T], *, timeout: float | None, strict: bool) -> T:
    """Run a recall in this thread.

    Without a time-out every store is called directly. With one, the stores of a round run side by
    side in threads; whoever has not answered when the time is over is no longer waited for.
    """
    outcomes: list[Outcome] | None = None
    try:
        while True:
            requests, result, finished = _step(recall, outcomes)
            if finished:
                return result  # type: ignore[return-value]
            if timeout is None:
                outcomes = [_called(request, request.call, strict=strict) for request in requests]
                continue
            running = [_in_thread(request.call) for request in requests]
            late = wait(running, timeout=timeout).not_done
            outcomes = [
                _late(request, timeout, strict=strict)
                if future in late
                else _called(request, future.result, strict=strict)
                for request, future in zip(requests, running, strict=True)
            ]
    finally:
        recall.close()


async def drive_async(recall: Round[T], *, timeout: float | None, strict: bool) -> T:
    """Run a recall without blocking the event loop, the stores of a round side by side."""
    outcomes: list[Outcome] | None = None
    try:
        while True:
            requests, result, finished = await asyncio.wrap_future(
                _in_thread(partial(_step, recall, outcomes))
            )
            if finished:
                return result  # type: ignore[return-value]
            running = [asyncio.wrap_future(_in_thread(request.call)) for request in requests]
            late = (await asyncio.wait(running, timeout=timeout))[1] if running else set()
            for future in late:
                future.cancel()
            outcomes = [
                _late(request, timeout or 0.0, strict=strict)
                if future in late
                else _called(request, future.result, strict=strict)
                for request, future in zip(requests, running, strict=True)
            ]
    finally:
        # A cancelled caller may leave while a thread still runs a step; the generator then closes
        # itself, and lets go of its lock, when that thread drops it.
        with suppress(ValueError):
            recall.close()


def _step(recall: Round[T], outcomes: list[Outcome] | None) -> tuple[list[Request], T | None, bool]:
    try:
        return (recall.send(outcomes) if outcomes is not None else next(recall)), None, False
    except StopIteration as done:
        return [], done.value, True


def _called(request: Request, answer: Callable[[], object], *, strict: bool) -> Outcome:
    try:
        return Outcome(answer())
    except MemoryContractError:
        raise
    except Exception as error:
        return _failed(request, error, strict=strict)


def _failed(request: Request, error: Exception, *, strict: bool) -> Outcome:
    if strict:
        raise StoreFailedError(request.store, request.during) from error
    kind = type(error).__name__
    return Outcome(failure=Failure(request.store, request.during, Reason.FAILED, kind))


def _late(request: Request, timeout: float, *, strict: bool) -> Outcome:
    if strict:
        raise StoreTimeoutError(request.store, timeout)
    return Outcome(failure=Failure(request.store, request.during, Reason.TIMED_OUT, "TimeoutError"))


def _in_thread(call: Callable[[], T]) -> Future[T]:
    """Run a call in a daemon thread: a store that never returns must not keep the process alive."""
    future: Future[T] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="rankblend-store").start()
    return future

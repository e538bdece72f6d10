"""Asking stores: at once, in threads or on an event loop; many recalls at once, or one write.

The recall itself is a generator that yields rounds of `Request`s and is sent their `Outcome`s. It
does not know how `drive` asks them, nor in which thread, so the answer is the same.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TypeVar

from attrs import frozen

from rankblend.errors import MemoryContractError, StoreFailedError, StoreTimeoutError
from rankblend.stores import Reason

T = TypeVar("T")
_ASKING: ContextVar[tuple[SharedLock, ...]] = ContextVar("rankblend_asking", default=())


class SharedLock:
    """A lock that readers share and a writer holds alone.

    Reading may nest, inside writing too: a store's function may recall from the same memory.
    """

    def __init__(self) -> None:
        self._state = threading.Condition()
        # Who holds it: an object for each block → its thread.
        self._readers: dict[object, int] = {}
        self._writers: dict[object, int] = {}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        holder, own = object(), threading.get_ident()
        try:
            with self._state:
                self._state.wait_for(lambda: all(who == own for who in self._writers.values()))
                self._readers[holder] = own
            yield
        finally:
            with self._state:
                self._readers.pop(holder, None)
                self._state.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone.

        Raises:
            MemoryContractError: From inside a store that is being asked, or shown a write: it would
                wait for itself.
        """
        if self in _ASKING.get():
            raise MemoryContractError(
                "a store may not write to the memory that is asking it; write when it is done"
            )
        holder, own = object(), threading.get_ident()
        try:
            with self._state:
                # This thread is in no block, so what it still holds was left behind by a Ctrl-C.
                for held in (self._readers, self._writers):
                    for left in [block for block, who in held.items() if who == own]:
                        del held[left]
                self._state.wait_for(lambda: not self._writers and not self._readers)
                self._writers[holder] = own
            yield
        finally:
            with self._state:
                self._writers.pop(holder, None)
                self._state.notify_all()


def asked_by(lock: SharedLock, call: Callable[[], T]) -> Callable[[], T]:
    """The call of a store, marked as made during a recall or write, in whichever thread it runs."""

    def marked() -> T:
        context = copy_context()
        context.run(_ASKING.set, (*_ASKING.get(), lock))
        return context.run(call)

    return marked


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

    @property
    def whom(self) -> tuple[str, bool]:
        """Who is asked: a store, or the embedder, which a store may be called like."""
        return self.store, self.during == "embed"


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


def drive(
    recall: Round[T], *, timeout: float | None, strict: bool, abandoned: Future[None] | None = None
) -> T:
    """Run a recall in this thread.

    Without a time-out every store is called directly. With one, or when it may be abandoned, the
    stores of a round run side by side in threads; whoever has not answered when the time is over is
    no longer waited for, and not asked again in this recall: its time-out is its answer.

    Args:
        recall: The recall.
        timeout: Seconds for each round; None waits for ever.
        strict: Raise what a store raises.
        abandoned: Once it is done nobody wants the answer: no store is waited for any longer.

    Raises:
        CancelledError: It was abandoned.
    """
    outcomes: list[Outcome] | None = None
    late: dict[tuple[str, bool], Outcome] = {}
    try:
        while True:
            try:
                requests = recall.send(outcomes) if outcomes is not None else next(recall)
            except StopIteration as done:
                answer: T = done.value
                return answer
            if timeout is None and abandoned is None:
                outcomes = [_called(request, request.call, strict=strict) for request in requests]
                continue
            asked = [request for request in requests if request.whom not in late]
            running = [in_thread(request.call) for request in asked]
            _wait(running, timeout, abandoned)
            answered = [future.done() for future in running]
            answers = dict(late)
            for request, future, in_time in zip(asked, running, answered, strict=True):
                if in_time:
                    answers[request.whom] = _called(request, future.result, strict=strict)
                else:
                    answers[request.whom] = _late(request, timeout or 0.0, strict=strict)
                    late[request.whom] = answers[request.whom]
            outcomes = [answers[request.whom] for request in requests]
    finally:
        recall.close()


async def away(call: Callable[[Future[None]], T]) -> T:
    """Run a call in a thread of its own and wait without blocking the event loop.

    All of it runs there, so that nothing the loop does meanwhile, not even a write that waits for
    the recall to end, can keep it from ending.

    Args:
        call: Takes what `drive` takes as ``abandoned``; done when the caller is cancelled.
    """
    abandoned: Future[None] = Future()
    try:
        return await asyncio.wrap_future(in_thread(partial(call, abandoned)))
    finally:
        abandoned.set_result(None)


def _wait(
    running: list[Future[object]], timeout: float | None, abandoned: Future[None] | None
) -> None:
    """Wait until all have answered or the time is over."""
    over = threading.Event()

    def look(_: object) -> None:
        if all(future.done() for future in running):
            over.set()

    for future in running:
        future.add_done_callback(look)
    if abandoned is not None:
        abandoned.add_done_callback(lambda _: over.set())
    if running:
        # Threads cannot wait longer than TIMEOUT_MAX, which is for ever.
        over.wait(None if timeout is None else min(timeout, threading.TIMEOUT_MAX))
    if abandoned is not None and abandoned.done():
        raise CancelledError


def _called(request: Request, answer: Callable[[], object], *, strict: bool) -> Outcome:
    try:
        return Outcome(answer())
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


def in_thread(call: Callable[[], T]) -> Future[T]:
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

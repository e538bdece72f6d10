"""Asking stores: at once, in threads or away from an event loop; many recalls at once, or one write.

A recall says whom it asks for what, in rounds of `Request`s, and does not know how it is waited for,
nor in which thread; so the answer is the same.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from itertools import takewhile
from time import monotonic
from typing import TypeVar

from attrs import define, field, frozen

from rankblend.errors import MemoryContractError, StoreFailedError, StoreTimeoutError
from rankblend.forks import guard
from rankblend.stores import Reason

T = TypeVar("T")
_ASKING: ContextVar[tuple[SharedLock, ...]] = ContextVar("rankblend_asking", default=())


class SharedLock:
    """A lock that readers share and a writer holds alone, in the order in which they come.

    So a writer waits for those that read already and keeps nobody from reading for longer than its
    own write. Reading may nest, inside writing too: a store's function may recall from the same
    memory; who is inside already waits for no writer that waits for them.

    Attributes:
        was_cut: Whether a fork left another thread's write behind, which never ends in the child.
    """

    def __init__(self) -> None:
        self.was_cut = False
        self._state = threading.Condition()
        # Who holds it: an object for each block → its thread; who waits, and whether to write.
        self._readers: dict[object, int] = {}
        self._writers: dict[object, int] = {}
        self._waiting: dict[object, bool] = {}
        guard(self, "_state")

    @property
    def inside(self) -> bool:
        """Whether a store is being asked, or shown a write, by whoever calls."""
        return self in _ASKING.get()

    @contextmanager
    def reading(self) -> Iterator[Hold]:
        """Hold the lock together with other readers."""
        hold = Hold(self)
        try:
            self.take(hold)
            yield hold
        finally:
            self.drop(hold)

    def take(self, hold: Hold) -> None:
        """Hold it for reading; waits for the writers that came before, unless they wait for us."""
        own = threading.get_ident()
        with self._state:
            nested = self.inside or own in (*self._readers.values(), *self._writers.values())

            def ready() -> bool:
                if any(who != own for who in self._writers.values()):
                    return False
                before = takewhile(lambda each: each[0] is not hold, self._waiting.items())
                return nested or not any(writes for _, writes in before)

            self._wait(hold, ready, writes=False)
            self._readers[hold] = own

    def drop(self, hold: Hold) -> None:
        """Let go of it."""
        with self._state:
            self._readers.pop(hold, None)
            self._state.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone.

        Raises:
            MemoryContractError: From inside a store that is being asked, or shown a write: it would
                wait for itself.
        """
        if self.inside:
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
                self._wait(holder, lambda: self._is_free and self._first_waiting is holder)
                self._writers[holder] = own
            yield
        finally:
            with self._state:
                self._writers.pop(holder, None)
                self._state.notify_all()

    @contextmanager
    def writing_if_free(self) -> Iterator[bool]:
        """Hold the lock alone where that takes no waiting; whether it is held."""
        holder = object()
        try:
            with self._state:
                free = self._is_free and not self._waiting
                if free:
                    self._writers[holder] = threading.get_ident()
            yield free
        finally:
            with self._state:
                self._writers.pop(holder, None)
                self._state.notify_all()

    def after_fork(self, *, quiet: bool) -> None:  # noqa: ARG002 - its state is whole or new
        """Forget the threads that the child has not."""
        own = threading.get_ident()
        self.was_cut = any(who != own for who in self._writers.values())
        for held in (self._readers, self._writers):
            for left in [block for block, who in held.items() if who != own]:
                del held[left]
        self._waiting.clear()

    @property
    def _is_free(self) -> bool:
        return not self._writers and not self._readers

    @property
    def _first_waiting(self) -> object:
        return next(iter(self._waiting), None)

    def _wait(self, holder: object, ready: Callable[[], bool], *, writes: bool = True) -> None:
        """Stand in line until it is one's turn; the caller holds the state."""
        self._waiting[holder] = writes
        try:
            self._state.wait_for(ready)
        finally:
            self._waiting.pop(holder, None)
            self._state.notify_all()


class Hold:
    """A reader's hold of a `SharedLock`, which it may let go of for a while."""

    def __init__(self, lock: SharedLock) -> None:
        self._lock = lock

    @contextmanager
    def dropped(self) -> Iterator[None]:
        """Let go during a block; what is read afterwards may have been written meanwhile."""
        self._lock.drop(self)
        try:
            yield
        finally:
            self._lock.take(self)


class Turns:
    """When a store is asked and when it is shown a write: many questions at once, or one write.

    Nobody who writes waits for it: what it has not seen yet it is shown when nobody is asking it,
    at the latest before it is asked again.
    """

    def __init__(self) -> None:
        self.lock = SharedLock()
        self._waiting: deque[Callable[[], object]] = deque()

    def show(self, call: Callable[[], object]) -> None:
        """Show it a write, now or when it has time."""
        self._waiting.append(call)
        self._show_if_free()

    def ask(self, call: Callable[[], T]) -> T:
        """Ask it, when it has seen all writes; unless it asks itself, which waits for nobody."""
        if self._waiting and not self.lock.inside:
            with self.lock.writing():
                self._show()
        try:
            with self.lock.reading():
                return call()
        finally:
            self._show_if_free()

    def _show_if_free(self) -> None:
        while self._waiting:
            with self.lock.writing_if_free() as free:
                if not free:
                    return  # who keeps it from being free looks here when he is done
                self._show()

    def _show(self) -> None:
        while self._waiting:
            self._waiting[0]()  # one that is interrupted is shown again
            self._waiting.popleft()


def asked_by(call: Callable[[], T], *locks: SharedLock) -> Callable[[], T]:
    """The call of a store, marked as made during a recall or write, in whichever thread it runs."""

    def marked() -> T:
        context = copy_context()
        context.run(_ASKING.set, (*_ASKING.get(), *locks))
        return context.run(call)

    return marked


@frozen
class Request:
    """One call of one store (or of the embedder).

    Args:
        store: Whom to ask; named in failures.
        during: ``propose``, ``observe`` or ``embed``.
        call: The call itself, without arguments.
        immediate: Whether it is answered from memory; others are waited for with no lock held.
        once: Names what is asked, where one answer to it will do for the whole recall.
    """

    store: str
    during: str
    call: Callable[[], object]
    immediate: bool = False
    once: Hashable = None

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


@define(eq=False)
class Rounds:
    """How the stores of one recall are asked.

    Args:
        timeout: Seconds for each round, all its requests side by side; None asks one after the
            other and waits for ever.
        strict: Raise what a store raises.
        abandoned: Once it is done nobody wants the answer: no store is waited for any longer.
    """

    timeout: float | None = None
    strict: bool = False
    abandoned: Future[None] | None = None
    _late: dict[tuple[str, bool], Outcome] = field(factory=dict, init=False)
    _said: dict[Hashable, Outcome] = field(factory=dict, init=False)

    def ask(self, requests: Sequence[Request], hold: Hold | None = None) -> list[Outcome]:
        """Ask all of them; who is late once is not asked again.

        Args:
            requests: In order.
            hold: Let go of while others than immediate ones are waited for.

        Raises:
            CancelledError: It was abandoned.
            StoreFailedError, StoreTimeoutError: Where that is strict.
        """
        threads = self.timeout is not None or self.abandoned is not None
        started = monotonic()
        waiting = [
            (request, in_thread(request.call) if threads else None)
            for request in requests
            if request.whom not in self._late and request.once not in self._said
        ]
        answers = {each.whom: self._said[each.once] for each in requests if each.once in self._said}
        for immediate in (True, False):
            part = [each for each in waiting if each[0].immediate is immediate]
            if part and hold is not None and not immediate:
                with hold.dropped():
                    answers |= self._answers(part, started)
            elif part:
                answers |= self._answers(part, started)
        self._said |= {
            e.once: answers[e.whom] for e in requests if e.once is not None and e.whom in answers
        }
        return [answers.get(each.whom) or self._late[each.whom] for each in requests]

    def _answers(
        self, part: Sequence[tuple[Request, Future[object] | None]], started: float
    ) -> dict[tuple[str, bool], Outcome]:
        """What comes of requests, those with a future being on their way."""
        running = [future for _, future in part if future is not None]
        if running:
            left = None if self.timeout is None else self.timeout - (monotonic() - started)
            _wait(running, left, self.abandoned)
        answered = [future is None or future.done() for _, future in part]
        answers = {}
        for (request, future), in_time in zip(part, answered, strict=True):
            if not in_time:
                self._late[request.whom] = self._too_late(request)
            else:
                call = request.call if future is None else future.result
                answers[request.whom] = self._called(request, call)
        return answers

    def _called(self, request: Request, answer: Callable[[], object]) -> Outcome:
        try:
            return Outcome(answer())
        except Exception as error:
            if self.strict:
                raise StoreFailedError(request.store, request.during) from error
            kind = type(error).__name__
            return Outcome(failure=Failure(request.store, request.during, Reason.FAILED, kind))

    def _too_late(self, request: Request) -> Outcome:
        if self.strict:
            raise StoreTimeoutError(request.store, self.timeout or 0.0)
        late = Failure(request.store, request.during, Reason.TIMED_OUT, "TimeoutError")
        return Outcome(failure=late)


async def away(call: Callable[[Future[None]], T]) -> T:
    """Run a call in a thread of its own and wait without blocking the event loop.

    All of it runs there, so that nothing the loop does meanwhile, not even a write that waits for
    the recall to end, can keep it from ending.

    Args:
        call: Takes what `Rounds` takes as ``abandoned``; done when the caller is cancelled.
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
        over.wait(None if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX))
    if abandoned is not None and abandoned.done():
        raise CancelledError


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

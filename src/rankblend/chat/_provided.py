"""A part that is there, or that a factory makes when it is first needed; and asking it for procedures."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from rankblend.forks import guard
from rankblend.reasonlets import (
    Capture,
    Down,
    ReasonletMatch,
    Receipt,
    Refused,
    Said,
    consult,
    is_async,
)
from rankblend.recall import in_thread
from rankblend.relevance import Scope


@runtime_checkable
class SupportsRecall(Protocol):
    """A memory that recalls procedures, e.g. a `ReasonletMemory`."""

    async def recall(
        self,
        question: str,
        *,
        scope: Scope | str,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> Sequence[ReasonletMatch]:
        """The procedures most worth trying, best first."""
        ...


@runtime_checkable
class SupportsRemember(Protocol):
    """A memory that remembers captures, e.g. a `ReasonletMemory`."""

    async def remember(self, capture: Capture) -> Receipt:
        """Remember an answered question."""
        ...


@runtime_checkable
class SupportsOffer(Protocol):
    """What takes captures without waiting, e.g. a `CaptureQueue`."""

    def offer(self, capture: Capture) -> bool:
        """Take it; False when it was dropped."""
        ...


T_co = TypeVar("T_co", covariant=True)


def blocking_problems(name: str, part: object, kind: type[Any]) -> Iterator[str]:
    """Problems of a part whose methods wait where those of the protocol are ``async``."""
    for method in sorted(vars(kind)):
        expected = inspect.iscoroutinefunction(getattr(kind, method))
        if expected and hasattr(part, method) and not is_async(getattr(part, method)):
            yield (
                f"{name}: the {method} of a {type(part).__name__} is not async; "
                "use ReasonletMemory, not its sync façade"
            )


class Provided(Generic[T_co]):
    """A part, or the factory that makes it once; a failure of the factory is not kept.

    Args:
        name: What it is called in an error.
        part: The part itself, or a callable without arguments that returns it.
        kind: The protocol it must satisfy.
        like: A class that does, for the error.
    """

    def __init__(
        self, name: str, part: T_co | Callable[[], T_co], kind: type[Any], *, like: str
    ) -> None:
        self._name = name
        self._kind = kind
        self._like = like
        self._part = part
        self._lock = threading.RLock()
        self._starting = threading.Lock()
        self._making: Future[Said[T_co] | Down] | None = None
        guard(self, "_lock", "_starting")

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it can be neither the part nor its factory; empty when it can."""
        if self._is_there(self._part):
            return tuple(blocking_problems(self._name, self._part, self._kind))
        if callable(self._part):
            return ()
        kind = type(self._part).__name__
        return (f"{self._name}: expected a {self._like} or a factory of one, got {kind}",)

    async def ready(self, *, timeout: timedelta | None = None) -> Said[T_co] | Down:
        """The part; a factory runs in a thread, once for all who wait, and holds up no event loop.

        Args:
            timeout: How long it is waited for; None: no limit. A factory that takes longer goes on,
                and whoever comes later waits for the same one.
        """
        if self._is_there(self._part):
            return Said(self._part)  # type: ignore[arg-type]
        with self._starting:
            if self._making is None or self._making.done():
                self._making = in_thread(self._outcome)
            making = self._making
        waiting = asyncio.wrap_future(making)
        try:
            seconds = None if timeout is None else timeout.total_seconds()
            done, _ = await asyncio.wait({waiting}, timeout=seconds)
            return waiting.result() if done else Down("TimeoutError", timed_out=True)
        finally:
            waiting.cancel()  # what runs in the thread goes on

    def after_fork(self, *, quiet: bool) -> None:  # noqa: ARG002 - nothing is half-made
        """In the child: the thread that was making the part is not there."""
        self._making = None

    def get(self) -> T_co:
        """The part, where there is nothing that could be held up.

        Raises:
            TypeError: The factory made something else.
            Exception: Whatever the factory raises.
        """
        with self._lock:
            if not self._is_there(self._part):
                assert callable(self._part)
                made = self._part()
                if not self._is_there(made):
                    kind = type(made).__name__
                    raise TypeError(f"the factory of the {self._name} made a {kind}")
                for problem in blocking_problems(self._name, made, self._kind):
                    raise TypeError(problem)
                self._part = made
            part: T_co = self._part  # type: ignore[assignment]
            return part

    def _outcome(self) -> Said[T_co] | Down:
        try:
            return Said(self.get())
        except Exception as error:
            return Down(type(error).__name__)

    def _is_there(self, value: object) -> bool:
        return isinstance(value, self._kind) and not isinstance(value, type)


async def ask(
    memory: SupportsRecall,
    question: str,
    *,
    scope: Scope,
    top: int | None,
    min_similarity: float | None,
    timeout: timedelta,
) -> Said[Sequence[ReasonletMatch]] | Down | Refused:
    """Recall, waiting no longer than the time-out even for a memory that ignores it.

    Args:
        memory: Whom to ask.
        question: About what.
        scope: Where.
        top: At most how many matches; None: as the memory says.
        min_similarity: The cut-off; None: the memory's own.
        timeout: How long it is waited for.

    Returns:
        The matches, or what went wrong; only the caller's own cancellation raises.
    """

    async def recall() -> Any:
        matches = await memory.recall(question, scope=scope, top=top, min_similarity=min_similarity)
        if not all(isinstance(match, ReasonletMatch) for match in matches):
            raise TypeError("expected matches")
        return tuple(matches)

    return await consult(recall, timeout=timeout)

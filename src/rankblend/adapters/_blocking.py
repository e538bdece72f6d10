"""The chat pipeline for callers without an event loop, and what all doors to it share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Self, TypeVar

from rankblend.chat import (
    CaptureQueue,
    ChatOptions,
    ChatPipeline,
    Exchange,
    Message,
    StreamedReply,
    SupportsRecall,
    is_bypassed,
    leading_system_messages,
)
from rankblend.forks import guard
from rankblend.reasonlets import LoopThread, ReasonletValidationError
from rankblend.relevance import Scope

T = TypeVar("T")


class BlockingPipeline:
    """A `ChatPipeline` whose calls wait: memory and queue live in an event loop in a thread.

    The thread starts with the first call.

    Args:
        memory: Recalls procedures; or a factory of it.
        queue: Takes captures; drained when this is closed.
        options: What to do with a call; None: the defaults.

    Raises:
        ReasonletValidationError: As `ChatPipeline`.
    """

    def __init__(
        self,
        memory: SupportsRecall | Callable[[], SupportsRecall],
        *,
        queue: CaptureQueue | None = None,
        options: ChatOptions | None = None,
    ) -> None:
        self.pipeline = ChatPipeline(memory, queue=queue, options=options)
        self._queue = queue
        self._loop: LoopThread | None = None
        self._starting = threading.Lock()
        guard(self, "_starting")

    def begin(
        self,
        messages: Sequence[Message],
        *,
        scope: Scope | str | None = None,
        subject_id: str | None = None,
        tools: object = (),
    ) -> Exchange:
        """See `ChatPipeline.begin`; a call from inside its own loop comes back untouched, too."""
        if is_bypassed() or self._is_inside():
            return Exchange(messages)
        return self._run(
            self.pipeline.begin(messages, scope=scope, subject_id=subject_id, tools=tools)
        )

    def finish(self, exchange: Exchange, response: Iterable[Message], *, seconds: float) -> None:
        """See `Exchange.finish`; after `close` the closed queue counts it as dropped."""

        async def finish() -> None:
            exchange.finish(response, duration=timedelta(seconds=seconds))

        if exchange.recorder is None:
            return
        if self._is_inside():
            exchange.finish(response, duration=timedelta(seconds=seconds))
        else:
            self._run(finish())

    def close(self) -> None:
        """Drain the queue and end the thread; closing twice is harmless."""
        if self._loop is not None and not self._loop.closed:
            if self._queue is not None:
                self._loop.run(self._queue.aclose())
            self._loop.close()

    def _is_inside(self) -> bool:
        """Whether the caller is a part of the memory that runs in the loop: it must not wait."""
        return self._loop is not None and self._loop.is_current

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._starting:
            if self._loop is None:
                self._loop = LoopThread()
        return run_blocking(call) if self._loop.closed else self._loop.run(call)


class BlockingStream:
    """An iterator that is read by somebody else; what it is made of is captured at its end.

    Args:
        stream: The iterator, also a context manager with ``close``.
        reply: Told of each update.
        finished: Told once, with the seconds from the first read to the last, when the stream was
            read to its end; never for one that failed or was left.
    """

    def __init__(
        self, stream: Any, reply: StreamedReply, finished: Callable[[float], None]
    ) -> None:
        self._stream = stream
        self._updates: Iterator[Any] = iter(stream)
        self._reply = reply
        self._finished: Callable[[float], None] | None = finished
        self._start: float | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._start is None:
            self._start = time.perf_counter()
        try:
            update = next(self._updates)
        except StopIteration:
            finished, self._finished = self._finished, None
            if finished is not None:
                finished(time.perf_counter() - self._start)
            raise
        except BaseException:
            self._finished = None
            raise
        self._reply.add(update)
        return update

    def close(self) -> None:
        """Close what is read from; a stream that was not read to its end is not captured."""
        self._finished = None
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def run_blocking(call: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine in an event loop of its own, also where one is running already."""
    loop = LoopThread()
    try:
        return loop.run(call)
    finally:
        loop.close()


def offered_text(exchange: Exchange) -> str | None:
    """The text with which a procedure is offered, or None when none is."""
    if exchange.injected is None:
        return None
    at = leading_system_messages(exchange.messages) - 1
    text: str = exchange.messages[at]["content"]
    return text


def without_tool(options: ChatOptions | None, remedy: str) -> ChatOptions | None:
    """Options for a door behind which the host runs the tools.

    Raises:
        ReasonletValidationError: They ask for the tool ``find_procedure``, which the host would be
            asked to run without knowing it.
    """
    if isinstance(options, ChatOptions) and options.expose_find_procedure:
        problem = "options.expose_find_procedure: the tools of this door are run by its host"
        raise ReasonletValidationError([f"{problem}; {remedy}"])
    return options

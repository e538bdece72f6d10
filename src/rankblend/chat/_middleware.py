"""A procedural memory around a chat callable: recall before it answers, capture after.

Put it *outside* the tool loop. One call to it is then one question with all its tool calls: it is
recalled for, captured as a whole, and its capture is a run of what was recalled, or a version of it.
Inside the loop each round trip is a call of its own: the ones that end in a tool call are skipped,
and only the last is captured; it continues a question, so nothing was recalled for it and its
capture has no parent.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from rankblend.chat._exchange import Exchange
from rankblend.chat._messages import Message, read_messages
from rankblend.chat._options import ChatOptions
from rankblend.chat._pipeline import ChatPipeline
from rankblend.chat._provided import SupportsOffer, SupportsRecall
from rankblend.chat._streaming import ObservedStream, StreamedReply
from rankblend.reasonlets import raise_invalid
from rankblend.relevance import Scope


class ReasonletChat:
    """A chat callable with a procedural memory; called like the one it is put around.

    The callable takes the messages of a chat and any keywords, and answers, awaited or not, with
    the messages that are new (one, or several when it runs tools: their calls, their results, the
    answer), or with an async iterator of their pieces. No failure of the memory breaks the call or
    changes its answer; cancelling the call still does what it did.

    Args:
        chat: The callable. With ``expose_find_procedure`` its keyword ``tools`` gets a
            `FindProcedure` more.
        memory: Recalls procedures; or a factory of it, called when it is first needed. So a judge
            may use this very object although its memory needs the judge.
        queue: Takes captures, see `CaptureQueue`; or a factory of it. Needed unless the options
            say that nothing is captured.
        options: What to do with a call; None: the defaults.
        read: The messages in an answer of the callable, and the pieces in an update of a stream;
            for callables that answer in another shape.
        clock: Seconds, from any origin; measures how long a call takes.

    Raises:
        ReasonletValidationError: No memory, captures without a queue, or something else in their
            place; all of it at once.
    """

    def __init__(
        self,
        chat: Callable[..., Any],
        memory: SupportsRecall | Callable[[], SupportsRecall],
        *,
        queue: SupportsOffer | Callable[[], SupportsOffer] | None = None,
        options: ChatOptions | None = None,
        read: Callable[[Any], Iterable[Message]] = read_messages,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        parts: dict[str, object] = {"chat": chat, "read": read, "clock": clock}
        raise_invalid(
            f"{name}: expected a callable, got {type(part).__name__}"
            for name, part in parts.items()
            if not callable(part)
        )
        self.pipeline = ChatPipeline(memory, queue=queue, options=options)
        self._chat = chat
        self._read = read
        self._clock = clock

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        scope: Scope | str | None = None,
        subject_id: str | None = None,
        **keywords: Any,
    ) -> Any:
        """Chat.

        Args:
            messages: For the callable; never changed.
            scope: Of this call; None: the default scope of the options, and without one the call
                passes through untouched.
            subject_id: Whom the call is about; ends in the capture's provenance.
            **keywords: For the callable.

        Returns:
            What the callable answers. A stream is captured when it is read to its end.

        Raises:
            ReasonletValidationError: The scope or the subject is invalid.
            Exception: Whatever the callable raises.
        """
        tools = keywords.get("tools")
        exchange = await self.pipeline.begin(
            messages, scope=scope, subject_id=subject_id, tools=tools
        )
        if exchange.tool is not None:
            keywords["tools"] = [*(tools or ()), exchange.tool]
        start = self._clock()
        answer = self._chat(exchange.messages, **keywords)
        if inspect.isawaitable(answer):
            answer = await answer
        if exchange.recorder is None:
            return answer
        if hasattr(type(answer), "__aiter__"):
            return self._observed(answer, exchange)
        duration = timedelta(seconds=self._clock() - start)
        exchange.finish(self._messages(answer), duration=duration)
        return answer

    def _messages(self, answer: Any) -> Iterator[Message]:
        """A generator, so that what goes wrong with reading happens where it is counted."""
        yield from self._read(answer)

    def _observed(self, stream: Any, exchange: Exchange) -> ObservedStream:
        reply = StreamedReply(self._read)

        def finished(seconds: float) -> None:
            exchange.finish(reply.messages(), duration=timedelta(seconds=seconds))

        return ObservedStream(stream, read=reply.add, finished=finished, clock=self._clock)

"""Recall before a model answers, capture after; for middleware of any framework to build on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from rankblend.chat._exchange import RECALLS, Exchange, Recorder
from rankblend.chat._find_procedure import FindProcedure, accepts_find_procedure
from rankblend.chat._messages import Message, leading_system_messages, new_question
from rankblend.chat._options import ChatOptions
from rankblend.chat._provided import Provided, SupportsOffer, SupportsRecall, ask
from rankblend.reasonlets import (
    MAX_REFERENCE,
    Checks,
    Down,
    Refused,
    raise_invalid,
)
from rankblend.relevance import Scope

_BYPASSED: ContextVar[bool] = ContextVar("rankblend_chat_bypassed", default=False)


@contextmanager
def bypassed() -> Iterator[None]:
    """Calls made inside pass every pipeline untouched and uncounted, as a judge's calls must."""
    token = _BYPASSED.set(True)
    try:
        yield
    finally:
        _BYPASSED.reset(token)


def is_bypassed() -> bool:
    """Whether this is asked inside `bypassed`."""
    return _BYPASSED.get()


class ChatPipeline:
    """What to do about each chat call; `ReasonletChat` does it around a callable.

    Args:
        memory: Recalls procedures; or a factory of it, called in a thread when it is first needed;
            the time-out of the recall is for both.
        queue: Takes captures; or a factory of it. Not needed when nothing is captured.
        options: What to do with a call; None: the defaults.

    Raises:
        ReasonletValidationError: No memory, captures without a queue, or something else in their
            place; all of it at once.
    """

    def __init__(
        self,
        memory: SupportsRecall | Callable[[], SupportsRecall],
        *,
        queue: SupportsOffer | Callable[[], SupportsOffer] | None = None,
        options: ChatOptions | None = None,
    ) -> None:
        options = ChatOptions() if options is None else options
        self._memory: Provided[SupportsRecall] = Provided(
            "memory", memory, SupportsRecall, like="ReasonletMemory"
        )
        self._queue: Provided[SupportsOffer] | None = None
        problems = list(self._memory.problems)
        if not isinstance(options, ChatOptions):
            problems.append(f"options: expected ChatOptions, got {type(options).__name__}")
        elif queue is not None:
            self._queue = Provided("queue", queue, SupportsOffer, like="CaptureQueue")
            problems += self._queue.problems
        elif options.capture:
            problems.append("queue: expected a CaptureQueue, or ChatOptions(capture=False)")
        raise_invalid(problems)
        self.options = options

    async def begin(
        self,
        messages: Sequence[Message],
        *,
        scope: Scope | str | None = None,
        subject_id: str | None = None,
        tools: object = (),
    ) -> Exchange:
        """Look at a call before the model does, and recall when it asks a new question.

        Args:
            messages: What the caller sends; never changed.
            scope: Of this call; None: the default scope.
            subject_id: Whom the call is about; ends in the capture's provenance.
            tools: The tools of the call.

        Returns:
            What to send, and what to call when the answer is there. A call without a scope comes
            back untouched, and so does one inside `bypassed`.

        Raises:
            ReasonletValidationError: The scope is invalid, or the subject of a call that is to be
                captured. A failure of the memory raises nothing.
        """
        if is_bypassed():
            return Exchange(messages)
        options = self.options
        where = self._scope(scope, subject_id)
        if where is None:
            if options.recall or options.capture:
                RECALLS.add("skipped", skip_reason="no_scope")
            return Exchange(messages)
        exchange = Exchange(messages)
        if options.capture and self._queue is not None:
            request = tuple(messages) if isinstance(messages, list) else messages
            exchange.recorder = Recorder(self._queue, options, where, subject_id, request)
        question = new_question(messages) if options.recall else None
        wants_tool = options.expose_find_procedure and accepts_find_procedure(tools)
        if question is not None or wants_tool:
            time = asyncio.get_running_loop().time
            end = time() + options.recall_timeout.total_seconds()
            made = await self._memory.ready(timeout=options.recall_timeout)
            if isinstance(made, Down):
                _count_down(made)
                return exchange
            if wants_tool:
                exchange.tool = self._tool(made.value, where, exchange)
            if question is not None:
                left = timedelta(seconds=max(0.0, end - time()))
                await self._inject(exchange, made.value, question, where, timeout=left)
        if options.recall and question is None:
            RECALLS.add("skipped", skip_reason="continuation")
        return exchange

    def _scope(self, scope: object, subject_id: object) -> Scope | None:
        read = self.options.default_scope if scope is None else scope
        if read is None:
            return None
        checks = Checks()
        if self.options.capture:
            checks.text("subject_id", subject_id, limit=MAX_REFERENCE, optional=True)
        found = checks.scope("scope", read)
        checks.raise_if_any()
        return found

    def _tool(self, memory: SupportsRecall, scope: Scope, exchange: Exchange) -> FindProcedure:
        return FindProcedure(
            memory,
            scope,
            min_similarity=self.options.min_similarity,
            timeout=self.options.recall_timeout,
            found=exchange.looked_up.append,
        )

    async def _inject(
        self,
        exchange: Exchange,
        memory: SupportsRecall,
        question: str,
        scope: Scope,
        *,
        timeout: timedelta,
    ) -> None:
        """Offer the best match in a copy of the messages; whatever goes wrong is only counted."""
        answer = await ask(
            memory,
            question,
            scope=scope,
            top=1,
            min_similarity=self.options.min_similarity,
            timeout=timeout,
        )
        if isinstance(answer, Refused):
            RECALLS.add("error", error_type=answer.code)
        elif isinstance(answer, Down):
            _count_down(answer)
        elif not answer.value:
            RECALLS.add("empty")
        else:
            match = answer.value[0]
            try:
                exchange.messages = _with_offer(exchange.messages, self.options.formatter(match))
            except Exception as error:
                RECALLS.add("exception", error_type=type(error).__name__)
            else:
                exchange.injected = match
                RECALLS.add("injected")


def _count_down(answer: Down) -> None:
    if answer.kind is None:
        RECALLS.add("error", error_type="unavailable")
    elif answer.timed_out:
        RECALLS.add("timeout", error_type=answer.kind)
    else:
        RECALLS.add("exception", error_type=answer.kind)


def _with_offer(messages: Sequence[Message], text: str) -> list[Any]:
    """A copy with the text as a system message after the leading ones.

    Raises:
        TypeError: It is no text.
    """
    if not isinstance(text, str):
        raise TypeError
    leading = leading_system_messages(messages)
    offer = {"role": "system", "content": text}
    return [*messages[:leading], offer, *messages[leading:]]

"""OpenAI's SDK: a client whose chat completions recall a procedure first, and are captured after.

::

    client = AsyncReasonletOpenAI(AsyncOpenAI(), memory, queue=queue)
    await client.chat.completions.create(model=…, messages=…, scope="tenant:acme")

Only ``chat.completions.create`` is observed, streaming included; everything else is the client's
own, and so is what ``with_options`` makes: give its options to the client that is wrapped. It is *inside* the tool loop, which the caller runs: calls that end in a tool call are skipped,
and the final one is captured with all the tool calls since the question, without a parent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from rankblend.adapters._blocking import BlockingPipeline, BlockingStream, without_tool
from rankblend.chat import (
    CaptureQueue,
    ChatOptions,
    Message,
    ReasonletChat,
    StreamedReply,
    SupportsOffer,
    SupportsRecall,
)
from rankblend.errors import MissingDependencyError
from rankblend.reasonlets import ReasonletValidationError
from rankblend.relevance import Scope

try:
    import openai
except ImportError:
    raise MissingDependencyError("openai", "openai", "the OpenAI client") from None

__all__ = ["AsyncReasonletOpenAI", "ReasonletOpenAI", "plain_messages", "read_reply"]

_REMEDY = "give the model FindProcedure(…).definition with your own tools instead"


class AsyncReasonletOpenAI:
    """An ``AsyncOpenAI`` client with a procedural memory.

    ``chat.completions.create`` takes two keywords more, which never leave the process: ``scope``
    (None: the default scope of the options) and ``subject_id``. No failure of the memory breaks a
    call or changes its answer.

    Args:
        client: The client; Azure's, too.
        memory: Recalls procedures; or a factory of it.
        queue: Takes captures; or a factory of it. Needed unless the options say that nothing is
            captured; yours to close.
        options: What to do with a call; None: the defaults.

    Raises:
        ReasonletValidationError: Another client, no memory, captures without a queue.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        memory: SupportsRecall | Callable[[], SupportsRecall],
        *,
        queue: SupportsOffer | Callable[[], SupportsOffer] | None = None,
        options: ChatOptions | None = None,
    ) -> None:
        _check(client, openai.AsyncOpenAI)
        options = without_tool(options, _REMEDY)
        self._client = client
        self._observed = ReasonletChat(
            self._create, memory, queue=queue, options=options, read=read_reply
        )
        self.chat = _with_create(client.chat, self._call)

    async def _call(
        self,
        *,
        messages: Iterable[Any],
        scope: Scope | str | None = None,
        subject_id: str | None = None,
        **keywords: Any,
    ) -> Any:
        sent = plain_messages(messages)
        return await self._observed(sent, scope=scope, subject_id=subject_id, **keywords)

    async def _create(self, messages: Any, **keywords: Any) -> Any:
        return await self._client.chat.completions.create(messages=messages, **keywords)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class ReasonletOpenAI:
    """An ``OpenAI`` client with a procedural memory, for code without an event loop.

    As `AsyncReasonletOpenAI`. `close` it, or leave its ``with`` block, so that what waits is
    remembered; it closes the client, too, and not the memory.

    Args:
        client: The client; Azure's, too.
        memory: Recalls procedures; or a factory of it.
        queue: Takes captures. Needed unless the options say that nothing is captured.
        options: What to do with a call; None: the defaults.

    Raises:
        ReasonletValidationError: Another client, no memory, captures without a queue.
    """

    def __init__(
        self,
        client: openai.OpenAI,
        memory: SupportsRecall | Callable[[], SupportsRecall],
        *,
        queue: CaptureQueue | None = None,
        options: ChatOptions | None = None,
    ) -> None:
        _check(client, openai.OpenAI)
        options = without_tool(options, _REMEDY)
        self._client = client
        self._pipeline = BlockingPipeline(memory, queue=queue, options=options)
        self.chat = _with_create(client.chat, self._call)

    def _call(
        self,
        *,
        messages: Iterable[Any],
        scope: Scope | str | None = None,
        subject_id: str | None = None,
        **keywords: Any,
    ) -> Any:
        exchange = self._pipeline.begin(
            plain_messages(messages), scope=scope, subject_id=subject_id
        )
        start = time.perf_counter()
        answer: Any = self._client.chat.completions.create(messages=exchange.messages, **keywords)
        if exchange.recorder is None:
            return answer
        if isinstance(answer, openai.Stream):
            reply = StreamedReply(read_reply)

            def finished(seconds: float) -> None:
                self._pipeline.finish(exchange, reply.messages(), seconds=seconds)

            return BlockingStream(answer, reply, finished)
        seconds = time.perf_counter() - start
        self._pipeline.finish(exchange, read_reply(answer), seconds=seconds)
        return answer

    def close(self) -> None:
        """Let the memory remember what waits, and close the client; twice is harmless."""
        self._pipeline.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _Overlay:
    """An object seen with some attributes replaced."""

    def __init__(self, below: Any, **attributes: Any) -> None:
        self._below = below
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)


def _with_create(chat: Any, create: Callable[..., Any]) -> Any:
    return _Overlay(chat, completions=_Overlay(chat.completions, create=create))


def _check(client: object, kind: type[Any]) -> None:
    if not isinstance(client, kind):
        got = type(client).__name__
        raise ReasonletValidationError([f"client: expected an {kind.__name__}, got {got}"])


def plain_messages(messages: Any) -> Any:
    """Messages with the SDK's own objects in them as the mappings it would send for them.

    Answers are often put into the next request as they came. Where there is none of these, lists
    and mappings come back as they are, not copied.
    """
    if isinstance(messages, openai.BaseModel):
        hidden = getattr(messages, "__api_exclude__", None)
        return messages.model_dump(mode="json", exclude_unset=True, exclude=hidden)
    if isinstance(messages, dict):
        plain = {name: plain_messages(value) for name, value in messages.items()}
        same = all(plain[name] is value for name, value in messages.items())
        return messages if same else plain
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        return messages
    given = messages if isinstance(messages, list) else list(messages)
    read = [plain_messages(message) for message in given]
    return given if all(one is other for one, other in zip(read, given, strict=True)) else read


def read_reply(reply: Any) -> Iterator[Message]:
    """The message in a chat completion, or the piece of one in an update of a stream.

    Of several choices it is the first.
    """
    for choice in reply.choices:
        if choice.index == 0:
            piece = choice.delta if hasattr(choice, "delta") else choice.message
            if piece is not None:
                yield piece.model_dump(mode="json", exclude_none=True)

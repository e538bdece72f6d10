"""Replies that come in pieces: put together beside the reader, passed on untouched."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from attrs import define, field

from rankblend.chat._messages import Message, text_of


@define
class _PartialCall:
    """A tool call of which pieces have come."""

    index: int | None
    id: str | None
    name: str = ""
    arguments: list[Any] = field(factory=list)
    rest: dict[str, Any] = field(factory=dict)

    def add(self, delta: Mapping[str, Any]) -> None:
        function = delta.get("function") or {}
        name = function.get("name") or ""
        if name != self.name:  # some repeat the whole name with every piece
            self.name += name
        if function.get("arguments"):
            self.arguments.append(function["arguments"])
        for key, value in delta.items():
            if key not in ("index", "id", "function") and value is not None:
                self.rest[key] = value

    def call(self) -> dict[str, Any]:
        """Arguments stay as they came when they came in one piece, text or not."""
        whole = self.arguments[0] if len(self.arguments) == 1 else "".join(self.arguments)
        function = {"name": self.name, "arguments": whole}
        return {**self.rest, "id": self.id, "function": function}


@define
class _Partial:
    """A message of which pieces have come."""

    role: str
    texts: list[str] = field(factory=list)
    calls: list[_PartialCall] = field(factory=list)
    rest: dict[str, Any] = field(factory=dict)

    def add_call(self, delta: Mapping[str, Any]) -> None:
        """Add to the latest call of the same index and id; a piece may say neither."""
        index, identifier = delta.get("index"), delta.get("id") or None
        for call in reversed(self.calls):
            if index in (None, call.index) and identifier in (None, call.id):
                break
        else:
            call = _PartialCall(index, identifier)
            self.calls.append(call)
        call.add(delta)

    def message(self) -> Message:
        whole = {**self.rest, "role": self.role, "content": "".join(self.texts) or None}
        if self.calls:
            whole["tool_calls"] = [call.call() for call in self.calls]
        return whole


class MessageAssembler:
    """Messages from the pieces of a stream, each in the shape of OpenAI's ``delta``.

    A piece begins a new message when its role is another one than before, or its ``tool_call_id``;
    any other adds to the message before it. A whole message is a piece, too.

    Example:
        >>> assembler = MessageAssembler()
        >>> for piece in ({"role": "assistant", "content": "Do"}, {"content": "ne"}):
        ...     assembler.add(piece)
        >>> assembler.messages()[0]["content"]
        'Done'
    """

    def __init__(self) -> None:
        self._partials: list[_Partial] = []

    def add(self, delta: Message) -> None:
        """Add a piece.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: It is no piece of a message.
        """
        partial = self._partial(delta)
        partial.texts.append(text_of(delta))
        for call in delta.get("tool_calls") or ():
            partial.add_call(call)
        for name, value in delta.items():
            if name not in ("role", "content", "tool_calls") and value is not None:
                partial.rest[name] = value

    def messages(self) -> tuple[Message, ...]:
        """What the pieces add up to."""
        return tuple(partial.message() for partial in self._partials)

    def _partial(self, delta: Message) -> _Partial:
        last = self._partials[-1] if self._partials else None
        role, answers = delta.get("role"), delta.get("tool_call_id")
        if (
            last is None
            or (role is not None and role != last.role)
            or (answers is not None and answers != last.rest.get("tool_call_id"))
        ):
            last = _Partial("assistant" if role is None else role)
            self._partials.append(last)
        return last


class StreamedReply:
    """A reply read from the updates of a stream, whatever shape these have.

    Args:
        read: The pieces of messages in an update; may raise.
    """

    def __init__(self, read: Callable[[Any], Iterable[Message]]) -> None:
        self._read = read
        self._assembler = MessageAssembler()
        self._failure: Exception | None = None

    def add(self, update: Any) -> None:
        """Add an update. It never raises: one that cannot be read shows in `messages`."""
        if self._failure is None:
            try:
                for delta in self._read(update):
                    self._assembler.add(delta)
            except Exception as error:
                self._failure = error

    def messages(self) -> Iterator[Message]:
        """What it adds up to.

        Raises:
            Exception: The failure to read an update, when the first message is asked for.
        """
        if self._failure is not None:
            raise self._failure
        yield from self._assembler.messages()


class ObservedStream:
    """An async iterator that is read by somebody else; what it is made of stays reachable.

    Args:
        stream: The iterator, or what `aiter` makes one of.
        read: Told of each update after it came; must not raise.
        finished: Told once, with the seconds from the first read to the last, when the stream was
            read to its end; never for one that failed or was left; must not raise.
        clock: Seconds, from any origin.
    """

    def __init__(
        self,
        stream: Any,
        *,
        read: Callable[[Any], None],
        finished: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._stream = stream
        self._updates: AsyncIterator[Any] = aiter(stream)
        self._read = read
        self._finished: Callable[[float], None] | None = finished
        self._clock = clock
        self._start: float | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if self._start is None:
            self._start = self._clock()
        try:
            update = await anext(self._updates)
        except StopAsyncIteration:
            finished, self._finished = self._finished, None
            if finished is not None:
                finished(self._clock() - self._start)
            raise
        except BaseException:
            self._finished = None
            raise
        self._read(update)
        return update

    async def aclose(self) -> None:
        """Close what is read from; a stream that was not read to its end is not captured."""
        self._finished = None
        # The stream itself first: closing a generator that only reads from it leaves it open.
        for part, name in (
            (self._stream, "aclose"),
            (self._stream, "close"),
            (self._updates, "aclose"),
        ):
            close = getattr(part, name, None)
            if close is not None:
                closing = close()
                if inspect.isawaitable(closing):
                    await closing
                return

    async def __aenter__(self) -> Self:
        enter = getattr(self._stream, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *error: object) -> None:
        leave = getattr(self._stream, "__aexit__", None)
        if leave is not None:
            self._finished = None
            await leave(*error)
        else:
            await self.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

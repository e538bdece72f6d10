"""Streams: passed on piece by piece, captured when read to the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from chat_world import REPLY, SCOPE, Captured, Emitted, Model, embed, pieces, remember, steps, user

from rankblend.chat import ChatOptions, ReasonletChat
from rankblend.chat._streaming import MessageAssembler
from rankblend.reasonlets import ReasonletMemory

Telemetry = Callable[[], Emitted]


def make(reply: Any, queue: Captured, **more: Any) -> ReasonletChat:
    chosen = ChatOptions(default_scope=SCOPE)
    return ReasonletChat(
        Model([reply]), ReasonletMemory(embed), queue=queue, options=chosen, **more
    )


async def whole(reply: Any) -> list[Any]:
    return [update async for update in reply]


def streaming(messages: Any, **_: Any) -> AsyncIterator[Any]:
    return pieces()


def test_stream_when_read_to_its_end_then_it_is_captured_and_passed_on_piece_by_piece() -> None:
    async def main() -> None:
        queue = Captured()
        stream = await make(streaming, queue)([user()])
        first = await anext(stream)
        assert first == {"role": "assistant", "content": ""}
        assert queue.captures == []
        assert [first, *await whole(stream)] == await whole(pieces())
        (capture,) = queue.captures
        assert steps(capture) == ["orders.get(id)", "payments.refund(amount, id)"]
        assert capture.answer == "Refunded."
        assert [update async for update in stream] == []
        assert len(queue.captures) == 1

    asyncio.run(main())


def test_stream_when_asked_a_question_then_the_offer_is_made_before_it_starts() -> None:
    async def main() -> None:
        memory, model, queue = ReasonletMemory(embed), Model([streaming]), Captured()
        (known,) = await remember(memory, REPLY)
        chosen = ChatOptions(default_scope=SCOPE)
        await whole(await ReasonletChat(model, memory, queue=queue, options=chosen)([user()]))
        assert len(model.asked[0]) == 2
        assert queue.captures[0].parent_id == known

    asyncio.run(main())


def test_stream_when_an_async_generator_function_is_wrapped_then_it_is_called_the_same() -> None:
    async def answer(messages: Any) -> AsyncIterator[Any]:
        async for piece in pieces():
            yield piece

    async def main() -> None:
        queue = Captured()
        chosen = ChatOptions(default_scope=SCOPE)
        chat = ReasonletChat(answer, ReasonletMemory(embed), queue=queue, options=chosen)
        assert await whole(await chat([user()])) == await whole(pieces())
        assert len(queue.captures) == 1

    asyncio.run(main())


def test_stream_when_timed_then_from_the_first_read_to_the_last() -> None:
    times = iter([0.0, 100.0, 107.5])  # the call, the first read, the end

    async def main() -> None:
        queue = Captured()
        await whole(await make(streaming, queue, clock=lambda: next(times))([user()]))
        assert queue.captures[0].outcome.duration == timedelta(seconds=7.5)

    asyncio.run(main())


def test_stream_when_left_before_its_end_then_it_is_not_captured(emitted: Telemetry) -> None:
    async def main() -> None:
        queue = Captured()
        left = await make(streaming, queue)([user()])
        async for _ in left:
            break
        await left.aclose()
        await whole(left)
        async with await make(streaming, queue)([user()]) as other:
            await anext(other)
        assert queue.captures == []

    asyncio.run(main())
    assert emitted().captures == {}


def test_stream_when_it_fails_then_the_failure_passes_and_it_is_not_captured(
    emitted: Telemetry,
) -> None:
    failure = ConnectionError("cut off")

    async def broken(messages: Any) -> AsyncIterator[Any]:
        yield {"role": "assistant", "content": "On"}
        raise failure

    async def main() -> None:
        queue = Captured()
        chosen = ChatOptions(default_scope=SCOPE)
        chat = ReasonletChat(broken, ReasonletMemory(embed), queue=queue, options=chosen)
        stream = await chat([user()])
        with pytest.raises(ConnectionError) as caught:
            await whole(stream)
        assert caught.value is failure
        assert await whole(stream) == []
        assert queue.captures == []

    asyncio.run(main())
    assert emitted().captures == {}


def test_stream_when_its_reading_is_cancelled_then_it_is_not_captured(emitted: Telemetry) -> None:
    async def stuck(messages: Any) -> AsyncIterator[Any]:
        yield {"role": "assistant", "content": "On"}
        started.set()
        await asyncio.Event().wait()

    async def main() -> None:
        queue = Captured()
        chosen = ChatOptions(default_scope=SCOPE)
        chat = ReasonletChat(stuck, ReasonletMemory(embed), queue=queue, options=chosen)
        reading = asyncio.ensure_future(whole(await chat([user()])))
        await started.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert queue.captures == []

    started = asyncio.Event()
    asyncio.run(main())
    assert emitted().captures == {}


def test_stream_when_an_update_cannot_be_read_then_it_is_passed_on_and_counted(
    emitted: Telemetry,
) -> None:
    def odd(messages: Any, **_: Any) -> AsyncIterator[Any]:
        async def updates() -> AsyncIterator[Any]:
            yield 1
            yield {"role": "assistant", "content": "On"}

        return updates()

    async def main() -> None:
        queue = Captured()
        stream = await make(odd, queue)([user()])
        assert await whole(stream) == [1, {"role": "assistant", "content": "On"}]
        assert queue.captures == []

    asyncio.run(main())
    assert emitted().captures == {("exception", "ReasonletValidationError"): 1}


def test_stream_when_it_has_more_to_it_than_updates_then_that_stays_reachable() -> None:
    class Stream:
        response = "200"

        def __init__(self) -> None:
            self.pieces = pieces()
            self.closed = self.entered = False

        def __aiter__(self) -> Any:
            return self.pieces

        async def __aenter__(self) -> Any:
            self.entered = True
            return self

        async def __aexit__(self, *_: object) -> None:
            self.closed = True

    async def main() -> None:
        inner, queue = Stream(), Captured()
        async with await make(lambda *_, **__: inner, queue)([user()]) as stream:
            assert stream.response == "200"
            assert inner.entered
            await whole(stream)
        assert inner.closed
        assert len(queue.captures) == 1
        with pytest.raises(AttributeError):
            _ = stream.missing

    asyncio.run(main())


@pytest.mark.parametrize("name", ["aclose", "close"])
@pytest.mark.parametrize("is_async", [True, False])
def test_stream_when_closed_then_what_it_is_made_of_is_closed_and_not_only_its_iterator(
    name: str, is_async: bool
) -> None:
    closed = []

    async def close_later(self: Any) -> None:
        closed.append(name)

    def close(self: Any) -> Any:
        return close_later(self) if is_async else closed.append(name)

    async def main() -> None:
        made = type("Stream", (), {"__aiter__": lambda self: pieces(), name: close})()
        stream = await make(lambda *_, **__: made, Captured())([user()])
        await anext(stream)
        await stream.aclose()
        assert closed == [name]

    asyncio.run(main())


def test_stream_when_only_its_iterator_can_be_closed_then_that_is() -> None:
    async def main() -> None:
        updates = pieces()
        made = type("Stream", (), {"__aiter__": lambda self: updates})()
        stream = await make(lambda *_, **__: made, Captured())([user()])
        await anext(stream)
        await stream.aclose()
        assert [each async for each in updates] == []

    asyncio.run(main())


def test_stream_when_nothing_is_captured_then_it_is_the_callables_own() -> None:
    async def main() -> None:
        inner = pieces()
        chosen = ChatOptions(default_scope=SCOPE, capture=False)
        chat = ReasonletChat(
            Model([lambda *_, **__: inner]), ReasonletMemory(embed), options=chosen
        )
        assert await chat([user()]) is inner
        await inner.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())


class TestMessageAssembler:
    def test_pieces_when_put_together_then_they_are_the_messages(self) -> None:
        async def main() -> None:
            assembler = MessageAssembler()
            async for piece in pieces():
                assembler.add(piece)
            assert assembler.messages() == tuple(REPLY)

        asyncio.run(main())

    def test_pieces_when_the_role_is_repeated_then_it_is_one_message(self) -> None:
        assembler = MessageAssembler()
        for text in "abc":
            assembler.add({"role": "assistant", "content": text})
        assert assembler.messages() == ({"role": "assistant", "content": "abc"},)

    def test_pieces_when_calls_have_no_index_or_share_one_then_their_ids_tell_them_apart(
        self,
    ) -> None:
        for index in ({}, {"index": 0}):
            assembler = MessageAssembler()
            for name in "ab":
                function = {"name": name, "arguments": '{"x":'}
                assembler.add({"tool_calls": [{**index, "id": name, "function": function}]})
                rest = {"name": name, "arguments": "1}"}
                assembler.add({"tool_calls": [{**index, "function": rest}]})
            (message,) = assembler.messages()
            assert [call["function"] for call in message["tool_calls"]] == [
                {"name": "a", "arguments": '{"x":1}'},
                {"name": "b", "arguments": '{"x":1}'},
            ]

    def test_pieces_when_results_follow_each_other_then_each_is_a_message(self) -> None:
        assembler = MessageAssembler()
        for each in ("1", "2"):
            assembler.add({"role": "tool", "tool_call_id": each, "content": each, "status": None})
        assert [message["content"] for message in assembler.messages()] == ["1", "2"]
        assert "status" not in assembler.messages()[0]

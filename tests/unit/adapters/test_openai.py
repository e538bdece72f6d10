"""The wrapped clients of OpenAI's SDK, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import openai
import pytest
from chat_world import (
    QUESTION,
    REPLY,
    SCOPE,
    Captured,
    Emitted,
    OtherMemory,
    call,
    calls,
    embed,
    remember,
    result,
    said,
    steps,
    user,
)
from model_server import ModelServer

from rankblend.adapters.openai import AsyncReasonletOpenAI, ReasonletOpenAI, plain_messages
from rankblend.chat import CaptureQueue, ChatOptions
from rankblend.chat._pipeline import bypassed
from rankblend.reasonlets import ReasonletMemory, ReasonletValidationError

Telemetry = Callable[[], Emitted]
SECRET = "planted secret 4711"
HERE = ChatOptions(default_scope=SCOPE)
ASKED = [{"role": "system", "content": "Be kind."}, user()]
RUN = [*ASKED, *REPLY[:-1]]
"""A question and the tool calls since; the final answer is asked for."""


async def _learnt() -> ReasonletMemory:
    memory = ReasonletMemory(embed)
    await remember(memory, REPLY, name="refund")
    return memory


def _broken() -> OtherMemory:
    def does() -> Any:
        raise RuntimeError(SECRET)

    return OtherMemory(does)


def _client(
    model: ModelServer, memory: Any, queue: Any, options: ChatOptions = HERE
) -> AsyncReasonletOpenAI:
    client = openai.AsyncOpenAI(**model.arguments)
    return AsyncReasonletOpenAI(client, memory, queue=queue, options=options)


def test_create_when_a_procedure_is_known_then_it_is_offered_after_the_system_messages(
    model: ModelServer,
) -> None:
    asked = list(ASKED)

    async def main() -> Any:
        async with await _learnt() as memory, _client(model, memory, Captured()) as client:
            return await client.chat.completions.create(model="m", messages=asked)

    answer = asyncio.run(main())
    assert isinstance(answer, openai.types.chat.ChatCompletion)
    assert answer.choices[0].message.content == "Refunded."
    system, offer, question = model.requests[0]["messages"]
    assert (system, question) == tuple(ASKED)
    assert offer["role"] == "system"
    assert "orders.get (id)" in offer["content"]
    assert asked == ASKED


def test_create_when_the_final_answer_comes_then_the_run_is_captured_without_a_parent(
    model: ModelServer,
) -> None:
    queue = Captured()

    async def main() -> None:
        async with await _learnt() as memory, _client(model, memory, queue) as client:
            await client.chat.completions.create(
                model="m", messages=RUN, scope="tenant:other", subject_id="ana"
            )

    asyncio.run(main())
    (capture,) = queue.captures
    assert steps(capture) == ["orders.get(id)", "payments.refund(amount, id)"]
    assert (str(capture.scope), capture.parent_id) == ("tenant:other", None)
    assert (capture.question, capture.answer) == (QUESTION, "Refunded.")
    assert capture.provenance.subject_id == "ana"
    # A trip inside the loop continues a question: nothing is offered, nothing else is sent.
    assert model.requests[0]["messages"] == RUN
    assert set(model.requests[0]) == {"model", "messages"}


def test_create_when_the_model_asks_for_a_tool_then_that_trip_is_not_captured(
    model: ModelServer, emitted: Telemetry
) -> None:
    model.messages = [calls(call("orders.get", id=7))]
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory, _client(model, memory, queue) as client:
            await client.chat.completions.create(model="m", messages=ASKED)

    asyncio.run(main())
    assert queue.captures == []
    assert emitted().captures == {("skipped", "pending_tool_calls"): 1}


def test_create_when_the_sdks_own_objects_are_sent_back_then_they_are_read_and_sent_as_it_would(
    model: ModelServer,
) -> None:
    model.messages = [calls(call("orders.get", "c1", id=7)), said("It has left.")]
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory, _client(model, memory, queue) as client:
            create = client.chat.completions.create
            messages: list[Any] = list(ASKED)
            first = await create(model="m", messages=messages)
            messages += [first.choices[0].message, result("c1", "shipped")]
            await create(model="m", messages=messages)
            plain = openai.AsyncOpenAI(**model.arguments)
            async with plain:
                await plain.chat.completions.create(model="m", messages=messages)

    asyncio.run(main())
    (capture,) = queue.captures
    assert steps(capture) == ["orders.get(id)"]
    assert model.requests[1] == model.requests[2]


def test_messages_when_they_hold_no_objects_then_they_are_the_callers_own() -> None:
    assert plain_messages(RUN) is RUN
    assert plain_messages("no messages") == "no messages"
    assert plain_messages(each for each in ASKED) == ASKED


def test_stream_when_read_to_its_end_then_it_is_offered_to_and_captured(
    model: ModelServer,
) -> None:
    queue = Captured()

    async def main() -> str:
        async with await _learnt() as memory, _client(model, memory, queue) as client:
            create = client.chat.completions.create
            async with await create(model="m", messages=RUN, stream=True) as stream:
                assert stream.response.status_code == 200
                pieces = [
                    chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices
                ]
            await create(model="m", messages=ASKED, stream=True)
            return "".join(pieces)

    assert asyncio.run(main()) == "Refunded."
    (capture,) = queue.captures
    assert (capture.answer, len(capture.graph.nodes)) == ("Refunded.", 2)
    assert capture.outcome.duration is not None
    assert "orders.get (id)" in model.requests[1]["messages"][1]["content"]


def test_stream_when_left_or_closed_then_it_is_not_captured_and_lets_go_of_the_connection(
    model: ModelServer,
) -> None:
    queue = Captured()

    async def main() -> list[bool]:
        async with ReasonletMemory(embed) as memory, _client(model, memory, queue) as client:
            create = client.chat.completions.create
            left = await create(model="m", messages=RUN, stream=True)
            async with aclosing(left):
                await anext(left)
            entered = await create(model="m", messages=RUN, stream=True)
            async with entered:
                await anext(entered)
            closed = await create(model="m", messages=RUN, stream=True)
            await anext(closed)
            await closed.close()
            return [each.response.is_closed for each in (left, entered, closed)]

    assert asyncio.run(main()) == [True, True, True]
    assert queue.captures == []


def test_create_when_the_memory_throws_then_the_call_is_as_without_it(
    model: ModelServer, emitted: Telemetry
) -> None:
    async def main() -> Any:
        memory = _broken()
        async with CaptureQueue(memory) as queue, _client(model, memory, queue) as client:
            await client.chat.completions.create(model="m", messages=RUN)
            return await client.chat.completions.create(model="m", messages=ASKED)

    assert asyncio.run(main()).choices[0].message.content == "Refunded."
    assert model.requests[1] == {"model": "m", "messages": ASKED}
    seen = emitted()
    assert ("exception", "RuntimeError") in seen.recalls
    assert SECRET not in seen.text


def test_create_when_the_server_refuses_then_the_sdks_error_passes_and_nothing_is_captured(
    model: ModelServer,
) -> None:
    model.messages = [400]
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory, _client(model, memory, queue) as client:
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model="m", messages=RUN)

    asyncio.run(main())
    assert queue.captures == []


def test_stream_when_it_breaks_then_the_sdks_error_passes_and_nothing_is_captured(
    model: ModelServer,
) -> None:
    model.messages = [{"role": "assistant", "content": "Refunded.", "breaks": True}]
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory, _client(model, memory, queue) as client:
            stream = await client.chat.completions.create(model="m", messages=RUN, stream=True)
            with pytest.raises(openai.APIError):
                async for _ in stream:
                    pass

    asyncio.run(main())
    assert queue.captures == []


def test_blocking_stream_when_it_breaks_then_the_sdks_error_passes_and_nothing_is_captured(
    blocking: Any, model: ModelServer
) -> None:
    model.messages = [{"role": "assistant", "content": "Refunded.", "breaks": True}]
    client, _, memory = blocking
    stream = client.chat.completions.create(model="m", messages=RUN, stream=True)
    with pytest.raises(openai.APIError):
        list(stream)
    client.close()
    assert _runs(memory) == 1


def test_client_when_it_has_more_than_completions_then_that_is_the_clients_own(
    model: ModelServer,
) -> None:
    client = openai.AsyncOpenAI(**model.arguments)
    wrapped = AsyncReasonletOpenAI(client, ReasonletMemory(embed), queue=Captured(), options=HERE)
    assert wrapped.models is client.models
    assert wrapped.chat.completions.with_raw_response is client.chat.completions.with_raw_response


@pytest.mark.parametrize("kind", [AsyncReasonletOpenAI, ReasonletOpenAI])
def test_client_when_misconfigured_then_it_fails_at_construction(
    kind: type[Any], model: ModelServer
) -> None:
    right = openai.AsyncOpenAI if kind is AsyncReasonletOpenAI else openai.OpenAI
    wrong = openai.OpenAI if kind is AsyncReasonletOpenAI else openai.AsyncOpenAI
    client, other = right(**model.arguments), wrong(**model.arguments)
    memory = ReasonletMemory(embed)
    with pytest.raises(ReasonletValidationError, match=f"client: expected an {right.__name__}"):
        kind(other, memory, queue=Captured())
    with pytest.raises(ReasonletValidationError, match="queue: expected"):
        kind(client, memory)
    with pytest.raises(ReasonletValidationError, match="FindProcedure"):
        kind(client, memory, queue=Captured(), options=ChatOptions(expose_find_procedure=True))


@pytest.fixture
def blocking(model: ModelServer) -> Iterator[tuple[ReasonletOpenAI, CaptureQueue, ReasonletMemory]]:
    memory = asyncio.run(_learnt())
    queue = CaptureQueue(memory)
    client = openai.OpenAI(**model.arguments)
    with ReasonletOpenAI(client, memory, queue=queue, options=HERE) as wrapped:
        yield wrapped, queue, memory
    asyncio.run(memory.aclose())


def _runs(memory: ReasonletMemory) -> int:
    return asyncio.run(memory.statistics()).runs


def test_blocking_when_called_then_it_recalls_before_and_its_captures_are_drained_at_the_end(
    blocking: Any, model: ModelServer
) -> None:
    client, _, memory = blocking
    answer = client.chat.completions.create(model="m", messages=ASKED)
    assert answer.choices[0].message.content == "Refunded."
    assert "orders.get (id)" in model.requests[0]["messages"][1]["content"]
    client.chat.completions.create(model="m", messages=RUN)
    client.close()
    client.close()
    assert _runs(memory) == 2


def test_blocking_stream_when_read_to_its_end_then_captured_and_when_left_then_not(
    blocking: Any,
) -> None:
    client, _, memory = blocking
    create = client.chat.completions.create
    with create(model="m", messages=RUN, stream=True) as left:
        next(left)
    assert left.response.is_closed
    with create(model="m", messages=RUN, stream=True) as stream:
        text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    client.close()
    assert (text, _runs(memory)) == ("Refunded.", 2)


def test_blocking_stream_when_the_client_was_closed_then_what_it_captures_counts_as_dropped(
    blocking: Any, emitted: Telemetry
) -> None:
    client, _, memory = blocking
    stream = client.chat.completions.create(model="m", messages=RUN, stream=True)
    client._pipeline.close()
    assert "".join(c.choices[0].delta.content or "" for c in stream if c.choices) == "Refunded."
    assert emitted().captures == {("dropped_shutdown",): 1}
    assert _runs(memory) == 1


def test_blocking_when_bypassed_by_the_caller_then_its_own_thread_knows(
    blocking: Any, model: ModelServer, emitted: Telemetry
) -> None:
    client, _, _ = blocking
    with bypassed():
        client.chat.completions.create(model="m", messages=ASKED)
    assert model.requests[0]["messages"] == ASKED
    assert emitted().recalls == {}


def test_blocking_when_nothing_is_captured_then_a_stream_is_the_sdks_own(
    model: ModelServer,
) -> None:
    options = ChatOptions(default_scope=SCOPE, capture=False)
    memory = ReasonletMemory(embed)
    with (
        ReasonletOpenAI(openai.OpenAI(**model.arguments), memory, options=options) as client,
        client.chat.completions.create(model="m", messages=ASKED, stream=True) as stream,
    ):
        assert isinstance(stream, openai.Stream)
        assert len(list(stream)) == len("Refunded.") + 2


def test_calls_when_everything_emitted_is_searched_then_it_holds_no_value_and_no_key(
    model: ModelServer, emitted: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    asked = [call("orders.get", "c1", note=SECRET)]
    run = [user(SECRET), calls(*asked), result("c1", SECRET)]
    model.messages = [said(SECRET)]

    async def main() -> None:
        async with ReasonletMemory(embed) as memory, CaptureQueue(memory) as queue:
            async with _client(model, memory, queue) as client:
                await client.chat.completions.create(model="m", messages=run)
            await queue.join()
            (match,) = await memory.recall("any", scope=SCOPE)
            assert SECRET not in json.dumps(match.reasonlet.graph.plain())

    with caplog.at_level("WARNING"):
        asyncio.run(main())
    seen = emitted()
    assert seen.captures == {("remembered",): 1}
    for text in (seen.text, caplog.text):
        assert SECRET not in text
        assert "planted-key" not in text

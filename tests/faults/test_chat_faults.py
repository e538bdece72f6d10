"""Whatever a memory does, the chat call goes on as if it were not there."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "chat"))
from chat_world import (
    DETAILS,
    REPLY,
    SCOPE,
    Captured,
    Model,
    OtherMemory,
    emitted,
    pieces,
    said,
    user,
)

from rankblend.chat import (
    CaptureQueue,
    ChatEvaluator,
    ChatOptions,
    FindProcedure,
    ReasonletChat,
    transcript_to_capture,
)
from rankblend.reasonlets import (
    CaptureBlockedError,
    GuardVerdict,
    ReasonletAdapterError,
    ReasonletConflictError,
    ReasonletError,
    ReasonletMatch,
    ReasonletMemory,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    ReasonletValidationError,
)

SECRET = "xyzzy-plugh"


def raising(error: BaseException) -> Callable[[], Any]:
    def does() -> Any:
        raise error

    return does


async def hang() -> Any:
    await asyncio.Event().wait()


async def hang_for_good() -> Any:
    """Ignores its cancellation; the second one is the end of the event loop."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


FAULTS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "validation": (raising(ReasonletValidationError([SECRET])), ("error", "validation")),
    "unavailable": (raising(ReasonletUnavailableError("store", SECRET)), ("error", "unavailable")),
    "not found": (raising(ReasonletNotFoundError("parent")), ("error", "not_found")),
    "conflict": (raising(ReasonletConflictError(SECRET, SECRET)), ("error", "conflict")),
    "blocked": (raising(CaptureBlockedError(SECRET)), ("error", "blocked")),
    "adapter": (raising(ReasonletAdapterError("store", SECRET)),
                ("exception", "ReasonletAdapterError")),
    "throws": (raising(RuntimeError(SECRET)), ("exception", "RuntimeError")),
    "raises a time-out of its own": (raising(TimeoutError(SECRET)), ("exception", "TimeoutError")),
    "cancels itself": (raising(asyncio.CancelledError(SECRET)), ("exception", "CancelledError")),
    "hangs": (hang, ("timeout", "TimeoutError")),
    "hangs for good": (hang_for_good, ("timeout", "TimeoutError")),
    "answers nothing": (lambda: None, ("exception", "TypeError")),
    "answers nonsense": (lambda: [SECRET], ("exception", "TypeError")),
    "answers broken matches": (
        lambda: [ReasonletMatch(None, None, None)],  # type: ignore[arg-type]
        ("exception", "AttributeError"),
    ),
    "answers a number": (lambda: 7, ("exception", "TypeError")),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("streams", [False, True])
def test_chat_when_the_memory_fails_on_every_method_then_the_call_is_as_without_it(
    fault: str, streams: bool, caplog: pytest.LogCaptureFixture
) -> None:
    does, counted = FAULTS[fault]
    emitted()

    async def main() -> None:
        memory = OtherMemory(does)
        async with CaptureQueue(memory, drain_timeout=0.001, cancel_timeout=0.001) as queue:
            model = Model([(lambda *_, **__: pieces()) if streams else REPLY])
            chosen = ChatOptions(SCOPE, recall_timeout=0.001, expose_find_procedure=True)
            chat = ReasonletChat(model, memory, queue=queue, options=chosen)
            messages = [user(f"{SECRET}?")]
            async with asyncio.timeout(4):  # instead of for ever
                reply = await chat(messages)
            if streams:
                assert [each async for each in reply] == [each async for each in pieces()]
            else:
                assert reply is REPLY
            assert model.asked[0] is messages
            (tool,) = model.keywords[0]["tools"]
            assert await tool(SECRET) == '{"error":"unavailable"}'
        assert len(memory.remembered) == 1

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    told = emitted()
    assert told.recalls == {counted: 1}
    assert sum(told.captures.values()) == 1
    assert SECRET not in told.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "formatter", [raising(RuntimeError(SECRET)), lambda *_: None], ids=["throws", "no text"]
)
def test_chat_when_the_formatter_fails_then_nothing_is_offered_and_there_is_no_parent(
    formatter: Any,
) -> None:
    emitted()

    async def main() -> None:
        memory, model, queue = ReasonletMemory(lambda texts: [[1.0]]), Model(), Captured()
        await memory.remember(transcript_to_capture([user(), *REPLY], DETAILS))
        chosen = ChatOptions(SCOPE, formatter=lambda match: formatter())
        messages = [user()]
        await ReasonletChat(model, memory, queue=queue, options=chosen)(messages)
        assert model.asked[0] is messages
        assert queue.captures[0].parent_id is None

    asyncio.run(main())
    told = emitted()
    assert list(told.recalls) in ([("exception", "RuntimeError")], [("exception", "TypeError")])
    assert SECRET not in told.text


@pytest.mark.parametrize("messages", ["text", None, [SECRET], [None], [{"role": 7}], ({"a": 1},)])
def test_chat_when_the_messages_are_of_another_shape_then_they_reach_the_callable(
    messages: Any,
) -> None:
    emitted()
    model = Model()
    chat = ReasonletChat(model, OtherMemory(list), queue=Captured(), options=ChatOptions(SCOPE))
    assert asyncio.run(chat(messages)) is REPLY
    assert model.asked[0] is messages
    assert sum(emitted().captures.values()) == 1


def test_chat_when_cancelled_during_the_recall_then_the_cancellation_passes_at_once() -> None:
    emitted()

    async def main() -> None:
        asked = asyncio.Event()

        async def stubborn() -> Any:
            asked.set()
            return await hang_for_good()

        model = Model()
        chat = ReasonletChat(
            model, OtherMemory(stubborn), queue=Captured(), options=ChatOptions(SCOPE)
        )
        calling = asyncio.ensure_future(chat([user()]))
        await asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert model.asked == []

    asyncio.run(main())
    assert emitted().events == {}


def test_chat_when_cancelled_during_the_call_then_it_is_not_captured() -> None:
    emitted()

    async def main() -> None:
        asked = asyncio.Event()

        async def slow(messages: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        queue = Captured()
        chat = ReasonletChat(slow, OtherMemory(list), queue=queue, options=ChatOptions(SCOPE))
        calling = asyncio.ensure_future(chat([user()]))
        await asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert queue.captures == []

    asyncio.run(main())
    assert emitted().captures == {}


def test_pipeline_when_a_secret_is_in_everything_then_nothing_that_is_emitted_has_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In question, answer, argument values, results, exceptions, judge, guard and embedder."""
    emitted()
    arguments = f'{{"id": "{SECRET}"}}'
    asked = {"id": SECRET, "function": {"name": "orders.get", "arguments": arguments}}
    reply = [
        {"role": "assistant", "content": SECRET, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": SECRET, "content": SECRET},
        said(SECRET),
    ]
    errors: list[str] = []

    async def main(part: str) -> None:
        def fails(*_: Any) -> Any:
            raise RuntimeError(SECRET)

        memory = ReasonletMemory(
            fails if part == "embedder" else lambda texts: [[1.0]],
            guard={"guard": fails, "blocks": lambda c: GuardVerdict.block("detector")}.get(part),
            evaluator=ChatEvaluator(fails if part == "judge" else Model([said(f"{SECRET}: {{}}")])),
        )
        async with CaptureQueue(memory) as queue:
            chosen = ChatOptions(SCOPE, expose_find_procedure=True)
            model = Model([RuntimeError(SECRET) if part == "model" else reply])
            chat = ReasonletChat(model, memory, queue=queue, options=chosen)
            for question in (SECRET, SECRET * 4_000):  # the second is too long
                try:
                    await chat([user(question)], subject_id=SECRET)
                except RuntimeError:
                    assert part == "model"
            tool = model.keywords[0]["tools"][0]
            text = await tool(SECRET)
            assert SECRET not in text
            errors.append(repr(tool.definition))
        for wrong in ({"scope": SECRET}, {"scope": SCOPE, "subject_id": SECRET * 99}):
            try:
                await chat([user(SECRET)], **wrong)  # type: ignore[arg-type]
            except ReasonletError as error:
                errors.append(f"{error!r} {error}")
        for broken in ([{"role": "assistant", "tool_calls": [SECRET]}], [said(SECRET)]):
            try:
                transcript_to_capture([user(SECRET), *broken], DETAILS)  # type: ignore[list-item]
            except ReasonletError as error:
                errors.append(f"{error!r} {error}")

    with caplog.at_level(logging.DEBUG):
        for part in ("none", "embedder", "guard", "blocks", "judge", "model"):
            asyncio.run(main(part))
    told = emitted()
    assert {span.name for span in told.spans} >= {
        "mnemosyne.recall",
        "mnemosyne.evaluate",
        "mnemosyne.guard",
    }
    assert all(not span.events for span in told.spans)
    assert len(errors) == 6 * 5
    assert SECRET not in told.text
    assert SECRET not in caplog.text
    assert SECRET not in "".join(errors)


def test_find_procedure_when_printed_then_it_shows_no_stored_text() -> None:
    assert SECRET not in repr(FindProcedure(OtherMemory(list), SCOPE))

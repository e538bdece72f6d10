"""A memory and a queue that factories make."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define
from chat_world import REPLY, SCOPE, Captured, Emitted, Model, OtherMemory, embed, said, user

from rankblend import Memory
from rankblend.chat import CaptureQueue, ChatOptions, FindProcedure, ReasonletChat
from rankblend.reasonlets import ReasonletMemory, ReasonletValidationError, SyncReasonletMemory

Telemetry = Callable[[], Emitted]


@define
class Factory:
    """Makes what it is told, the last again and again; an exception is raised."""

    makes: list[Any]
    called: int = 0

    def __call__(self) -> Any:
        self.called += 1
        made = self.makes[min(self.called, len(self.makes)) - 1]
        if isinstance(made, Exception):
            raise made
        return made


def run(chat: ReasonletChat, *calls: list[Any], **more: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [await chat(messages, **more) for messages in calls]

    return asyncio.run(main())


def test_factories_when_given_then_called_once_at_the_first_call() -> None:
    memory, queue = Factory([ReasonletMemory(embed)]), Factory([Captured()])
    chat = ReasonletChat(Model(), memory, queue=queue, options=ChatOptions(SCOPE))
    assert (memory.called, queue.called) == (0, 0)
    run(chat, [user()], [user()])
    assert (memory.called, queue.called) == (1, 1)
    assert len(queue().captures) == 2


@pytest.mark.parametrize("broken", [ConnectionError("secret"), None, ReasonletMemory])
def test_memory_factory_when_it_fails_then_no_recall_injection_or_tool_and_one_exception(
    broken: Any, emitted: Telemetry
) -> None:
    model, queue, messages = Model(), Captured(), [user()]
    memory = Factory([broken, OtherMemory(list)])
    chosen = ChatOptions(SCOPE, expose_find_procedure=True)
    chat = ReasonletChat(model, memory, queue=queue, options=chosen)
    kind = "TypeError" if not isinstance(broken, Exception) else "ConnectionError"
    assert run(chat, messages) == [REPLY]
    assert model.asked[0] is messages
    assert model.keywords[0] == {}
    assert len(queue.captures) == 1  # captured all the same
    told = emitted()
    assert told.recalls == {("exception", kind): 1}
    assert "secret" not in told.text
    run(chat, messages)  # not kept: tried again
    assert memory.called == 2
    assert len(model.keywords[1]["tools"]) == 1
    assert emitted().recalls == {("empty",): 1}


@pytest.mark.parametrize("messages", [[user()], [user(), said("And")]])
@pytest.mark.parametrize("recall", [True, False])
def test_memory_factory_when_it_fails_and_only_the_tool_needs_it_then_also_one_exception(
    messages: list[Any], recall: bool, emitted: Telemetry
) -> None:
    chosen = ChatOptions(SCOPE, recall=recall, capture=False, expose_find_procedure=True)
    chat = ReasonletChat(Model(), Factory([ConnectionError()]), options=chosen)
    run(chat, messages)
    assert emitted().recalls == {("exception", "ConnectionError"): 1}


def test_memory_factory_when_nothing_needs_the_memory_then_it_is_not_called() -> None:
    memory = Factory([ConnectionError()])
    chat = ReasonletChat(Model(), memory, queue=Captured(), options=ChatOptions(SCOPE))
    run(chat, [user(), said("And")])
    run(ReasonletChat(Model(), memory, queue=Captured()), [user()])
    assert memory.called == 0


@pytest.mark.parametrize("broken", [ConnectionError("secret"), None])
def test_queue_factory_when_it_fails_then_no_capture_and_one_exception(
    broken: Any, emitted: Telemetry
) -> None:
    queue = Factory([broken, Captured()])
    chat = ReasonletChat(Model(), ReasonletMemory(embed), queue=queue, options=ChatOptions(SCOPE))
    assert run(chat, [user()]) == [REPLY]
    told = emitted()
    assert told.captures == {("exception", type(broken).__name__ if broken else "TypeError"): 1}
    assert told.recalls == {("empty",): 1}
    assert "secret" not in told.text
    run(chat, [user()])  # not kept: tried again
    assert len(queue().captures) == 1


@pytest.mark.parametrize(
    "reply", ["secret", None, [7], [{"role": "tool", "content": "secret"}], {"content": "secret"}]
)
def test_answer_when_no_capture_can_be_built_of_it_then_it_is_returned_and_one_exception(
    reply: Any, emitted: Telemetry
) -> None:
    queue = Captured()
    chat = ReasonletChat(
        Model([reply]), ReasonletMemory(embed), queue=queue, options=ChatOptions(SCOPE)
    )
    assert run(chat, [user()]) == [reply]
    assert queue.captures == []
    told = emitted()
    assert told.captures == {("exception", "ReasonletValidationError"): 1}
    assert "secret" not in told.text


def test_queue_when_it_raises_on_an_offer_then_the_answer_is_returned_and_one_exception(
    emitted: Telemetry,
) -> None:
    class Broken:
        def offer(self, capture: Any) -> bool:
            raise BufferError("secret")

    chat = ReasonletChat(
        Model(), ReasonletMemory(embed), queue=Broken(), options=ChatOptions(SCOPE)
    )
    assert run(chat, [user()]) == [REPLY]
    assert emitted().captures == {("exception", "BufferError"): 1}


def test_memory_factory_when_it_hangs_then_the_call_goes_on_and_it_is_made_once(
    emitted: Telemetry,
) -> None:
    over, model, made = threading.Event(), Model(), []

    def make() -> OtherMemory:
        made.append(threading.current_thread())
        over.wait(5)
        return OtherMemory(list)

    async def main() -> None:
        chosen = ChatOptions(SCOPE, capture=False, recall_timeout=0.001)
        chat = ReasonletChat(model, make, options=chosen)
        for _ in range(2):
            assert await chat([user()]) == REPLY
        assert emitted().recalls == {("timeout", "TimeoutError"): 2}
        over.set()
        made[0].join(5)
        assert await ReasonletChat(model, make, options=ChatOptions(SCOPE, capture=False))([user()])
        assert emitted().recalls == {("empty",): 1}

    asyncio.run(main())
    assert len(made) == 2  # one for each chat
    assert threading.current_thread() not in made


def test_memory_when_it_raises_a_time_out_of_its_own_then_that_is_an_exception(
    emitted: Telemetry,
) -> None:
    def raises() -> None:
        raise TimeoutError

    chosen = ChatOptions(SCOPE, capture=False)
    run(ReasonletChat(Model(), OtherMemory(raises), options=chosen), [user()])
    run(ReasonletChat(Model(), Factory([TimeoutError()]), options=chosen), [user()])
    assert emitted().recalls == {("exception", "TimeoutError"): 2}


@pytest.mark.parametrize("kind", ["façade", "Memory"])
def test_memory_when_its_methods_wait_then_it_is_refused_with_the_remedy(
    kind: str, emitted: Telemetry
) -> None:
    with (
        SyncReasonletMemory(ReasonletMemory(embed)) as facade,
        Memory.open(":memory:") as other,
    ):
        memory: Any = facade if kind == "façade" else other
        for make in (
            lambda: ReasonletChat(Model(), memory, options=ChatOptions(capture=False)),
            lambda: CaptureQueue(memory),
            lambda: FindProcedure(memory, SCOPE),
        ):
            with pytest.raises(ReasonletValidationError, match="not its sync façade"):
                make()
        chosen = ChatOptions(SCOPE, capture=False)
        assert run(ReasonletChat(Model(), lambda: memory, options=chosen), [user()]) == [REPLY]
        assert emitted().recalls == {("exception", "TypeError"): 1}

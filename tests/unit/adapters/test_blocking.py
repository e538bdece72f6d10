"""The doors without an event loop, called from inside the memory's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from chat_world import REPLY, SCOPE, Emitted, OtherMemory, embed, said, user

from rankblend.adapters._blocking import BlockingPipeline
from rankblend.chat import CaptureQueue, ChatEvaluator, ChatOptions
from rankblend.reasonlets import ReasonletMemory

HERE = ChatOptions(default_scope=SCOPE)


def test_judge_when_it_waits_on_the_very_door_it_judges_for_then_nothing_hangs(
    emitted: Callable[[], Emitted],
) -> None:
    def ask(messages: Any) -> Any:
        exchange = door.begin(messages)
        reply = said('{"success": true}')
        door.finish(exchange, [reply], seconds=1)
        return reply

    memory = ReasonletMemory(embed, evaluator=ChatEvaluator(ask))
    door = BlockingPipeline(memory, queue=CaptureQueue(memory), options=HERE)
    door.finish(door.begin([user()]), REPLY, seconds=1)
    door.close()  # drains: the judge was asked
    assert asyncio.run(memory.statistics()).judged_runs == 1
    told = emitted()
    assert told.recalls == {("empty",): 1}
    assert told.captures == {("remembered",): 1}
    asyncio.run(memory.aclose())


def test_door_when_called_in_its_own_loop_then_the_call_is_untouched_and_nothing_hangs() -> None:
    inner: list[Any] = []
    begun: list[Any] = []
    messages = [user("inside")]

    def recall() -> list[Any]:
        inner.append(door.begin(messages))
        if begun:
            door.finish(begun.pop(), REPLY, seconds=1)
        return []

    memory = OtherMemory(recall)
    door = BlockingPipeline(memory, queue=CaptureQueue(memory), options=HERE)
    begun.append(door.begin([user()]))
    door.begin([user()])  # finishes the first one, in the loop
    door.close()
    assert len(memory.remembered) == 1
    assert all(each.messages is messages and each.recorder is None for each in inner)

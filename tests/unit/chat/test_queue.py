"""Remembering in the background."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field
from chat_world import DETAILS, RECEIPT, REPLY, Emitted, OtherMemory, embed, trip, user

from rankblend.chat import CaptureQueue, transcript_to_capture
from rankblend.reasonlets import (
    Capture,
    CaptureBlockedError,
    ReasonletMemory,
    ReasonletUnavailableError,
    ReasonletValidationError,
    Receipt,
)

Telemetry = Callable[[], Emitted]
CAPTURE = transcript_to_capture([user(), *REPLY], DETAILS)


@define
class Gate:
    """A memory that remembers one capture each time it is let, in the order they came."""

    entered: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(0))
    let: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(0))
    remembered: list[Capture] = field(factory=list)
    cancelled: int = 0
    at_once: int = 0
    most: int = 0
    stubborn: bool = False

    async def remember(self, capture: Capture) -> Receipt:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.entered.release()
        try:
            await self.let.acquire()
        except asyncio.CancelledError:
            self.cancelled += 1
            if not self.stubborn:
                for _ in range(5):  # it takes a moment to put things in order
                    await asyncio.sleep(0)
                raise
            await self.let.acquire()
        finally:
            self.at_once -= 1
        self.remembered.append(capture)
        return RECEIPT


def other(n: int) -> Capture:
    return transcript_to_capture([user(f"question {n}"), *trip(f"tool-{n}")], DETAILS)


def test_queue_when_offered_captures_then_the_memory_remembers_them_one_at_a_time(
    emitted: Telemetry,
) -> None:
    async def main() -> None:
        gate = Gate()
        queue = CaptureQueue(gate)
        captures = [other(n) for n in range(5)]
        assert all(queue.offer(capture) for capture in captures)
        assert gate.remembered == []  # offering waits for nothing
        for _ in captures:
            gate.let.release()
        await queue.join()
        assert gate.remembered == captures
        assert gate.most == 1
        assert len(queue) == 0

    asyncio.run(main())
    assert emitted().captures == {("remembered",): 5}


def test_queue_when_full_then_the_new_one_is_dropped_and_counted(emitted: Telemetry) -> None:
    async def main() -> None:
        gate = Gate()
        queue = CaptureQueue(gate, capacity=2)
        assert queue.offer(other(0))
        await gate.entered.acquire()  # being remembered: it no longer waits
        assert [queue.offer(other(n)) for n in (1, 2, 3)] == [True, True, False]
        assert len(queue) == 2
        for _ in range(3):
            gate.let.release()
        await queue.aclose()
        assert [capture.question for capture in gate.remembered] == [
            "question 0",
            "question 1",
            "question 2",
        ]

    asyncio.run(main())
    assert emitted().captures == {("remembered",): 3, ("dropped_full",): 1}


def test_queue_when_nothing_is_said_then_it_has_room_for_256() -> None:
    async def main() -> None:
        queue = CaptureQueue(Gate(), drain_timeout=0.001, cancel_timeout=0.001)
        assert [queue.offer(CAPTURE) for _ in range(257)] == [True] * 256 + [False]
        await queue.aclose()

    asyncio.run(main())


def test_worker_when_nothing_waits_then_there_is_none_and_it_starts_on_first_use() -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        memory = OtherMemory(lambda: RECEIPT)
        queue = CaptureQueue(memory)
        assert asyncio.all_tasks() == before
        for n in range(3):
            queue.offer(CAPTURE)
            assert len(asyncio.all_tasks() - before) == 1
            await queue.join()
            assert len(memory.remembered) == n + 1
            assert asyncio.all_tasks() == before

    asyncio.run(main())


def test_worker_when_started_then_it_does_not_inherit_the_context_of_the_call() -> None:
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")
    seen = []

    async def main() -> None:
        mark.set("of the first call")
        queue = CaptureQueue(OtherMemory(lambda: seen.append(mark.get())))
        queue.offer(CAPTURE)
        await queue.aclose()

    asyncio.run(main())
    assert seen == ["none"]


def test_close_when_captures_wait_then_they_are_drained_first(emitted: Telemetry) -> None:
    async def main() -> int:
        memory = ReasonletMemory(embed)
        async with CaptureQueue(memory) as queue:
            for n in range(20):
                queue.offer(other(n))
        assert not queue.offer(CAPTURE)  # closed
        await queue.aclose()  # once more is harmless
        return (await memory.statistics()).runs

    assert asyncio.run(main()) == 20
    assert emitted().captures == {("remembered",): 20, ("dropped_shutdown",): 1}


def test_close_when_draining_takes_too_long_then_it_cancels_and_counts_the_rest(
    emitted: Telemetry,
) -> None:
    async def main() -> None:
        gate = Gate()
        queue = CaptureQueue(gate, drain_timeout=0.001)
        for n in range(4):
            queue.offer(other(n))
        await gate.entered.acquire()
        await queue.aclose()
        assert gate.cancelled == 1
        assert gate.at_once == 0  # it was waited for
        assert gate.remembered == []

    asyncio.run(main())
    assert emitted().captures == {("dropped_shutdown",): 4}


def test_close_when_it_was_remembered_in_the_moment_of_the_cancellation_then_that_is_counted(
    emitted: Telemetry,
) -> None:
    async def main() -> None:
        gate = Gate()
        queue = CaptureQueue(gate)
        queue.offer(CAPTURE)
        await gate.entered.acquire()
        gate.let.release()
        while not gate.remembered:
            await asyncio.sleep(0)
        assert queue._worker is not None
        queue._worker.cancel()  # before it hears of it
        await queue.join()

    asyncio.run(main())
    assert emitted().captures == {("remembered",): 1}


def test_close_when_the_memory_ignores_its_cancellation_then_it_is_left(
    emitted: Telemetry,
) -> None:
    async def main() -> None:
        gate = Gate(stubborn=True)
        queue = CaptureQueue(gate, drain_timeout=0.001, cancel_timeout=0.001)
        queue.offer(CAPTURE)
        await gate.entered.acquire()
        async with asyncio.timeout(4):  # instead of for ever
            await queue.aclose()
        assert gate.cancelled == 1
        assert gate.at_once == 1  # still at it
        gate.let.release()

    asyncio.run(main())
    assert emitted().captures == {("dropped_shutdown",): 1}


def test_close_when_it_is_cancelled_itself_then_the_rest_is_still_counted(
    emitted: Telemetry,
) -> None:
    async def main() -> None:
        gate = Gate()
        queue = CaptureQueue(gate)
        for _ in range(3):
            queue.offer(CAPTURE)
        await gate.entered.acquire()
        closing = asyncio.ensure_future(queue.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await queue.join()

    asyncio.run(main())
    assert emitted().captures == {("dropped_shutdown",): 3}


def test_loop_when_it_ends_without_a_close_then_what_is_left_is_counted(
    emitted: Telemetry,
) -> None:
    gate = Gate()
    queue = CaptureQueue(gate)

    async def main(release: int) -> None:
        queue.offer(CAPTURE)
        queue.offer(CAPTURE)
        await gate.entered.acquire()
        for _ in range(release):
            gate.let.release()

    asyncio.run(main(0))
    assert emitted().captures == {("dropped_shutdown",): 2}
    gate.entered, gate.let = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def again() -> None:
        await main(2)
        await queue.aclose()

    asyncio.run(again())
    assert emitted().captures == {("remembered",): 2}


def _raising(error: BaseException) -> Callable[[], Any]:
    def does() -> Any:
        raise error

    return does


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (ReasonletValidationError(["secret"]), ("error", "validation")),
        (CaptureBlockedError("secret"), ("error", "blocked")),
        (ReasonletUnavailableError("store"), ("error", "unavailable")),
        (RuntimeError("secret"), ("exception", "RuntimeError")),
        (asyncio.CancelledError("secret"), ("exception", "CancelledError")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_remembering_when_it_fails_then_it_is_counted_and_the_next_goes_on(
    error: BaseException, counted: tuple[str, str], emitted: Telemetry
) -> None:
    async def main() -> None:
        answers = iter([_raising(error), lambda: RECEIPT])
        async with CaptureQueue(OtherMemory(lambda: next(answers)())) as queue:
            queue.offer(CAPTURE)
            queue.offer(CAPTURE)

    asyncio.run(main())
    told = emitted()
    assert told.captures == {counted: 1, ("remembered",): 1}
    assert "secret" not in told.text


def test_memory_when_given_as_a_factory_then_it_is_made_for_the_first_capture(
    emitted: Telemetry,
) -> None:
    made: list[Any] = [ConnectionError("secret"), None, OtherMemory(lambda: RECEIPT)]

    def factory() -> Any:
        answer = made.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def main() -> None:
        queue = CaptureQueue(factory)
        assert len(made) == 3
        for _ in range(4):
            queue.offer(CAPTURE)
        await queue.aclose()

    asyncio.run(main())
    assert made == []
    told = emitted()
    assert told.captures == {
        ("exception", "ConnectionError"): 1,
        ("exception", "TypeError"): 1,
        ("remembered",): 2,
    }
    assert "secret" not in told.text


def test_queue_when_misconfigured_then_everything_is_told_at_once() -> None:
    with pytest.raises(ReasonletValidationError) as caught:
        CaptureQueue(None, capacity=0, drain_timeout=0, cancel_timeout="1")  # type: ignore[arg-type]
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "memory",
        "capacity",
        "drain_timeout",
        "cancel_timeout",
    ]

"""Ten thousand exchanges with random failures: nothing is lost uncounted, and memory stays flat."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "chat"))
from chat_world import RECEIPT, SCOPE, Model, call, calls, emitted, said, trip, user

from rankblend.chat import CaptureQueue, ChatOptions, ReasonletChat
from rankblend.reasonlets import Capture, ReasonletUnavailableError, Receipt

EXCHANGES = 10_000
ROUND = 1_000
BURST = 20


@define
class Flaky:
    """A memory that fails at random, and keeps only what it was told last."""

    rng: random.Random
    remembered: Counter[str] = field(factory=Counter)
    last: Capture | None = None

    async def recall(self, question: str, **_: Any) -> Any:
        await self._maybe_fail()
        return []

    async def remember(self, capture: Capture) -> Receipt:
        await self._maybe_fail()
        self.remembered["remembered"] += 1
        self.last = capture
        return RECEIPT

    async def _maybe_fail(self) -> None:
        for _ in range(self.rng.randrange(3)):
            await asyncio.sleep(0)
        drawn = self.rng.random()
        if drawn < 0.1:
            raise ReasonletUnavailableError("store")
        if drawn < 0.2:
            raise RuntimeError("no")
        if drawn < 0.25:
            raise asyncio.CancelledError


@pytest.mark.slow
def test_queue_when_ten_thousand_exchanges_go_through_then_each_is_counted_and_memory_is_flat() -> (
    None
):
    rng = random.Random(20261130)
    emitted()
    counted: Counter[tuple[str, ...]] = Counter()
    finished = failed = 0
    sizes = []

    def answer(messages: Any) -> Any:
        drawn = rng.random()
        if drawn < 0.1:
            raise ConnectionError
        if drawn < 0.2:
            return said("just so")
        if drawn < 0.25:
            return [calls(call("a"))]
        if drawn < 0.3:
            return 7
        return [*trip("a", id=rng.random()), *trip(rng.choice("bcd")), said("done")]

    async def main() -> None:
        nonlocal finished, failed
        memory = Flaky(rng)
        queue = CaptureQueue(memory, capacity=16, drain_timeout=0.001)
        chat = ReasonletChat(Model([answer]), memory, queue=queue, options=ChatOptions(SCOPE))
        chat._chat.asked = chat._chat.keywords = _Nothing()
        for start in range(0, EXCHANGES, BURST):
            burst = (chat([user(f"question {start} {n}")]) for n in range(BURST))
            answers = await asyncio.gather(*burst, return_exceptions=True)
            failed += sum(isinstance(each, ConnectionError) for each in answers)
            finished += sum(not isinstance(each, BaseException) for each in answers)
            if start + BURST == EXCHANGES:
                break  # with captures waiting
            if rng.random() < 0.8 or not (start + BURST) % ROUND:
                await queue.join()
            if not (start + BURST) % ROUND:
                counted.update(_captures())
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        await queue.aclose()
        counted.update(_captures())
        assert counted["remembered",] == memory.remembered["remembered"]

    tracemalloc.start()
    try:
        asyncio.run(main())
    finally:
        tracemalloc.stop()
    assert finished + failed == EXCHANGES
    assert failed > 0
    assert sum(counted.values()) == finished  # each once, whatever became of it
    for outcome in ("remembered", "dropped_full", "dropped_shutdown"):
        assert counted[outcome,] > 0, outcome
    # A byte or two an exchange; one kept capture in a hundred would be a hundred times that.
    assert sizes[-1] - sizes[1] < 32 * 1024, sizes


def _captures() -> dict[tuple[str, ...], int]:
    return emitted().captures


class _Nothing(list[Any]):
    """Keeps nothing of what is appended."""

    def append(self, item: Any) -> None:
        pass

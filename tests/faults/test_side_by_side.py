"""Recalls and writes of several threads and event loops side by side."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from bad_parts import Hanging, Own, finished
from scenario import TENANT, USER

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.errors import InvalidArgumentError
from rankblend.stores import Observation, StoreQuery


def test_arecall_when_compared_with_recall_then_the_answer_is_the_same(
    opened: Callable[..., rb.Memory],
) -> None:
    memory = opened(
        embedder=from_callable(lambda t: np.ones((len(t), 2)), name="ones", dimension=2)
    )
    memory.link("a", "b", scope=USER)
    for name in rb.profile_names():
        for query in ("refund", ""):
            asked: dict[str, Any] = {
                "scope": [USER, TENANT],
                "profile": name,
                "prefer": {"layer": "semantic"},
            }
            here = memory.recall(query, **asked)
            there = asyncio.run(memory.arecall(query, **asked))
            assert here.plain() == there.plain()
            assert here.trace.sources == there.trace.sources


def test_arecall_when_an_argument_is_bad_then_it_is_refused_in_the_same_words(
    opened: Callable[..., rb.Memory],
) -> None:
    memory = opened()
    messages = []
    with pytest.raises(InvalidArgumentError) as refused:
        memory.recall("refund", scope="x", top=-1)
    messages.append(str(refused.value))
    with pytest.raises(InvalidArgumentError) as refused:
        asyncio.run(memory.arecall("refund", scope="x", top=-1))
    messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_arecall_when_a_store_proposes_the_invisible_then_it_is_refused(
    opened: Callable[..., rb.Memory],
) -> None:
    with pytest.raises(rb.MemoryContractError):
        asyncio.run(opened(Own(proposes=["secret"])).arecall("refund", scope=USER))


def test_arecall_when_many_run_at_once_and_reinforce_then_none_blocks_another(
    opened: Callable[..., rb.Memory],
) -> None:
    memory = opened()

    async def ask() -> list[rb.Recall]:
        return await asyncio.gather(
            *[memory.arecall("refund", scope=USER, reinforce=True) for _ in range(8)]
        )

    results = finished(lambda: asyncio.run(ask()))
    assert {frozenset(result.ids) for result in results} == {frozenset({"a", "b"})}
    assert memory.get("a", scope=USER).uses == 8


def test_arecall_when_the_loop_writes_meanwhile_then_both_are_done(
    opened: Callable[..., rb.Memory],
) -> None:
    entered = threading.Event()

    def says(ids: Sequence[str]) -> Observation:
        entered.set()
        return Observation({"cosine": np.full(len(ids), 0.5)})

    memory = opened(Own(says=says))

    async def ask_and_write() -> rb.Recall:
        task = asyncio.create_task(memory.arecall("refund", scope=USER))
        while not entered.is_set():
            await asyncio.sleep(0)
        # On the loop's own thread: it may wait for the recall, which must not wait for the loop.
        memory.remember("refund again", scope=USER, id="c")
        return await task

    # While a store that may take its time is asked nobody is kept from writing: before or after.
    found = set(finished(lambda: asyncio.run(ask_and_write())).ids)
    assert found in ({"a", "b"}, {"a", "b", "c"})
    assert len(memory.recall("refund", scope=USER)) == 3


@pytest.mark.parametrize("timeout", [None, 60])
def test_arecall_when_cancelled_while_a_store_hangs_then_the_memory_can_be_written_at_once(
    opened: Callable[..., rb.Memory], release: threading.Event, timeout: float | None
) -> None:
    entered = threading.Event()

    class Waiting(Hanging):
        def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
            entered.set()
            return super().observe(query, ids)

    memory = opened(Waiting(release, "observe"), store_timeout=timeout)

    async def ask() -> None:
        task = asyncio.create_task(memory.arecall("refund", scope=USER))
        while not entered.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    finished(lambda: asyncio.run(ask()))
    # Waits until the recall has let go.
    finished(lambda: memory.remember("refund again", scope=USER, id="c"))
    assert len(memory) == 4


def test_arecall_when_it_waits_then_the_loop_goes_on(
    opened: Callable[..., rb.Memory], release: threading.Event
) -> None:
    memory = opened(Hanging(release, "observe"))

    async def ask() -> rb.Recall:
        task = asyncio.create_task(memory.arecall("refund", scope=USER))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not task.done()
        release.set()  # only the loop can do this: had it been blocked, nothing would ever end
        return await task

    assert set(finished(lambda: asyncio.run(ask())).ids) == {"a", "b"}


def test_recall_when_a_store_asks_the_same_memory_then_it_is_answered(
    opened: Callable[..., rb.Memory],
) -> None:
    nested: list[tuple[str, ...]] = []

    def says(ids: Sequence[str]) -> Observation:
        if not nested:
            nested.append(())
            nested.append(memory.recall("order", scope=USER).ids)
        return Observation({"cosine": np.full(len(ids), 0.5)})

    memory = opened(Own(says=says))
    assert set(memory.recall("refund", scope=USER).ids) == {"a", "b"}
    assert [set(ids) for ids in nested] == [set(), {"a", "b"}]


def test_recall_when_threads_read_and_write_then_every_answer_is_one_of_the_moments(
    opened: Callable[..., rb.Memory],
) -> None:
    memory = opened()
    problems: list[str] = []

    def read() -> None:
        for _ in range(20):
            found = (m.memory for m in memory.recall("refund number", scope=USER, top=50))
            problems.extend(
                m.text for m in found if m.id[0] == "n" and m.text != f"refund number {m.id}"
            )

    def write(start: int) -> None:
        for n in range(start, start + 20):
            memory.remember(f"refund number n{n}", scope=USER, id=f"n{n}")
            if n % 3 == 0:
                memory.forget(f"n{n}", scope=USER)

    threads = [threading.Thread(target=read) for _ in range(2)]
    threads += [threading.Thread(target=write, args=(start,)) for start in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    # Of 0…19 seven are forgotten (0, 3, …, 18), of 100…119 six (102, …, 117); three were there.
    assert len(memory) == 3 + 40 - 7 - 6
    found = memory.recall("refund number", scope=USER, top=99)
    assert len(found) == 2 + 40 - 7 - 6

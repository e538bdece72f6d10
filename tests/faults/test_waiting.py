"""Who waits for whom: a writer for the recalls before it, and nobody for a store that is slow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_parts import Forgetful, Hanging, Own, finished
from scenario import USER

import rankblend as rb
from rankblend.recall._ask import SharedLock
from rankblend.stores import Key, Observation, Record, StoreQuery
from rankblend.stores.keywords import KeywordStore

OTHER = "tenant:globex/user:1"


def until(what: Callable[[], object]) -> None:
    """Wait until something is so; there is nothing that would tell."""
    tick = threading.Event()
    for _ in range(3000):
        if what():
            return
        tick.wait(0.01)
    raise AssertionError("not after 30 s")


@contextmanager
def meanwhile(call: Callable[[], Any], begun: threading.Event, release: threading.Event) -> Any:
    """Something else, while a call waits for a store in another thread; its result is given."""
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(call()), daemon=True)
    thread.start()
    try:
        assert begun.wait(30)
        yield outcome
    finally:
        release.set()
        thread.join(30)
    assert not thread.is_alive()


class Slow(Own):
    """Waits when it is asked, after it has said so."""

    def __init__(self, release: threading.Event, during: str) -> None:
        super().__init__()
        self.release, self.during, self.begun = release, during, threading.Event()
        self.asked: list[str] = []

    def _wait(self, during: str) -> None:
        self.asked.append(during)
        if during == self.during:
            self.begun.set()
            self.release.wait(60)

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        self._wait("propose")
        return []

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        self._wait("observe")
        return super().observe(query, ids)


class SlowKeeper(Slow):
    """It keeps memories, too, and minds being shown one while it is asked."""

    def __init__(self, release: threading.Event, during: str) -> None:
        super().__init__(release, during)
        self.keys: dict[Key, str] = {}
        self.inside = 0
        self.disturbed = False

    def __len__(self) -> int:
        return len(self.keys)

    def _wait(self, during: str) -> None:
        self.inside += 1
        super()._wait(during)
        self.inside -= 1

    def add(self, records: Sequence[Record]) -> None:
        self.disturbed |= self.inside > 0
        self.keys |= {record.key: record.text for record in records}

    def remove(self, keys: Sequence[Key]) -> None:
        self.disturbed |= self.inside > 0
        for key in keys:
            self.keys.pop(key, None)


class SlowWords(KeywordStore):
    """One of ours, made slow by somebody."""

    def __init__(self, release: threading.Event, during: str) -> None:
        super().__init__(name="own")
        self.release, self.during, self.begun = release, during, threading.Event()

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        if self.during == "propose":
            self.begun.set()
            self.release.wait(60)
        return super().propose(query, limit, level=level)

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        if self.during == "observe":
            self.begun.set()
            self.release.wait(60)
        return super().observe(query, ids)


@pytest.mark.parametrize("during", ["propose", "observe"])
@pytest.mark.parametrize("kind", [Slow, SlowKeeper, SlowWords])
@pytest.mark.parametrize("how", ["at once", "in threads", "event loop"])
def test_write_when_a_store_is_waited_for_then_it_waits_for_nobody(
    opened: Callable[..., rb.Memory],
    release: threading.Event,
    during: str,
    kind: type[Any],
    how: str,
) -> None:
    store = kind(release, during)
    profile = "rrf" if kind is SlowWords else "crewai"
    patience = 60.0 if how == "in threads" else None
    memory = opened(store, profile=profile, store_timeout=patience)

    def ask() -> rb.Recall:
        if how == "event loop":
            return asyncio.run(memory.arecall("refund", scope=USER))
        return memory.recall("refund", scope=USER)

    with meanwhile(ask, store.begun, release) as outcome:
        finished(lambda: memory.remember("refund in Rome", scope=OTHER, id="o"))
        finished(lambda: memory.remember("refund of today", scope=USER, id="c"))
        finished(lambda: memory.link("c", "Rome", scope=USER))
        assert finished(lambda: memory.forget("a", scope=USER)) == 1
        assert finished(lambda: memory.reinforce("b", scope=USER)) == 1
        assert finished(lambda: memory.get("c", scope=USER)).text == "refund of today"
        assert outcome == []
    assert set(outcome[0].ids) <= {"b", "c"}
    assert not outcome[0].degraded
    assert set(memory.recall("refund", scope=USER).ids) == {"b", "c"}


@pytest.mark.parametrize("during", ["propose", "observe"])
def test_store_that_keeps_memories_when_it_is_asked_then_it_is_shown_the_write_afterwards(
    opened: Callable[..., rb.Memory], release: threading.Event, during: str
) -> None:
    store = SlowKeeper(release, during)
    memory = opened(store)
    with meanwhile(lambda: memory.recall("refund", scope=USER), store.begun, release):
        finished(lambda: memory.remember("refund of today", scope=USER, id="c"))
        finished(lambda: memory.forget("a", scope=USER))
        assert {key.id for key in store.keys} == {"a", "b", "secret"}
    assert {key.id for key in store.keys} == {"b", "c", "secret"}
    assert not store.disturbed


def test_recall_when_others_write_all_the_time_then_a_slow_store_is_asked_each_question_once(
    opened: Callable[..., rb.Memory], release: threading.Event
) -> None:
    release.set()
    store = Slow(release, "propose")
    memory = opened(store)
    count = iter(range(100))

    def says(ids: Sequence[str]) -> Observation:
        memory_thread = threading.Thread(
            target=lambda: memory.remember(f"other {next(count)}", scope=OTHER)
        )
        memory_thread.start()
        memory_thread.join(30)
        return Observation({"cosine": np.full(len(ids), 0.5)})

    store.says = says
    assert set(finished(lambda: memory.recall("refund", scope=USER)).ids) == {"a", "b"}
    assert store.asked == ["propose", "observe"]


def test_recall_when_what_a_slow_store_proposed_is_erased_meanwhile_then_it_is_left_out(
    opened: Callable[..., rb.Memory],
) -> None:
    def proposes() -> list[str]:
        thread = threading.Thread(
            target=lambda: gone or gone.append(memory.forget("a", scope=USER))
        )
        thread.start()
        thread.join(30)
        return ["a", "b"]

    gone: list[int] = []
    memory = opened(Own(proposes))
    assert finished(lambda: memory.recall("refund", scope=USER)).ids == ("b",)
    assert gone == [1]


def test_writer_when_readers_come_and_go_then_it_goes_before_those_that_come_later() -> None:
    lock, order = SharedLock(), list[str]()
    inside, done = threading.Event(), threading.Event()

    def first() -> None:
        with lock.reading():
            inside.set()
            done.wait(30)
            with lock.reading():  # nested: it waits for nobody who waits for it
                order.append("nested")

    def write() -> None:
        with lock.writing():
            order.append("write")

    def read() -> None:
        with lock.reading():
            order.append("read")

    threads = [threading.Thread(target=first, daemon=True)]
    threads[0].start()
    assert inside.wait(30)
    for target in (write, read, write, read):
        threads.append(threading.Thread(target=target, daemon=True))
        threads[-1].start()
        until(lambda: len(lock._waiting) == len(threads) - 1)
    assert order == []
    done.set()
    for thread in threads:
        thread.join(30)
    assert order == ["nested", "write", "read", "write", "read"]


def test_write_when_readers_ask_in_a_loop_then_it_waits_for_about_one_recall(
    opened: Callable[..., rb.Memory], tmp_path: Path
) -> None:
    memory = opened(path=tmp_path / "m.db")
    memory.remember_many([{"text": f"refund {n}", "scope": USER} for n in range(500)])
    over, recalls = threading.Event(), [0] * 4

    def read(which: int) -> None:
        while not over.is_set():
            memory.recall("refund order", scope=USER)
            recalls[which] += 1

    readers = [threading.Thread(target=read, args=(which,), daemon=True) for which in range(4)]
    for reader in readers:
        reader.start()
    until(lambda: min(recalls) > 0)
    lock, waited = memory._engine.lock, list[int]()
    wait = lock._wait

    def counted(holder: object, ready: Callable[[], bool], *, writes: bool = True) -> None:
        before = list(recalls)
        wait(holder, ready, writes=writes)
        if writes:
            waited.append(max(now - ago for now, ago in zip(recalls, before, strict=True)))

    lock._wait = counted  # type: ignore[method-assign]
    for n in range(10):
        memory.remember(f"other {n}", scope=OTHER)
    over.set()
    for reader in readers:
        reader.join(30)
    # From when it stands in line: the recall each reader is in, and the next one's first half where
    # the reader stood there before.
    assert len(waited) >= 10
    assert max(waited) <= 2, waited


@pytest.mark.parametrize("kind", [Hanging, Forgetful])
def test_store_that_hangs_or_fails_when_written_to_later_then_others_go_on(
    opened: Callable[..., rb.Memory], release: threading.Event, kind: type[Any]
) -> None:
    store = Hanging(release, "propose") if kind is Hanging else Forgetful(OSError)
    memory = opened(store, store_timeout=0.3)
    assert set(finished(lambda: memory.recall("refund", scope=USER)).ids) == {"a", "b"}
    finished(lambda: memory.remember("refund again", scope=USER, id="c"))
    assert "c" in finished(lambda: memory.recall("refund", scope=USER)).ids

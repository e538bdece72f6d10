"""A store that does not come back: nobody waits for it longer than agreed, and only once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from bad_parts import Forgetful, Hanging, Own, finished, why
from scenario import START, USER

import rankblend as rb
from rankblend.errors import StoreClosedError, StoreTimeoutError
from rankblend.stores import Key, Observation, Reason, Record, StoreQuery


@pytest.mark.parametrize("during", ["propose", "observe"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_recall_when_a_store_hangs_then_the_others_answer_after_the_time_out(
    opened: Callable[..., rb.Memory], release: threading.Event, during: str, asynchronous: bool
) -> None:
    memory = opened(Hanging(release, during), store_timeout=0.5)
    result = finished(
        lambda: (
            asyncio.run(memory.arecall("refund", scope=USER))
            if asynchronous
            else memory.recall("refund", scope=USER)
        )
    )
    assert set(result.ids) == {"a", "b"}
    late = [f for f in result.trace.failures if f.store == "own"]
    assert [(f.during, f.reason) for f in late] == [(during, Reason.TIMED_OUT)]
    assert late[0].words == f"store 'own' timed out during {during}"
    assert why(result, "a", "similarity") == "timed out"
    # The one that is still hanging keeps nobody from writing, reading and closing.
    memory.remember("refund again", scope=USER, id="c")
    memory.close()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_recall_when_strict_and_a_store_hangs_then_the_time_out_is_raised(
    opened: Callable[..., rb.Memory], release: threading.Event, asynchronous: bool
) -> None:
    # The only store of its round, as others may be late too on a busy machine.
    memory = opened(store_timeout=0.05, profile="rrf", stores=[Hanging(release, "propose")])

    def ask() -> object:
        if asynchronous:
            return asyncio.run(memory.arecall("refund", scope=USER, strict=True))
        return memory.recall("refund", scope=USER, strict=True)

    with pytest.raises(
        StoreTimeoutError, match=r"'own' .* within 0\.05 s; raise store_timeout"
    ) as late:
        ask()
    assert (late.value.store, late.value.seconds) == ("own", 0.05)
    assert isinstance(late.value, TimeoutError)


class Asleep(Hanging):
    """Hangs whenever it is asked anything, and counts that."""

    def __init__(self, release: threading.Event) -> None:
        super().__init__(release, "both")
        self.asked: list[str] = []

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        self.asked.append("propose")
        self.release.wait()
        return []

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        self.asked.append("observe")
        self.release.wait()
        return Observation({})


@pytest.mark.parametrize("asynchronous", [False, True])
def test_recall_when_a_store_hangs_in_propose_then_it_is_not_asked_again(
    opened: Callable[..., rb.Memory], release: threading.Event, asynchronous: bool
) -> None:
    store = Asleep(release)
    memory = opened(store, store_timeout=0.3)
    result = finished(
        lambda: (
            asyncio.run(memory.arecall("refund", scope=USER))
            if asynchronous
            else memory.recall("refund", scope=USER)
        )
    )
    assert store.asked == ["propose"]
    assert [(f.store, f.during) for f in result.trace.failures] == [("own", "propose")]
    assert why(result, "a", "similarity") == "timed out"


def test_recall_when_it_starts_over_then_a_hanging_store_is_not_asked_again(
    opened: Callable[..., rb.Memory], release: threading.Event, tmp_path: Path
) -> None:
    store = Asleep(release)
    memory = opened(stores=[*rb.default_stores(), store], store_timeout=0.3, path=tmp_path / "m.db")
    other = rb.Memory.open(tmp_path / "m.db", clock=lambda: START)

    def recorder() -> bool:
        other.remember("refund elsewhere", scope=USER)  # so that it starts over every time
        return False

    memory._engine.catalog.is_current = recorder  # type: ignore[method-assign]
    result = finished(lambda: memory.recall("refund", scope=USER))
    other.close()
    assert store.asked == ["propose"]
    assert set(result.ids) >= {"a", "b"}
    assert result.degraded


@pytest.mark.parametrize("during", ["add", "remove"])
def test_write_when_a_store_hangs_in_it_then_it_is_durable_before_it_is_acknowledged(
    opened: Callable[..., rb.Memory], release: threading.Event, tmp_path: Path, during: str
) -> None:
    reached = threading.Event()

    class Stuck(Forgetful):
        def add(self, records: Sequence[Record]) -> None:
            self._wait("add")
            super().add(records)

        def remove(self, keys: Sequence[Key]) -> None:
            self._wait("remove")
            super().remove(keys)

        def _wait(self, what: str) -> None:
            if self.failing and what == during:
                reached.set()
                release.wait()

    store = Stuck(OSError)
    path = tmp_path / "m.db"
    memory = opened(stores=[store, *rb.default_stores()], path=path)
    store.failing = True
    done: list[object] = []

    def write() -> None:
        if during == "add":
            done.append(memory.remember("refund of today", scope=USER, id="c"))
        else:
            done.append(memory.forget("a", scope=USER))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    assert reached.wait(30)
    assert done == []
    with rb.Memory.open(path, clock=lambda: START) as other:  # as after a kill
        assert ("c" in other.recall("refund", scope=USER).ids) == (during == "add")
        assert ("a" in other.recall("refund", scope=USER).ids) == (during == "add")
    store.failing = False
    release.set()
    thread.join(30)
    assert len(done) == 1


def test_close_when_a_store_hangs_in_it_then_what_was_written_is_there(
    opened: Callable[..., rb.Memory], release: threading.Event, tmp_path: Path
) -> None:
    reached = threading.Event()

    class Stuck(Own):
        def close(self) -> None:
            reached.set()
            release.wait()

    path = tmp_path / "m.db"
    memory = opened(Stuck(), path=path)
    thread = threading.Thread(target=memory.close, daemon=True)
    thread.start()
    assert reached.wait(30)
    with rb.Memory.open(path, clock=lambda: START) as other:
        assert set(other.recall("refund", scope=USER).ids) == {"a", "b"}
    release.set()
    thread.join(30)
    with pytest.raises(StoreClosedError):
        memory.recall("refund", scope=USER)

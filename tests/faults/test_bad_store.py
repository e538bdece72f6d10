"""A store that raises: the others answer, and the result says who failed and why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_parts import Forgetful, Own, finished, raising, why
from scenario import SECRET, START, USER

import rankblend as rb
from rankblend.errors import CacheWarning, StoreError, StoreFailedError
from rankblend.stores import Observation, Record


@pytest.mark.parametrize("during", ["propose", "observe"])
def test_recall_when_a_store_raises_then_the_rest_answers_and_says_who_failed(
    opened: Callable[..., rb.Memory], during: str
) -> None:
    store = Own(proposes=raising) if during == "propose" else Own(says=raising)
    result = opened(store).recall("refund", scope=USER)
    assert set(result.ids) == {"a", "b"}
    assert result.degraded
    (failure,) = result.trace.failures
    assert (failure.store, failure.during, failure.kind) == ("own", during, "ConnectionError")
    assert failure.words == f"store 'own' failed (ConnectionError) during {during}"
    # What it would have said is absent with that reason; a store that failed to propose may answer.
    expected = {"propose": "", "observe": "failed"}[during]
    assert why(result, "a", "similarity") == expected
    assert "4711" not in str(result.plain()) + str(result.explain("a"))


def test_recall_when_a_store_raises_then_the_answer_is_that_without_it(
    opened: Callable[..., rb.Memory],
) -> None:
    degraded = opened(Own(says=raising)).recall("refund", scope=USER)
    without = opened().recall("refund", scope=USER)
    assert [m.plain() for m in degraded] == [m.plain() for m in without]
    assert not without.degraded


@pytest.mark.parametrize("during", ["propose", "observe"])
def test_recall_when_strict_and_a_store_raises_then_so_does_the_recall(
    opened: Callable[..., rb.Memory], during: str
) -> None:
    store = Own(proposes=raising) if during == "propose" else Own(says=raising)
    with pytest.raises(StoreFailedError, match=f"'own' failed during {during}") as failed:
        opened(store).recall("refund", scope=USER, strict=True)
    assert failed.value.store == "own"
    assert isinstance(failed.value.__cause__, ConnectionError)
    assert "4711" not in str(failed.value)


def test_recall_when_the_profile_reads_nothing_of_a_store_then_it_is_not_asked(
    opened: Callable[..., rb.Memory],
) -> None:
    store = Own(proposes=raising, says=raising)
    store.emits = ("rerank_score",)
    assert not opened(store).recall("refund", scope=USER, strict=True).degraded


def test_recall_when_it_failed_then_the_next_one_and_writing_go_on(
    opened: Callable[..., rb.Memory],
) -> None:
    store = Own(says=raising)
    memory = opened(store)
    with pytest.raises(StoreFailedError):
        memory.recall("refund", scope=USER, strict=True)
    memory.remember("refund again", scope=USER, id="c")
    store.says = lambda ids: Observation({"cosine": np.full(len(ids), 0.5)})
    assert set(memory.recall("refund", scope=USER, strict=True).ids) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "error", [KeyError, StopIteration, MemoryError, RecursionError, rb.RankblendError]
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_recall_when_a_store_raises_anything_then_the_others_answer(
    opened: Callable[..., rb.Memory], error: type[Exception], asynchronous: bool
) -> None:
    def failing(*_: Any) -> Any:
        raise error(SECRET)

    memory = opened(Own(proposes=failing, says=failing), store_timeout=30)
    result = (
        asyncio.run(memory.arecall("refund", scope=USER))
        if asynchronous
        else memory.recall("refund", scope=USER)
    )
    assert set(result.ids) == {"a", "b"}
    assert {(f.during, f.kind) for f in result.trace.failures} == {
        ("propose", error.__name__), ("observe", error.__name__)
    }  # fmt: skip
    assert "4711" not in str(result.plain()) + str(result.explain("a"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_recall_when_a_store_wants_out_then_it_gets_out_and_the_memory_goes_on(
    opened: Callable[..., rb.Memory], error: type[BaseException], tmp_path: Path
) -> None:
    def leaving(*_: Any) -> Any:
        raise error

    store = Own(says=leaving)
    memory = opened(store)
    with pytest.raises(error):
        memory.recall("refund", scope=USER)
    store.says = lambda ids: Observation({"cosine": np.full(len(ids), 0.5)})
    memory.remember("refund again", scope=USER, id="c")
    assert set(memory.recall("refund", scope=USER, strict=True).ids) == {"a", "b", "c"}


def test_close_when_a_store_raises_then_everything_else_is_closed_and_the_error_is_ours(
    opened: Callable[..., rb.Memory], tmp_path: Path
) -> None:
    closed: list[str] = []

    class Stubborn(Own):
        def close(self) -> None:
            raise ConnectionError(SECRET)

    class Orderly(Own):
        name = "orderly"

        def close(self) -> None:
            closed.append(self.name)

    path = tmp_path / "m.db"
    memory = opened(stores=[Orderly(), Stubborn(), *rb.default_stores()], path=path)
    with pytest.raises(StoreError, match=r"'own' failed to close \(ConnectionError\)") as failed:
        memory.close()
    assert "everything written is kept" in str(failed.value)
    assert "4711" not in str(failed.value)
    assert closed == ["orderly"]
    memory.close()
    assert [each.name for each in tmp_path.iterdir()] == ["m.db"]
    with rb.Memory.open(path, clock=lambda: START) as again:
        assert set(again.recall("refund", scope=USER).ids) == {"a", "b"}


def test_open_when_a_store_cannot_be_filled_then_it_opens_and_says_so(
    opened: Callable[..., rb.Memory], tmp_path: Path
) -> None:
    path = tmp_path / "m.db"
    opened(path=path).close()
    store = Forgetful(ConnectionError)
    store.failing = True
    with pytest.warns(CacheWarning, match=r"'own' failed to follow") as told:
        memory = rb.Memory.open(path, stores=[*rb.default_stores(), store], profile="crewai")
    assert "4711" not in str(told[0].message)
    found = memory.recall("refund", scope=USER, now=START)
    assert set(found.ids) == {"a", "b"}
    assert ("own", "write") in [(f.store, f.during) for f in found.trace.failures]
    memory.close()


def test_write_when_a_store_writes_back_then_it_is_told_not_to_and_the_memory_is_stored(
    opened: Callable[..., rb.Memory],
) -> None:
    class Eager(Forgetful):
        eager = False

        def add(self, records: Sequence[Record]) -> None:
            super().add(records)
            if self.eager:
                memory.remember("because of that", scope=USER)

    store = Eager(OSError)
    memory = opened(stores=[store, *rb.default_stores()])
    store.eager = True

    def write() -> str:
        with pytest.warns(CacheWarning, match="MemoryContractError"):
            return memory.remember("refund of today", scope=USER, id="c")

    assert finished(write) == "c"
    assert "c" in memory.recall("refund", scope=USER).ids

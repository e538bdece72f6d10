"""Stores and embedders that raise, hang or answer nonsense; recalls that run side by side."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.errors import (
    CacheWarning,
    InvalidArgumentError,
    StoreFailedError,
    StoreTimeoutError,
)
from rankblend.stores.protocol import Key, Observation, Reason, Record, StoreQuery

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER = "tenant:acme", "tenant:acme/user:7"
SECRET = "the vault's code is 4711"


class Own:
    """A store of one's own: it proposes and answers what it is made with."""

    name = "own"
    emits: tuple[str, ...] = ("cosine",)

    def __init__(
        self, proposes: Any = (), says: Callable[[Sequence[str]], Any] | None = None
    ) -> None:
        self.proposes = proposes
        self.says = says or (lambda ids: Observation({"cosine": np.full(len(ids), 0.5)}))

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        return self.proposes() if callable(self.proposes) else self.proposes

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        return self.says(ids)

    def close(self) -> None: ...


def raising(*_: Any) -> Any:
    raise ConnectionError(f"no answer to: {SECRET}")


@pytest.fixture
def opened() -> Iterator[Callable[..., rb.Memory]]:
    memories = []

    def make(store: Any = None, **options: Any) -> rb.Memory:
        if store is not None:
            options["stores"] = [*rb.default_stores(), store]
        memory = rb.Memory.open(
            ":memory:", **{"clock": lambda: NOW, "profile": "crewai", **options}
        )
        memories.append(memory)
        memory.remember("refund policy", scope=USER, id="a", salience=0.5)
        memory.remember("refund of an order", scope=USER, id="b")
        memory.remember(SECRET, scope="tenant:globex", id="secret")
        return memory

    yield make
    for memory in memories:
        memory.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a hanging store waits for; set when the test is over, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


def why(result: rb.Recall, identifier: str, signal: str) -> str:
    return next(row.why for row in result.explain(identifier).rows if row.name == signal)


def finished(call: Callable[[], Any]) -> Any:
    """What a call returns, in a thread of its own: one that never ends fails and hangs nothing."""
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(call()), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "still waiting after 30 s"
    return outcome[0]


# A store that raises


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


# A store that breaks its promises


def column(value: Any) -> Callable[[Sequence[str]], Observation]:
    return lambda ids: Observation({"cosine": np.full(len(ids), value)})


BROKEN: dict[str, Callable[[Sequence[str]], Any]] = {
    "expected 2 values of 'cosine', got (3,)": lambda ids: Observation(
        {"cosine": np.ones(len(ids) + 1)}
    ),
    "expected 2 values of 'cosine', got (0,)": lambda ids: Observation({"cosine": np.ones(0)}),
    "expected 2 values of 'cosine', got (2, 1)": lambda ids: Observation(
        {"cosine": np.ones((len(ids), 1))}
    ),
    "expected an Observation, got dict": lambda ids: {"cosine": np.ones(len(ids))},
    "expected an Observation, got NoneType": lambda ids: None,
    "expected numbers for 'cosine'": lambda ids: Observation({"cosine": ["high"] * len(ids)}),  # type: ignore[dict-item]
    "unknown reasons for 'cosine'": lambda ids: Observation(
        {"cosine": np.full(len(ids), np.nan)}, {"cosine": np.full(len(ids), 99, np.int8)}
    ),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("broken", BROKEN)
def test_recall_when_an_observation_is_malformed_then_the_store_is_named_strict_or_not(
    opened: Callable[..., rb.Memory], broken: str, strict: bool
) -> None:
    with pytest.raises(rb.MemoryContractError) as refused:
        opened(Own(says=BROKEN[broken])).recall("refund", scope=USER, strict=strict)
    assert str(refused.value).startswith(f"store 'own': {broken}")


def test_recall_when_a_store_itself_finds_a_promise_broken_then_only_it_has_failed(
    opened: Callable[..., rb.Memory],
) -> None:
    votes = rb.SignalStore("own", lambda ids: {i: {"liked": 1.0} for i in ids}, emits=("salience",))
    memory = opened(votes)
    result = memory.recall("refund", scope=USER)
    assert [failure.kind for failure in result.trace.failures] == ["MemoryContractError"]
    with pytest.raises(StoreFailedError) as failed:
        memory.recall("refund", scope=USER, strict=True)
    assert "emits salience, but gave liked" in str(failed.value.__cause__)


@pytest.mark.parametrize("value", [-1.0, 1.5, np.inf, -np.inf])
def test_recall_when_evidence_is_out_of_range_then_store_and_signal_are_named(
    opened: Callable[..., rb.Memory], value: float
) -> None:
    store = Own(
        proposes=["a"], says=lambda ids: Observation({"salience": np.full(len(ids), value)})
    )
    store.emits = ("salience",)
    with pytest.raises(rb.MemoryContractError, match=r"store 'own': .*salience"):
        opened(store).recall("refund", scope=USER)


def test_recall_when_a_store_answers_nan_then_it_is_absent(
    opened: Callable[..., rb.Memory],
) -> None:
    result = opened(Own(says=column(np.nan))).recall("refund", scope=USER, strict=True)
    assert why(result, "a", "similarity") == "not applicable"
    lying = Own(
        says=lambda ids: Observation(
            {"cosine": np.full(len(ids), np.nan)}, {"cosine": np.zeros(len(ids), np.int8)}
        )
    )
    assert why(opened(lying).recall("refund", scope=USER), "a", "similarity") == "not applicable"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("broken_too", [False, True])
def test_recall_when_a_store_proposes_the_invisible_then_it_is_refused_always(
    opened: Callable[..., rb.Memory], strict: bool, broken_too: bool
) -> None:
    memory = opened(Own(proposes=["a", "secret"], says=raising if broken_too else None))
    with pytest.raises(
        rb.MemoryContractError, match="not visible to this query or unknown"
    ) as refused:
        memory.recall("refund", scope=USER, strict=strict)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("limit", ["filters", "expired", "tip_only"])
def test_recall_when_a_store_ignores_what_is_admitted_then_it_is_refused(
    opened: Callable[..., rb.Memory], limit: str
) -> None:
    memory = opened(Own(proposes=["x"]))
    options: dict[str, Any] = {
        "filters": {}, "expired": {"expires": "2026-01-01T00:00:00+00:00"}, "tip_only": {"layer": "working"},
    }[limit]  # fmt: skip
    memory.remember("hidden", scope=TENANT, id="x", **options)
    filters = {"lang": "en"} if limit == "filters" else None
    with pytest.raises(rb.MemoryContractError, match=r"query\.admitted before the limit"):
        memory.recall("refund", scope=USER, filters=filters)


def test_recall_when_a_store_proposes_the_unknown_then_it_is_refused_like_the_invisible(
    opened: Callable[..., rb.Memory],
) -> None:
    told = []
    for proposed in ("ghost", "secret"):
        with pytest.raises(rb.MemoryContractError) as refused:
            opened(Own(proposes=["a", proposed])).recall("refund", scope=USER)
        told.append(str(refused.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("proposes", [[5], [None], [["a"]], [b"a"]])
def test_recall_when_a_store_proposes_what_is_no_id_then_it_is_refused(
    opened: Callable[..., rb.Memory], proposes: Any
) -> None:
    with pytest.raises(rb.MemoryContractError, match="store 'own': expected ids as text"):
        opened(Own(proposes=proposes)).recall("refund", scope=USER)


@pytest.mark.parametrize("proposes", [None, 5])
def test_recall_when_a_store_proposes_no_sequence_then_it_has_failed(
    opened: Callable[..., rb.Memory], proposes: Any
) -> None:
    result = opened(Own(proposes=lambda: proposes)).recall("refund", scope=USER)
    assert [(f.store, f.during) for f in result.trace.failures] == [("own", "propose")]


def test_recall_when_a_store_proposes_the_same_again_and_again_then_it_is_one_candidate(
    opened: Callable[..., rb.Memory],
) -> None:
    result = opened(Own(proposes=["a"] * 1000)).recall("refund", scope=USER)
    assert sorted(result.ids) == ["a", "b"]
    assert result.trace.pool == 2


# A store that hangs


class Hanging(Own):
    def __init__(self, release: threading.Event, during: str) -> None:
        super().__init__()
        self.release, self.during = release, during

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        if self.during == "propose":
            self.release.wait()
        return []

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        if self.during == "observe":
            self.release.wait()
        return super().observe(query, ids)


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
    if during == "observe":
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


def test_recall_when_a_store_hangs_in_the_embedder_then_similarity_is_absent(
    opened: Callable[..., rb.Memory], release: threading.Event
) -> None:
    asked = threading.Event()

    def embed(texts: Sequence[str]) -> np.ndarray:
        if asked.is_set():
            release.wait()
        return np.ones((len(texts), 2))

    memory = opened(embedder=from_callable(embed, name="slow", dimension=2), store_timeout=0.5)
    asked.set()
    result = finished(lambda: memory.recall("refund", scope=USER))
    assert ("embedder", "embed") in [(f.store, f.during) for f in result.trace.failures]
    assert {m.signals.similarity for m in result} == {None}


# An embedder that fails while asking


@pytest.mark.parametrize(
    "fails",
    [
        raising,
        lambda texts: np.full((len(texts), 2), np.nan),
        lambda texts: np.ones((len(texts), 3)),
        lambda texts: np.zeros((len(texts), 2)),
        lambda texts: np.ones((len(texts) + 1, 2)),
    ],
)
def test_recall_when_the_embedder_fails_then_keywords_answer_and_strict_raises(
    opened: Callable[..., rb.Memory], fails: Callable[..., Any]
) -> None:
    behaviour: list[Callable[..., Any]] = [lambda texts: np.ones((len(texts), 2))]
    embedder = from_callable(lambda texts: behaviour[-1](texts), name="moody", dimension=2)
    memory = opened(embedder=embedder)
    behaviour.append(fails)
    result = memory.recall("refund", scope=USER)
    assert set(result.ids) == {"a", "b"}
    assert [(f.store, f.during, f.kind) for f in result.trace.failures] == [
        ("embedder", "embed", "EmbeddingError")
    ]
    assert {m.signals.similarity for m in result} == {None}
    with pytest.raises(StoreFailedError, match="'embedder' failed during embed") as failed:
        memory.recall("refund", scope=USER, strict=True)
    assert "4711" not in f"{failed.value} {failed.value.__cause__}"
    # A blank query asks no embedder.
    assert not memory.recall("", scope=USER, strict=True).degraded


# A store that cannot follow a write


class Forgetful(Own):
    """Keeps memories, until it is told to fail."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__()
        self.error = error
        self.failing = False
        self.keys: set[Key] = set()

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, records: Sequence[Record]) -> None:
        if self.failing:
            raise self.error(SECRET)
        self.keys |= {record.key for record in records}

    def remove(self, keys: Sequence[Key]) -> None:
        if self.failing:
            raise self.error(SECRET)
        self.keys -= set(keys)


@pytest.mark.parametrize("error", [OSError, rb.MemoryContractError])
def test_remember_when_a_store_cannot_follow_then_it_is_stored_and_the_others_know(
    opened: Callable[..., rb.Memory], error: type[Exception]
) -> None:
    store = Forgetful(error)
    # First in line, so that the others come after the failure.
    memory = opened(stores=[store, *rb.default_stores()])
    store.failing = True
    with pytest.warns(
        CacheWarning, match=f"'own' failed to follow a write \\({error.__name__}\\)"
    ) as told:
        assert memory.remember("refund of today", scope=USER, id="c") == "c"
    assert "4711" not in str(told[0].message)
    with pytest.warns(CacheWarning):
        memory.forget("a", scope=USER)
    result = memory.recall("refund today", scope=USER)
    assert set(result.ids) == {"b", "c"}
    assert ("own", "write") in [(f.store, f.during) for f in result.trace.failures]
    past = memory.recall("refund", scope=USER, as_of=NOW)
    assert ("own", "write") in [(f.store, f.during) for f in past.trace.failures]
    with pytest.raises(StoreFailedError, match="'own' failed during write"):
        memory.recall("refund", scope=USER, strict=True)


def test_remember_when_warnings_are_errors_then_the_memory_is_stored_all_the_same(
    opened: Callable[..., rb.Memory],
) -> None:
    store = Forgetful(OSError)
    memory = opened(stores=[*rb.default_stores(), store])
    store.failing = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CacheWarning):
            memory.remember("refund of today", scope=USER, id="c")
    assert memory.get("c", scope=USER).text == "refund of today"
    assert "c" in memory.recall("refund", scope=USER).ids


def test_open_when_the_file_cannot_be_written_then_it_is_read_and_closed(tmp_path: Any) -> None:
    path = tmp_path / "folder" / "m.db"
    path.parent.mkdir()
    with rb.Memory.open(path) as memory:
        memory.remember("refund policy", scope=USER, id="a")
    # The index cache of the first opening is gone, so that closing wants to keep it again.
    path.parent.chmod(0o555)
    path.chmod(0o444)
    try:
        with rb.Memory.open(path) as memory:
            assert memory.recall("refund", scope=USER).ids == ("a",)
    finally:
        path.parent.chmod(0o755)


# Asynchronous recalls


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
        # On the loop's own thread: it waits for the recall, which must not wait for the loop.
        memory.remember("refund again", scope=USER, id="c")
        return await task

    assert set(finished(lambda: asyncio.run(ask_and_write())).ids) == {"a", "b"}
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


# Hostile arguments

junk = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.just(10**400), st.floats(),
        st.text(max_size=5), st.sampled_from(("\ud800", "a\x00", "tenant:acme/", "a:1/a:2", "%", "2026-13-01")),
        st.binary(max_size=3), st.datetimes(), st.complex_numbers(), st.just(object()), st.just(len),
        st.just(rb.Link("a", weight=None)), st.just(rb.Seed(None, "x")), st.just(np.array([np.nan, 1])),  # type: ignore[arg-type]
        st.just(USER), st.just(rb.Scope.parse(USER)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
        st.lists(inner, max_size=2).map(tuple), st.dictionaries(st.sampled_from(("gte", "ne", "layer", "a")), inner, max_size=2),
    ),
    max_leaves=4,
)  # fmt: skip
REMEMBER = (
    "text", "scope", "id", "layer", "key", "salience", "confidence", "review", "maturity",
    "certainty", "links", "at", "expires", "metadata", "vector",
)  # fmt: skip
RECALL = (
    "scope",
    "reach",
    "top",
    "profile",
    "weights",
    "filters",
    "prefer",
    "seeds",
    "as_of",
    "now",
)


def check_hostile(data: st.DataObject) -> None:
    def some(names: tuple[str, ...]) -> dict[str, Any]:
        return data.draw(st.dictionaries(st.sampled_from(names), junk, max_size=3))

    calls: list[Callable[[rb.Memory], object]] = [
        lambda m: m.remember(**{"text": "tea", "scope": USER, **some(REMEMBER)}),
        lambda m: m.remember_many(data.draw(junk)),
        lambda m: m.remember_many([{"text": "tea", "scope": USER, **some((*REMEMBER, "uses", "used"))}]),
        lambda m: m.recall(data.draw(st.one_of(junk, st.just("tea"))), **{"scope": USER, **some(RECALL)}),
        lambda m: m.recall("tea", scope=USER).explain(data.draw(junk)),
        lambda m: m.get(data.draw(junk), scope=data.draw(junk)),
        lambda m: m.forget(data.draw(junk), scope=data.draw(st.one_of(junk, st.just(USER)))),
        lambda m: m.reinforce(data.draw(junk), scope=USER),
        lambda m: m.link_many(data.draw(junk), scope=USER),
        lambda m: m.link(data.draw(junk), "a", scope=USER, kind=data.draw(junk), weight=data.draw(junk)),
        lambda m: m.unlink(data.draw(junk), data.draw(junk), scope=USER),
    ]  # fmt: skip
    with rb.Memory.open(":memory:") as memory:
        memory.remember("tea", scope=USER, id="a")
        for call in data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=6)):
            before = len(memory)
            try:
                call(memory)
            except rb.RankblendError:
                assert len(memory) == before
        for match in memory.recall("tea", scope=USER):
            match.memory.plain()
        memory.recall("", scope=USER, include_expired=True)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_memory_when_arguments_are_hostile_then_it_refuses_them_in_its_own_words(
    data: st.DataObject,
) -> None:
    check_hostile(data)


@pytest.mark.slow
@settings(max_examples=2000, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_memory_when_very_many_arguments_are_hostile_then_it_refuses_them_in_its_own_words(
    data: st.DataObject,
) -> None:
    check_hostile(data)

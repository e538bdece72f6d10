"""Every row of the tables of failures, with a planted secret that must never come out again."""

from __future__ import annotations

import asyncio
import gc
import logging
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from rankblend.reasonlets import (
    Capture,
    CaptureBlockedError,
    Edge,
    ExtractedIntent,
    Graph,
    GuardVerdict,
    InMemoryReasonletStore,
    Judgement,
    Node,
    Outcome,
    Provenance,
    ReasonletAdapterError,
    ReasonletConflictError,
    ReasonletError,
    ReasonletMemory,
    ReasonletNotFoundError,
    ReasonletOptions,
    ReasonletUnavailableError,
    ReasonletValidationError,
    SqliteReasonletStore,
    VerdictSource,
)
from rankblend.relevance import Scope
from rankblend.stores.procedures import Candidate, Counts, Search

SECRET = "s3cr3t-7731"
SCOPE = "tenant:acme"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
GRAPH = Graph(
    [Node("look", "tool", tool="orders.get", properties={"id": SECRET}), Node("end", "answer")],
    [Edge("look", "end", condition=SECRET)],
)
OTHER = Graph([Node("look", "tool")])
QUESTION = f"How do I refund order {SECRET}?"


class Broken(Exception):
    """What a client library raises, repeating what it was sent."""


class Coded(Exception):
    """An adapter's answer with one of our codes."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"{code} {SECRET}")


def capture(**changes: Any) -> Capture:
    made = Capture(
        SCOPE, QUESTION, GRAPH, Outcome(True), Provenance("agent"), name="refund",
        answer=f"Done: {SECRET}",
    )  # fmt: skip
    return evolve(made, **changes)


def embed(texts: list[str]) -> np.ndarray:
    return np.array([[1.0, 0.5, 0.0] for _ in texts])


def raising(error: BaseException) -> Callable[..., Any]:
    async def call(*_: object) -> Any:
        raise error

    return call


def saying(value: Any) -> Callable[..., Any]:
    async def call(*_: object) -> Any:
        return value

    return call


class Stubborn:
    """Ignores being cancelled, until the event loop itself goes down."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.told_to_stop = asyncio.Event()
        self.stops = 0

    async def __call__(self, *_: object) -> Any:
        self.started.set()
        for _attempt in range(2):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.told_to_stop.set()
                self.stops += 1
        raise Broken(SECRET)


def memory(store: Any = None, **parts: Any) -> ReasonletMemory:
    parts.setdefault("clock", lambda: NOW)
    return ReasonletMemory(parts.pop("embedder", embed), store, **parts)


@pytest.fixture(autouse=True)
def no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever is logged by anybody, the event loop included."""
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in caplog.text


def failed(call: Callable[[], Any], kind: type[Exception]) -> Any:
    """The exception of a call; it names no secret, not even in what it is chained to."""

    async def awaited() -> Any:
        coroutine = call()  # nothing is raised before it is awaited
        with pytest.raises(kind) as caught:
            await coroutine
        return caught.value

    error = asyncio.run(awaited())
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        seen.append(link)
        link = link.__cause__ or link.__context__
    for each in seen:
        told = f"{each} {each!r} {vars(each)} " + "".join(traceback.format_exception_only(each))
        assert SECRET not in told
    return error


def remembered(parts: dict[str, Any], made: Capture | None = None) -> Any:
    return asyncio.run(memory(**parts).remember(made or capture()))


def refuses_to_remember(parts: dict[str, Any], kind: type[Exception], **changes: Any) -> Any:
    """The error of a remember, after which nothing is stored."""
    store = InMemoryReasonletStore()
    made = memory(store, **parts)
    error = failed(lambda: made.remember(capture(**changes)), kind)
    assert asyncio.run(store.dump()) == []
    return error


def fails_to_recall(parts: dict[str, Any], kind: type[Exception], **asked: Any) -> Any:
    store = parts.pop("store", None) or InMemoryReasonletStore()
    asyncio.run(memory(store).remember(capture()))
    made = memory(store, **parts)
    question = asked.pop("question", QUESTION)
    return failed(lambda: made.recall(question, scope=asked.pop("scope", SCOPE), **asked), kind)


# ---- recall -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {"question": None}, {"question": " \n\u200b"}, {"question": 7}, {"question": "x" * 32_001},
        {"question": f"{SECRET}\ud800"}, {"top": 0}, {"top": 51}, {"top": True}, {"top": 2.0},
        {"min_similarity": -0.1}, {"min_similarity": 1.1}, {"min_similarity": float("nan")},
        {"intent": " "}, {"intent": "i" * 101}, {"scope": "acme"}, {"scope": None},
        {"scope": f"tenant:{'x' * 201}"},
    ],
)  # fmt: skip
def test_recall_when_the_query_is_invalid_then_validation(asked: dict[str, Any]) -> None:
    assert fails_to_recall({}, ReasonletValidationError, **asked).code == "validation"


def test_recall_when_much_is_wrong_then_all_of_it_is_told() -> None:
    error = fails_to_recall({}, ReasonletValidationError, question="", top=99, scope="x", intent="")
    assert len(error.problems) == 4


@pytest.mark.parametrize(
    "error",
    [Broken(SECRET), TimeoutError(SECRET), asyncio.CancelledError(SECRET), Coded("conflict")],
)
def test_recall_when_the_embedder_throws_or_times_out_then_unavailable(
    error: BaseException,
) -> None:
    found = fails_to_recall({"embedder": raising(error)}, ReasonletUnavailableError)
    assert (found.code, found.what) == ("unavailable", "embedder")
    if not isinstance(error, Coded):
        assert found.detail == type(error).__name__


def test_recall_when_a_plain_embedder_throws_then_unavailable_with_its_type() -> None:
    def embedder(texts: list[str]) -> Any:
        raise Broken(f"{texts}")

    found = fails_to_recall({"embedder": embedder}, ReasonletUnavailableError)
    assert found.detail == "Broken"


@pytest.mark.parametrize("nothing", [None, [], [[]], (), np.zeros((0, 3)), np.zeros((1, 0))])
def test_recall_when_the_embedder_returns_nothing_then_unavailable_without_detail(
    nothing: Any,
) -> None:
    found = fails_to_recall({"embedder": lambda texts: nothing}, ReasonletUnavailableError)
    assert found.detail is None


@pytest.mark.parametrize(
    ("vector", "detail"),
    [
        ([[1.0, 2.0]], "length: expected 3, got 2"),
        ([[1.0, float("nan"), 0.0]], "non-finite"),
        ([[1.0, float("inf"), 0.0]], "non-finite"),
        ([[0.0, 0.0, 0.0]], "norm"),
        ([[1e200, 1e200, 0.0]], "norm"),
        ([[1e-200, 0.0, 0.0]], "norm"),
        ([1.0, 2.0, 3.0], "shape"),
        ([["a", "b", "c"]], "shape"),
        ([[1.0, 0.0, 0.0]] * 2, "rows"),
    ],
)
def test_recall_when_the_embedding_is_unusable_then_unavailable_with_the_reason(
    vector: Any, detail: str
) -> None:
    found = fails_to_recall({"embedder": lambda texts: vector}, ReasonletUnavailableError)
    assert (found.code, found.detail) == ("unavailable", detail)


def test_recall_when_the_embedding_is_unusable_then_the_store_is_not_asked() -> None:
    class Unasked(InMemoryReasonletStore):
        async def search(self, search: Search) -> Any:
            pytest.fail("the store was asked")

    fails_to_recall({"store": Unasked(), "embedder": lambda t: [[1.0]]}, ReasonletUnavailableError)


class Answering(InMemoryReasonletStore):
    """Answers a search as it is told to."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    async def search(self, search: Search) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "error",
    [ReasonletUnavailableError("store", "08006"), ReasonletConflictError("active", "wait"),
     ReasonletValidationError(["limit: too much"])],
)  # fmt: skip
def test_recall_when_the_store_fails_then_its_error_unchanged(error: ReasonletError) -> None:
    assert fails_to_recall({"store": Answering(error)}, type(error)) is error


def test_recall_when_the_store_throws_something_else_then_unavailable_with_its_type() -> None:
    found = fails_to_recall({"store": Answering(Broken(SECRET))}, ReasonletUnavailableError)
    assert (found.what, found.detail) == ("store", "Broken")


def test_recall_when_the_file_fails_then_unavailable_without_the_engines_words(
    tmp_path: Any,
) -> None:
    store = SqliteReasonletStore.open(tmp_path / "c.db")
    asyncio.run(memory(store).remember(capture()))
    with store._database.write() as connection:
        connection.execute("UPDATE procedures SET graph = ?", (f"not json {SECRET}",))
    found = failed(lambda: memory(store).recall(QUESTION, scope=SCOPE), ReasonletUnavailableError)
    assert (found.what, found.detail) == ("store", "CatalogCorruptError")
    asyncio.run(store.aclose())


@pytest.mark.parametrize(
    "error", [Broken(SECRET), TimeoutError(SECRET), asyncio.CancelledError(), Coded("unavailable")]
)
def test_recall_when_the_extractor_is_down_then_no_error_and_no_filter(
    error: BaseException,
) -> None:
    async def main() -> Any:
        store = InMemoryReasonletStore()
        await memory(store).remember(capture(intent="refund"))
        return await memory(store, extractor=raising(error)).recall(QUESTION, scope=SCOPE)

    assert len(asyncio.run(main())) == 1


@pytest.mark.parametrize("code", ["validation", "not_found", "conflict", "blocked", "no_question"])
def test_recall_when_the_extractor_answers_another_code_then_it_is_an_adapter_bug(
    code: str,
) -> None:
    found = fails_to_recall({"extractor": raising(Coded(code))}, ReasonletAdapterError)
    assert found.what == "extractor"
    assert code in found.problem
    assert not hasattr(found, "code")


@pytest.mark.parametrize(
    "answer",
    [None, SECRET, ExtractedIntent(" ", 0.9), ExtractedIntent("x" * 101, 0.9),
     ExtractedIntent("refund", 1.5), ExtractedIntent("refund", float("nan")),
     ExtractedIntent(f"{SECRET}\ud800", 1.0)],
)  # fmt: skip
def test_recall_when_the_extractor_answers_an_invalid_intent_then_it_is_an_adapter_bug(
    answer: Any,
) -> None:
    assert fails_to_recall({"extractor": saying(answer)}, ReasonletAdapterError).what == "extractor"


GOOD = Candidate(
    "id-1",
    Scope.parse(SCOPE),
    0.9,
    Counts(1, 1, 0, 0),
    None,
    NOW.timestamp(),
    lambda: None,  # type: ignore[arg-type, return-value]
)


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (None, "sequence"),
        ([SECRET], "Candidate"),
        ([evolve(GOOD, similarity=float("nan"))], "similarity"),
        ([evolve(GOOD, similarity=1.5)], "similarity"),
        ([evolve(GOOD, counts=Counts(1, 2, 0, 0))], "counts"),
        ([evolve(GOOD, counts=Counts(1, 1, 1, 0))], "counts"),
        ([evolve(GOOD, counts=Counts(-1, 0, 0, 0))], "counts"),
        ([evolve(GOOD, parent=Counts(1, 1, 2, 1))], "parent"),
        ([evolve(GOOD, last_run=float("inf"))], "last_run"),
        ([evolve(GOOD, scope=Scope.parse("tenant:other"))], "scope"),
        ([GOOD, GOOD], "id"),
        ([GOOD], "definition"),
        ([evolve(GOOD, id=str(n)) for n in range(21)], "at most 20"),
    ],
)
def test_recall_when_the_store_returns_an_invalid_candidate_then_it_is_an_adapter_bug(
    answer: Any, field: str
) -> None:
    found = fails_to_recall({"store": Answering(answer)}, ReasonletAdapterError)
    assert found.what == "store"
    assert field in found.problem


@pytest.mark.parametrize("part", ["embedder", "extractor"])
def test_recall_when_the_caller_cancels_then_the_cancellation_propagates_at_once(
    part: str,
) -> None:
    async def main() -> None:
        slow = Stubborn()
        task = asyncio.ensure_future(memory(**{part: slow}).recall(QUESTION, scope=SCOPE))
        await slow.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await slow.told_to_stop.wait()

    asyncio.run(main())


def test_recall_when_nothing_passes_then_an_empty_list() -> None:
    assert asyncio.run(memory().recall(QUESTION, scope=SCOPE)) == []


# ---- remember ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"question": " "}, "question"),
        ({"question": "x" * 32_001}, "question"),
        ({"question": f"{SECRET}\udfff"}, "question"),
        ({"graph": Graph([Node("a", "tool")], [Edge("a", SECRET)])}, "graph.edges[0].to"),
        (
            {"graph": Graph([Node("a", "tool", properties={SECRET: float("nan")})])},
            "graph.nodes[0]",
        ),
        ({"graph": Graph([Node("a", "tool", properties={"x": SECRET * 200_000})])}, "graph"),
        ({"graph": SECRET}, "graph"),
        ({"outcome": Outcome(1, score=2.0)}, "outcome.score"),  # type: ignore[arg-type]
        ({"outcome": Outcome(True, duration=timedelta(-1))}, "outcome.duration"),
        ({"provenance": Provenance("")}, "provenance.source"),
        ({"provenance": Provenance("a", tags={str(n): "" for n in range(51)})}, "provenance.tags"),
        ({"provenance": Provenance("a", tags={SECRET: 7})}, "provenance.tags"),  # type: ignore[dict-item]
        ({"provenance": Provenance("a", subject_id="x" * 201)}, "provenance.subject_id"),
        ({"intent": "x" * 101}, "intent"),
        ({"name": ""}, "name"),
        ({"scope": f"tenant:{'x' * 201}"}, "scope"),
        ({"scope": SECRET}, "scope"),
        ({"answer": 7}, "answer"),
        ({"parent_id": ""}, "parent_id"),
    ],
)
def test_remember_when_the_capture_is_invalid_then_validation_and_nothing_stored(
    changes: dict[str, Any], field: str
) -> None:
    error = refuses_to_remember({}, ReasonletValidationError, **changes)
    assert error.code == "validation"
    assert any(field in problem for problem in error.problems)


def test_remember_when_it_is_given_no_capture_then_validation() -> None:
    assert failed(lambda: memory().remember(None), ReasonletValidationError).code == "validation"  # type: ignore[arg-type]


def test_remember_when_the_guard_blocks_then_blocked_with_the_detector() -> None:
    guard = saying(GuardVerdict.block("pii"))
    error = refuses_to_remember({"guard": guard}, CaptureBlockedError)
    assert (error.code, error.detector) == ("blocked", "pii")


@pytest.mark.parametrize(
    "error", [Broken(SECRET), TimeoutError(), asyncio.CancelledError(), Coded("unavailable")]
)
def test_remember_when_the_guard_is_down_then_it_fails_closed(error: BaseException) -> None:
    found = refuses_to_remember({"guard": raising(error)}, ReasonletUnavailableError)
    assert (found.code, found.what) == ("unavailable", "guard")


def test_remember_when_the_guard_is_too_slow_then_it_fails_closed_without_waiting() -> None:
    parts = {"guard": Stubborn(), "options": ReasonletOptions(guard_timeout=0.02)}
    found = refuses_to_remember(parts, ReasonletUnavailableError)
    assert (found.what, found.detail) == ("guard", "TimeoutError")


@pytest.mark.parametrize(
    "answer",
    [None, True, GuardVerdict(True), GuardVerdict("no"), GuardVerdict.block(" ")],  # type: ignore[arg-type]
)
def test_remember_when_the_guard_answers_nonsense_then_it_is_an_adapter_bug(answer: Any) -> None:
    assert refuses_to_remember({"guard": saying(answer)}, ReasonletAdapterError).what == "guard"


def test_remember_when_the_guard_answers_another_code_then_it_is_an_adapter_bug() -> None:
    guard = raising(Coded("not_found"))
    assert refuses_to_remember({"guard": guard}, ReasonletAdapterError).what == "guard"


def test_record_execution_when_there_is_a_guard_then_it_is_not_asked() -> None:
    async def main() -> None:
        store = InMemoryReasonletStore()
        receipt = await memory(store).remember(capture())
        guarded = memory(store, guard=raising(Broken(SECRET)))
        await guarded.record_execution(
            SCOPE, receipt.id, outcome=Outcome(True), provenance=Provenance("a")
        )

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "detail"),
    [(Broken(SECRET), "Broken"), (asyncio.CancelledError(), "CancelledError"),
     (Coded("unavailable"), None)],
)  # fmt: skip
def test_remember_when_the_extractor_is_needed_and_down_then_unavailable(
    error: BaseException, detail: str | None
) -> None:
    found = refuses_to_remember({"extractor": raising(error)}, ReasonletUnavailableError)
    assert (found.what, found.detail) == ("extractor", detail)
    assert remembered({"extractor": raising(error)}, capture(intent="refund")).version == "1.0"


@pytest.mark.parametrize("broken", [raising(Coded("conflict")), saying(ExtractedIntent("", 1.0))])
def test_remember_when_the_extractor_has_a_bug_then_it_is_raised(broken: Any) -> None:
    refuses_to_remember({"extractor": broken}, ReasonletAdapterError)


def test_remember_when_the_embedding_fails_then_the_evaluator_is_never_paid() -> None:
    async def evaluator(question: str, answer: str) -> Judgement:
        pytest.fail("the evaluator was asked")

    parts = {"embedder": raising(Broken(SECRET)), "evaluator": evaluator}
    assert refuses_to_remember(parts, ReasonletUnavailableError).what == "embedder"
    parts["embedder"] = lambda texts: [[float("nan"), 1.0]]
    assert refuses_to_remember(parts, ReasonletUnavailableError).detail == "non-finite"


def test_remember_when_everything_is_asked_then_in_the_order_of_the_contract() -> None:
    asked: list[str] = []

    def noting(name: str, value: Any) -> Callable[..., Any]:
        def call(*_: object) -> Any:
            asked.append(name)
            return value

        return call

    class Store(InMemoryReasonletStore):
        async def remember(self, draft: Any) -> Any:
            asked.append("store")
            return await super().remember(draft)

    made = memory(
        Store(),
        guard=noting("guard", GuardVerdict.allow()),
        extractor=noting("intent", ExtractedIntent("refund", 0.0)),
        embedder=noting("embed", [[1.0, 0.0]]),
        evaluator=noting("judge", Judgement(False)),
    )
    receipt = asyncio.run(made.remember(capture()))
    assert asked == ["guard", "intent", "embed", "judge", "store"]
    assert (receipt.source, receipt.success) == (VerdictSource.EVALUATOR, False)


@pytest.mark.parametrize(
    "error", [Broken(SECRET), TimeoutError(SECRET), asyncio.CancelledError(), Coded("unavailable")]
)
def test_remember_when_the_evaluator_is_down_then_the_agents_verdict_is_stored(
    error: BaseException,
) -> None:
    receipt = remembered({"evaluator": raising(error)})
    assert (receipt.source, receipt.success) == (VerdictSource.AGENT, True)


def test_remember_when_the_evaluator_is_too_slow_then_it_is_cancelled_and_not_waited_for() -> None:
    slow = Stubborn()
    options = ReasonletOptions(evaluation_timeout=timedelta(milliseconds=20))
    receipt = remembered({"evaluator": slow, "options": options})
    assert receipt.source is VerdictSource.AGENT
    assert slow.stops == 2  # once by the memory, once by the end of the loop


def test_remember_when_nobody_waits_for_a_dependency_then_it_still_runs_to_its_end() -> None:
    """Also when what is unreachable is collected meanwhile: the loop holds a task only weakly."""

    async def main() -> int:
        slow = Stubborn()
        options = ReasonletOptions(evaluation_timeout=timedelta(milliseconds=20))
        await memory(evaluator=slow, options=options).remember(capture())
        await slow.told_to_stop.wait()
        gc.collect()
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 2  # this one, and the one that nobody waits for


@pytest.mark.parametrize("answer", ["", " \n", "x" * 32_001, f"{SECRET}\ud800", None])
def test_remember_when_the_answer_is_unusable_then_it_is_not_judged(answer: str | None) -> None:
    receipt = remembered({"evaluator": raising(AssertionError())}, capture(answer=answer))
    assert receipt.source is VerdictSource.AGENT


@pytest.mark.parametrize("code", ["validation", "blocked", "not_found"])
def test_remember_when_the_evaluator_answers_another_code_then_it_is_an_adapter_bug(
    code: str,
) -> None:
    error = refuses_to_remember({"evaluator": raising(Coded(code))}, ReasonletAdapterError)
    assert code in error.problem


@pytest.mark.parametrize("verdict", [None, True, SECRET, Judgement("yes"), Judgement(1)])  # type: ignore[arg-type]
def test_remember_when_the_evaluators_verdict_is_invalid_then_it_is_an_adapter_bug(
    verdict: Any,
) -> None:
    error = refuses_to_remember({"evaluator": saying(verdict)}, ReasonletAdapterError)
    assert error.what == "evaluator"


@pytest.mark.parametrize("part", ["guard", "extractor", "embedder", "evaluator"])
def test_remember_when_the_caller_cancels_then_the_wait_ends_at_once(part: str) -> None:
    async def main() -> None:
        store, slow = InMemoryReasonletStore(), Stubborn()
        task = asyncio.ensure_future(memory(store, **{part: slow}).remember(capture()))
        await slow.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.dump() == []

    asyncio.run(main())


def test_remember_when_the_parent_is_in_another_scope_then_not_found() -> None:
    async def main() -> None:
        store = InMemoryReasonletStore()
        receipt = await memory(store).remember(capture())
        error = None
        try:
            await memory(store).remember(capture(scope="tenant:other", parent_id=receipt.id))
        except ReasonletNotFoundError as caught:
            error = caught
        assert error is not None
        assert (error.code, error.what) == ("not_found", "parent")
        assert len(await store.dump()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("shape", [[[1.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]]])
def test_remember_when_the_vector_has_another_dimension_then_unavailable(shape: Any) -> None:
    async def main() -> None:
        store = InMemoryReasonletStore()
        await memory(store).remember(capture())
        with pytest.raises(ReasonletUnavailableError, match="length: expected 3"):
            await memory(store, embedder=lambda t: shape).remember(capture())
        assert len(await store.dump()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("clock", [lambda: NOW.replace(tzinfo=None), lambda: None, lambda: SECRET])
def test_calls_when_the_clock_tells_no_time_then_validation_and_nothing_stored(clock: Any) -> None:
    assert refuses_to_remember({"clock": clock}, ReasonletValidationError).code == "validation"


def test_remember_when_the_clock_goes_back_then_ids_ascend_and_the_last_run_stays() -> None:
    async def main() -> None:
        now = [NOW]
        made = memory(InMemoryReasonletStore(), clock=lambda: now[0])
        first = await made.remember(capture())
        now[0] = NOW - timedelta(days=400)
        second = await made.remember(capture(graph=OTHER))
        assert second.id > first.id
        await made.record_execution(
            SCOPE, first.id, outcome=Outcome(True), provenance=Provenance("a")
        )
        assert (await made.get(SCOPE, first.id)).metrics.last_run == NOW
        matches = await made.recall(QUESTION, scope=SCOPE)
        assert {match.score.freshness for match in matches} == {1.0}

    asyncio.run(main())

"""The rules of remembering, recalling and reviewing, one test each."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from rankblend.profiles import load_profile
from rankblend.reasonlets import (
    Capture,
    Edge,
    ExtractedIntent,
    Graph,
    GuardVerdict,
    InMemoryReasonletStore,
    Judgement,
    Node,
    Outcome,
    Produced,
    Provenance,
    ReasonletConflictError,
    ReasonletMemory,
    ReasonletNotFoundError,
    ReasonletOptions,
    ReasonletUnavailableError,
    ReasonletValidationError,
    SqliteReasonletStore,
    Status,
    SyncReasonletMemory,
    VerdictSource,
)
from rankblend.relevance import Scope, ScopeBlend
from rankblend.stores.procedures import Search

SCOPE = "tenant:acme"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
GRAPH = Graph([Node("look", "tool"), Node("pay", "tool")], [Edge("look", "pay")])
REORDERED = Graph([Node("pay", "tool"), Node("look", "tool")], [Edge("look", "pay")])
OTHER = Graph([Node("look", "tool"), Node("ask", "agent")], [Edge("look", "ask")])
AGENT = Provenance("agent", "run-9", "ana", {"team": "refunds"})
NEAR = {"near": [1.0, 0.1], "far": [0.1, 1.0], "half": [1.0, 1.0]}


def embed(texts: list[str]) -> list[list[float]]:
    return [NEAR.get(text, [1.0, 0.0]) for text in texts]


def capture(**changes: Any) -> Capture:
    return evolve(Capture(SCOPE, "How?", GRAPH, Outcome(True), AGENT), **changes)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return InMemoryReasonletStore()
    return SqliteReasonletStore.open(":memory:")


def memory(store: Any = None, **parts: Any) -> ReasonletMemory:
    options = {k: parts.pop(k) for k in list(parts) if k in ReasonletOptions.__annotations__}
    parts.setdefault("clock", lambda: NOW)
    return ReasonletMemory(embed, store, options=ReasonletOptions(**options), **parts)


def run(call: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await call()

    return asyncio.run(main())


def said(value: Any) -> Callable[..., Any]:
    async def call(*_: object) -> Any:
        return value

    return call


# ---- intent and name --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "extracted", "expected"),
    [
        ("billing", ExtractedIntent("refund", 1.0), "billing"),
        (None, ExtractedIntent("refund", 0.0), "refund"),
        (None, None, "unspecified"),
    ],
)
def test_intent_when_remembered_then_own_then_extracted_at_any_confidence_then_unspecified(
    own: str | None, extracted: ExtractedIntent | None, expected: str
) -> None:
    async def main() -> None:
        made = memory(extractor=None if extracted is None else said(extracted))
        receipt = await made.remember(capture(intent=own))
        assert (await made.get(SCOPE, receipt.id)).intent == expected

    asyncio.run(main())


@pytest.mark.parametrize(
    ("asked", "confidence", "found"),
    [(None, 0.7, {"refund"}), (None, 0.69, {"refund", "other"}), ("other", 1.0, {"other"})],
)
def test_intent_when_recalled_then_own_then_extracted_with_confidence_then_no_filter(
    asked: str | None, confidence: float, found: set[str]
) -> None:
    async def main() -> None:
        made = memory(extractor=said(ExtractedIntent("refund", confidence)))
        for intent in ("refund", "other"):
            await made.remember(capture(intent=intent))
        matches = await made.recall("How?", scope=SCOPE, intent=asked)
        assert {match.reasonlet.intent for match in matches} == found

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "question", "expected"),
    [
        ("Refund", "q", "Refund"),
        (None, "\n  \u200b\n  How do I refund?  \nplease", "How do I refund?"),
        (None, "x" * 199 + " tail", "x" * 199),
        (None, "🎉" * 300, "🎉" * 200),
        ("n" * 300, "q", "n" * 200),
    ],
)
def test_name_when_resolved_then_given_or_first_line_trimmed_and_cut(
    given: str | None, question: str, expected: str
) -> None:
    async def main() -> None:
        made = memory()
        receipt = await made.remember(capture(name=given, question=question))
        assert (await made.get(SCOPE, receipt.id)).name == expected

    asyncio.run(main())


def test_answer_when_remembered_then_it_is_stored_nowhere(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteReasonletStore.open(tmp_path / "r.db")
        made = memory(store, evaluator=said(Judgement(True)))
        receipt = await made.remember(capture(answer="the-final-reply"))
        await made.record_execution(
            SCOPE, receipt.id, outcome=Outcome(True), provenance=AGENT,
            question="another-question", answer="the-final-reply",
        )  # fmt: skip
        await made.export(tmp_path / "moved.jsonl")
        await made.aclose()

    asyncio.run(main())
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        assert b"the-final-reply" not in data, path.name
        assert b"another-question" not in data, path.name


# ---- lineage ----------------------------------------------------------------------------------


def test_lineage_when_the_graph_is_the_same_in_another_order_then_a_run_and_status_untouched(
    store: Any,
) -> None:
    async def main() -> None:
        gated = memory(store, require_review=True)
        first = await gated.remember(capture())
        again = await memory(store).remember(capture(graph=REORDERED, parent_id=first.id))
        assert (again.id, again.produced) == (first.id, Produced.EXECUTION)
        assert again.status is Status.PENDING_REVIEW
        kept = await gated.get(SCOPE, first.id)
        assert (kept.graph, kept.metrics.runs) == (GRAPH, 2)

    asyncio.run(main())


def test_lineage_when_the_parent_was_erased_then_its_record_no_longer_lifts(store: Any) -> None:
    async def main() -> None:
        made = memory(store)
        parent = await made.remember(capture())
        for _ in range(10):
            await made.record_execution(SCOPE, parent.id, outcome=Outcome(True), provenance=AGENT)
        child = await made.remember(
            capture(graph=OTHER, parent_id=parent.id, provenance=Provenance("agent"))
        )
        found = {m.reasonlet.id: m for m in await made.recall("How?", scope=SCOPE)}
        assert found[child.id].evidence.uses_parent_prior
        await made.erase_subject(SCOPE, "ana")
        (match,) = await made.recall("How?", scope=SCOPE)
        assert (match.reasonlet.id, match.reasonlet.parent_id) == (child.id, None)
        assert not match.evidence.uses_parent_prior
        # one agent-only success: (.5 + 2.5) / 5.5
        assert match.score.success_rate == pytest.approx(3 / 5.5)

    asyncio.run(main())


def test_receipt_when_remembered_then_it_says_what_happened(store: Any) -> None:
    async def main() -> None:
        made = memory(store, evaluator=said(Judgement(False)), guard=said(GuardVerdict.allow()))
        receipt = await made.remember(capture(answer="done"))
        assert (receipt.version, receipt.produced, receipt.status) == (
            "1.0", Produced.CREATED, Status.ACTIVE
        )  # fmt: skip
        assert (receipt.source, receipt.success) == (VerdictSource.EVALUATOR, False)
        ran = await made.record_execution(
            SCOPE, receipt.id, outcome=Outcome(True, timedelta(seconds=2), 0.5), provenance=AGENT
        )
        assert (ran.id, ran.produced) == (receipt.id, Produced.EXECUTION)
        assert (ran.source, ran.success) == (VerdictSource.AGENT, True)
        assert ran.execution != receipt.execution
        (entry,) = await store.dump()
        assert entry.runs[1].run.outcome == Outcome(True, timedelta(seconds=2), 0.5)
        assert entry.runs[1].run.provenance == AGENT

    asyncio.run(main())


# ---- recall -----------------------------------------------------------------------------------


def test_floor_when_similarity_is_on_it_then_it_passes_and_below_it_is_dropped(store: Any) -> None:
    async def main() -> None:
        made = memory(store, min_similarity=0.6)
        await made.remember(capture(question="half"))  # cosine √½ ≈ .707 with [1, 0]
        cosine = (await made.recall("How?", scope=SCOPE))[0].score.similarity
        assert len(await made.recall("How?", scope=SCOPE, min_similarity=cosine)) == 1
        over = float(np.nextafter(np.float32(cosine), np.float32(1)))
        assert await made.recall("How?", scope=SCOPE, min_similarity=over) == []
        assert await made.recall("How?", scope=SCOPE, min_similarity=0.8) == []

    asyncio.run(main())


def test_pool_when_top_is_greater_then_top_is_asked_for_and_never_more_than_200() -> None:
    asked: list[int] = []

    class Store(InMemoryReasonletStore):
        async def search(self, search: Any) -> Any:
            asked.append(search.limit)
            return await super().search(search)

    async def main() -> None:
        await memory(Store()).recall("How?", scope=SCOPE)
        await memory(Store()).recall("How?", scope=SCOPE, top=50)
        await memory(Store(), candidate_pool=200).recall("How?", scope=SCOPE, top=50)

    asyncio.run(main())
    assert asked == [20, 50, 200]


def test_pool_when_the_record_counts_then_a_fifth_by_similarity_can_be_first(store: Any) -> None:
    async def main() -> None:
        made = memory(store)
        for number in range(4):
            await made.remember(capture(outcome=Outcome(False), name=f"{number}"))
        best = await made.remember(capture(question="near"))
        for _ in range(20):
            await made.record_execution(SCOPE, best.id, outcome=Outcome(True), provenance=AGENT)
        assert (await made.recall("How?", scope=SCOPE, top=1))[0].reasonlet.id == best.id

    asyncio.run(main())


def test_scope_when_recalled_then_exactly_that_one_unless_the_blend_says_otherwise(
    store: Any,
) -> None:
    async def main() -> None:
        made = memory(store)
        above = await made.remember(capture())
        own = await made.remember(capture(scope=f"{SCOPE}/user:7"))
        await made.remember(capture(scope="tenant:acme-corp"))
        matches = await made.recall("How?", scope=f"{SCOPE}/user:7")
        assert [match.reasonlet.id for match in matches] == [own.id]
        blended = memory(store, scope_blend=ScopeBlend("blend"))
        matches = await blended.recall("How?", scope=f"{SCOPE}/user:7")
        assert [match.reasonlet.id for match in matches] == [own.id, above.id]

    asyncio.run(main())


def test_ties_when_totals_are_equal_then_similarity_then_id(store: Any) -> None:
    async def main() -> None:
        made = memory(store)
        ids = [(await made.remember(capture())).id for _ in range(3)]
        matches = await made.recall("How?", scope=SCOPE)
        assert [match.reasonlet.id for match in matches] == ids

    asyncio.run(main())


# ---- feedback and review ----------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"utility": 1.5}, {"worked": 1}, {"correctness": None}])
def test_feedback_when_it_is_invalid_then_validation(wrong: dict[str, Any]) -> None:
    given = {"utility": 0.5, "correctness": 0.5, "reusability": 0.5, **wrong}
    with pytest.raises(ReasonletValidationError):
        run(lambda: memory().record_feedback(SCOPE, "x", **given))


def test_feedback_when_it_agrees_with_the_agent_then_the_run_is_judged_and_scores_do_not_rank(
    store: Any,
) -> None:
    async def main() -> None:
        made = memory(store)
        receipt = await made.remember(capture())
        rates = []
        for worked, scores in ((None, 0.0), (True, 1.0), (None, 0.0), (False, 1.0)):
            await made.record_feedback(
                SCOPE, receipt.execution, utility=scores, correctness=scores, reusability=scores,
                worked=worked,
            )  # fmt: skip
            (match,) = await made.recall("How?", scope=SCOPE)
            rates.append((round(match.score.success_rate, 3), match.evidence.judged_runs))
        assert rates == [(0.545, 0), (0.583, 1), (0.583, 1), (0.417, 1)]

    asyncio.run(main())


def test_review_when_required_then_pending_until_approved(store: Any) -> None:
    async def main() -> None:
        made = memory(store, require_review=True)
        first = await made.remember(capture())
        child = await made.remember(capture(graph=OTHER, parent_id=first.id))
        assert (first.status, child.status) == (Status.PENDING_REVIEW,) * 2
        assert await made.recall("How?", scope=SCOPE) == []
        waiting = await made.list_pending(SCOPE, limit=1)
        assert [(each.id, each.metrics.runs) for each in waiting] == [(first.id, 1)]
        waiting = await made.list_pending(SCOPE, after=first.id)
        assert [each.id for each in waiting] == [child.id]
        with pytest.raises(ReasonletConflictError):  # there is a version below it
            await made.reject(SCOPE, first.id)
        for _ in range(2):
            await made.approve(SCOPE, first.id)
        assert [m.reasonlet.id for m in await made.recall("How?", scope=SCOPE)] == [first.id]
        with pytest.raises(ReasonletConflictError):
            await made.reject(SCOPE, first.id)
        await made.reject(SCOPE, child.id)
        for call in (made.reject, made.approve, made.get, made.lineage):
            with pytest.raises(ReasonletNotFoundError):
                await call(SCOPE, child.id)
        with pytest.raises(ReasonletNotFoundError):
            await made.approve("tenant:other", first.id)

    asyncio.run(main())


@pytest.mark.parametrize("page", [{"limit": 0}, {"limit": 101}, {"limit": True}, {"after": ""}])
def test_review_when_a_page_is_invalid_then_validation(page: dict[str, Any]) -> None:
    with pytest.raises(ReasonletValidationError):
        run(lambda: memory().list_pending(SCOPE, **page))


# ---- lifecycle --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [{}, {"keep": -1}, {"older_than": timedelta(0)}, {"keep": 1, "scope": "x"}]
)
def test_prune_when_it_is_invalid_then_validation(how: dict[str, Any]) -> None:
    with pytest.raises(ReasonletValidationError):
        run(lambda: memory().prune(**how))


def test_erasure_when_purged_then_nothing_of_the_subject_is_left_in_the_files(
    tmp_path: Path,
) -> None:
    path, secret = tmp_path / "r.db", "zebra-4711"

    async def main() -> None:
        made = memory(SqliteReasonletStore.open(path))
        for number in range(40):
            who = Provenance("agent", subject_id=secret if number % 2 else "somebody")
            receipt = await made.remember(
                capture(
                    question=f"{secret if number % 2 else 'plain'} question {number} " * 30,
                    provenance=who,
                )
            )
            await made.record_execution(
                SCOPE, receipt.id, outcome=Outcome(True),
                provenance=Provenance("agent", subject_id=secret),
            )  # fmt: skip
        vector = np.array([1.0, 0.0], np.float32).tobytes()
        assert secret.encode() in _bytes(tmp_path)
        erased = await made.erase_subject(SCOPE, secret, purge=True)
        assert (erased.reasonlets, erased.executions) == (20, 60)
        assert secret.encode() not in _bytes(tmp_path)
        assert _bytes(tmp_path).count(vector) == 20
        index = made.store._index  # type: ignore[attr-defined]
        assert len(index.scopes) == 20
        again = await made.erase_subject(SCOPE, secret, purge=True)
        assert (again.reasonlets, again.executions) == (0, 0)
        await made.aclose()

    asyncio.run(main())


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if "-shm" not in path.name)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"type": "other"}', "header"),
        ('{"type": "reasonlets", "schema_version": 2}', "schema_version"),
        ("not json", "JSON object"),
    ],
)
def test_import_when_the_file_is_something_else_then_validation(
    tmp_path: Path, line: str, problem: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(ReasonletValidationError, match=problem):
        run(lambda: memory().import_(path))


def test_import_when_lines_are_damaged_then_all_are_named_and_nothing_is_stored(
    tmp_path: Path, store: Any
) -> None:
    async def main() -> None:
        made = memory()
        receipt = await made.remember(capture())
        await made.record_execution(SCOPE, receipt.id, outcome=Outcome(True), provenance=AGENT)
        path = tmp_path / "x.jsonl"
        await made.export(path)
        header, entry, first, second = map(json.loads, path.read_text("utf-8").splitlines())
        entry["vector"], first["at"] = "AAAA", "yesterday"
        del second["success"]
        path.write_text("\n".join(map(json.dumps, (header, entry, first, second))), "utf-8")
        with pytest.raises(ReasonletValidationError) as caught:
            await memory(store).import_(path)
        told = " ".join(caught.value.problems)
        assert "line 2: vector" in told
        assert "line 3" in told
        assert "line 4: success is missing" in told
        assert list(await store.dump()) == []

    asyncio.run(main())


# ---- options, façade, files -------------------------------------------------------------------


def test_options_when_many_are_invalid_then_all_are_told() -> None:
    with pytest.raises(ReasonletValidationError) as caught:
        ReasonletOptions(
            similarity_weight=1.5, min_similarity=-1, prior_weight=0, agent_verdict_weight=2,
            freshness_half_life=0, candidate_pool=201, top=0, min_intent_confidence=float("nan"),
            evaluation_timeout=timedelta(days=50), guard_timeout=0, require_review=1,
        )  # type: ignore[arg-type]  # fmt: skip
    assert len(caught.value.problems) == 12  # the sum of the weights, too


@pytest.mark.parametrize("timeout", [None, timedelta(days=49.7), 0.5])
def test_options_when_a_timeout_is_allowed_then_it_is_kept(timeout: Any) -> None:
    ReasonletOptions(evaluation_timeout=timeout, guard_timeout=timeout)


def test_options_when_they_are_the_defaults_then_the_profile_is_the_preset() -> None:
    assert ReasonletOptions().profile().hash == load_profile("mnemosyne").hash
    assert ReasonletOptions().profile(0.7).floors.signals["similarity"].min == 0.7


def test_memory_when_it_is_misconfigured_then_all_problems_at_construction() -> None:
    with pytest.raises(ReasonletValidationError) as caught:
        ReasonletMemory(7, object(), options={}, guard=1, clock="now")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 5


def test_sync_memory_when_used_inside_a_running_loop_then_it_answers() -> None:
    async def main() -> None:
        with SyncReasonletMemory(memory()) as made:
            receipt = made.remember(capture())
            made.record_feedback(
                SCOPE, receipt.execution, utility=1, correctness=1, reusability=1, worked=True
            )
            (match,) = made.recall("How?", scope=SCOPE)
            assert match.evidence.judged_runs == 1
            assert made.statistics().active == 1
            with pytest.raises(ReasonletNotFoundError):
                made.get(SCOPE, "nobody")
        made.close()

    asyncio.run(main())


def test_file_when_it_is_a_memorys_own_then_both_use_it(tmp_path: Path) -> None:
    import rankblend as rb

    path = tmp_path / "one.db"
    with rb.Memory.open(path) as notes:
        notes.remember("tea is at four", scope=SCOPE, id="tea")

    async def main() -> None:
        async with memory(SqliteReasonletStore.open(path)) as made:
            await made.remember(capture())

    asyncio.run(main())
    with rb.Memory.open(path) as notes:
        assert notes.recall("tea", scope=SCOPE).ids == ("tea",)
    asyncio.run(main())


def test_file_when_a_newer_version_wrote_it_then_it_is_refused(tmp_path: Path) -> None:
    from rankblend.errors import CatalogVersionError

    store = SqliteReasonletStore.open(tmp_path / "r.db")
    with store._database.write() as connection:
        connection.execute("PRAGMA user_version = 99")
    run(store.aclose)
    with pytest.raises(CatalogVersionError):
        SqliteReasonletStore.open(tmp_path / "r.db")


def test_store_when_another_process_holds_the_file_then_unavailable(tmp_path: Path) -> None:
    first = SqliteReasonletStore.open(tmp_path / "r.db")
    second = SqliteReasonletStore.open(tmp_path / "r.db", busy_timeout=0)
    with first._database.write(), pytest.raises(ReasonletUnavailableError) as caught:
        run(lambda: memory(second).remember(capture()))
    assert caught.value.detail == "CatalogBusyError"
    run(first.aclose)
    run(second.aclose)


def test_search_when_a_thread_holds_the_connection_then_the_loop_goes_on(tmp_path: Path) -> None:
    """A small index is searched on the loop itself, but never waits there."""
    store = SqliteReasonletStore.open(tmp_path / "r.db")
    made, held, ticks = memory(store), threading.Event(), []
    release = threading.Event()

    def hold() -> None:
        with store._database.read():
            held.set()
            release.wait(30)

    async def main() -> None:
        await made.remember(capture())
        search = Search(Scope.parse(SCOPE), np.array([1.0, 0.0], np.float32), 5, None)
        (alone,) = await store.search(search)
        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(30)
        waiting = asyncio.create_task(store.search(search))
        for _ in range(3):  # not reached before `hold` gives up, if the search waited here
            await asyncio.sleep(0)
            ticks.append(waiting.done())
        release.set()
        (found,) = await waiting
        holder.join()
        assert found.id == alone.id
        await made.aclose()

    asyncio.run(main())
    assert ticks == [False, False, False]

"""What an import refuses, what values survive, and what is left after an erasure."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import rankblend as rb
from rankblend.reasonlets import (
    Capture,
    CaptureBlockedError,
    Edge,
    Graph,
    InMemoryReasonletStore,
    Judgement,
    Node,
    Outcome,
    ProcedureStore,
    Provenance,
    ReasonletAdapterError,
    ReasonletConflictError,
    ReasonletMemory,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    ReasonletValidationError,
    SqliteReasonletStore,
    SyncReasonletMemory,
)
from rankblend.reasonlets._sync import LoopThread
from rankblend.times import is_id, next_id

SCOPE = "tenant:acme"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
GRAPH = Graph([Node("look", "tool", tool="orders.get", properties={"a": [1]})])
OTHER = Graph([Node("pay", "tool", tool="payments.refund")])
THIRD = Graph([Node("ask", "agent")])
UNIT = [0.6, 0.8]
LAST_ID = "ffffffff-ffff-7fff-bfff-ffffffffffff"


def embed(texts: Sequence[str]) -> Any:
    return [UNIT for _ in texts]


def capture(**changes: Any) -> Capture:
    made = Capture(SCOPE, "How?", GRAPH, Outcome(True), Provenance("agent", tags={"a": "b"}))
    return evolve(made, **changes)


def opened(store: Any = None, **parts: Any) -> SyncReasonletMemory:
    return SyncReasonletMemory(ReasonletMemory(embed, store, clock=lambda: NOW, **parts))


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest) -> Iterator[SyncReasonletMemory]:
    sqlite = request.param == "sqlite"
    store: Any = SqliteReasonletStore.open(":memory:") if sqlite else InMemoryReasonletStore()
    with opened(store) as made:
        yield made


def exported(path: Path) -> list[dict[str, Any]]:
    """The lines of a procedure, its version, and the run of each."""
    with opened() as source:
        first = source.remember(capture())
        source.remember(capture(graph=OTHER, parent_id=first.id))
        source.export(path)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def refused(memory: SyncReasonletMemory, path: Path, lines: list[dict[str, Any]]) -> Any:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(ReasonletValidationError) as caught:
        memory.import_(path)
    assert memory.remember(capture()).version == "1.0"  # ids can still be given out
    return caught.value.problems


@pytest.mark.parametrize(
    ("line", "changes", "problem"),
    [
        (1, {"id": "zzz"}, "line 2: id:"),
        (1, {"id": LAST_ID}, "line 2: id:"),
        (1, {"id": 7}, "line 2: id:"),
        (1, {"family": "0190A000-0000-7000-8000-000000000000"}, "line 2: family:"),
        (3, {"parent_id": "zzz"}, "line 4: parent_id:"),
        (2, {"id": LAST_ID}, "line 3: id:"),
        (1, {"version": "1.01"}, "line 2: version:"),
        (1, {"version": "2"}, "line 2: version:"),
        (1, {"version": "1.1234567890"}, "line 2: version:"),
        (2, {"reasonlet": ["x"]}, "line 3: reasonlet:"),
        (2, {"reasonlet": 7}, "line 3: reasonlet:"),
        (3, {"family": next_id(1.0)}, "line 4: parent_id: of another family"),
        (2, {"seconds": 1e12}, "line 3: duration:"),
    ],
)
def test_import_when_a_line_is_wrong_then_validation_with_its_number(
    memory: SyncReasonletMemory, tmp_path: Path, line: int, changes: Any, problem: str
) -> None:
    lines = exported(tmp_path / "a.jsonl")
    lines[line] |= changes
    problems = refused(memory, tmp_path / "b.jsonl", lines)
    assert any(each.startswith(problem) for each in problems), problems


def test_import_when_an_id_comes_twice_or_parents_go_round_then_validation(
    memory: SyncReasonletMemory, tmp_path: Path
) -> None:
    lines = exported(tmp_path / "a.jsonl")
    (twice,) = refused(memory, tmp_path / "b.jsonl", [*lines, lines[1]])
    assert twice == "line 6: id: on an earlier line, too"
    own = [dict(line) for line in lines]
    own[1]["parent_id"] = own[1]["id"]
    (told,) = refused(memory, tmp_path / "b.jsonl", own)
    assert told == "line 2: parent_id: expected the id of an older one"
    own[1]["parent_id"] = own[3]["id"]  # whose parent is line 2
    (told,) = refused(memory, tmp_path / "b.jsonl", own)
    assert told == "line 2: parent_id: expected the id of an older one"


def test_import_when_a_stored_parent_is_of_another_family_then_validation(
    memory: SyncReasonletMemory, tmp_path: Path
) -> None:
    lines = exported(tmp_path / "a.jsonl")
    founder, version = lines[:3], [lines[0], *lines[3:]]
    for name, part in (("founder", founder), ("version", version)):
        part[1]["family"] = lines[1]["id"] if name == "founder" else next_id(1.0)
        (tmp_path / name).write_text("\n".join(map(json.dumps, part)), "utf-8")
    assert memory.import_(tmp_path / "founder") == 1
    with pytest.raises(ReasonletValidationError, match="of another family"):
        memory.import_(tmp_path / "version")


def test_is_id_when_there_is_no_room_after_it_then_no() -> None:
    assert is_id(next_id(1.0))
    assert is_id(next_id(2.0**37))  # far in the future, but not the end
    assert not is_id(LAST_ID)
    assert not is_id(next_id(1.0).upper())
    assert not is_id("0190a000-0000-4000-8000-000000000000")


def test_outcome_when_the_duration_is_too_long_then_validation_and_seconds_are_fine(
    memory: SyncReasonletMemory, tmp_path: Path
) -> None:
    assert Outcome(True, 1.5) == Outcome(True, timedelta(seconds=1.5))
    for wrong in (timedelta.max, 1e12, 1e300, -1):
        with pytest.raises(ReasonletValidationError, match=r"outcome\.duration"):
            memory.remember(capture(outcome=Outcome(True, wrong)))
    memory.remember(capture(outcome=Outcome(True, 3)))
    assert memory.export(tmp_path / "a.jsonl") == 1
    assert memory.prune(older_than=1) == 0
    with pytest.raises(ReasonletValidationError, match="older_than"):
        memory.prune(older_than=float("nan"))


def test_calls_when_arguments_are_given_in_order_then_they_are_taken(
    memory: SyncReasonletMemory,
) -> None:
    made = memory.remember(capture())
    receipt = memory.record_execution(SCOPE, made.id, Outcome(False), Provenance("agent"))
    memory.record_feedback(SCOPE, receipt.execution, 0.1, 0.2, 0.3, True)
    assert memory.get(SCOPE, made.id).metrics.judged_successes == 1
    assert memory.list_pending(SCOPE, 5, after=made.id) == []


def test_name_when_it_is_invisible_then_validation() -> None:
    with opened() as memory:
        for length in (1, 201):
            with pytest.raises(ReasonletValidationError, match="name: expected some text"):
                memory.remember(capture(name="\u200b" * length))


def test_validate_when_nodes_and_edges_are_wrong_then_all_of_it_is_told() -> None:
    nodes = [Node(f"n{at}", "tool") for at in range(501)]
    problems = Graph([*nodes, Node("n0", " ")], [Edge("n0", "gone"), "no edge"]).validate()
    assert problems == (
        "nodes: expected at most 500, got 502",
        "edges[1]: expected a Edge",
        "nodes[501].type: expected some text, got a blank",
        "nodes[501].id: the same id as nodes[0]",
        "edges[0].to: points at no node",
    )


@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_values_when_pickled_or_copied_then_equal_and_errors_say_the_same(
    again: Callable[[Any], Any],
) -> None:
    for value in (capture(), capture().graph, capture().provenance, Edge("a", "b")):
        made = again(value)
        assert made == value
    made = again(capture())
    assert made.graph.digest == GRAPH.digest
    with pytest.raises(TypeError):
        made.graph.nodes[0].properties["a"] = 1
    for error in (
        ReasonletValidationError(["a: b", "c: d"]),
        ReasonletUnavailableError("store", "closed"),
        ReasonletNotFoundError("parent"),
        ReasonletConflictError("active", "do not"),
        CaptureBlockedError("pii"),
        ReasonletAdapterError("guard", "bad"),
    ):
        back = again(error)
        assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_erase_when_the_first_of_a_family_goes_then_the_oldest_left_names_it(
    memory: SyncReasonletMemory,
) -> None:
    first = memory.remember(capture(provenance=Provenance("agent", subject_id="ana")))
    second = memory.remember(capture(graph=OTHER, parent_id=first.id))
    third = memory.remember(capture(graph=THIRD, parent_id=second.id))
    memory.erase_subject(SCOPE, "ana")
    left = memory.lineage(SCOPE, third.id)
    assert [(each.id, each.family) for each in left] == [
        (second.id, second.id),
        (third.id, second.id),
    ]


def test_rebuild_when_columns_have_drifted_then_they_are_counted_anew() -> None:
    store = SqliteReasonletStore.open(":memory:")
    with opened(store) as memory:
        drifted, sound = memory.remember(capture()), memory.remember(capture(graph=OTHER))
        with store._database.write() as connection:
            connection.execute(
                "UPDATE procedures SET judged_runs = 7, runs = 9 WHERE id = ?", (drifted.id,)
            )
        assert memory.rebuild_judged_counters() == 1
        assert memory.rebuild_judged_counters() == 0
        for each in (drifted, sound):
            metrics = memory.get(SCOPE, each.id).metrics
            assert (metrics.runs, metrics.judged_runs) == (1, 0)


def test_loop_when_it_is_closed_then_waiting_threads_are_told_and_calls_refused() -> None:
    loop, begun, ends = LoopThread(), threading.Event(), []

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        try:
            loop.run(never())
        except ReasonletUnavailableError as error:
            ends.append((error.what, error.detail))

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(10)
    loop.close()
    thread.join(10)
    assert ends == [("store", "closed")]
    with pytest.raises(ReasonletUnavailableError, match="closed"):
        loop.run(never())
    loop.close()


def test_close_when_an_evaluator_never_ends_then_no_thread_hangs() -> None:
    begun, ends = threading.Event(), []

    async def evaluator(question: str, answer: str) -> Judgement:
        begun.set()
        await asyncio.Event().wait()
        return Judgement(True)

    memory = opened(evaluator=evaluator)

    def wait() -> None:
        with pytest.raises(ReasonletUnavailableError):
            memory.remember(capture(answer="Done"))
        ends.append("told")

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(10)
    memory.close()
    thread.join(10)
    assert ends == ["told"]
    memory.close()


def test_publish_when_a_subject_is_erased_then_nothing_of_it_is_left_in_the_shared_file(
    tmp_path: Path,
) -> None:
    path, secret = tmp_path / "all.db", "zebra-7731"
    with opened(SqliteReasonletStore.open(path)) as procedures:
        store = ProcedureStore(procedures.memory.store)
        stores = [*rb.default_stores(), store]
        with rb.Memory.open(
            path, embedder=embed, stores=stores, layers=ProcedureStore.layers
        ) as memory:
            ana = Provenance("agent", subject_id="ana")
            made = procedures.remember(capture(question=f"How? {secret}", provenance=ana))
            assert store.publish(memory) == (1, 0)
            shown = memory.get(made.id, scope=SCOPE)
            assert shown.text == f"orders.get\n1.0 {made.id}"
            procedures.erase_subject(SCOPE, "ana")
            assert store.publish(memory) == (0, 0)  # the erasure took what referred to it, too
            procedures.erase_subject(SCOPE, "ana", purge=True)
            assert np.array(UNIT, "<f4").tobytes() not in path.read_bytes()
    kept = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert secret.encode() not in kept

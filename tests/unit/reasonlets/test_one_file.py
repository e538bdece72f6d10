"""Memories and procedures of one file: moved, embedded anew and erased together, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import EmbeddingError, InvalidArgumentError, RankblendError
from rankblend.reasonlets import (
    Capture,
    Graph,
    Node,
    Outcome,
    ProcedureStore,
    Provenance,
    ReasonletMemory,
    ReasonletUnavailableError,
    SqliteReasonletStore,
    SyncReasonletMemory,
)

SCOPE = "tenant:acme"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
GRAPH = Graph([Node("look", "tool", tool="orders.get")])
OTHER = Graph([Node("pay", "tool", tool="payments.refund")])


def small(texts: Sequence[str]) -> Any:
    return [[1.0, float(len(text) % 7)] for text in texts]


def equal(texts: Sequence[str]) -> Any:
    """Another model of the same length."""
    return [[float(len(text) % 7), -1.0] for text in texts]


def wide(texts: Sequence[str]) -> Any:
    return [[1.0, 0.5, float(len(text) % 7)] for text in texts]


def broken(texts: Sequence[str]) -> Any:
    raise RuntimeError(str(texts))


def procedures_of(path: Path, embedder: Any = small) -> SyncReasonletMemory:
    store = SqliteReasonletStore.open(path)
    return SyncReasonletMemory(ReasonletMemory(embedder, store, clock=lambda: NOW))


def learn(procedures: SyncReasonletMemory, question: str, **changes: Any) -> Any:
    made = {"graph": GRAPH, "outcome": Outcome(True, 2.0, 0.5), "provenance": Provenance("agent")}
    return procedures.remember(Capture(SCOPE, question, **{**made, **changes}))


def fill(path: Path) -> None:
    with rb.Memory.open(path, embedder=small, clock=lambda: NOW) as memory:
        memory.remember("tea is at four", scope=SCOPE, id="tea", links=["kitchen"])
    with procedures_of(path) as procedures:
        first = learn(procedures, "How do I refund?", intent="refund")
        learn(procedures, "How do I refund?", graph=OTHER, parent_id=first.id)
        procedures.record_feedback(SCOPE, first.execution, 0.1, 0.2, 0.3, worked=False)


def exported(path: Path) -> str:
    out = path.with_suffix(".jsonl")
    with rb.Memory.open(path) as memory:
        memory.export(out)
    return out.read_text("utf-8")


def vectors(path: Path) -> list[Any]:
    lines = map(json.loads, exported(path).splitlines())
    return [line["vector"] for line in lines if "vector" in line]


# ---- moving -----------------------------------------------------------------------------------


def test_export_when_a_file_holds_both_then_it_is_read_back_whole(tmp_path: Path) -> None:
    fill(tmp_path / "a.db")
    told = exported(tmp_path / "a.db")
    kinds = [json.loads(line)["type"] for line in told.splitlines()]
    assert kinds == ["rankblend", "memory", "reasonlets", "reasonlet", "run", "reasonlet", "run"]
    with rb.Memory.open(tmp_path / "b.db") as memory:
        assert memory.import_(tmp_path / "a.jsonl") == 3
    assert exported(tmp_path / "b.db") == told
    with procedures_of(tmp_path / "b.db") as procedures:
        (_, match) = procedures.recall("How do I refund?", scope=SCOPE)
        assert (match.evidence.runs, match.evidence.judged_runs) == (1, 1)


@pytest.mark.parametrize("damage", ["a memory", "a procedure", "a run", "no header", "stored"])
def test_import_when_any_part_is_wrong_then_nothing_of_the_file_is_stored(
    tmp_path: Path, damage: str
) -> None:
    fill(tmp_path / "a.db")
    lines = [json.loads(line) for line in exported(tmp_path / "a.db").splitlines()]
    if damage == "a memory":
        lines[1]["salience"] = 7
    elif damage == "a procedure":
        lines[3]["version"] = "2"
    elif damage == "a run":
        del lines[4]["success"]
    elif damage == "no header":
        del lines[2]
    else:
        with procedures_of(tmp_path / "b.db") as procedures:
            (tmp_path / "p.jsonl").write_text(
                "\n".join(json.dumps(line) for line in lines[2:]), "utf-8"
            )
            procedures.import_(tmp_path / "p.jsonl")
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    with rb.Memory.open(tmp_path / "b.db") as memory:
        with pytest.raises(RankblendError):
            memory.import_(tmp_path / "c.jsonl")
        assert len(memory) == 0
    with procedures_of(tmp_path / "b.db") as procedures:
        assert procedures.statistics().active == (2 if damage == "stored" else 0)


def test_import_when_only_procedures_are_read_then_memories_are_not_left_out_silently(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "a.db")
    exported(tmp_path / "a.db")
    with (
        procedures_of(tmp_path / "b.db") as procedures,
        pytest.raises(InvalidArgumentError, match="rankblend ingest"),
    ):
        procedures.import_(tmp_path / "a.jsonl")


# ---- embedders --------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [equal, wide])
def test_embedder_when_another_one_asks_or_remembers_then_it_is_refused_with_the_remedy(
    tmp_path: Path, other: Any
) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with procedures_of(path, other) as procedures:
        for call in (
            lambda: procedures.recall("How do I refund?", scope=SCOPE),
            lambda: learn(procedures, "Something new"),
        ):
            with pytest.raises(ReasonletUnavailableError) as caught:
                call()
            assert caught.value.what == "embedder"
            if other is equal:
                assert f"expected {__name__}.small/2, got {__name__}.equal/2" in str(caught.value)
                assert "rankblend reembed" in str(caught.value)
        assert procedures.statistics().active == 2


@pytest.mark.parametrize("other", [equal, wide])
def test_reembed_when_a_file_holds_both_then_both_are_found_with_the_other_embedder(
    tmp_path: Path, other: Any
) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with procedures_of(path, other) as open_meanwhile:
        with rb.Memory.open(path, embedder=small) as memory:
            assert memory.reembed(other) == 1
            assert memory.recall("tea", scope=SCOPE).ids == ("tea",)
        for procedures in (open_meanwhile, procedures_of(path, other)):
            found = procedures.recall("How do I refund?", scope=SCOPE)
            assert [match.score.similarity for match in found] == pytest.approx([1.0, 1.0])
            procedures.close()
    with (
        procedures_of(path) as procedures,
        pytest.raises(ReasonletUnavailableError, match="embedder"),
    ):
        procedures.recall("How do I refund?", scope=SCOPE)


def test_reembed_when_the_embedder_fails_then_nothing_of_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fill(path)
    before = vectors(path)

    def at_questions(texts: Sequence[str]) -> Any:
        return broken(texts) if "How do I refund?" in texts else wide(texts)

    for embedder in (broken, rb.embedders.from_callable(at_questions, name="at questions")):
        with rb.Memory.open(path) as memory, pytest.raises(EmbeddingError):
            memory.reembed(embedder)
        assert vectors(path) == before
    with procedures_of(path) as procedures:
        assert len(procedures.recall("How do I refund?", scope=SCOPE)) == 2


def test_reembed_when_procedures_are_among_the_memories_then_their_similarity_follows(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with procedures_of(path) as procedures:
        store = ProcedureStore(procedures.memory.store)
        stores, layers = [*rb.default_stores(), store], ProcedureStore.layers
        with rb.Memory.open(path, embedder=small, stores=stores, layers=layers) as memory:
            assert store.publish(memory) == (2, 0)
            memory.reembed(wide)
            found = memory.recall("How do I refund?", scope=SCOPE, profile="mnemosyne")
            similar = [match.signals.present()["similarity"] for match in found]
            assert similar == pytest.approx([1.0, 1.0])


# ---- erasing ----------------------------------------------------------------------------------


def test_publish_when_procedures_are_shown_then_their_vectors_are_not_copied(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with procedures_of(path) as procedures:
        store = ProcedureStore(procedures.memory.store)
        stores, layers = [*rb.default_stores(), store], ProcedureStore.layers
        with rb.Memory.open(path, embedder=small, stores=stores, layers=layers) as memory:
            store.publish(memory)
    lines = [json.loads(line) for line in exported(path).splitlines()]
    copies = [line for line in lines if line.get("layer") == "procedure"]
    assert len(copies) == 2
    assert not any("vector" in line for line in copies)


@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.parametrize("published", [False, True])
def test_erasure_when_a_person_goes_then_no_byte_of_theirs_is_left_in_a_shared_file(
    tmp_path: Path, published: bool, purge: bool
) -> None:
    """Planted in everything that can be said about a procedure or a run, and in the vectors.

    Without a purge, what was freed goes when the last one closes the file.
    """
    path, plant = tmp_path / "all.db", "zebra-7731"
    unit = [0.6, 0.8]

    def embed(texts: Sequence[str]) -> Any:
        return [unit if plant in text else [1.0, 0.0] for text in texts]

    embed = rb.embedders.from_callable(embed, name="planted")  # type: ignore[assignment]

    of_ana = Provenance(
        f"{plant} source", f"{plant} run", f"{plant} ana", {f"{plant} tag": f"{plant} value"}
    )
    graph = Graph(
        [Node(f"{plant} node", f"{plant} type", f"{plant} name", f"{plant} tool", {plant: plant})]
    )
    with procedures_of(path, embed) as procedures:
        store = ProcedureStore(procedures.memory.store)
        stores, layers = [*rb.default_stores(), store], ProcedureStore.layers
        with rb.Memory.open(path, embedder=embed, stores=stores, layers=layers) as memory:
            memory.remember("tea is at four", scope=SCOPE, id="tea")
            ids: list[str] = []
            for number in range(40):
                made = learn(
                    procedures, f"How? {plant} {number} " * 20, graph=graph, provenance=of_ana,
                    intent=f"{plant} intent", name=f"{plant} {number}",
                )  # fmt: skip
                ids.append(made.id)
                kept = learn(procedures, f"How else {number}?")
                procedures.record_execution(SCOPE, kept.id, Outcome(True), of_ana)
            if published:
                assert store.publish(memory) == (80, 0)
                assert memory.recall(f"{plant}", scope=SCOPE, top=50, profile="mnemosyne").ids
            erased = procedures.erase_subject(SCOPE, f"{plant} ana", purge=purge)
            assert (erased.reasonlets, erased.executions, erased.waiting) == (40, 80, False)
            if published:
                assert store.publish(memory) == (0, 0)
                found = memory.recall(plant, scope=SCOPE, top=50).matches
                assert not any(plant in match.memory.text for match in found)
    left = b"".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))
    assert plant.encode() not in left
    assert not [id_ for id_ in ids if id_.encode() in left]
    assert np.array(unit, "<f4").tobytes() not in left
    assert b"How else 7?" in left


def test_erasure_when_somebody_reads_then_what_was_erased_is_told_and_what_still_waits_apart(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    store = SqliteReasonletStore.open(path, busy_timeout=0.1)
    other = SqliteReasonletStore.open(path)
    with SyncReasonletMemory(ReasonletMemory(small, store, clock=lambda: NOW)) as procedures:
        learn(procedures, "How?", provenance=Provenance("agent", subject_id="ana"))
        with other._database.read() as connection:
            connection.execute("SELECT count(*) FROM runs").fetchone()
            erased = procedures.erase_subject(SCOPE, "ana", purge=True)
        assert (erased.reasonlets, erased.executions, erased.waiting) == (1, 1, True)
        erased = procedures.erase_subject(SCOPE, "ana", purge=True)
        assert (erased.reasonlets, erased.executions, erased.waiting) == (0, 0, False)
    asyncio.run(other.aclose())

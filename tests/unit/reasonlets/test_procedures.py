"""Procedures in the ranking of a memory with several stores."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rankblend as rb
from rankblend.reasonlets import (
    Capture,
    Graph,
    Node,
    Outcome,
    ProcedureStore,
    Provenance,
    ReasonletMemory,
    SqliteReasonletStore,
    SyncReasonletMemory,
)
from rankblend.stores import Reason

NOW = datetime(2026, 3, 1, tzinfo=UTC)
VECTORS = {"refund an order": [1.0, 0.2], "reset a password": [0.1, 1.0]}


def embed(texts: list[str]) -> list[list[float]]:
    return [VECTORS.get(text, [1.0, 0.0]) for text in texts]


class World:
    def __init__(self) -> None:
        self.now = NOW
        self.procedures = SyncReasonletMemory(
            ReasonletMemory(embed, SqliteReasonletStore.open(":memory:"), clock=lambda: self.now)
        )
        self.store = ProcedureStore(self.procedures.memory.store)
        self.memory = rb.Memory.open(
            ":memory:", embedder=embed, stores=[*rb.default_stores(), self.store],
            layers=ProcedureStore.layers, clock=lambda: self.now,
        )  # fmt: skip

    def learn(self, question: str, scope: str = "tenant:acme", **changes: Any) -> str:
        graph = changes.pop("graph", Graph([Node("refund", "tool")]))
        made = Capture(scope, question, graph, Outcome(True), Provenance("agent"), **changes)
        return self.procedures.remember(made).id


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.memory.close()
    made.procedures.close()


def test_recall_when_procedures_take_part_then_three_signals_are_present_and_no_other(
    world: World,
) -> None:
    refund = world.learn("refund an order")
    world.learn("refund an order", "tenant:other")
    world.memory.remember("Refunds over 500 need approval", scope="tenant:acme", id="policy")
    assert world.store.publish(world.memory) == (2, 0)
    found = world.memory.recall("How do I refund?", scope="tenant:acme/user:7")
    assert set(found.ids) == {refund, "policy"}
    match = next(match for match in found if match.memory.id == refund)
    assert match.memory.text.startswith("procedure\n1.0 ")
    assert set(match.signals.present()) <= {"similarity", "success_rate", "freshness"}
    world.now += timedelta(days=30)
    ranked = world.memory.recall("How do I refund?", scope="tenant:acme", profile="mnemosyne")
    (match,) = [match for match in ranked if match.memory.id == refund]
    (own,) = world.procedures.recall("How do I refund?", scope="tenant:acme")
    assert dict(match.signals.present()) == pytest.approx(
        {
            "similarity": own.score.similarity,
            "success_rate": own.score.success_rate,
            "freshness": 0.5,
        }
    )
    assert match.score == pytest.approx(own.score.total, abs=1e-12)


def test_recall_when_a_run_is_recorded_then_the_next_recall_counts_it(world: World) -> None:
    id_ = world.learn("refund an order")
    world.store.publish(world.memory)

    def rate() -> float:
        found = world.memory.recall("refund", scope="tenant:acme", profile="mnemosyne")
        return found[0].signals.present()["success_rate"]

    before = rate()
    world.procedures.record_execution(
        "tenant:acme", id_, outcome=Outcome(True), provenance=Provenance("agent")
    )
    assert rate() > before


def test_recall_when_a_procedure_is_gone_then_it_is_not_proposed_and_publish_forgets_it(
    world: World,
) -> None:
    id_ = world.learn("refund an order")
    world.store.publish(world.memory)
    with world.procedures.memory.store._database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE procedures SET status = 'pending_review', generation = 99")
    found = world.memory.recall("refund", scope="tenant:acme", profile="mnemosyne")
    assert id_ not in found.ids
    assert world.store.publish(world.memory) == (0, 1)
    assert len(world.store) == 0
    assert world.store.publish(world.memory) == (0, 0)


def test_publish_when_two_procedures_have_one_name_then_both_are_shown(world: World) -> None:
    ids = {world.learn("refund an order") for _ in range(2)}
    world.store.publish(world.memory)
    assert set(world.memory.recall("refund", scope="tenant:acme", profile="mnemosyne").ids) == ids


def test_observe_when_ids_are_unknown_then_the_reason_says_so(world: World) -> None:
    id_ = world.learn("refund an order")
    world.store.publish(world.memory)
    query = world.memory._engine.sight(rb.Scope.parse("tenant:acme"), NOW.timestamp())
    seen = world.store.observe(query, [id_, "nobody"])
    assert seen.reason("runs").tolist() == [Reason.PRESENT, Reason.UNKNOWN]
    assert seen.reason("parent_runs").tolist() == [Reason.NOT_APPLICABLE, Reason.UNKNOWN]
    assert world.store.propose(query, 5) == []  # the query has no vector

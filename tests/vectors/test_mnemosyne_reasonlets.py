"""The shared expected values of procedure ranking, end to end: remember, record, recall."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rankblend.embedders import from_callable
from rankblend.limits import LIMITS
from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    InMemoryReasonletStore,
    Judgement,
    Node,
    Outcome,
    Provenance,
    ReasonletMatch,
    ReasonletMemory,
    ReasonletOptions,
    ReasonletValidationError,
    SqliteReasonletStore,
)
from rankblend.stores.procedures._capture import named_after
from rankblend.stores.procedures._graph import MAX_EDGES, MAX_NODES

Vectors = Callable[[str], Any]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = "tenant:acme"
ASKED = "How do I refund an order?"
ONE = Graph([Node("refund", "tool")])
TWO = Graph([Node("look", "tool"), Node("refund", "tool")], [Edge("look", "refund")])
COUNTS = ("runs", "successes", "judged_runs", "judged_successes")


async def judge(question: str, answer: str) -> Judgement:
    return Judgement(answer == "good")


def at_angle(similarity: float) -> list[float]:
    """A unit vector with this cosine to (1, 0)."""
    return [similarity, math.sqrt(1.0 - similarity**2)]


class Desk:
    """A memory with fixed embeddings and a clock that is set."""

    def __init__(self, store: Any, **options: Any) -> None:
        self.now = NOW
        self.vectors = {ASKED: [1.0, 0.0]}
        self.memory = ReasonletMemory(
            from_callable(lambda texts: [self.vectors[text] for text in texts], name="expected"),
            store,
            options=ReasonletOptions(**options),
            evaluator=judge,
            clock=lambda: self.now,
        )

    async def known(
        self, case: dict[str, Any], *, similarity: float = 0.8, graph: Graph = ONE,
        parent: str | None = None,
    ) -> str:  # fmt: skip
        """A procedure with the runs of a case; its id."""
        question = f"question of similarity {similarity}"
        self.vectors[question] = at_angle(similarity)
        judged = [
            *["good"] * case["judged_successes"],
            *["bad"] * (case["judged_runs"] - case["judged_successes"]),
        ]
        own = case["successes"] - case["judged_successes"]
        unjudged = case["runs"] - case["judged_runs"]
        runs = [(True, answer) for answer in judged]
        runs += [(at < own, None) for at in range(unjudged)]
        (success, answer), *rest = runs
        receipt = await self.memory.remember(
            Capture(
                SCOPE, question, graph, Outcome(success), Provenance("test"), name="n",
                parent_id=parent, answer=answer,
            )
        )  # fmt: skip
        for success, answer in rest:
            await self.memory.record_execution(
                SCOPE, receipt.id, outcome=Outcome(success), provenance=Provenance("test"),
                question=question, answer=answer,
            )  # fmt: skip
        return receipt.id

    async def found(self) -> dict[str, ReasonletMatch]:
        matches = await self.memory.recall(ASKED, scope=SCOPE, top=50)
        return {match.reasonlet.id: match for match in matches}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return InMemoryReasonletStore()
    return SqliteReasonletStore.open(":memory:")


def test_success_rate_when_runs_are_remembered_and_recorded_then_every_value_is_expected(
    vectors: Vectors, store: Any, tmp_path: Path
) -> None:
    async def main() -> None:
        for case in vectors("mnemosyne")["success_rate"]:
            weights = {name: case[name] for name in ("agent_verdict_weight", "prior_weight")}
            desk = Desk(type(store).open(":memory:") if hasattr(store, "open") else type(store)(),
                        **weights)  # fmt: skip
            above = None
            if case["parent"] is not None:
                above = await desk.known(case["parent"], graph=TWO)
            if case["runs"]:
                id_ = await desk.known(case, parent=above)
            else:  # only erasure and moving leave a procedure without a run
                id_ = await _without_runs(desk, tmp_path / "moved.jsonl")
            match = (await desk.found())[id_]
            expected = pytest.approx(case["success_rate"], rel=1e-14)
            assert match.score.success_rate == expected, case["name"]
            evidence = match.evidence
            told = (evidence.runs, evidence.judged_runs, evidence.uses_parent_prior)
            assert told == (case["runs"], case["judged_runs"], case["uses_parent_prior"])
            await desk.memory.aclose()

    asyncio.run(main())


async def _without_runs(desk: Desk, path: Path) -> str:
    other = Desk(InMemoryReasonletStore())
    id_ = await other.known({"runs": 1, "successes": 1, "judged_runs": 0, "judged_successes": 0})
    await other.memory.export(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:2]), encoding="utf-8")
    assert await desk.memory.import_(path) == 1
    return id_


def test_freshness_when_time_has_passed_then_every_value_is_expected(
    vectors: Vectors, store: Any
) -> None:
    async def main() -> None:
        for case in vectors("mnemosyne")["freshness"]:
            half_life = timedelta(days=case["half_life_days"])
            desk = Desk(InMemoryReasonletStore(), freshness_half_life=half_life)
            id_ = await desk.known(dict.fromkeys(COUNTS, 1))
            desk.now = NOW + timedelta(days=case["days_since_last_run"])
            match = (await desk.found())[id_]
            assert match.score.freshness == pytest.approx(case["freshness"], rel=1e-12), case

    asyncio.run(main())


def test_worked_example_when_recalled_then_rows_ranks_and_totals_are_expected(
    vectors: Vectors, store: Any
) -> None:
    example = vectors("mnemosyne")["worked_example"]
    rows = {row["name"]: row | {"judged_runs": 0, "judged_successes": 0} for row in example["rows"]}

    async def main() -> None:
        desk = Desk(store)
        ids: dict[str, str] = {}
        for name in ("Proven original, 1.0", "Close match, 1.0", "New version, 1.1"):
            row = rows[name]
            ids[name] = await desk.known(
                row, similarity=row["similarity"], parent=ids.get(row["parent"]),
                graph=TWO if row["parent"] else ONE,
            )  # fmt: skip
        matches = await desk.memory.recall(ASKED, scope=SCOPE)
        expected = sorted(rows.values(), key=lambda row: row["rank"])
        assert [match.reasonlet.id for match in matches] == [ids[row["name"]] for row in expected]
        for match, row in zip(matches, expected, strict=True):
            score = match.score
            # Vectors are stored as float32.
            assert score.similarity == pytest.approx(row["similarity"], abs=1e-7)
            assert score.total == pytest.approx(row["total"], abs=1e-7)
            assert score.success_rate == pytest.approx(row["success_rate"], rel=1e-14)
            assert score.freshness == row["freshness"]
            assert match.evidence.uses_parent_prior == row["uses_parent_prior"]
            assert match.reasonlet.version == row["name"][-3:]
        printed = example["rounded_to_three"]
        for match, name in zip(matches, ("new_version", "proven", "close"), strict=True):
            score = match.score
            told = (score.similarity, score.success_rate, score.freshness, score.total)
            assert [f"{value:.3f}" for value in told] == [f"{value:.3f}" for value in printed[name]]
        await desk.memory.aclose()

    asyncio.run(main())


def test_worked_example_when_nothing_is_inherited_then_the_new_version_is_last(
    vectors: Vectors, store: Any
) -> None:
    example = vectors("mnemosyne")["worked_example"]
    row = next(row for row in example["rows"] if row["parent"])

    async def main() -> None:
        desk = Desk(store)
        case = row | {"judged_runs": 0, "judged_successes": 0}
        id_ = await desk.known(case, similarity=row["similarity"])
        score = (await desk.found())[id_].score
        expected = example["new_version_without_inheritance"]
        assert score.success_rate == pytest.approx(expected["success_rate"], rel=1e-14)
        assert score.total == pytest.approx(expected["total"], abs=1e-7)
        await desk.memory.aclose()

    asyncio.run(main())


def test_limits_when_compared_with_the_expected_ones_then_equal(vectors: Vectors) -> None:
    limits = vectors("mnemosyne")["limits"]
    options = ReasonletOptions()
    assert (options.top, LIMITS["procedures"].most) == (
        limits["top"]["default"],
        limits["top"]["max"],
    )
    pool = limits["candidate_pool"]
    assert (options.candidate_pool, LIMITS["candidate_pool"].most) == (pool["default"], pool["max"])
    assert options.min_similarity == limits["min_similarity"]["default"]
    assert options.min_intent_confidence == limits["min_intent_confidence"]
    assert (limits["graph"]["max_nodes"], limits["graph"]["max_edges"]) == (MAX_NODES, MAX_EDGES)
    assert limits["review_page"]["max"] == LIMITS["page"].most
    assert len(named_after(None, "é" * 500)) == limits["name_code_points"]
    assert options.evaluation_timeout == timedelta(seconds=limits["evaluation_timeout_seconds"])
    tolerance = limits["weights_sum_tolerance"]
    ReasonletOptions(similarity_weight=0.5 + tolerance / 2)
    with pytest.raises(ReasonletValidationError):
        ReasonletOptions(similarity_weight=0.5 + 2 * tolerance)

"""The worked example of procedure ranking, through a recall with a store that knows the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.stores import Observation, StoreQuery

Vectors = Callable[[str], Any]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = "tenant:acme"
COUNTS = ("runs", "successes", "judged_runs", "judged_successes")


class RunStore:
    """Answers for procedures from a table of their runs; proposes by similarity."""

    name = "procedures"
    emits = ("cosine", "age_last_run", *COUNTS, *(f"parent_{name}" for name in COUNTS))

    def __init__(self, procedures: dict[str, dict[str, Any]], *, inherit: bool = True) -> None:
        self.procedures = procedures
        self.inherit = inherit

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        if level not in (None, 0):
            return []
        return sorted(self.procedures, key=lambda i: (-self.procedures[i]["similarity"], i))[:limit]

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        rows = [self._evidence(self.procedures[identifier], query.now) for identifier in ids]
        return Observation({n: np.array([row.get(n, np.nan) for row in rows]) for n in self.emits})

    def _evidence(self, row: dict[str, Any], now: float) -> dict[str, float]:
        parent = self.procedures.get(row["parent"]) if self.inherit else None
        evidence = {"cosine": row["similarity"], "age_last_run": now - row["last_run"].timestamp()}
        for name in COUNTS:
            evidence[name] = float(row.get(name, 0))
            if parent is not None:
                evidence[f"parent_{name}"] = float(parent.get(name, 0))
        return evidence

    def close(self) -> None: ...


@pytest.fixture
def recalled(vectors: Vectors) -> Iterator[Callable[..., rb.Recall]]:
    """Recall of the example's procedures, some changed, at a moment."""
    memories: list[rb.Memory] = []

    def recall(
        changes: dict[str, dict[str, Any]] | None = None, *, inherit: bool = True, **asked: Any
    ) -> rb.Recall:
        rows = {
            row["name"]: {**row, "last_run": NOW, **(changes or {}).get(row["name"], {})}
            for row in vectors("mnemosyne")["worked_example"]["rows"]
        }
        memory = rb.Memory.open(
            ":memory:", stores=[RunStore(rows, inherit=inherit)], clock=lambda: NOW
        )
        memories.append(memory)
        for name in rows:
            memory.remember(f"procedure {name}", scope=SCOPE, id=name, layer="procedural", key=name)
        return memory.recall("deploy the service", scope=SCOPE, profile="mnemosyne", **asked)

    yield recall
    for memory in memories:
        memory.close()


def test_recall_when_compared_with_the_worked_example_then_ranks_signals_and_totals_are_equal(
    vectors: Vectors, recalled: Callable[..., rb.Recall]
) -> None:
    expected = sorted(vectors("mnemosyne")["worked_example"]["rows"], key=lambda row: row["rank"])
    result = recalled()
    assert result.ids == tuple(row["name"] for row in expected)
    for match, row in zip(result, expected, strict=True):
        assert match.rank == row["rank"]
        assert match.score == pytest.approx(row["total"], abs=1e-12)
        for signal in ("similarity", "success_rate", "freshness"):
            assert getattr(match.signals, signal) == pytest.approx(row[signal], abs=1e-12)


def test_recall_when_rounded_then_it_is_what_the_documentation_prints(
    vectors: Vectors, recalled: Callable[..., rb.Recall]
) -> None:
    printed = vectors("mnemosyne")["worked_example"]["rounded_to_three"]
    for match, row in zip(recalled(), ("new_version", "proven", "close"), strict=True):
        signals = match.signals
        values = (signals.similarity, signals.success_rate, signals.freshness, match.score)
        assert [f"{value:.3f}" for value in values] == [f"{value:.3f}" for value in printed[row]]


def test_recall_when_nothing_is_inherited_then_the_new_version_falls_behind(
    vectors: Vectors, recalled: Callable[..., rb.Recall]
) -> None:
    expected = vectors("mnemosyne")["worked_example"]["new_version_without_inheritance"]
    result = recalled(inherit=False)
    last = result[2]
    assert last.memory.id == "New version, 1.1"
    assert last.score == pytest.approx(expected["total"], abs=1e-12)
    assert last.signals.success_rate == pytest.approx(expected["success_rate"], abs=1e-12)


def test_recall_when_a_month_passes_then_freshness_halves(
    recalled: Callable[..., rb.Recall],
) -> None:
    result = recalled(now=NOW + timedelta(days=30))
    assert {match.signals.freshness for match in result} == {0.5}
    # .2 · (1 − .5) less than before, for each
    assert [match.score for match in result] == pytest.approx(
        [match.score - 0.1 for match in recalled()], abs=1e-12
    )


def test_recall_when_similarity_is_below_the_floor_then_it_is_dropped_and_on_it_kept(
    recalled: Callable[..., rb.Recall],
) -> None:
    result = recalled(
        {"Close match, 1.0": {"similarity": 0.5}, "New version, 1.1": {"similarity": 0.499999}}
    )
    assert set(result.ids) == {"Close match, 1.0", "Proven original, 1.0"}
    assert result.explain("New version, 1.1").verdict.startswith("under the floor of 'similarity'")


def test_recall_when_totals_tie_then_similarity_then_id_decide(
    recalled: Callable[..., rb.Recall],
) -> None:
    never = {"runs": 0, "successes": 0, "parent": None}
    same = recalled({name: {**never, "similarity": 0.8} for name in recalled().ids})
    assert same.ids == ("Close match, 1.0", "New version, 1.1", "Proven original, 1.0")
    tied = recalled(
        {
            "Close match, 1.0": {**never, "similarity": 0.7},
            "New version, 1.1": {**never, "similarity": 0.9, "last_run": NOW - timedelta(days=30)},
            "Proven original, 1.0": {**never, "similarity": 0.5},
        }
    )
    # .5 · .7 + .3 · .5 + .2 · 1 = .7 = .5 · .9 + .3 · .5 + .2 · .5, to the last bit
    assert tied[0].score == tied[1].score
    assert tied.ids == ("New version, 1.1", "Close match, 1.0", "Proven original, 1.0")


def test_recall_when_more_is_asked_for_than_the_profile_returns_then_top_wins(
    recalled: Callable[..., rb.Recall], vectors: Vectors
) -> None:
    assert recalled().profile.select.top == vectors("mnemosyne")["limits"]["top"]["default"]
    assert (
        recalled().profile.pool.size == vectors("mnemosyne")["limits"]["candidate_pool"]["default"]
    )
    assert len(recalled(top=2)) == 2

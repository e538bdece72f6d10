"""A small memory to be asked and written, and what holds of it whatever happens."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.recall._portable import export_lines
from rankblend.testing import hashed_embedder

sys.path.insert(0, str(Path(__file__).parent))
from strategies import refused, texts

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER, OTHER = "tenant:acme", "tenant:acme/user:7", "tenant:acme-corp"
EMBEDDER = hashed_embedder(8)
PRESETS = rb.profile_names()
SCOPES = st.sampled_from((TENANT, USER, OTHER))
IDS = st.one_of(st.sampled_from(("a", "b", "c", "far")), texts())
QUERIES = st.one_of(st.sampled_from(("tea refund", "Ana", "", "the")), texts(largest=60))

fuzzed = settings(suppress_health_check=list(HealthCheck))
few, many = settings(fuzzed, max_examples=25), settings(fuzzed, max_examples=800)


@contextmanager
def filled() -> Iterator[rb.Memory]:
    with rb.Memory.open(
        ":memory:", embedder=EMBEDDER, clock=lambda: NOW, allow_subtree=True
    ) as memory:
        memory.remember_many(
            [
                {"text": "tea refund", "scope": USER, "id": "a", "links": ["b", "Ana"], "salience": 0.5},
                {"text": "order of Ana", "scope": TENANT, "id": "b", "metadata": {"tag": [1, "x"]}},
                {"text": "the old tea", "scope": USER, "id": "c", "expires": "2026-02-01T00:00:00Z",
                 "at": "2026-01-01T00:00:00Z"},
                {"text": "tea of strangers", "scope": OTHER, "id": "far"},
            ]
        )  # fmt: skip
        yield memory


def stored(memory: rb.Memory) -> list[dict[str, Any]]:
    return list(export_lines(memory._engine.catalog))


def check(memory: rb.Memory, result: rb.Recall, *, whole: bool) -> None:
    """What holds of every answer, whatever was asked."""
    scopes = [rb.Scope.parse(scope) for scope in result.trace.scopes]
    below = result.trace.reach == "subtree"
    assert len(result) <= result.trace.pool
    assert [match.rank for match in result] == list(range(1, len(result) + 1))
    assert len(set(result.ids)) == len(result)
    if not result.profile.select.diversity:
        order = [match.rank_score for match in result]
        assert order == sorted(order, reverse=True)
    for match in result:
        where = match.memory.scope
        seen = [scope.distance(where) for scope in scopes if scope.distance(where) >= 0]
        down = below and any(scope.contains(where) for scope in scopes)
        assert match.distance == (0 if down else min(seen))
        assert 0.0 <= match.score <= 1.0
        assert 0.0 <= match.rank_score <= 1.0
        assert all(0.0 <= value <= 1.0 for value in match.signals.present().values())
        explained = result.explain(match.memory.id)
        assert explained.shown
        if explained.additive:
            added = [row.contribution or 0.0 for row in explained.rows if row.depth == 0]
            assert sum(added) == pytest.approx(match.score, abs=1e-12)
        if whole:
            str(explained)
    json.dumps(result.plain(), allow_nan=False)
    assert result.compare(result).moves == tuple(
        type(move)(move.id, move.before, move.before) for move in result.compare(result).moves
    )


def check_write(call: Callable[[rb.Memory], Any]) -> None:
    """Refused and nothing stored, or stored and still a memory that answers and moves."""
    with filled() as memory:
        before = stored(memory)
        if refused(lambda: call(memory)):
            assert stored(memory) == before
        for query, scope in (("tea Ana", USER), ("", OTHER), ("tea", TENANT)):
            check(
                memory, memory.recall(query, scope=scope, top=99, include_expired=True), whole=False
            )
        json.dumps(stored(memory), allow_nan=False).encode()

"""What opening reads, what is put off until somebody asks, and that no answer depends on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.checks import Problems
from rankblend.recall import _arguments as arguments
from rankblend.stores import Edge, Key, Record
from rankblend.stores.graph import GraphStore
from rankblend.stores.keywords import KeywordStore
from rankblend.stores.vectors import VectorStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER = "tenant:acme", "tenant:acme/user:7"


def opened(path: Path | str, **options: Any) -> rb.Memory:
    return rb.Memory.open(path, clock=lambda: NOW, **options)


def items(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    return [
        {"text": f"refund number n{n} of order {n % 5}", "scope": USER if n % 2 else TENANT,
         "id": f"n{n}", "vector": rng.normal(size=4) if n % 3 else None, "links": ["Orders"]}
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        memory.remember_many(items(60))
        memory.link("n3", "n4", scope=USER, kind="equivalent", verified=True)
    return path


def said(memory: rb.Memory) -> list[Any]:
    found = []
    for query in ("refund of order 3", "n7", "what about Orders"):
        result = memory.recall(query, scope=USER, top=60, strict=True)
        found.append(result.plain()["matches"])
        found.append([result.explain(f"n{n}").plain() for n in range(0, 60, 7)])
    return found


def test_open_when_nobody_asks_then_the_graph_is_not_filled(path: Path) -> None:
    with opened(path) as memory:
        memory.get("n3", scope=USER)
        memory.remember("one more", scope=USER, id="more", links=["n3"])
        memory.forget("n5", scope=USER)
        memory.link("n7", "Orders", scope=USER)
        assert (len(memory), memory._engine.unread) == (60, {"graph"})
        ((_, graph),) = memory._engine.walkers()
        assert len(graph) == 0
        memory.recall("refund", scope=USER)
        assert (len(graph), memory._engine.unread) == (60, set())


@pytest.mark.parametrize("asked", ["recall", "as of", "networkx", "stores"])
def test_open_when_anybody_asks_then_the_graph_holds_everything(path: Path, asked: str) -> None:
    with opened(path) as memory:
        memory.link("n7", "Paris", scope=USER)
        match asked:
            case "recall":
                memory.recall("refund", scope=USER)
            case "as of":
                memory.recall("refund", scope=USER, as_of=NOW)
            case "networkx":
                assert memory.to_networkx(scope=USER).has_edge("n7", "Paris")
            case _:
                assert len(memory.stores["graph"]) == 60  # type: ignore[arg-type]
        ((_, graph),) = memory._engine.walkers()
        edges = set(graph.to_networkx().edges())
        expected = {(f"n{n}", "Orders") for n in range(60)}
        assert edges == expected | {("n3", "n4"), ("n7", "Paris")}


def test_reopen_when_written_before_the_first_question_then_answers_are_the_same(
    path: Path, tmp_path: Path
) -> None:
    def write(memory: rb.Memory) -> None:
        memory.remember("order n8 corrected", scope=USER, id="n9", links=["n8", "Paris"])
        memory.forget(["n11", "n13"], scope=USER)
        memory.link("n15", "n17", scope=USER, weight=0.5)
        memory.unlink("n3", "n4", scope=USER, kind="equivalent")

    with opened(path) as late:
        write(late)
        answers = said(late)
    with opened(tmp_path / "other.db") as early:
        early.remember_many(items(60))
        early.link("n3", "n4", scope=USER, kind="equivalent", verified=True)
        said(early)
        write(early)
        assert said(early) == answers
    with opened(path) as again:
        assert said(again) == answers


def test_open_when_another_process_writes_before_the_first_question_then_it_is_seen(
    path: Path,
) -> None:
    with opened(path) as one, opened(path) as two:
        two.remember("of another process", scope=USER, id="n9", links=["Paris"])
        two.link("n15", "Paris", scope=USER)
        two.forget("n11", scope=USER)
        assert one._engine.unread
        assert said(one) == said(two)
        ((_, graph),) = one._engine.walkers()
        assert {("n9", "Paris"), ("n15", "Paris")} <= set(graph.to_networkx().edges())
        assert "n11" not in graph.to_networkx()


def test_open_when_filling_the_graph_is_interrupted_then_the_next_question_fills_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(path) as memory:
        with monkeypatch.context() as patched:
            patched.setattr("rankblend.stores.graph._tables.GraphTables.add_edges", interrupted)
            with pytest.raises(KeyboardInterrupt):
                memory.recall("refund", scope=USER)
        answers = said(memory)
    with opened(path) as again:
        assert said(again) == answers


def test_open_when_given_stores_hold_something_already_then_it_stays(path: Path) -> None:
    vectors, graph = VectorStore(), GraphStore()
    own = Key(rb.Scope.parse("tenant:own"), "own")
    vectors.add([Record(own, "", 1000, vector=np.ones(4, np.float32))])
    graph.add_edges([Edge(own.scope, "own", "Paris")])
    with opened(path, stores=[vectors, KeywordStore(), graph]) as memory:
        memory.recall("refund", scope=USER)
        assert len(vectors) == 61
        assert graph.to_networkx().has_edge("own", "Paris")


def test_open_and_recall_in_a_fresh_process_then_networkx_is_not_imported(path: Path) -> None:
    code = (
        "import sys, rankblend as rb\n"
        f"memory = rb.Memory.open({str(path)!r})\n"
        f"assert len(memory.recall('refund', scope={USER!r}))\n"
        "print('networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def kept(memory: rb.Memory) -> Iterator[tuple[str, int]]:
    catalog = memory._engine.catalog
    for name in ("keywords", "catalog.columns"):
        found = catalog.load_cache(name)
        if found is not None:
            yield name, found[0]


def test_close_when_little_was_written_then_what_is_kept_stays_and_is_good(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        memory.remember_many(items(1500))
    with opened(path) as memory:
        before = dict(kept(memory))
        assert set(before) == {"keywords", "catalog.columns"}
        memory.remember("a refund nobody kept", scope=USER, id="late")
    with opened(path) as memory:
        assert dict(kept(memory)) == before
        assert memory.recall("nobody kept", scope=USER)[0].memory.id == "late"
        memory.remember_many(
            {"text": f"parcel p{n}", "scope": USER, "id": f"late{n}"} for n in range(100)
        )
    with opened(path) as memory:
        assert all(generation > before[name] for name, generation in kept(memory))
        assert memory.recall("parcel p7", scope=USER)[0].memory.id == "late7"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
def test_ordinary_vectors_when_read_together_then_each_as_by_itself(dtype: type) -> None:
    rng = np.random.default_rng(4)
    given: list[Any] = [(rng.normal(size=6) * 10).astype(dtype) for _ in range(1500)]
    given += [rng.normal(size=3).astype(dtype) for _ in range(5)]
    given += [np.full(6, value) for value in (0.0, np.nan, np.inf, 1e-30, 1e30, 1e200)]
    given += [None, [1.0, 2.0], "text", np.ones((2, 6)), np.empty(0), np.array(["a"])]
    given[7] = given[7] / np.sqrt((given[7].astype(float) ** 2).sum())
    found = arguments.ordinary_vectors(given)
    for value, unit in zip(given, found, strict=True):
        if unit is not None:
            alone = arguments.read_vector(Problems(), "vector", value)
            assert alone is not None
            assert (unit.dtype, unit.tobytes()) == (alone.dtype, alone.tobytes())
    expected = dtype in (np.float32, np.float64)
    assert sum(unit is not None for unit in found[:1505]) == (1505 if expected else 1)
    assert all(unit is None for unit in found[1505:])

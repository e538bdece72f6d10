"""Moving memories: export, import, and what both refuse."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.errors import EmbedderMismatchError, EmbeddingError, InvalidArgumentError
from rankblend.recall import stored_embedder

Open = Callable[..., rb.Memory]
USER = "tenant:acme/user:7"


def two(texts: Sequence[str]) -> Any:
    return np.array([[1.0, len(text)] for text in texts])


def broken(texts: Sequence[str]) -> Any:
    raise RuntimeError


LENGTHS = from_callable(two, name="lengths", dimension=2)
OTHER = from_callable(two, name="other", dimension=2)
BROKEN = from_callable(broken, name="broken", dimension=2)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, *items: object) -> Path:
    path.write_text(
        "".join(f"{i if isinstance(i, str) else json.dumps(i)}\n" for i in items), encoding="utf-8"
    )
    return path


def fill(memory: rb.Memory) -> None:
    memory.remember("tea at five", scope=USER, id="tea", at="2026-02-01T00:00:00+00:00")
    memory.remember("tea at four", scope=USER, id="tea", at="2026-01-01T00:00:00+00:00")
    memory.remember("tea at six", scope=USER, id="tea", at="2026-02-01T00:00:00+00:00")
    memory.remember_many([{"text": "no vector", "scope": USER, "id": "bare"}], embed=False)
    memory.reinforce("tea", scope=USER)
    memory.link("tea", "bare", scope=USER, weight=0.5)


def test_export_when_there_is_an_embedder_then_header_and_lines_say_all(
    opened: Open, tmp_path: Path
) -> None:
    memory = opened(embedder=LENGTHS)
    fill(memory)
    memory.export(tmp_path / "a.jsonl")
    header, *rest = lines(tmp_path / "a.jsonl")
    assert header == {"type": "rankblend", "format": 1, "embedder": "lengths/2", "dimension": 2}
    tea = [line for line in rest if line.get("id") == "tea"]
    assert [line["text"] for line in tea] == ["tea at four", "tea at five", "tea at six"]
    assert {line["created"] for line in tea} == {"2026-02-01T00:00:00+00:00"}
    assert {(line["uses"], line["used"]) for line in tea} == {(1, "2026-03-01T12:00:00+00:00")}


@pytest.mark.parametrize("embedder", [None, LENGTHS])
def test_import_when_the_file_is_an_export_then_the_next_export_has_the_same_bytes(
    opened: Open, tmp_path: Path, embedder: Any
) -> None:
    memory = opened(embedder=LENGTHS)
    fill(memory)
    memory.export(tmp_path / "a.jsonl")
    copy = opened(tmp_path / "b.db", embedder=embedder)
    assert copy.import_(tmp_path / "a.jsonl") == 5
    copy.export(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert copy.get("tea", scope=USER).created == datetime(2026, 2, 1, tzinfo=UTC)
    past = {"scope": USER, "as_of": "2026-01-15T00:00:00+00:00"}
    assert (
        copy.recall("tea", **past).plain()
        == opened_like(memory, embedder).recall("tea", **past).plain()
    )


def opened_like(memory: rb.Memory, embedder: Any) -> rb.Memory:
    memory._embedder = embedder
    return memory


def test_import_when_all_vectors_are_gone_then_the_header_is_still_the_same(
    opened: Open, tmp_path: Path
) -> None:
    memory = opened(embedder=LENGTHS)
    memory.remember("tea", scope=USER, id="tea")
    memory.forget("tea", scope=USER)
    memory.export(tmp_path / "a.jsonl")
    copy = opened()
    assert copy.import_(tmp_path / "a.jsonl") == 0
    copy.export(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_import_when_written_by_hand_then_lines_are_embedded_and_progress_is_told(
    opened: Open, tmp_path: Path
) -> None:
    memory = opened(embedder=LENGTHS)
    path = write(
        tmp_path / "a.jsonl",
        *({"text": f"t{i}", "id": f"m{i}", "scope": USER} for i in range(600)),
        {"text": "later", "id": "m0", "scope": USER, "at": "2026-04-01T00:00:00Z"},
        {"type": "link", "source": "m0", "target": "m1", "scope": USER},
    )
    told: list[int] = []
    assert memory.import_(path, progress=told.append) == 602
    assert told == [256, 512, 601]
    assert memory.get("m0", scope=USER).text == "later"
    assert memory.recall("t", scope=USER, as_of="2026-03-15T00:00:00Z", top=999).ids.count("m0")
    assert memory.to_networkx(scope=USER).has_edge("m0", "m1")


def test_import_when_lines_are_wrong_then_all_are_named_in_order_and_nothing_is_stored(
    memory: rb.Memory, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"text": "fine", "scope": USER},
        "{oops",
        {"text": "x", "scope": USER, "salience": 3, "mood": "bad"},
        {"text": "x", "scope": USER, "uses": 2**31},
        {"type": "link", "source": "a", "scope": USER, "strength": 1},
        {"type": "rankblend", "format": 1, "embedder": 5, "dimension": 0, "more": 1},
        {"text": "x"},
        {"text": "x", "scope": USER, "vector": [1, 0]},
        *({"text": " ", "scope": USER} for _ in range(30)),
    )
    with pytest.raises(InvalidArgumentError) as refused:
        memory.import_(path)
    found = [problem.removeprefix(f"{path}:").split(": ")[:2] for problem in refused.value.problems]
    assert [number for number, _ in found] == [
        *"233455666", "7", *(str(number) for number in range(9, 39))
    ]  # fmt: skip
    assert {what for number, what in found if number == "3"} == {"salience", "mood"}
    assert {what for number, what in found if number == "5"} == {"target", "strength"}
    assert len(memory) == 0
    memory.export(tmp_path / "b.jsonl")
    assert lines(tmp_path / "b.jsonl") == [{"type": "rankblend", "format": 1}]


def test_import_when_vectors_differ_in_length_then_the_line_is_named(
    memory: rb.Memory, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"text": "x", "scope": USER, "vector": [1, 0]},
        {"text": "x", "scope": USER, "vector": [1, 0, 0]},
    )
    with pytest.raises(InvalidArgumentError, match=r"a\.jsonl:2: vector: expected 2 dimensions"):
        memory.import_(path)
    assert len(memory) == 0


@pytest.mark.parametrize(("noted", "embedder"), [(OTHER, None), (None, OTHER), (OTHER, OTHER)])
def test_import_when_it_brings_vectors_of_another_embedder_then_it_is_refused(
    opened: Open, tmp_path: Path, noted: Any, embedder: Any
) -> None:
    memory = opened(embedder=LENGTHS)
    memory.remember("tea", scope=USER)
    memory.export(tmp_path / "a.jsonl")
    if noted is not None:
        with rb.Memory.open(tmp_path / "b.db", embedder=noted) as before:
            before.remember("here", scope=USER)
    copy = opened(tmp_path / "b.db", embedder=embedder)
    with pytest.raises(EmbedderMismatchError, match="lengths/2") as refused:
        copy.import_(tmp_path / "a.jsonl")
    assert (refused.value.stored, refused.value.given) == ("other/2", "lengths/2")
    assert len(copy) == (noted is not None)


def test_import_when_it_brings_no_vectors_then_another_embedder_makes_them(
    opened: Open, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"type": "rankblend", "format": 1, "embedder": "lengths/2"},
        {"text": "tea", "scope": USER, "id": "tea"},
    )
    memory = opened(tmp_path / "b.db", embedder=OTHER)
    memory.import_(path)
    assert stored_embedder(tmp_path / "b.db") == "other/2"


def test_import_when_the_target_has_memories_then_they_get_revisions(
    memory: rb.Memory, tmp_path: Path
) -> None:
    memory.remember("new", scope=USER, id="tea", at="2026-02-01T00:00:00Z")
    path = write(
        tmp_path / "a.jsonl", {"text": "old", "scope": USER, "id": "tea", "at": "2026-01-01T00:00Z"}
    )
    memory.import_(path)
    assert memory.get("tea", scope=USER).text == "new"


# identity and vectors in one transaction


def test_remember_when_the_write_is_refused_then_no_embedder_is_noted(tmp_path: Path) -> None:
    db = tmp_path / "m.db"
    with rb.Memory.open(db, embedder=LENGTHS) as memory:
        with pytest.raises(InvalidArgumentError, match=r"^items\[1\]\.vector: "):
            memory.remember_many(
                [{"text": "a", "scope": USER}, {"text": "b", "scope": USER, "vector": [1, 2, 3]}]
            )
        with pytest.raises(InvalidArgumentError, match=r"^vector: expected 2 dimensions"):
            memory.remember("b", scope=USER, vector=[1, 2, 3])
    with rb.Memory.open(db, embedder=BROKEN) as memory, pytest.raises(EmbeddingError):
        memory.remember("a", scope=USER)
    assert stored_embedder(db) is None
    with rb.Memory.open(db, embedder=LENGTHS) as memory:
        memory.remember("a", scope=USER)
    assert stored_embedder(db) == "lengths/2"


def test_remember_many_when_the_catalog_finds_the_problem_then_the_item_is_named(
    memory: rb.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankblend.recall._items._MANY_USES", 2**40)  # let one through
    item = {"text": "a", "scope": USER, "uses": 2**31}
    with pytest.raises(InvalidArgumentError, match=r"^items\[1\]\.uses: expected a count"):
        memory.remember_many([{"text": "a", "scope": USER}, item])
    assert len(memory) == 0


def test_remember_many_when_progress_fails_then_nothing_is_stored(opened: Open) -> None:
    memory = opened(embedder=LENGTHS)

    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.remember_many([{"text": "a", "scope": USER}], progress=interrupt)
    assert len(memory) == 0


# opening


@pytest.mark.parametrize("seconds", [0, -1, None, True, "5", float("nan"), float("inf"), 10**400])
def test_open_when_busy_timeout_is_bad_then_it_is_refused_with_all_else(seconds: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        rb.Memory.open(":memory:", busy_timeout=seconds, statistics="none")
    assert [p.partition(":")[0] for p in refused.value.problems] == ["busy_timeout", "statistics"]


def test_open_when_another_process_writes_then_busy_timeout_is_waited(tmp_path: Path) -> None:
    with rb.Memory.open(tmp_path / "m.db", busy_timeout=0.01) as memory:
        writer = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(rb.errors.CatalogBusyError):
            memory.remember("tea", scope=USER)
        writer.execute("ROLLBACK")
        writer.close()
        memory.remember("tea", scope=USER)

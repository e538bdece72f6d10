"""A memory that is written in every way there is, and what must agree after whatever befell it.

Imported by the tests and by their child processes alike, so it needs nothing but rankblend.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import rankblend as rb
from rankblend.embedders import Embedder, from_callable
from rankblend.recall._embedding import EMBEDDER
from rankblend.recall._portable import export_lines

__all__ = [
    "SECRET", "START", "TENANT", "USER", "agree", "clock_from", "hashed", "image", "opened",
    "steps",
]  # fmt: skip

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER = "tenant:acme", "tenant:acme/user:7"
SECRET = "the vault's code is 4711"

_ASKED: tuple[dict[str, Any], ...] = (
    {"query": "refund of an order", "scope": USER},
    {"query": "number n3 policy", "scope": [USER, "tenant:globex"], "profile": "rrf"},
    {"query": "refund", "scope": TENANT, "profile": "symfonic"},
    {"query": "", "scope": USER, "profile": "crewai"},
)


def hashed(dimension: int) -> Embedder:
    """An embedder without a model: each word adds ±1 to one of the places, chosen by its hash."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        rows = np.full((len(texts), dimension), 0.01)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                first, second = blake2b(word.encode(), digest_size=2).digest()
                row[first % dimension] += 1.0 if second & 1 else -1.0
        return rows

    return from_callable(embed, name="hashed", dimension=dimension)


def clock_from(start: datetime = START) -> Callable[[], datetime]:
    """A clock that goes on by a second whenever it is read."""
    ticks = iter(range(10**9))
    return lambda: start + timedelta(seconds=next(ticks))


def opened(path: object, **options: Any) -> rb.Memory:
    """The memory of the scenario, with the embedder its file was written with."""
    given = {"clock": clock_from(), "embedder": hashed(8), **options}
    return rb.Memory.open(path, **given)  # type: ignore[arg-type]


def steps(memory: rb.Memory) -> Iterator[object]:
    """Every kind of write, one acknowledged whenever a value is given."""
    yield memory.remember_many(
        {"text": f"refund number n{n}", "scope": USER, "id": f"n{n}", "links": ["Refunds"],
         "metadata": {"n": n}, "salience": n / 10, "key": f"k{n % 2}"}
        for n in range(6)
    )  # fmt: skip
    yield memory.remember("refund policy", scope=TENANT, id="policy", layer="episodic")
    yield memory.remember("refund number n3 corrected", scope=USER, id="n3")
    yield memory.remember("how it was", scope=USER, id="n3", at=START - timedelta(days=9))
    yield memory.reinforce(["n0", "n3"], scope=USER)
    yield memory.link_many(
        [{"source": "n0", "target": "n1"}, {"source": "n1", "target": "Refunds", "weight": 0.5},
         {"source": "n4", "target": "n5", "kind": "equivalent", "verified": True}],
        scope=USER,
    )  # fmt: skip
    yield memory.forget(["n1", "n2"], scope=USER)
    yield memory.unlink("n0", "n1", scope=USER)
    yield memory.remember("refund number n1 again", scope=USER, id="n1")
    yield memory.remember_many(
        [{"text": "elsewhere", "scope": "tenant:globex", "id": "n0", "layer": "working"},
         {"text": "refund of an order", "scope": USER, "id": "order", "expires": "2027-01-01T00:00:00Z"},
         {"text": "refund of two orders", "scope": USER, "id": "order"}]
    )  # fmt: skip
    yield memory.reinforce("order", scope=USER)


def image(memory: rb.Memory) -> list[str]:
    """Everything a memory holds, comparable."""
    return [json.dumps(line, sort_keys=True) for line in export_lines(memory._engine.catalog)]


def agree(memory: rb.Memory, folder: Path) -> None:
    """Check that a memory answers and explains as one built from scratch from its export does."""
    memory._engine.catalog.check()
    lines = folder / "export.jsonl"
    memory.export(lines)
    stored = memory._engine.catalog.get_meta(EMBEDDER)
    made_by = hashed(int(stored.partition("/")[2])) if stored else hashed(8)
    with rb.Memory.open(":memory:", embedder=made_by, clock=lambda: START) as rebuilt:
        rebuilt.import_(lines)
        assert len(rebuilt) == len(memory)
        ids = sorted({line["id"] for line in export_lines(rebuilt._engine.catalog) if "id" in line})
        for asked in _ASKED:
            found = memory.recall(**asked, top=50, now=START, strict=True)
            expected = rebuilt.recall(**asked, top=50, now=START, strict=True)
            assert found.plain()["matches"] == expected.plain()["matches"]
            for identifier in ids:
                said, due = found.explain(identifier), expected.explain(identifier)
                assert said.plain() == due.plain()

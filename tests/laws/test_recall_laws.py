"""Laws of a whole recall: what must not change an answer, and what must at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.errors import EmbedderMismatchError, EmbeddingError
from rankblend.stores import Observation, Reason, StoreQuery
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER, OTHER = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:8"
WORDS = ("refund", "order", "policy", "tea", "Ana", "bank")
PROFILES = (
    "default",
    "default-sparse",
    "symfonic",
    "rrf",
    "convex",
    "generative-agents",
    "hindsight",
)
EMBEDDER = hashed_embedder(8)

items = st.fixed_dictionaries(
    {
        "text": st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
        "scope": st.sampled_from((TENANT, USER, OTHER)),
        "salience": st.sampled_from((None, 0.0, 0.5)),
        "links": st.lists(st.sampled_from(("m0", "m1", "m2", "Ana")), max_size=2, unique=True),
        "at": st.sampled_from(("2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00")),
        "uses": st.integers(0, 2),
    }
)
worlds = st.lists(items, min_size=1, max_size=9).map(
    lambda found: [{**item, "id": f"m{n}"} for n, item in enumerate(found)]
)
queries = st.sampled_from(("refund order", "Ana", "", "nothing known"))


def opened(stores: Sequence[rb.Store] | None = None, path: str | Path = ":memory:") -> rb.Memory:
    return rb.Memory.open(path, embedder=EMBEDDER, stores=stores, clock=lambda: NOW)


def answer(memory: rb.Memory, query: str, profile: str, **more: Any) -> dict[str, Any]:
    """Everything a recall says but how many each store proposed."""
    plain = memory.recall(query, scope=USER, profile=profile, top=99, **more).plain()
    plain["trace"] = {k: v for k, v in plain["trace"].items() if k != "proposed"}  # type: ignore[attr-defined]
    return plain


@settings(max_examples=40)
@given(world=worlds, query=queries, profile=st.sampled_from(PROFILES), data=st.data())
def test_recall_when_written_in_any_order_and_in_any_portions_then_it_says_the_same(
    world: list[dict[str, Any]], query: str, profile: str, data: st.DataObject
) -> None:
    with opened() as together, opened() as apart:
        together.remember_many(world)
        shuffled = data.draw(st.permutations(world))
        cut = data.draw(st.integers(0, len(shuffled)))
        apart.remember_many(shuffled[:cut])
        for item in shuffled[cut:]:
            apart.remember_many([item])
        first = answer(together, query, profile)
        assert answer(apart, query, profile) == first
        assert answer(together, query, profile) == first


class SilentStore:
    """Emits everything, proposes nothing and never knows an answer."""

    name = "aaa_silent"
    emits = ("cosine", "bm25", "coverage", "activation", "hops", "salience", "uses", "age_updated")

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return ()

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        return Observation(
            {name: np.full(len(ids), np.nan) for name in self.emits},
            {name: np.full(len(ids), Reason.UNKNOWN, np.int8) for name in self.emits},
        )

    def close(self) -> None: ...


@settings(max_examples=40)
@given(world=worlds, query=queries, profile=st.sampled_from(PROFILES))
def test_recall_when_a_store_without_answers_is_added_then_nothing_changes(
    world: list[dict[str, Any]], query: str, profile: str
) -> None:
    with opened() as without, opened([SilentStore(), *rb.default_stores()]) as with_it:
        for memory in (without, with_it):
            memory.remember_many(world)
        assert answer(without, query, profile) == answer(with_it, query, profile)


@settings(max_examples=40)
@given(world=worlds, query=queries, profile=st.sampled_from(PROFILES), top=st.integers(0, 10))
def test_recall_when_fewer_are_asked_for_then_they_are_the_first_of_the_many(
    world: list[dict[str, Any]], query: str, profile: str, top: int
) -> None:
    with opened() as memory:
        memory.remember_many(world)
        many = memory.recall(query, scope=USER, profile=profile, top=99)
        few = memory.recall(query, scope=USER, profile=profile, top=top)
        assert few.matches == many.matches[:top]


@settings(max_examples=40)
@given(world=worlds, query=queries, profile=st.sampled_from(PROFILES), data=st.data())
def test_recall_when_memories_come_and_go_then_they_leave_no_trace(
    world: list[dict[str, Any]], query: str, profile: str, data: st.DataObject
) -> None:
    with opened() as memory, opened() as fresh:
        memory.remember_many(world)
        gone = data.draw(st.lists(st.sampled_from(world), max_size=4, unique_by=lambda i: i["id"]))
        for item in gone:
            memory.forget(item["id"], scope=item["scope"])
        fresh.remember_many([item for item in world if item not in gone])
        assert answer(memory, query, profile) == answer(fresh, query, profile)


@settings(max_examples=40)
@given(world=worlds, query=queries, profile=st.sampled_from(PROFILES))
def test_recall_when_another_users_memories_are_there_then_only_statistics_may_tell(
    world: list[dict[str, Any]], query: str, profile: str
) -> None:
    own = [item for item in world if item["scope"] != OTHER]
    with (
        rb.Memory.open(":memory:", embedder=EMBEDDER, clock=lambda: NOW, statistics="visible") as crowded,
        rb.Memory.open(":memory:", embedder=EMBEDDER, clock=lambda: NOW, statistics="visible") as alone,
    ):  # fmt: skip
        crowded.remember_many(world)
        alone.remember_many(own)
        # With statistics over what is visible, nothing of another user's moves anything.
        assert answer(crowded, query, profile) == answer(alone, query, profile)


@settings(max_examples=15)
@given(world=worlds, query=queries)
def test_recall_when_the_file_is_opened_again_then_it_says_the_same(
    world: list[dict[str, Any]], query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("reopened") / "m.db"
    with opened(path=path) as memory:
        memory.remember_many(world)
        memory.link("m0", "m2", scope=USER)
        before = [answer(memory, query, profile) for profile in PROFILES]
    with opened(path=path) as memory:
        assert [answer(memory, query, profile) for profile in PROFILES] == before


ELSEWHERE = """
import json, sys
import rankblend as rb
path, calls = sys.argv[1], json.loads(sys.argv[2])
with rb.Memory.open(path) as memory:
    for name, positional, named in calls:
        getattr(memory, name)(*positional, **named)
"""


def elsewhere(path: Path, *calls: tuple[str, list[Any], dict[str, Any]]) -> None:
    """Call a memory of the same file in another process, which then ends."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE, str(path), json.dumps(calls)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_recall_when_another_process_writes_then_the_next_question_knows(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with rb.Memory.open(path, clock=lambda: NOW) as memory:
        memory.remember("refund policy", scope=USER, id="mine")
        memory.remember("old tea", scope=USER, id="tea", at="2026-01-01T00:00:00+00:00")
        past = memory.recall("tea", scope=USER, as_of="2026-01-15T00:00:00+00:00")
        assert past.ids == ("tea",)
        elsewhere(
            path,
            ("remember", ["refund of theirs"], {"scope": USER, "id": "theirs", "vector": [1, 0]}),
            ("remember", ["new tea"], {"scope": USER, "id": "tea"}),
            ("link", ["mine", "tea"], {"scope": USER}),
            ("reinforce", ["mine"], {"scope": USER}),
            ("remember", ["refund invisible"], {"scope": OTHER, "id": "hidden"}),
        )
        result = memory.recall("refund", scope=USER, profile="symfonic")
        assert set(result.ids) == {"mine", "theirs", "tea"}
        assert {m.memory.id: m.memory.text for m in result}["tea"] == "new tea"
        assert next(m for m in result if m.memory.id == "mine").memory.uses == 1
        assert next(m for m in result if m.memory.id == "tea").signals.proximity is not None
        assert len(memory) == 4
        assert memory.get("theirs", scope=USER).text == "refund of theirs"
        elsewhere(
            path,
            ("forget", [["theirs", "tea"]], {"scope": USER}),
            ("unlink", ["mine", "tea"], {"scope": USER}),
        )
        assert memory.recall("refund tea", scope=USER).ids == ("mine",)
        assert memory.recall("tea", scope=USER, as_of="2026-01-15T00:00:00+00:00").ids == ()
        # Both write in turn: nothing is lost, and ids of one are no new memories of the other.
        memory.remember("refund policy, revised", scope=USER, id="mine")
        elsewhere(
            path, ("remember", ["refund policy, revised twice"], {"scope": USER, "id": "mine"})
        )
        assert len(memory) == 2
        assert memory.get("mine", scope=USER).text == "refund policy, revised twice"


@pytest.mark.parametrize("dimension", [2, 3])
def test_recall_when_another_process_reembeds_then_old_and_new_vectors_never_meet(
    tmp_path: Path, dimension: int
) -> None:
    path = tmp_path / "m.db"

    def old(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0]] * len(texts)

    embedder = rb.embedders.from_callable(old, name="old", dimension=2)
    with (
        rb.Memory.open(path, clock=lambda: NOW, embedder=embedder) as memory,
        rb.Memory.open(path, clock=lambda: NOW) as reader,
    ):
        memory.remember("refund policy", scope=USER, id="mine")
        assert memory.recall("refund", scope=USER).ids == ("mine",)
        reader.recall("refund", scope=USER)
        script = ELSEWHERE + (
            "    new = rb.embedders.from_callable(\n"
            f"        lambda t: [[1] * {dimension}] * len(t), name='new', dimension={dimension})\n"
            "    memory.reembed(new)\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, str(path), "[]"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        # Its questions cannot be compared with these vectors any more, and its own must not join them.
        result = memory.recall("refund", scope=USER)
        assert result.ids == ("mine",)
        assert result[0].signals.similarity is None
        assert [(f.store, f.kind) for f in result.trace.failures] == [("embedder", "EmbedderMismatchError")]  # fmt: skip
        with pytest.raises((EmbedderMismatchError, EmbeddingError)):
            memory.remember("refund of today", scope=USER)
        # Without an embedder, everything goes on.
        reader.remember("refund of today", scope=USER, id="new", vector=[1.0] * dimension)
        assert set(reader.recall("refund", scope=USER, strict=True).ids) == {"mine", "new"}
        assert len(memory) == 2

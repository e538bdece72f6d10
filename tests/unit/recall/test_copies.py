"""What a memory returns can be sent elsewhere: pickled and copied, equal, and detached from it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rankblend as rb

SCOPE, OTHER = "tenant:acme/user:7", "tenant:globex"
COPIERS: dict[str, Callable[[Any], Any]] = {
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "pickled as of old": lambda value: pickle.loads(pickle.dumps(value, protocol=2)),
    "deeply copied": copy.deepcopy,
    "copied": copy.copy,
}
PENALIZED = """
name = "penalized"
extends = "default"
[select]
duplicate_penalty = 0.3
max_tokens = 50
"""


@pytest.fixture(scope="module")
def penalized(tmp_path_factory: pytest.TempPathFactory) -> rb.RankingProfile:
    """A profile that needs the vectors and lengths of the candidates."""
    path = tmp_path_factory.mktemp("profiles") / "penalized.toml"
    path.write_text(PENALIZED, encoding="utf-8")
    return rb.load_profile(path)


@pytest.fixture
def memory() -> Iterator[rb.Memory]:
    memory = rb.Memory.open(":memory:")
    for n in range(30):
        memory.remember(
            f"refund number {n}",
            scope=SCOPE,
            id=f"n{n}",
            vector=[1.0, n, 0.5],
            metadata={"tags": ["a", {"b": n}]} if n % 2 else None,
            expires="2099-01-01T00:00:00+00:00",
            links=["Rome"],
        )
    memory.remember("REFUND SECRET", scope="tenant:hidden/user:mallory", id="hidden-id")
    memory.remember("refund elsewhere", scope=OTHER, id="o")
    yield memory
    memory.close()


def results(memory: rb.Memory, profile: rb.RankingProfile) -> dict[str, Any]:
    """One of everything that a recall gives."""
    recall = memory.recall("refund number", scope=[SCOPE, OTHER], top=5)
    blended = memory.recall("refund number", scope=[SCOPE, OTHER], profile="symfonic")
    penalized = memory.recall("refund", scope=SCOPE, profile=profile)
    first, last = recall.ids[0], recall.ids[-1]
    return {
        "recall": recall,
        "as of": memory.recall("refund", scope=SCOPE, as_of="2098-01-01T00:00:00+00:00"),
        "blank": memory.recall("", scope=SCOPE),
        "empty": memory.recall("refund", scope="tenant:nobody"),
        "blended": blended,
        "penalized": penalized,
        "match": recall[0],
        "memory": memory.get("n3", scope=SCOPE),
        "without metadata": memory.get("n2", scope=SCOPE),
        "comparison": recall.compare(blended),
        "explanation": recall.explain(first),
        "explanation of one below": recall.explain("n29"),
        "explanation of an absence": recall.explain("nobody"),
        "swap": recall.swap(last, first),
        "trace": recall.trace,
        "verdicts": recall.ranking.verdicts,
        "profile": recall.profile,
        "signals": recall[0].signals,
    }


@pytest.mark.parametrize("copier", COPIERS)
def test_results_when_copied_then_equal_and_the_same_to_look_at(
    memory: rb.Memory, penalized: rb.RankingProfile, copier: str
) -> None:
    for name, value in results(memory, penalized).items():
        copied = COPIERS[copier](value)
        assert copied == value, name
        assert type(copied) is type(value), name
        assert repr(copied) == repr(value), name
        if hasattr(value, "plain"):
            assert copied.plain() == value.plain(), name
        if isinstance(value, rb.Recall | rb.Match):
            assert hash(copied) == hash(value), name


@pytest.mark.parametrize("copier", ["pickled", "deeply copied"])
def test_recall_when_copied_then_it_explains_compares_and_swaps_without_its_memory(
    memory: rb.Memory, copier: str
) -> None:
    recall = memory.recall("refund number", scope=SCOPE, top=5)
    other = memory.recall("refund number", scope=SCOPE, top=5, profile="rrf")
    told = [recall.explain(each) for each in recall.ranking.candidates.ids]
    moves, swap = recall.compare(other), recall.swap(recall.ids[4], recall.ids[0])
    copied, other_copied = COPIERS[copier]([recall, other])
    memory.close()
    assert [copied.explain(each) for each in copied.ranking.candidates.ids] == told
    assert copied.compare(other_copied) == moves
    assert copied.swap(recall.ids[4], recall.ids[0]) == swap
    for name in ("scores", "rank_scores", "gates", "order", "shown", "rows"):
        np.testing.assert_array_equal(getattr(copied.ranking, name), getattr(recall.ranking, name))
    # Whether somebody who was not considered can be seen only the memory knows.
    assert copied.explain("hidden-id").verdict.startswith("not considered")


def test_recall_when_pickled_then_nothing_that_was_not_considered_goes_with_it(
    memory: rb.Memory, penalized: rb.RankingProfile
) -> None:
    for value in results(memory, penalized).values():
        raw = pickle.dumps(value)
        for planted in (b"SECRET", b"hidden", b"mallory"):
            assert planted not in raw
    # A single match takes nothing of the others with it.
    match = pickle.dumps(memory.recall("refund number", scope=SCOPE, top=1)[0])
    assert b"number 0" in match or len(match) < 10_000


def test_metadata_of_a_copy_when_written_to_then_refused_as_in_the_original(
    memory: rb.Memory,
) -> None:
    for copier in COPIERS.values():
        copied = copier(memory.get("n3", scope=SCOPE))
        with pytest.raises(TypeError):
            copied.metadata["more"] = 1

"""An embedder that raises, hangs or returns rubbish: nothing of it is stored or believed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_parts import finished, raising
from scenario import SECRET, USER, agree, hashed, image, steps
from scenario import opened as opened_scenario

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.errors import EmbeddingError, StoreFailedError


@pytest.mark.parametrize(
    "fails",
    [
        raising,
        lambda texts: np.full((len(texts), 2), np.nan),
        lambda texts: np.ones((len(texts), 3)),
        lambda texts: np.zeros((len(texts), 2)),
        lambda texts: np.ones((len(texts) + 1, 2)),
    ],
)
def test_recall_when_the_embedder_fails_then_keywords_answer_and_strict_raises(
    opened: Callable[..., rb.Memory], fails: Callable[..., Any]
) -> None:
    behaviour: list[Callable[..., Any]] = [lambda texts: np.ones((len(texts), 2))]
    embedder = from_callable(lambda texts: behaviour[-1](texts), name="moody", dimension=2)
    memory = opened(embedder=embedder)
    behaviour.append(fails)
    result = memory.recall("refund", scope=USER)
    assert set(result.ids) == {"a", "b"}
    assert [(f.store, f.during, f.kind) for f in result.trace.failures] == [
        ("embedder", "embed", "EmbeddingError")
    ]
    assert {m.signals.similarity for m in result} == {None}
    with pytest.raises(StoreFailedError, match="'embedder' failed during embed") as failed:
        memory.recall("refund", scope=USER, strict=True)
    assert "4711" not in f"{failed.value} {failed.value.__cause__}"
    # A blank query asks no embedder.
    assert not memory.recall("", scope=USER, strict=True).degraded


def test_recall_when_a_store_hangs_in_the_embedder_then_similarity_is_absent(
    opened: Callable[..., rb.Memory], release: threading.Event
) -> None:
    asked = threading.Event()

    def embed(texts: Sequence[str]) -> np.ndarray:
        if asked.is_set():
            release.wait()
        return np.ones((len(texts), 2))

    memory = opened(embedder=from_callable(embed, name="slow", dimension=2), store_timeout=0.5)
    asked.set()
    result = finished(lambda: memory.recall("refund", scope=USER))
    assert ("embedder", "embed") in [(f.store, f.during) for f in result.trace.failures]
    assert {m.signals.similarity for m in result} == {None}


def late(texts: Sequence[str], *, error: type[BaseException] = OSError) -> np.ndarray:
    """Good for the first words, then fails in the middle of a batch."""
    if any("n4" in text for text in texts):
        raise error(SECRET)
    return np.ones((len(texts), 8))


RUBBISH: dict[str, Callable[[Sequence[str]], Any]] = {
    "not a number": lambda t: np.full((len(t), 8), np.nan),
    "one NaN": lambda t: np.where(np.arange(8) == 3, np.nan, np.ones((len(t), 8))),
    "infinity": lambda t: np.full((len(t), 8), np.inf),
    "zero vectors": lambda t: np.zeros((len(t), 8)),
    "too small to have a direction": lambda t: np.full((len(t), 8), 5e-324),
    "too large": lambda t: np.full((len(t), 8), 1e308),
    "another length": lambda t: np.ones((len(t), 7)),
    "no length": lambda t: np.ones((len(t), 0)),
    "fewer rows": lambda t: np.ones((len(t) - 1, 8)),
    "more rows": lambda t: np.ones((len(t) + 1, 8)),
    "one row for all": lambda t: np.ones(8),
    "a number": lambda t: 1.0,
    "nothing": lambda t: None,
    "text": lambda t: [["a"] * 8] * len(t),
    "numbers as text": lambda t: np.full((len(t), 8), "1.0"),
    "objects": lambda t: np.full((len(t), 8), object()),
    "complex": lambda t: np.ones((len(t), 8), complex),
    "truth values": lambda t: np.ones((len(t), 8), bool),
    "ragged": lambda t: [[1.0] * (8 + n % 2) for n, _ in enumerate(t)] + [[1.0]],
    "a generator": lambda t: ([1.0] * 8 for _ in t),
    "raises": raising,
    "raises late": late,
    "raises StopIteration": lambda t: next(iter(())),
}  # fmt: skip


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_write_when_the_embedder_returns_rubbish_then_nothing_is_stored_and_the_error_is_ours(
    tmp_path: Path, rubbish: str
) -> None:
    behaviour: list[Callable[..., Any]] = [hashed(8)]
    embedder = from_callable(lambda texts: behaviour[-1](texts), name="hashed", dimension=8)
    with opened_scenario(":memory:", embedder=embedder) as memory:
        for _ in steps(memory):
            pass
        before = image(memory)
        behaviour.append(RUBBISH[rubbish])
        many = [{"text": f"refund number n{n}", "scope": USER, "id": f"x{n}"} for n in range(6)]
        for write in (
            lambda: memory.remember_many(many),
            lambda: memory.remember("refund number n4", scope=USER, id="x"),
            lambda: memory.reembed(from_callable(behaviour[-1], name="other", dimension=8)),
        ):
            with pytest.raises(EmbeddingError) as refused:
                write()
            assert "refund" not in str(refused.value)
            assert "4711" not in str(refused.value)
        assert image(memory) == before
        behaviour.append(hashed(8))
        agree(memory, tmp_path)
        memory.remember_many(many)
        agree(memory, tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_write_when_the_embedder_wants_out_then_it_gets_out_and_nothing_is_stored(
    tmp_path: Path, error: type[BaseException]
) -> None:
    behaviour: list[Callable[..., Any]] = [hashed(8)]
    embedder = from_callable(lambda texts: behaviour[-1](texts), name="hashed", dimension=8)
    with opened_scenario(":memory:", embedder=embedder) as memory:
        memory.remember("refund number n1", scope=USER, id="n1")
        before = image(memory)
        behaviour.append(lambda texts: late(texts, error=error))
        with pytest.raises(error):
            memory.remember_many(
                [{"text": f"refund number n{n}", "scope": USER} for n in range(600)],
                progress=lambda done: None,
            )
        with pytest.raises(error):
            memory.recall("n4", scope=USER)
        assert image(memory) == before
        behaviour.append(hashed(8))
        agree(memory, tmp_path)


def test_write_when_the_embedder_changes_its_texts_then_what_was_given_is_stored(
    tmp_path: Path,
) -> None:
    def meddling(texts: list[str]) -> np.ndarray:
        rows = hashed(8)(list(texts))
        texts[:] = ["something else"] * len(texts)
        return np.asarray(rows)

    embedder = from_callable(meddling, name="hashed", dimension=8)
    with opened_scenario(":memory:", embedder=embedder) as memory:
        for _ in steps(memory):
            pass
        agree(memory, tmp_path)
        assert memory.get("n0", scope=USER).text == "refund number n0"

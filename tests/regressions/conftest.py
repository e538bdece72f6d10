"""A memory whose embeddings a test chooses, and profiles as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

import rankblend as rb
from rankblend.profiles import read_profile

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Ages:
    """Moments before the present of these tests."""

    now = NOW

    @staticmethod
    def days(count: float) -> datetime:
        return NOW - timedelta(days=count)


@pytest.fixture
def ago() -> Ages:
    return Ages()


@pytest.fixture
def opened() -> Iterator[Callable[..., rb.Memory]]:
    """Open memories; ``says`` gives the embedding of a text, any other text has one unlike all."""
    memories: list[rb.Memory] = []

    def make(says: Mapping[str, Sequence[float]] | None = None, **options: object) -> rb.Memory:
        def embed(texts: Sequence[str]) -> NDArray[np.float64]:
            return np.array([(says or {}).get(text, (0, 0, 0, 1)) for text in texts], np.float64)

        given = {"clock": lambda: NOW, "embedder": embed if says is not None else None, **options}
        memory = rb.Memory.open(":memory:", **given)  # type: ignore[arg-type]
        memories.append(memory)
        return memory

    yield make
    for memory in memories:
        memory.close()


@pytest.fixture
def recipe() -> Callable[[str], rb.RankingProfile]:
    """A profile whose signals are all there; the test says how they are weighed."""
    signals = """
        [signals.keyword]
        evidence = "bm25"
        curve = { saturation = { c = 6 } }
        [signals.similarity]
        evidence = "cosine"
        curve = "clip"
        [signals.recency]
        evidence = "age_updated"
        curve = { half_life = { days = 7 } }
        [signals.frequency]
        evidence = "uses"
        curve = "log_saturation"
        [signals.salience]
        evidence = "salience"
        [signals.proximity]
        evidence = "hops"
        curve = "reciprocal"
    """
    return lambda text: read_profile(signals + text)

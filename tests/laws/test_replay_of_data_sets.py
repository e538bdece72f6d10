"""Recordings of real data sets replay to the live recalls, for every shipped profile, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve

import rankblend as rb
from rankblend.experiment.datasets import Dataset, load_locomo, load_musique
from rankblend.experiment.evaluate import remember_dataset
from rankblend.experiment.recording import Recording, record
from rankblend.profiles import load_profile, profile_names
from rankblend.recall import Ranking, rank_candidates
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "locomo": lambda shared: load_locomo(shared / "data/locomo/locomo10.json"),
    "musique": lambda shared: load_musique(shared / "data/musique"),
}


def slice_of(dataset: Dataset, *, queries: int, memories: int) -> Dataset:
    """The first memories with the links between them, and the first questions about them."""
    kept = dataset.memories[:memories]
    ids = {str(memory["id"]) for memory in kept}
    asked = [query for query in dataset.queries if ids >= query.relevant.keys()]
    return evolve(
        dataset,
        memories=kept,
        links={scope: links[: 4 * memories] for scope, links in dataset.links.items()},
        queries=tuple(asked[:queries]),
    )


@contextmanager
def remembered(dataset: Dataset, out: Path) -> Iterator[tuple[rb.Memory, Recording]]:
    with rb.Memory.open(
        ":memory:", embedder=hashed_embedder(32), allow_subtree=True, clock=lambda: NOW
    ) as memory:
        remember_dataset(memory, dataset)
        yield memory, record(memory, dataset, out=out, now=NOW)


def told(ranking: Ranking) -> list[tuple[str, float, float]]:
    """The whole order, with scores that are compared to the bit."""
    return [
        (ranking.candidates.ids[ranking.rows[row]], ranking.scores[row], ranking.rank_scores[row])
        for row in ranking.order.tolist()
    ]


def assert_replays(dataset: Dataset, out: Path) -> None:
    assert dataset.queries
    with remembered(dataset, out) as (memory, recording):
        for query, recorded in zip(dataset.queries, recording, strict=True):
            for name in profile_names():
                live = memory.recall(
                    query.text, scope=query.scope, reach=dataset.reach, profile=name,
                    now=query.now or NOW,
                ).ranking  # fmt: skip
                profile = load_profile(name)
                candidates = recorded.candidates(profile)
                replayed = rank_candidates(profile, candidates)
                assert candidates.ids == live.candidates.ids, (query.id, name)
                assert told(replayed) == told(live), (query.id, name)
                assert replayed.shown.tolist() == live.shown.tolist(), (query.id, name)


@pytest.mark.parametrize("name", LOADERS)
def test_replay_of_a_slice_when_every_shipped_profile_is_run_then_it_is_the_live_recall(
    shared: Path, tmp_path: Path, name: str
) -> None:
    assert_replays(slice_of(LOADERS[name](shared), queries=2, memories=300), tmp_path / "r.arrow")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), [("locomo", 24), ("musique", 5)])
def test_replay_of_a_data_set_when_every_shipped_profile_is_run_then_it_is_the_live_recall(
    shared: Path, tmp_path: Path, name: str, every: int
) -> None:
    whole = LOADERS[name](shared)
    assert_replays(evolve(whole, queries=whole.queries[::every]), tmp_path / "r.arrow")

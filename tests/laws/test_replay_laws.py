"""A replay is the recall it stands for: same candidates, same evidence, same scores, same order."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.experiment.datasets import Dataset, JudgedQuery
from rankblend.experiment.recording import RecordedQuery, record
from rankblend.profiles import Pool, RankingProfile, Select, load_profile, profile_names
from rankblend.recall import Candidates, Ranking, rank_candidates
from rankblend.relevance import Neutral, Renormalize, Require, Scope, ScopeBlend, Shrink, Zero
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER, OTHER = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:8"
SESSION = "tenant:acme/user:7/session:1"
WORDS = ("refund", "order", "policy", "tea", "Ana", "bank")
EMBEDDER = hashed_embedder(8)
DEPTH = 12  # seeds are each store's ten best, whatever the pool

links = st.one_of(
    st.sampled_from(("m0", "m1", "m2", "Ana")),
    st.sampled_from(("m0", "m1", "m3")).map(
        lambda target: {"target": target, "kind": "equivalent", "verified": True}
    ),
)
items = st.fixed_dictionaries(
    {
        "text": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        "scope": st.sampled_from((TENANT, USER, OTHER, SESSION)),
        "layer": st.sampled_from(("semantic", "episodic", "procedural")),
        "salience": st.sampled_from((None, 0.0, 0.5)),
        "confidence": st.sampled_from((None, 0.25, 1.0)),
        "review": st.sampled_from((None, "confirmed", "flagged")),
        "links": st.lists(links, max_size=2, unique_by=str),
        "at": st.sampled_from(("2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00")),
        "uses": st.integers(0, 2),
    }
)
worlds = st.lists(items, min_size=1, max_size=14).map(
    lambda found: [{**item, "id": f"m{n}"} for n, item in enumerate(found)]
)
questions = st.lists(
    st.tuples(
        st.sampled_from(("refund order", "Ana", "", "nothing known", "tea bank policy")),
        st.sampled_from((TENANT, USER, SESSION)),
    ),
    min_size=1,
    max_size=3,
)
blends = st.builds(
    ScopeBlend,
    st.sampled_from(("off", "blend", "backfill")),
    st.sampled_from((0.5, 1.0, 1e9)),
    st.sampled_from((0.0, 0.5, 1.0)),
)
policies = st.sampled_from(
    (Renormalize(), Zero(), Neutral(0.5), Shrink(0.2, 0.5), Require(0.5), Require(1.0))
)


@st.composite
def profiles(draw: st.DrawFn) -> RankingProfile:
    """A shipped profile with another pool, blend, selection and missing policy."""
    base = load_profile(draw(st.sampled_from(profile_names())))
    size = draw(st.sampled_from((1, 2, 5, DEPTH)))
    score = base.score
    if score.compose in ("weighted_mean", "weighted_sum"):
        weights = draw(
            st.lists(st.sampled_from((0.0, 0.3, 0.7, 1.0)), min_size=len(score.weights),
                     max_size=len(score.weights))
        )  # fmt: skip
        named = [(name, weight) for (name, _), weight in zip(score.weights, weights, strict=True)]
        score = type(score)(score.compose, named, missing=draw(policies), absent=score.absent)
    return evolve(
        base,
        score=score,
        must_sum_to={},
        pool=Pool(size, draw(st.sampled_from((size, size + 3, 100)))),
        scope=draw(blends),
        select=Select(
            draw(st.sampled_from((None, 0, 2))),
            draw(st.sampled_from((None, 6))),
            draw(st.sampled_from((0.0, 0.5))),
            draw(st.sampled_from((0.0, 0.3))),
        ),
    )


def dataset(asked: list[tuple[str, str]]) -> Dataset:
    queries = tuple(
        JudgedQuery(f"q{number}", text, Scope.parse(scope), {"m0": 1.0}, now=NOW)
        for number, (text, scope) in enumerate(asked)
    )
    return Dataset("law", "none", (), {}, queries, reach="ancestors")


def told(candidates: Candidates) -> dict[str, Any]:
    """Everything that is known of some candidates."""
    return {
        "keys": tuple(candidates.keys),
        "distances": candidates.distances.tolist(),
        "layers": tuple(candidates.layers),
        "groups": candidates.groups.tolist(),
        "evidence": {
            name: [(c.store, c.values.tobytes(), c.reasons.tolist()) for c in columns]
            for name, columns in candidates.evidence.items()
        },
        "vectors": None if candidates.vectors is None else candidates.vectors.tobytes(),
        "tokens": None if candidates.tokens is None else candidates.tokens.tolist(),
    }


def order(ranking: Ranking) -> list[tuple[str, str, str]]:
    """Ids with scores and rank scores to the bit, best first."""
    ids = [ranking.candidates.ids[row] for row in ranking.rows.tolist()]
    return [
        (ids[row], float(ranking.scores[row]).hex(), float(ranking.rank_scores[row]).hex())
        for row in ranking.order.tolist()
    ]


def same_as_live(
    memory: rb.Memory, query: JudgedQuery, recorded: RecordedQuery, profile: RankingProfile
) -> None:
    live = memory.recall(query.text, scope=query.scope, profile=profile, now=NOW).ranking
    candidates = recorded.candidates(profile)
    assert told(candidates) == told(live.candidates)
    again = rank_candidates(profile, candidates)
    assert order(again) == order(live)
    assert again.shown.tolist() == live.shown.tolist()


anything = {
    "world": worlds, "asked": questions, "recipes": st.lists(profiles(), min_size=1, max_size=3)
}  # fmt: skip


@settings(max_examples=8)
@given(**anything)
def test_replay_when_any_profile_is_run_on_any_memory_then_it_is_the_live_recall(
    world: list[dict[str, Any]], asked: list[tuple[str, str]], recipes: list[RankingProfile]
) -> None:
    replayed_is_live(world, asked, recipes)


@pytest.mark.slow
@settings(max_examples=200)
@given(**anything)
def test_replay_when_many_profiles_are_run_on_many_memories_then_it_is_the_live_recall(
    world: list[dict[str, Any]], asked: list[tuple[str, str]], recipes: list[RankingProfile]
) -> None:
    replayed_is_live(world, asked, recipes)


def replayed_is_live(
    world: list[dict[str, Any]], asked: list[tuple[str, str]], recipes: list[RankingProfile]
) -> None:
    data = dataset(asked)
    with (
        tempfile.TemporaryDirectory() as folder,
        rb.Memory.open(":memory:", embedder=EMBEDDER, clock=lambda: NOW) as memory,
    ):
        memory.remember_many(world)
        recording = record(
            memory, data, out=Path(folder) / "r.arrow", profiles=recipes, depth=DEPTH, now=NOW
        )
        for query, recorded in zip(data.queries, recording, strict=True):
            for profile in recipes:
                same_as_live(memory, query, recorded, profile)


@settings(max_examples=6)
@given(world=worlds, asked=questions)
def test_record_when_memory_is_asked_then_nothing_in_it_changes(
    world: list[dict[str, Any]], asked: list[tuple[str, str]]
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        rb.Memory.open(":memory:", embedder=EMBEDDER, clock=lambda: NOW) as memory,
    ):
        memory.remember_many(world)
        before = [memory.get(item["id"], scope=item["scope"]) for item in world]
        recording = record(
            memory, dataset(asked), out=Path(folder) / "r.arrow", profiles=["default"], now=NOW
        )
        assert [memory.get(item["id"], scope=item["scope"]) for item in world] == before
        for query in recording:
            columns = query.candidates(load_profile("default")).evidence.values()
            for column in (one for stores in columns for one in stores):
                # Absent is absent: never a number beside a reason for its absence.
                assert (np.isnan(column.values) == (column.reasons != 0)).all()

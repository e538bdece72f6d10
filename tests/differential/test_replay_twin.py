"""Many weightings counted at once, beside `rank_candidates` one profile and one query at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from rankblend.experiment.datasets import JudgedQuery
from rankblend.experiment.measures import Judgments, measure_rankings
from rankblend.experiment.plans import AllObserved, Arm, Unheld
from rankblend.experiment.recording import Manifest, RecordedStore, Recording
from rankblend.experiment.recording._arrow import Unfinished, rows_to_batch
from rankblend.experiment.recording._gather import MemoryRow, Row
from rankblend.experiment.replay import _blocks as ranks
from rankblend.experiment.replay import _tables as stacks
from rankblend.experiment.replay import replay
from rankblend.profiles import Floor, Floors, Pool, RankingProfile, Select, SignalRecipe
from rankblend.recall import StoredMemory, rank_candidates
from rankblend.relevance import (
    MissingPolicy,
    Neutral,
    Node,
    Renormalize,
    Require,
    Required,
    Scope,
    ScopeBlend,
    Shrink,
    Zero,
)
from rankblend.stores import Key, Reason, Record

MEASURES = ("nDCG@3", "R@5", "AP", "RR", "P@5", "Success@2", "Judged@5")
EVIDENCE = {
    "catalog": ("salience", "confidence", "review", "maturity"),
    "words": ("bm25", "coverage"),
    "more": ("coverage",),
}
SCOPES = tuple(map(Scope.parse, ("tenant:a/user:1", "tenant:a", "tenant:a/user:1/session:1")))
VALUES = (0.0, 0.25, 0.3, 0.5, 1.0, 1e-300, 0.1 + 0.2)
SIGNALS = {
    "salience": SignalRecipe("salience"),
    "confidence": SignalRecipe("confidence"),
    "review": SignalRecipe("review"),
    "keyword": SignalRecipe("bm25", curve={"saturation": {"c": 6}}),
    "coverage": SignalRecipe("coverage"),
    "ranked": SignalRecipe("bm25", curve="rank"),
    "either": SignalRecipe(of=("coverage", "salience"), curve="first_present"),
}
NODES = {
    "words": Node("weighted_mean", {"keyword": 0.5, "coverage": 0.2}),
    "lists": Node("reciprocal_rank_fusion", {"keyword": 1, "salience": 1}, missing=Zero()),
    "strong": Node("strongest", {"words": 1, "review": 1}),
}
INPUTS = (*SIGNALS, *NODES)


def manifest(queries: int, candidates: int) -> Manifest:
    stores = tuple(RecordedStore(name, "Random", emits, emits) for name, emits in EVIDENCE.items())
    return Manifest(
        dataset="random", licence="none", dataset_hash="", queries=queries, excluded={},
        memories=candidates, embedder=None, statistics="root", reach="ancestors", stores=stores,
        seedings=(tuple(EVIDENCE),), depth=candidates, levels=2, now=0.0, arguments="{}",
        rankblend="0",
    )  # fmt: skip


def random_recording(
    path: Path, seed: int, *, queries: int = 6, most: int = 40, values: Sequence[float] = VALUES
) -> Recording:
    """Values from a small set, so that scores tie; some texts and links make equivalents."""
    rng = np.random.default_rng(seed)
    told = manifest(queries, most)
    rows = []
    for number in range(queries):
        n = int(rng.integers(0, most)) if number else 0  # the first has no candidates at all
        names = sorted(rng.choice(1000, n, replace=False).astype(str).tolist())
        distance = rng.integers(0, 3, n).astype(np.int32)
        twins = rng.integers(0, n, 2) if n > 4 and number % 3 == 1 else []
        memories = tuple(
            MemoryRow(
                Key(SCOPES[far], name), "semantic",
                7 if position in twins else position + 100, int(rng.integers(1, 9)),
                np.empty(0, np.float32),
            )
            for position, (name, far) in enumerate(zip(names, distance.tolist(), strict=True))
        )  # fmt: skip
        proposed = {}
        for store in EVIDENCE:
            for level in ("", "@0", "@1"):
                proposed[f"proposed:{store}{level}"] = rng.permutation(n)[: n // 2].astype(np.int32)
        columns = {}
        for store, emits in EVIDENCE.items():
            for name in emits:
                column = rng.choice(values, n) * (20.0 if name == "bm25" else 1.0)
                column[rng.random(n) < 0.3] = np.nan
                columns[f"{store}.{name}"] = column
        relevant = {name: float(rng.integers(0, 4)) for name in names[:: max(n // 8, 1)]}
        rows.append(
            Row(
                JudgedQuery(
                    f"q{number}", "" if number == 2 else "words", SCOPES[0],
                    relevant | {"never": 1.0} if number != 3 else {},
                ),
                0.0, memories, distance,
                np.array([0, 1] if n > 4 and number == 4 else [], np.int32),
                proposed, columns,
                {name: np.where(np.isnan(column), Reason.UNKNOWN, Reason.PRESENT).astype(np.int8)
                 for name, column in columns.items()},
            )
        )  # fmt: skip
    unfinished = Unfinished(path)
    unfinished.begin(told)
    unfinished.put(0, rows_to_batch(rows, lambda key: StoredMemory.of(Record(key, ""))))
    unfinished.finish(told)
    return Recording.open(path)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    folder = tmp_path_factory.mktemp("recordings")
    return [random_recording(folder / f"{seed}.arrow", seed) for seed in range(4)]


weights = st.sampled_from((0.0, 0.2, 0.5, 1.0, 3.0, 1e-320, 1e300))
policies = st.sampled_from(
    (Renormalize(), Zero(), Neutral(0.3), Shrink(0.2, 0.5), Shrink(0.7, 0.0), Require(0.5))
)
overrides = st.sampled_from((Required(), Zero(), Neutral(0.5)))


@st.composite
def families(draw: st.DrawFn) -> list[RankingProfile]:
    """Profiles that differ in the weights of their score only."""
    inputs = draw(st.lists(st.sampled_from(INPUTS), min_size=1, max_size=10, unique=True))
    absent = draw(st.dictionaries(st.sampled_from(inputs), overrides, max_size=2))
    compose = draw(st.sampled_from(("weighted_mean", "weighted_sum")))
    missing = draw(policies)
    relative = {"ranked", "lists"} & set(inputs)
    least = None if relative else draw(st.sampled_from((None, 0.25, 0.5)))
    floors = Floors(
        least,
        draw(
            st.dictionaries(
                st.sampled_from(("coverage", "salience")),
                st.builds(Floor, st.sampled_from((0.0, 0.3)), st.sampled_from(("pass", "drop"))),
                max_size=1,
            )
        ),
    )
    scope = ScopeBlend(
        draw(st.sampled_from(("off", "blend", "backfill"))),
        draw(st.sampled_from((0.5, 1.0, 1e9))),
        draw(st.sampled_from((0.0, 0.5))),
    )
    ties = draw(st.lists(st.sampled_from(("salience", "review")), max_size=2, unique=True))
    size = draw(st.sampled_from((1, 5, 40)))
    pool = Pool(size, draw(st.sampled_from((size, 100))))
    rows = draw(
        st.lists(
            st.lists(weights, min_size=len(inputs), max_size=len(inputs)), min_size=1, max_size=5
        )
    )
    return [
        RankingProfile(
            f"w{number}",
            Node(compose, zip(inputs, row, strict=True), missing=missing, absent=absent),
            signals=SIGNALS, nodes=NODES, floors=floors, scope=scope, ties=tuple(ties), pool=pool,
        )
        for number, row in enumerate(rows)
    ]  # fmt: skip


def one_by_one(recording: Recording, arm: Arm, top: int) -> dict[str, np.ndarray]:
    """The reference: every result in full, every measure of every result."""
    rankings = []
    for query in recording:
        ranking = rank_candidates(
            arm.profile,
            query.candidates(arm.profile, observe=arm.observe, regime=arm.regime,
                             without_stores=arm.without_stores),
            top=top,
        )  # fmt: skip
        rankings.append([ranking.candidates.ids[ranking.rows[row]] for row in ranking.shown])
    judgments = Judgments(recording.ids, tuple(query.grades for query in recording))
    found = measure_rankings(MEASURES, rankings, judgments)
    return {**found, "empty": np.array([not ranking for ranking in rankings])}


def assert_same(recording: Recording, arms: list[Arm], top: int) -> None:
    results = replay(recording, arms, MEASURES, top=top)
    assert not results.not_run
    for number, arm in enumerate(arms):
        expected = one_by_one(recording, arm, top)
        assert results.empty[number].tolist() == expected.pop("empty").tolist()
        for name, values in expected.items():
            np.testing.assert_array_equal(results.values[name][number], values, err_msg=name)


@settings(max_examples=25)
@given(family=families(), which=st.integers(0, 3), top=st.sampled_from((1, 3, 100)))
def test_replay_of_weightings_when_beside_one_by_one_then_the_same(
    recordings: list[Recording], family: list[RankingProfile], which: int, top: int
) -> None:
    assert_same(recordings[which], [Arm(one.name, one) for one in family], top)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(family=families(), which=st.integers(0, 3), top=st.sampled_from((1, 3, 100)))
def test_replay_of_many_weightings_when_beside_one_by_one_then_the_same(
    recordings: list[Recording], family: list[RankingProfile], which: int, top: int
) -> None:
    assert_same(recordings[which], [Arm(one.name, one) for one in family], top)


@settings(max_examples=10)
@given(
    family=families(), which=st.integers(0, 3), observe=st.booleans(),
    regime=st.sampled_from((AllObserved(), Unheld("words", 0.5))),
    without=st.sampled_from(((), ("words",), ("catalog", "more"))),
)  # fmt: skip
def test_replay_under_a_regime_when_beside_one_by_one_then_the_same(
    recordings: list[Recording],
    family: list[RankingProfile],
    which: int,
    observe: bool,
    regime: AllObserved | Unheld,
    without: tuple[str, ...],
) -> None:
    arms = [
        Arm(one.name, one, observe=observe, regime=regime, without_stores=without) for one in family
    ]
    assert_same(recordings[which], arms, 100)


def test_replay_of_weightings_when_more_than_one_part_then_the_same(
    recordings: list[Recording],
) -> None:
    rng = np.random.default_rng(3)
    base = RankingProfile(
        "base", Node("weighted_mean", dict.fromkeys(INPUTS[:5], 1.0)), signals=SIGNALS, nodes=NODES,
        scope=ScopeBlend("blend"), pool=Pool(40, 100), ties=("salience",),
    )  # fmt: skip
    arms = [
        Arm(
            f"w{number}",
            evolve(base, score=Node("weighted_mean", zip(INPUTS[:5], row, strict=True))),
        )
        for number, row in enumerate(rng.choice((0.0, 0.5, 1.0), (260, 5)).tolist())
    ]
    assert_same(recordings[1], arms, 100)


# Apart by more or by less than single precision can tell; and by the last bit of double precision.
CLOSE = (0.5, *(0.5 + 2.0**-power for power in (8, 16, 20, 21, 22, 23, 24, 30, 45, 53)), 0.75)


@pytest.mark.parametrize(
    "missing", [Renormalize(), Zero(), Neutral(0.5), Shrink(0.5, 0.25)], ids=lambda one: str(one)
)
@pytest.mark.parametrize("scope", ["off", "backfill"])
def test_replay_when_scores_are_close_then_the_same(
    missing: MissingPolicy, scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "_CELLS", 64)  # several stacks, several parts of arms
    monkeypatch.setattr(ranks, "_CELLS", 256)
    recording = random_recording(tmp_path / "close.arrow", 11, queries=9, most=90, values=CLOSE)
    rng = np.random.default_rng(4)
    inputs = ("salience", "confidence", "review", "coverage")
    arms = [
        Arm(
            f"w{number}",
            RankingProfile(
                "close", Node("weighted_mean", zip(inputs, row, strict=True), missing=missing),
                signals={name: SIGNALS[name] for name in inputs}, scope=ScopeBlend(scope),
                pool=Pool(90, 200),
            ),
        )
        for number, row in enumerate(rng.dirichlet(np.ones(4), 12).tolist())
    ]  # fmt: skip
    assert_same(recording, arms, 100)


@pytest.mark.parametrize("select", [Select(duplicate_penalty=0.5), Select(max_tokens=9)])
def test_replay_when_more_than_scores_decides_then_one_by_one(
    recordings: list[Recording], select: Select
) -> None:
    profile = RankingProfile(
        "capped", Node("weighted_mean", {"keyword": 1, "salience": 1}), signals=SIGNALS,
        select=select, pool=Pool(40, 100),
    )  # fmt: skip
    assert_same(recordings[2], [Arm("capped", profile)], 100)

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

import rankblend as rb
from rankblend.errors import (
    InvalidArgumentError,
    MemoryContractError,
    RecordingError,
    UnknownNameError,
)
from rankblend.experiment.datasets import Dataset, JudgedQuery
from rankblend.experiment.measures import Judgments, measure_rankings
from rankblend.experiment.plans import Arm, Plan
from rankblend.experiment.recording import Recording, record
from rankblend.experiment.replay import replay
from rankblend.experiment.results import Results
from rankblend.profiles import (
    Floors,
    Pool,
    RankingProfile,
    SignalRecipe,
    load_profile,
    profile_names,
)
from rankblend.recall import Serving
from rankblend.relevance import Node, Scope
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 3, 1, tzinfo=UTC)
USER = Scope.parse("tenant:acme/user:7")
TEXTS = ("refund policy", "refund order", "tea order", "bank transfer", "policy of Ana", "Ana")
DEFAULT = load_profile("default")
MEASURES = ("nDCG@10", "R@2", "AP", "RR", "Judged@10")


@pytest.fixture(scope="module")
def memory() -> Iterator[rb.Memory]:
    with rb.Memory.open(":memory:", embedder=hashed_embedder(8), clock=lambda: NOW) as opened:
        opened.remember_many(
            {"id": f"m{number}", "text": f"{text} {number}", "scope": USER, "links": ["m1"],
             "confidence": 0.5}
            for number, text in enumerate(TEXTS * 3)
        )  # fmt: skip
        yield opened


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    queries = tuple(
        JudgedQuery(f"q{number}", "" if number == 3 else text, USER,
                    {f"m{number}": 2.0, f"m{number + 6}": 1.0} if number != 4 else {},
                    "family", f"cluster{number % 3}")
        for number, text in enumerate(TEXTS)
    )  # fmt: skip
    return Dataset("acme", "none", (), {}, queries, reach="ancestors")


@pytest.fixture(scope="module")
def recording(
    memory: rb.Memory, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    out = tmp_path_factory.mktemp("recording") / "r.arrow"
    return record(memory, dataset, out=out, now=NOW)


def same(one: Results, other: Results) -> bool:
    return one.to_json() == other.to_json()


def test_replay_when_all_shipped_profiles_are_run_then_measured_as_live_recalls(
    recording: Recording, memory: rb.Memory, dataset: Dataset
) -> None:
    results = replay(recording, profile_names(), MEASURES, top=5)
    judgments = Judgments(recording.ids, tuple(dict(q.relevant) for q in dataset.queries))
    assert results.arms == profile_names()
    for number, name in enumerate(profile_names()):
        rankings = [
            memory.recall(query.text, scope=USER, profile=name, top=5, now=NOW).ids
            for query in dataset.queries
        ]
        for measure, values in measure_rankings(MEASURES, rankings, judgments).items():
            np.testing.assert_array_equal(results.values[measure][number], values)
        assert results.empty[number].tolist() == [not ranking for ranking in rankings]
    assert results.judged.tolist() == [True, True, True, True, False, True]
    assert np.isnan(results.measure("AP")[:, 4]).all()


def test_replay_when_a_measure_has_no_kernel_then_by_ir_measures(recording: Recording) -> None:
    results = replay(recording, "default", ("IPrec@0.5", "nDCG@10"))
    assert set(results.values) == {"IPrec@0.5", "nDCG@10"}
    alone = replay(recording, "default", ("nDCG@10",))
    np.testing.assert_array_equal(results.measure("nDCG@10"), alone.measure("nDCG@10"))
    with pytest.raises(InvalidArgumentError, match="no installed provider"):
        replay(recording, "default", ("RBP(p=0.5)",))


def test_replay_when_a_plan_is_given_then_baseline_first_and_skipped_are_not_run(
    recording: Recording,
) -> None:
    plan = Plan(
        Arm("default", DEFAULT),
        [
            Arm("heavy", DEFAULT.with_weights({"words": 3.0})),
            Arm("no graph", DEFAULT, without_stores=("graph",)),
        ],
        ("score.weights", "replay.without_stores"),
        skipped={"impossible": "needs what is not there"},
    )
    results = replay(recording, plan)
    assert results.arms == ("default", "heavy", "no graph")
    assert results.hashes == tuple(arm.hash for arm in plan.all_arms)
    assert results.hashes[0] == DEFAULT.hash
    assert results.not_run == {"impossible": "needs what is not there"}
    assert same(results, Results.from_json(results.to_json()))


def test_replay_when_an_arm_cannot_run_then_not_run_and_never_zero(recording: Recording) -> None:
    deeper = evolve(DEFAULT, pool=Pool(1_000, 1_000))
    results = replay(recording, {"deeper": deeper, "default": DEFAULT})
    assert "pool.size 1000" in results.not_run["deeper"]
    assert np.isnan(results.measure("nDCG@10")[0]).all()
    assert np.isnan(results.mean("nDCG@10")[0])
    assert not results.empty[0].any()
    assert results.mean("nDCG@10")[1] > 0
    with pytest.raises(RecordingError, match=r"pool.size 1000"):
        replay(recording, {"deeper": deeper})


def test_replay_when_stores_disagree_against_the_profile_then_not_run(
    dataset: Dataset, tmp_path: Path
) -> None:
    other = rb.SignalStore(
        "other", lambda ids: {name: {"confidence": 0.9} for name in ids}, emits=["confidence"]
    )
    signals = {
        "sure": SignalRecipe("confidence", merge="error"),
        "words": SignalRecipe("coverage"),
    }
    strict = RankingProfile("strict", Node.of("weighted_mean", *signals), signals=signals)
    with rb.Memory.open(":memory:", stores=[*rb.default_stores(), other]) as memory:
        memory.remember("refund policy", scope=USER, id="m0", confidence=0.5)
        recording = record(memory, dataset, out=tmp_path / "r.arrow", profiles=["rrf"], now=NOW)
        with pytest.raises(MemoryContractError) as live:
            memory.recall("refund", scope=USER, profile=strict)
    results = replay(recording, [strict, "rrf"])
    assert results.not_run == {"strict": str(live.value)}
    assert np.isnan(results.measure("nDCG@10")[0]).all()


def test_replay_when_coverage_is_asked_then_the_share_of_weight_that_was_present(
    recording: Recording,
) -> None:
    signals = {
        "sure": SignalRecipe("confidence"),
        "important": SignalRecipe("salience"),
        "words": SignalRecipe("coverage"),
    }
    for compose in ("weighted_mean", "geometric_mean"):  # run together, and one by one
        profile = RankingProfile(
            "labels", Node(compose, {"sure": 3, "important": 1, "words": 4}), signals=signals
        )
        coverage = replay(recording, [profile]).coverage
        assert coverage is not None
        np.testing.assert_allclose(coverage, 7 / 8)


def test_replay_when_reranking_is_admitted_then_the_rerank_score_serves(
    recording: Recording, memory: rb.Memory
) -> None:
    profile = load_profile("relevance-rerank")
    off = replay(recording, [profile], MEASURES)
    on = replay(recording, [profile], MEASURES, reranker=lambda _: Serving("rerank", "admitted"))
    assert profile.rerank is not None
    # The pool is that of both scores; a question without words keeps its baseline.
    position = recording.ids.index("q3")
    for name in on.values:
        assert on.values[name][0, position] == off.values[name][0, position]
    assert not same(on, off)


@pytest.mark.slow
def test_replay_when_split_over_processes_then_the_same(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path
) -> None:
    many = evolve(
        dataset,
        queries=tuple(
            evolve(query, id=f"{query.id}.{turn}")
            for turn in range(24)
            for query in dataset.queries
        ),
    )
    recording = record(memory, many, out=tmp_path / "r.arrow", profiles=["rrf"], now=NOW)
    assert recording.block_count == 2
    arms = [DEFAULT, DEFAULT.with_weights({"words": 2.0}), load_profile("rrf")]
    named = {str(number): arm for number, arm in enumerate(arms)}
    done: list[int] = []
    alone = replay(recording, named, MEASURES, progress=done.append)
    assert done == [128, 16]
    assert same(replay(recording, named, MEASURES, n_jobs=2), alone)
    assert same(replay(recording, named, MEASURES), alone)  # from what the first one kept


@pytest.mark.slow
def test_replay_when_on_a_dask_cluster_then_the_same(recording: Recording) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
    joblib = pytest.importorskip("joblib")
    alone = replay(recording, ["default", "rrf"], MEASURES)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert same(replay(recording, ["default", "rrf"], MEASURES, n_jobs=2), alone)


def test_replay_when_the_graph_keeps_other_seeds_then_the_results_say_so(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path
) -> None:
    recording = record(memory, dataset, out=tmp_path / "r.arrow", profiles=["rrf"], now=NOW)
    results = replay(recording, ["default", "rrf"])
    (remark,) = results.manifest["notes"]["default"]
    assert "the graph keeps the recorded seeds of" in remark
    assert "rrf" not in results.manifest["notes"]
    assert json.loads(results.to_json())["manifest"]["dataset"] == "acme"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"profiles": []}, "at least one"),
        ({"profiles": [DEFAULT, DEFAULT]}, "name of more than one"),
        ({"profiles": "default", "top": 0}, "top"),
        ({"profiles": "default", "n_jobs": 0}, "n_jobs"),
        ({"profiles": "default", "measures": ["nonsense"]}, "measures"),
    ],
)
def test_replay_when_arguments_are_wrong_then_told(
    recording: Recording, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        replay(recording, **arguments)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError):
        replay(recording, "no such profile")


def test_replay_when_reranking_is_admitted_then_not_for_a_query_without_words(
    recording: Recording,
) -> None:
    """Candidates of such a query come from the catalog alone; its baseline orders them."""
    signals = {"age": SignalRecipe("age_created", curve={"half_life": {"days": 1}}),
               "sure": SignalRecipe("confidence")}  # fmt: skip
    profile = RankingProfile(
        "upside down", Node.of("weighted_mean", "age"), signals=signals,
        rerank=Node("weighted_mean", {"sure": 1}), reranking="relevance",
        floors=Floors(0.75),
    )  # fmt: skip
    results = replay(recording, [profile], reranker=lambda _: Serving("rerank", "admitted"))
    blank = recording.ids.index("q3")
    # Every age is 0 and scores 1, every confidence is .5: only the baseline passes the floor.
    assert results.empty[0].tolist() == [number != blank for number in range(len(recording))]

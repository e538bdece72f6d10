"""Replaying weightings of recorded signals, beside a loop of numpy, ranx and ir-measures (P3, P4).

A thousand queries with 150 candidates and 5 signals, each present for 100 of them, to nDCG@10. What
each side reads is made ready beforehand: the signals as arrays or runs, the recording opened. ranx
knows no absent score, its sum counts it as 0; the loop of numpy divides by what is present, as we
do, and our results are held against it.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version

import numpy as np
import pytest

from rankblend.experiment.replay import replay
from signal_recordings import SIGNALS, make_profiles, make_recording, make_weights, make_world

MEASURE, CUTOFF = "nDCG@10", 10
SIZE = "1,000 queries × 150 candidates × 5 signals"
LOOP = f"1,000 weightings, {SIZE}"
RANX = f"100 weightings, {SIZE}, beside ranx"
IR_MEASURES = f"100 weightings, {SIZE}, beside ir-measures"
MANY, FEW = 1_000, 100
LEAST = 5e-324  # divides what no signal says anything of: 0


@pytest.fixture(scope="module")
def world():
    return make_world()


@pytest.fixture(scope="module")
def recording(world, tmp_path_factory):
    return make_recording(world, tmp_path_factory.mktemp("replay") / "signals.arrow")


def by_hand(world, weights):
    """nDCG@10 of every weighting and query, shape (k, q): a masked loop as one would write it."""
    values, present = np.nan_to_num(world.signals), (~np.isnan(world.signals)).astype(float)
    grades = np.array([[of.get(name, 0.0) for name in world.ids] for of in world.grades])
    discounts = 1.0 / np.log2(np.arange(2, CUTOFF + 2))
    best = [sorted(of.values(), reverse=True)[:CUTOFF] for of in world.grades]
    ideal = np.array([np.dot(gains, discounts[: len(gains)]) for gains in best])

    def measured():
        found = np.empty((len(weights), len(values)))
        for row, weighting in zip(found, weights, strict=True):
            scores = (values @ weighting) / np.maximum(present @ weighting, LEAST)
            top = np.argpartition(-scores, CUTOFF, axis=1)[:, :CUTOFF]
            order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
            gains = np.take_along_axis(grades, np.take_along_axis(top, order, axis=1), axis=1)
            row[:] = (gains @ discounts) / ideal
        return found

    return measured


def replayed(benchmark, world, recording, k, *, rounds):
    weights = make_weights(k)
    profiles = make_profiles(weights)
    for profile in profiles.values():
        assert profile.hash  # a name for the results, made once for a profile
    results = benchmark.pedantic(
        replay, args=(recording, profiles, [MEASURE]), rounds=rounds, warmup_rounds=1
    )
    np.testing.assert_allclose(results.measure(MEASURE), by_hand(world, weights)(), atol=1e-12)


@pytest.mark.benchmark(group=LOOP)
def test_reference_masked_loop_of_numpy(benchmark, world):
    benchmark.extra_info["reference"] = True
    benchmark.pedantic(by_hand(world, make_weights(MANY)), rounds=3, warmup_rounds=0)


@pytest.mark.benchmark(group=LOOP)
def test_replay_of_a_thousand_weightings(benchmark, world, recording):
    benchmark.extra_info["target"] = "<= 1.2 x"
    replayed(benchmark, world, recording, MANY, rounds=3)


@pytest.mark.benchmark(group=RANX)
def test_reference_ranx_fuse_and_evaluate(benchmark, world):
    ranx = pytest.importorskip("ranx", reason="needs benchmarks/peers/requirements.txt")
    benchmark.extra_info |= {"reference": True, "ranx": version("ranx")}
    runs = [
        ranx.Run(
            {
                f"q{query}": {
                    name: float(value)
                    for name, value in zip(world.ids, column, strict=True)
                    if value == value
                }
                for query, column in enumerate(world.signals[:, :, at])
            }
        )
        for at in range(len(SIGNALS))
    ]
    qrels = ranx.Qrels(
        {f"q{n}": {name: int(grade) for name, grade in of.items()}
         for n, of in enumerate(world.grades)}
    )  # fmt: skip
    weightings = make_weights(FEW).tolist()

    def loop(given):
        for weights in given:
            fused = ranx.fuse(runs=runs, norm=None, method="wsum", params={"weights": weights})
            ranx.evaluate(qrels, fused, "ndcg@10")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's, about casts in ranx
        loop(weightings[:1])  # compiles
        benchmark.pedantic(loop, args=(weightings,), rounds=1, warmup_rounds=0)


@pytest.mark.benchmark(group=RANX)
def test_replay_of_a_hundred_weightings_beside_ranx(benchmark, world, recording):
    benchmark.extra_info["target"] = ">= 100 x faster"
    replayed(benchmark, world, recording, FEW, rounds=30)


@pytest.mark.benchmark(group=IR_MEASURES)
def test_reference_ir_measures_of_numpy_scores(benchmark, world):
    import ir_measures

    benchmark.extra_info |= {"reference": True, "ir-measures": version("ir-measures")}
    values, present = np.nan_to_num(world.signals), (~np.isnan(world.signals)).astype(float)
    qrels = {f"q{n}": {name: int(grade) for name, grade in of.items()}
             for n, of in enumerate(world.grades)}  # fmt: skip
    evaluator = ir_measures.evaluator([ir_measures.parse_measure(MEASURE)], qrels)

    def loop():
        for weighting in make_weights(FEW):
            scores = (values @ weighting) / np.maximum(present @ weighting, LEAST)
            run = {f"q{query}": dict(zip(world.ids, row, strict=True))
                   for query, row in enumerate(scores.tolist())}  # fmt: skip
            evaluator.calc_aggregate(run)

    benchmark.pedantic(loop, rounds=3, warmup_rounds=0)


@pytest.mark.benchmark(group=IR_MEASURES)
def test_replay_of_a_hundred_weightings_beside_ir_measures(benchmark, world, recording):
    benchmark.extra_info["target"] = ">= 60 x faster"
    replayed(benchmark, world, recording, FEW, rounds=30)

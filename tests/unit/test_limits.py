"""Every number that costs time or memory has its bounds in one place, held before any work."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import rankblend as rb
from rankblend.checks import Problems
from rankblend.cli.app import run
from rankblend.embedders import checked
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.ablation import ablate
from rankblend.experiment.evaluate import evaluate
from rankblend.experiment.fit import calibrate_curve, fit_weights, grouped_folds, tune_cutoff
from rankblend.experiment.inference import bootstrap_intervals, group_units, sign_flip_test
from rankblend.experiment.ledger import split_clusters
from rankblend.experiment.measures import parse_measures
from rankblend.experiment.plans import (
    Disjoint,
    Range,
    Unheld,
    grid,
    guided_search,
    random_search,
    random_weights,
    store_dropout,
)
from rankblend.experiment.recording import Recording, record
from rankblend.experiment.release import measure_overhead, measure_release
from rankblend.experiment.replay import replay
from rankblend.limits import LIMITS, Limit, beyond, check
from rankblend.profiles import load_profile

FIXTURE = Path(__file__).parents[1] / "fixtures" / "0.1.0" / "recording.arrow"
DEFAULT = load_profile("default")
RERANKING = load_profile("relevance-rerank")
NOTHING: Any = None
SPACE = {"scope.half_life_levels": Range(1.0, 2.0)}
ROWS = np.array([[0.1, 0.2, 0.3]])
WORDING = r"expected an integer from -?[\d,]+ to [\d,]+(, or -1 for all)?, got .+$"

HITS = np.array([True, False, True, False])
SHARES = np.array([0.1, 0.2, 0.9, 0.3])
CLUSTERS = ["a", "b", "c", "d"]


def weights_fitted(**numbers: Any) -> object:
    return fit_weights(
        DEFAULT, lambda profiles: np.zeros((len(profiles), 4)), queries=CLUSTERS,
        clusters=CLUSTERS, measure="nDCG@10", **numbers,
    )  # fmt: skip


CALLS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "intervals": (lambda **n: bootstrap_intervals(ROWS, group_units(3), **n), ("resamples", "seed")),
    "flips": (lambda **n: sign_flip_test(ROWS, group_units(3), **n), ("resamples", "seed")),
    "guided search": (
        lambda **n: guided_search(DEFAULT, SPACE, NOTHING, **{"trials": 1, **n}),
        ("trials", "batch", "seed"),
    ),
    "random search": (
        lambda **n: random_search(DEFAULT, SPACE, **{"count": 1, **n}), ("count", "seed"),
    ),
    "random weights": (lambda **n: random_weights(DEFAULT, **{"count": 1, **n}), ("count", "seed")),
    "stores left out": (lambda **n: store_dropout(DEFAULT, ["vectors"], **n), ("most",)),
    "a store lacks": (lambda **n: Unheld("vectors", 0.5, **n), ("seed",)),
    "stores divided": (lambda **n: Disjoint(("vectors", "keywords"), **n), ("seed",)),
    "folds": (lambda **n: grouped_folds(CLUSTERS, **n), ("folds", "seed")),
    "weights": (weights_fitted, ("folds", "starts", "seed")),
    "cutoff": (lambda **n: tune_cutoff(SHARES, HITS, CLUSTERS, **n), ("folds", "seed")),
    "calibration": (
        lambda **n: calibrate_curve(SHARES, HITS, CLUSTERS, curve="power", **n), ("folds", "seed"),
    ),
    "split": (lambda **n: split_clusters(CLUSTERS, **n), ("seed",)),
    "replay": (lambda **n: replay(Recording.open(FIXTURE), "default", **n), ("top", "n_jobs")),
    "ablation": (
        lambda **n: ablate(Recording.open(FIXTURE), DEFAULT, **n), ("top", "n_jobs", "seed"),
    ),
    "release": (lambda **n: measure_release(NOTHING, RERANKING, **n), ("seed",)),
    "overhead": (lambda **n: measure_overhead(RERANKING, **n), ("memories", "pool", "rounds")),
    "evaluation": (lambda **n: evaluate(NOTHING, NOTHING, "default", **n), ("top",)),
    "embedding": (
        lambda **n: checked(lambda texts: np.ones((len(texts), 2)), ["a"], **n), ("batch_size",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "name"), [(call, name) for call, (_, names) in CALLS.items() for name in names]
)
def test_number_when_beyond_its_limit_then_refused_in_one_wording_before_any_work(
    call: str, name: str
) -> None:
    limit = LIMITS[name]
    wrong = [-(10**30), limit.least - 1, limit.most + 1, 10**9999, 1.5, float("nan"), True, "7"]
    wrong = [value for value in wrong if value != limit.every]
    for value in (*wrong, *((-2,) if limit.every is not None else ())):
        with pytest.raises(InvalidArgumentError) as refused:
            CALLS[call][0](**{name: value})
        assert any(re.match(f"{name}: {WORDING}", line) for line in refused.value.problems), value


def test_numbers_when_several_are_wrong_then_all_are_told() -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        guided_search(DEFAULT, {}, NOTHING, trials=0, batch=-1, seed=-1)
    assert [line.split(":")[0] for line in refused.value.problems] == [
        "trials", "batch", "seed", "space",
    ]  # fmt: skip


def test_numbers_when_they_are_numpys_then_taken() -> None:
    check(resamples=np.int64(5), seed=np.uint8(0), folds=np.array(2))
    assert beyond(seed=np.bool_(True))
    assert beyond(folds=np.array([2]))


def test_limit_when_every_one_may_be_meant_then_said() -> None:
    told = Limit(1, 4, every=-1)
    assert str(told) == "1 to 4, or -1 for all"
    problems = Problems()
    for fine in (-1, 1, 4):
        told.hold(problems, "n", fine)
    told.hold(problems, "n", None, optional=True)
    assert problems.clean
    told.hold(problems, "n", 5)
    assert problems.lines == ["n: expected an integer from 1 to 4, or -1 for all, got 5"]
    assert LIMITS["n_jobs"].most <= (os.cpu_count() or 1)


def test_grid_when_its_points_are_too_many_then_refused_without_making_them() -> None:
    values = {f"select.top{n}": range(1_000) for n in range(12)}
    with pytest.raises(InvalidArgumentError, match=r"^points: expected an integer from 1"):
        grid(DEFAULT, values)
    with pytest.raises(InvalidArgumentError, match=r"^points: expected an integer from 1"):
        grid(DEFAULT, {})


@pytest.mark.parametrize("cutoff", ["0", "1000001", "99999999999999999999"])
def test_measure_when_its_cutoff_is_beyond_the_limit_then_refused(cutoff: str) -> None:
    with pytest.raises(InvalidArgumentError, match="measures: expected names"):
        parse_measures([f"nDCG@{cutoff}"])


def test_replay_when_results_may_be_a_million_deep_then_memory_follows_the_candidates() -> None:
    recording = Recording.open(FIXTURE)
    deep = replay(recording, "default", ["AP", "nDCG@1000000"], top=1_000_000)
    usual = replay(recording, "default", ["AP", "nDCG@1000000"], top=1_000)
    for name, values in usual.values.items():
        np.testing.assert_array_equal(deep.values[name], values)


def test_recall_when_top_is_beyond_the_limit_then_refused() -> None:
    with rb.Memory.open(":memory:", embedder=None) as memory:
        for top in (-1, 1_000_001, 10**30, True, 1.5):
            with pytest.raises(InvalidArgumentError, match=f"^top: {WORDING}"):
                memory.recall("anything", scope="a:b", top=cast("int", top))
        assert memory.recall("anything", scope="a:b", top=0).ids == ()


def test_record_when_depth_is_beyond_the_limit_then_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=f"^depth: {WORDING}"):
        record(NOTHING, _NoQueries(), out="nowhere.arrow", depth=0, profiles=[])  # type: ignore[arg-type]


class _NoQueries:
    queries = (None,)


@pytest.mark.parametrize(
    ("command", "flag", "limit"),
    [
        ("ablate", "--jobs", "n_jobs"),
        ("compare", "--jobs", "n_jobs"),
        ("replay", "--jobs", "n_jobs"),
        ("fit", "--seed", "seed"),
        ("fit", "--folds", "folds"),
        ("record", "--depth", "depth"),
        ("recall", "--top", "shown"),
        ("release", "--days", "days"),
        ("reasonlets recall", "--top", "procedures"),
        ("reasonlets pending", "--limit", "page"),
    ],
)
def test_option_when_beyond_its_limit_then_one_line_and_help_says_the_same(
    command: str, flag: str, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds = LIMITS[limit]
    given = {
        "fit": ["x.rec", "--out", "x.toml"], "record": ["x", "--dataset", "jsonl", "--out", "y"],
        "recall": ["q", "--db", "x.db", "--scope", "a:b"],
        "release": ["--recording", "x", "--reranker", "y"],
        "reasonlets recall": ["q", "--db", "x.db", "--scope", "a:b"],
        "reasonlets pending": ["--db", "x.db", "--scope", "a:b"],
    }.get(command, ["x.rec"])  # fmt: skip
    for value in (bounds.least - 1, bounds.most + 1, 5 * 10**25):
        with pytest.raises(SystemExit) as ended:
            run([*command.split(), *given, flag, str(value)])
        (line,) = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2
        assert line.startswith(f"error: {flag}: expected an integer from {bounds}, got ")
    with pytest.raises(SystemExit):
        run([*command.split(), "--help"])
    shown = re.sub(r"[\s│|]+", " ", capsys.readouterr().out)
    assert f"({bounds})" in shown

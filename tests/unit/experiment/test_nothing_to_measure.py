"""What has nothing to score by is not run, in every outcome: never 0, never a pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rankblend as rb
from rankblend.cli.app import run
from rankblend.errors import InvalidArgumentError, RecordingError
from rankblend.experiment.datasets import Dataset, JudgedQuery
from rankblend.experiment.evaluate import remember_dataset
from rankblend.experiment.fit import fit_weights
from rankblend.experiment.gate import GateVerdict, judge_results
from rankblend.experiment.inference import compare
from rankblend.experiment.recording import Recording, record
from rankblend.experiment.release import measure_release
from rankblend.experiment.replay import replay
from rankblend.profiles import RankingProfile, SignalRecipe
from rankblend.relevance import Neutral, Node, Scope, Zero
from rankblend.stores.keywords import KeywordStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOME = Scope.parse("tenant:a")
WORDS = ("plum", "pear", "fig", "date", "lime", "kiwi", "nut", "corn")

SIGNALS = {
    "words": SignalRecipe("coverage"),
    "alike": SignalRecipe("cosine", curve="clip"),  # no store of the recording emits it
    "near": SignalRecipe("hops", curve="reciprocal"),  # nor this
}


def profile_of(name: str, *inputs: str, **node: Any) -> RankingProfile:
    return RankingProfile(name, Node.of("weighted_mean", *inputs, **node), signals=SIGNALS)


GOOD = profile_of("good", "words")
UNRECORDED = profile_of("unrecorded", "alike")
BLIND = {
    "renormalize": UNRECORDED,
    "zero": profile_of("zero", "alike", missing=Zero()),
    "neutral": profile_of("neutral", "alike", missing=Neutral(0.5)),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    memories = [
        {"id": word, "text": f"{word} and {other}", "scope": HOME}
        for word, other in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True)
    ]
    queries = tuple(
        JudgedQuery(f"q{n}", word, HOME, {word: 1.0}, "fruit", word) for n, word in enumerate(WORDS)
    )
    dataset = Dataset("own", "own", tuple(memories), {}, queries, reach="ancestors")
    out = tmp_path_factory.mktemp("recording") / "words.arrow"
    with rb.Memory.open(":memory:", embedder=None, stores=[KeywordStore()], clock=lambda: NOW) as m:
        remember_dataset(m, dataset)
        record(m, dataset, out=out, now=NOW, profiles=[GOOD, *BLIND.values()])
    return out


@pytest.fixture(scope="module")
def recording(path: Path) -> Recording:
    return Recording.open(path)


@pytest.mark.parametrize("name", BLIND)
def test_replay_when_a_profile_has_nothing_to_score_by_then_not_run(
    recording: Recording, name: str
) -> None:
    results = replay(recording, {"good": GOOD, "blind": BLIND[name]}, ["nDCG@10", "R@3"])
    assert list(results.not_run) == ["blind"]
    for table in results.values.values():
        assert np.isnan(table[1]).all()
        assert not np.isnan(table[0]).any()
    with pytest.raises(InvalidArgumentError, match="an arm that ran beside the baseline"):
        compare(results)
    with pytest.raises(InvalidArgumentError, match="did not run"):
        compare(results, baselines="blind")


@pytest.mark.parametrize("name", BLIND)
def test_gate_when_one_side_has_nothing_to_score_by_then_shut(
    recording: Recording, name: str
) -> None:
    for arms in ({"good": GOOD, "blind": BLIND[name]}, {"blind": BLIND[name], "good": GOOD}):
        found = judge_results(replay(recording, arms), min_effect=0.9)
        assert not found.passed
        assert {row.verdict for row in found.rows} == {GateVerdict.NOT_RUN}
        assert all("blind" in row.words for row in found.rows)


def test_gate_when_both_sides_ran_then_as_ever(recording: Recording) -> None:
    found = judge_results(replay(recording, {"good": GOOD, "same": GOOD}), min_effect=0.1)
    assert found.passed


def test_replay_when_no_profile_has_anything_recorded_then_an_error(recording: Recording) -> None:
    with pytest.raises(RecordingError, match="its score reads nothing that was recorded"):
        replay(recording, [UNRECORDED])


def test_fit_when_nothing_is_recorded_then_no_weights(recording: Recording) -> None:
    def evaluate(profiles: Sequence[RankingProfile]) -> NDArray[np.float64]:
        arms = {str(number): one for number, one in enumerate(profiles)}
        return replay(recording, arms, ["nDCG@10"]).measure("nDCG@10")

    with pytest.raises(RecordingError, match="reads nothing that was recorded"):
        fit_weights(
            profile_of("blind", "alike", "near"), evaluate, queries=recording.ids,
            clusters=recording.clusters, measure="nDCG@10",
        )  # fmt: skip


def test_release_when_nothing_is_recorded_then_refused(recording: Recording) -> None:
    signals = {name: SIGNALS[name] for name in ("alike", "near")}
    profile = RankingProfile(
        "blind", Node.of("weighted_mean", "alike"), signals=signals,
        rerank=Node.of("weighted_mean", "near"), reranking="relevance",
    )  # fmt: skip
    with pytest.raises(RecordingError):
        measure_release(recording, profile, overhead=0.0)


def test_commands_when_nothing_is_recorded_then_nothing_passes(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def code(*arguments: object) -> object:
        with pytest.raises(SystemExit) as ended:
            run(list(map(str, arguments)))
        return ended.value.code

    blind, other = tmp_path / "blind.toml", tmp_path / "other.toml"
    for file in (blind, other):
        file.write_text(
            '[score]\ncompose = "weighted_mean"\nof = ["alike", "weighty"]\n'
            '[signals.alike]\nevidence = "cosine"\ncurve = "clip"\n'
            '[signals.weighty]\nevidence = "cosine"\ncurve = "clip"\n'
        )
    for baseline, candidate in ((blind, other), ("default", blind), (blind, "default")):
        assert code("gate", path, "--baseline", baseline, "--candidate", candidate) == 3
        assert "its score reads nothing that was recorded" in " ".join(
            " ".join(capsys.readouterr()).split()
        )
        assert code("gate", path, "--baseline", baseline, "--candidate", candidate, "--json") == 3
        told = capsys.readouterr().out
        assert not told or json.loads(told)["passed"] is False
    reranking = tmp_path / "reranking.toml"
    reranking.write_text(
        'reranking = "relevance"\n'
        + blind.read_text()
        + '[rerank]\ncompose = "weighted_mean"\nof = ["alike"]\n'
    )
    folder = tmp_path / "evidence"
    assert code("release", "--recording", path, "--reranker", reranking, "--ledger", folder) == 3
    assert not list(folder.glob("*.json"))
    assert code("fit", path, "--out", tmp_path / "fitted.toml", "--profile", blind) == 2
    assert not (tmp_path / "fitted.toml").exists()

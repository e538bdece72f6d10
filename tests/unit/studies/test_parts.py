"""What the studies are made of, each beside a slow or obvious twin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from studies.auc import stratified_aucs
from studies.draws import stacked
from studies.embedders import KeptVectors
from studies.hierarchies import placed, whereabouts
from studies.outcome import decimals, judged, listed, signed
from studies.reproductions import measure_set
from studies.success import PREDICTORS, path, predictions, task_kind

from rankblend.experiment.datasets import Dataset, JudgedQuery, TaskRun
from rankblend.experiment.inference import Contrast, Interval
from rankblend.experiment.results import Results
from rankblend.relevance import Scope


def conversations(count: int = 3, sessions: int = 4) -> Dataset:
    """Conversations of sessions with two turns each; one question about each conversation's ends."""
    root = Scope.parse("dataset:made-up")
    memories, queries = [], []
    for c in range(count):
        for s in range(sessions):
            scope = root / f"conversation:{c}" / f"session:{s}"
            for t in range(2):
                text = f"turn {t} of session {s} about topic{c}"
                memories.append({"id": f"{c}:{s}:{t}", "text": text, "scope": scope})
        relevant = {f"{c}:0:0": 1.0, f"{c}:{sessions - 1}:0": 1.0}
        queries.append(
            JudgedQuery(f"q{c}", f"topic{c} session 0", root / f"conversation:{c}", relevant)
        )
    return Dataset("made-up", "none", tuple(memories), {}, tuple(queries))


@pytest.mark.parametrize(("share", "shared"), [(0.0, 0), (0.5, 2), (0.7, 2), (1.0, 4)])
def test_placed_when_a_share_goes_up_then_whole_sessions_of_each_conversation_do(
    share: float, shared: int
) -> None:
    before, after = conversations(), placed(conversations(), share)
    assert after.reach == "ancestors"
    moved: dict[str, set[str]] = {}
    for old, new in zip(before.memories, after.memories, strict=True):
        assert new["scope"] in (old["scope"].root, old["scope"].parent)
        assert new["id"] == old["id"]
        if len(new["scope"]) == 1:
            moved.setdefault(str(old["scope"].parent), set()).add(str(old["scope"]))
    counts = [len(moved.get(str(query.scope), ())) for query in before.queries]
    assert counts == [shared] * 3
    twins = {str(old["scope"]): len(new["scope"])
             for old, new in zip(before.memories, after.memories, strict=True)}  # fmt: skip
    assert all(twins[str(old["scope"])] == len(new["scope"])
               for old, new in zip(before.memories, after.memories, strict=True))  # fmt: skip


def test_placed_when_the_seed_changes_then_others_go_up() -> None:
    one, again, other = (placed(conversations(9, 8), 0.5, seed=seed) for seed in (0, 0, 1))
    assert one.memories == again.memories
    assert one.memories != other.memories


def test_whereabouts_when_asked_then_they_are_those_of_the_relevant_memories() -> None:
    dataset = placed(conversations(8, 4), 0.5)
    depth = {memory["id"]: len(memory["scope"]) for memory in dataset.memories}
    for query, label in zip(dataset.queries, whereabouts(dataset), strict=True):
        found = {depth[identifier] for identifier in query.relevant}
        assert found == {"near": {2}, "shared": {1}, "both": {1, 2}}[label]
    assert set(whereabouts(placed(conversations(), 0.0))) == {"near"}
    assert set(whereabouts(placed(conversations(), 1.0))) == {"shared"}


def test_auc_when_compared_with_counting_pairs_then_equal(rng: np.random.Generator) -> None:
    scores = rng.integers(0, 4, (2, 40)).astype(np.float64)
    successes = rng.random(40) < 0.4
    strata = [str(n) for n in rng.integers(0, 3, 40)]
    own, gaps = stratified_aucs(
        scores, successes, strata=strata, clusters=[str(n // 2) for n in range(40)], resamples=200
    )
    for row, auc, gap in zip(scores, own, gaps, strict=True):
        won = [
            (row[i] > row[j]) + 0.5 * (row[i] == row[j])
            for i in range(40)
            for j in range(40)
            if successes[i] and not successes[j] and strata[i] == strata[j]
        ]
        assert auc.value == pytest.approx(np.mean(won))
        assert auc.pairs == len(won)
        assert auc.low <= auc.value <= auc.high
        assert gap.value == pytest.approx(auc.value - own[0].value)
    assert (gaps[0].low, gaps[0].high) == (0.0, 0.0)


def test_auc_when_a_score_only_tells_the_stratum_then_nothing_is_left_within() -> None:
    successes = np.array([True] * 9 + [False] + [True] + [False] * 9)
    kinds = ["easy"] * 10 + ["hard"] * 10
    score = np.array([[1.0] * 10 + [0.0] * 10])
    clusters = [str(n) for n in range(20)]
    pooled, _ = stratified_aucs(score, successes, strata=[""] * 20, clusters=clusters)
    within, _ = stratified_aucs(score, successes, strata=kinds, clusters=clusters)
    assert pooled[0].value > 0.85
    assert (within[0].value, within[0].low, within[0].high) == (0.5, 0.5, 0.5)


def results(*values: float) -> Results:
    queries = tuple(f"q{n}" for n in range(len(values)))
    table = np.array([values], np.float64)
    return Results(("arm",), ("hash",), queries, queries, queries, {"nDCG@10": table},
                   np.ones(len(values), np.bool_), table == 0.0)  # fmt: skip


def test_stacked_when_there_are_several_draws_then_clusters_stay_those_of_the_queries() -> None:
    both = stacked([results(1.0, 0.5), results(0.0, 0.25)])
    assert both.values["nDCG@10"].tolist() == [[1.0, 0.5, 0.0, 0.25]]
    assert both.clusters == ("q0", "q1", "q0", "q1")
    assert len(set(both.queries)) == 4
    one = results(1.0)
    assert stacked([one]) is one


class Counting:
    """An embedder that counts the texts it was given."""

    name, dimension, model = "counting", 2, None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str], /) -> Any:
        self.asked += texts
        return np.array([[len(text), 1.0] for text in texts], np.float32)


def test_kept_vectors_when_asked_again_then_only_new_texts_are_embedded(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    kept = KeptVectors(first, tmp_path / "folder" / "kept.npz")
    assert kept(["a", "bb", "a"]).tolist() == [[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]]
    assert first.asked == ["a", "bb"]
    again = KeptVectors(second, tmp_path / "folder" / "kept.npz")
    assert again(["ccc", "bb"]).tolist() == [[3.0, 1.0], [2.0, 1.0]]
    assert second.asked == ["ccc"]
    assert (again.name, again.dimension) == ("counting", 2)


def contrast(difference: float, low: float, high: float) -> Contrast:
    interval = Interval(difference, low, high, 5)
    return Contrast("arm", "base", "nDCG@10", difference=difference, interval=interval)


UP, DOWN, UNSURE = contrast(0.2, 0.1, 0.3), contrast(-0.1, -0.2, -0.05), contrast(0.1, -0.1, 0.3)


@pytest.mark.parametrize(
    ("contrasts", "verdict"),
    [
        ([UP, UNSURE], "confirmed"),
        ([UP, DOWN], "partly"),
        ([UNSURE], "not shown"),
        ([DOWN, UNSURE, DOWN], "refuted"),
        ([contrast(-0.1, -0.2, 0.1)], "not shown"),
    ],
)
def test_judged_when_cells_agree_or_not_then_the_verdict_says_so(
    contrasts: list[Contrast], verdict: str
) -> None:
    assert judged(contrasts, sign=1) == verdict
    mirrored = [contrast(-c.difference, -c.interval.high, -c.interval.low) for c in contrasts]
    assert judged(mirrored, sign=-1) == verdict


def test_numbers_when_written_then_short_and_with_a_true_minus() -> None:
    assert [decimals(0.4567), decimals(1.0), decimals(np.nan)] == [".457", "1.000", "–"]
    assert [signed(0.4567), signed(-0.0444), signed(-0.0001)] == ["+.457", "−.044", ".000"]
    assert listed([UP, DOWN, UNSURE]) == "better in 1, worse in 1 of 3 (mean +.067)"


def run(task: str, trial: int, tools: Sequence[str], success: bool) -> TaskRun:
    return TaskRun(task, trial, success, "", (), tuple(tools), ("get_user", "cancel_it"))


def test_predictions_when_runs_are_few_then_each_is_the_rate_it_says() -> None:
    train = [
        run("0", 0, ["find", "find", "book_it"], True),
        run("1", 0, ["transfer_to_human_agents"], False),
        run("0", 1, ["find", "book_it"], True),
        run("1", 1, ["find", "book_it"], False),
    ]
    test = [run("0", 2, ["find", "book_it"], True), run("1", 2, ["search_it"], False)]
    found = dict(zip(PREDICTORS, predictions(train, test), strict=True))

    def rate(successes: int, runs: int) -> float:
        return (successes + 2.5) / (runs + 5)

    expected: dict[str, Callable[[], list[float]]] = {
        "task's success rate": lambda: [rate(2, 2), rate(0, 2)],
        "task's last trial": lambda: [1.0, 0.0],
        "task handed over before": lambda: [0.0, 0.5],
        "rate of the path it took": lambda: [rate(2, 3), rate(0, 0)],
        "rate of that path in other tasks": lambda: [rate(0, 1), rate(0, 0)],
        "rate of the tools it used": lambda: [rate(2, 3), rate(0, 0)],
        "rate of the path taken last time": lambda: [rate(2, 3), rate(2, 3)],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].tolist() == pytest.approx(values())


def test_paths_and_kinds_when_read_then_repeats_count_once_and_changes_are_seen() -> None:
    assert path(run("0", 0, ["a", "a", "b", "a"], True)) == ("a", "b", "a")
    assert task_kind(run("0", 0, [], True)) == "changes something"
    idle = TaskRun("0", 0, True, "", (), (), ("get_user", "transfer_to_human_agents"))
    assert task_kind(idle) == "changes nothing"


def test_measure_set_when_words_decide_then_each_query_stays_in_its_scope() -> None:
    pytest.importorskip("bm25s")
    dataset = conversations()
    everything = measure_set(dataset, {"embedded": lambda texts: np.ones((len(texts), 2))})
    assert everything.values.keys() == {
        "BM25", "embedded", "RRF60, embedded", "convex, embedded"
    }  # fmt: skip
    assert (everything.queries, everything.memories) == (3, 24)
    # With equal cosines the fusions order as BM25 does; both relevant turns are among eight.
    assert everything.values["RRF60, embedded"] == pytest.approx(everything.values["BM25"])
    assert all(0.0 < value <= 1.0 for value in everything.values.values())

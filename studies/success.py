"""Does the success rate of earlier trials predict the next one? On τ-bench runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from rankblend.experiment.datasets import TaskRun, load_taubench_runs
from rankblend.experiment.report import Section, Table, interval_plot
from rankblend.relevance import lookup_evidence, parse_curve
from rankblend.relevance._curves import apply_steps
from studies.auc import Auc, stratified_aucs
from studies.outcome import Outcome, decimals, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PREDICTORS", "predictions", "success_study"]

RUNS = "taubench/gpt-4o-airline.json"
_TRANSFER = "transfer_to_human_agents"
_CHANGES = ("book_", "cancel_", "update_", "send_")
_COUNTS = ("runs", "successes", "judged_runs", "judged_successes")
_CURVE = {"smoothed_rate": {"prior_weight": 5, "agent_verdict_weight": 0.5}}

PREDICTORS = (
    "task's success rate",
    "task's last trial",
    "task handed over before",
    "rate of the path it took",
    "rate of that path in other tasks",
    "rate of the tools it used",
    "rate of the path taken last time",
)


@frozen(eq=False)
class _Split:
    """Runs to learn from and runs to predict."""

    train: tuple[TaskRun, ...]
    test: tuple[TaskRun, ...]


def success_study(data: Path) -> Outcome:
    """Part (e)."""
    runs = load_taubench_runs(data / RUNS)
    last = max(run.trial for run in runs)
    split = _split(runs, last)
    every = [_split(runs, trial) for trial in range(last + 1)]
    kind = {run.task: task_kind(run) for run in runs}
    handed = {
        task: f"{kind[task]}, {'often' if rate > 0.5 else 'seldom'} handed over"
        for task, rate in _rates(split.train, lambda run: run.task, lambda run: _hands_over(run))
    }
    designs = {
        "last trial, all tasks": _measured([split], lambda _: ""),
        "last trial, within kind of task": _measured([split], lambda run: kind[run.task]),
        "last trial, within kind and earlier hand-overs": _measured(
            [split], lambda run: handed[run.task]
        ),
        "each trial held out in turn, all tasks": _measured(every, lambda _: ""),
        "each trial held out in turn, within kind": _measured(every, lambda run: kind[run.task]),
    }
    sections = (
        Section(
            "(e) Does the success rate predict the next trial?",
            (
                f"{len(runs)} runs of one agent: {len(kind)} tasks × {last + 1} trials. The "
                "score of a test run is what is known before it: the curve `smoothed_rate` (prior "
                "weight 5; the environment's verdicts count as judged) over the task's trials 0 to "
                f"{last - 1}; the test is trial {last}. AUC: how often a success was given the "
                "greater score than a failure, ties half. All tasks have the same number of "
                "earlier runs, so for them the curve orders as the plain rate does; smoothing "
                "matters for paths, which occur once or a hundred times, and one never seen "
                "counts as the prior.",
                "A *path* is the sequence of tools called, repeats in a row counted once. What a "
                "run's own path says is known only when it has been taken: it is no forecast, "
                "and it shares its label with what the path did to the world. *in other tasks*: "
                "only runs of other tasks are counted, so that the path cannot stand for its "
                "task. *taken last time*: the path of the task's latest training run, known "
                "before.",
                "Kind of task is read from the reference solution, not from what the agent did: "
                "it changes something (books, cancels, updates, compensates), or it changes "
                "nothing (the right thing is to refuse, to inform or to hand over). Agents that "
                "hand over do so mostly in the second kind, where that succeeds, so rates compared "
                "across kinds partly only tell the kind. *Within* compares runs of one kind "
                "only. Intervals: 95 % percentile bootstrap over tasks.",
            ),
            (_auc_table(designs), _kind_table(split, kind)),
            (_figure(designs),),
        ),
    )
    return Outcome((_finding(designs),), sections)


def task_kind(run: TaskRun) -> str:
    """``changes something`` or ``changes nothing``, by the reference solution of its task."""
    changes = any(name.startswith(_CHANGES) for name in run.wanted)
    return "changes something" if changes else "changes nothing"


def predictions(train: Sequence[TaskRun], test: Sequence[TaskRun]) -> NDArray[np.float64]:
    """What each of `PREDICTORS` says of each test run, shape (predictors, runs).

    Args:
        train: Runs whose outcome is known, by trial.
        test: The runs to be predicted, of tasks among those of ``train``.
    """
    by_task = _counted(train, lambda run: run.task)
    by_path = _counted(train, path)
    by_tools = _counted(train, lambda run: frozenset(run.tools))
    by_path_and_task = _counted(train, lambda run: (path(run), run.task))
    handed = dict(_rates(train, lambda run: run.task, _hands_over))
    latest = {run.task: run for run in train}
    elsewhere = [
        np.subtract(
            by_path.get(path(run), (0, 0)), by_path_and_task.get((path(run), run.task), (0, 0))
        )
        for run in test
    ]
    none = (0, 0)
    return np.stack(
        [
            _smoothed([by_task.get(run.task, none) for run in test]),
            np.array([float(latest[run.task].success) for run in test]),
            np.array([handed[run.task] for run in test]),
            _smoothed([by_path.get(path(run), none) for run in test]),
            _smoothed(elsewhere),
            _smoothed([by_tools.get(frozenset(run.tools), none) for run in test]),
            _smoothed([by_path.get(path(latest[run.task]), none) for run in test]),
        ]
    )


def path(run: TaskRun) -> tuple[str, ...]:
    """The tools called, in order, repeats in a row once."""
    return tuple(tool for at, tool in enumerate(run.tools) if at == 0 or run.tools[at - 1] != tool)


def _smoothed(counts: Iterable[ArrayLike]) -> NDArray[np.float64]:
    """The package's own curve over (runs, successes), all of them judged."""
    table = np.array(list(counts), np.float64)
    runs, successes = table[:, 0], table[:, 1]
    kinds = [kind for name in _COUNTS if (kind := lookup_evidence(name)) is not None]
    values, _ = apply_steps(parse_curve(_CURVE), [runs, successes, runs, successes], kinds)
    return values


def _counted(
    runs: Iterable[TaskRun], key: Callable[[TaskRun], Hashable]
) -> Mapping[Hashable, tuple[int, int]]:
    counts: dict[Hashable, tuple[int, int]] = {}
    for run in runs:
        known, good = counts.get(key(run), (0, 0))
        counts[key(run)] = known + 1, good + run.success
    return counts


def _rates(
    runs: Iterable[TaskRun], key: Callable[[TaskRun], str], holds: Callable[[TaskRun], bool]
) -> list[tuple[str, float]]:
    found: dict[str, list[bool]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(holds(run))
    return [(name, float(np.mean(marks))) for name, marks in found.items()]


def _hands_over(run: TaskRun) -> bool:
    return _TRANSFER in run.tools


def _split(runs: Iterable[TaskRun], held_out: int) -> _Split:
    listed = tuple(runs)
    return _Split(
        tuple(run for run in listed if run.trial != held_out),
        tuple(run for run in listed if run.trial == held_out),
    )


def _measured(
    splits: Sequence[_Split], stratum: Callable[[TaskRun], str]
) -> tuple[list[Auc], list[Auc]]:
    """Only runs of one trial are compared: their training runs are the same trials."""
    tested = [run for split in splits for run in split.test]
    return stratified_aucs(
        np.concatenate([predictions(split.train, split.test) for split in splits], axis=1),
        np.array([run.success for run in tested]),
        strata=[f"{run.trial}|{stratum(run)}" for run in tested],
        clusters=[run.task for run in tested],
    )


def _auc_table(designs: Mapping[str, tuple[list[Auc], list[Auc]]]) -> Table:
    rows = []
    for design, (own, gaps) in designs.items():
        for name, auc, gap in zip(PREDICTORS, own, gaps, strict=True):
            rows.append(
                (design, name, f"{decimals(auc.value)} [{decimals(auc.low)}, {decimals(auc.high)}]",
                 None if gap is gaps[0]
                 else f"{signed(gap.value)} [{signed(gap.low)}, {signed(gap.high)}]",
                 auc.pairs)
            )  # fmt: skip
    return Table(("test", "predictor", "AUC", "− task's success rate", "pairs"), rows)


def _kind_table(split: _Split, kind: Mapping[str, str]) -> Table:
    rows = []
    for name in sorted(set(kind.values())):
        for label, runs in (("training", split.train), ("test", split.test)):
            mine = [run for run in runs if kind[run.task] == name]
            over = [run for run in mine if _hands_over(run)]
            rest = [run for run in mine if not _hands_over(run)]
            rows.append(
                (name, label, len({run.task for run in mine}), len(mine), _rate(mine), len(over),
                 _rate(over), _rate(rest))
            )  # fmt: skip
    return Table(
        ("kind of task", "runs", "tasks", "number", "success", "handed over",
         "success where handed over", "success where not"),
        rows,
    )  # fmt: skip


def _rate(runs: Sequence[TaskRun]) -> str:
    return decimals(float(np.mean([run.success for run in runs]))) if runs else "–"


def _figure(designs: Mapping[str, tuple[list[Auc], list[Auc]]]) -> Figure:
    rows = [
        (f"{name} ({design.removeprefix('last trial, ')})", auc)
        for name_at, name in enumerate(PREDICTORS)
        for design, (own, _) in designs.items()
        if design.startswith("last trial")
        for auc in [own[name_at]]
    ]
    return interval_plot(
        [name for name, _ in rows],
        [auc.value - 0.5 for _, auc in rows],
        [auc.low - 0.5 for _, auc in rows],
        [auc.high - 0.5 for _, auc in rows],
        label="AUC above chance, trial 3",
        zero="chance",
    )


def _finding(designs: Mapping[str, tuple[list[Auc], list[Auc]]]) -> str:
    def told(design: str, predictor: int) -> str:
        auc = designs[design][0][predictor]
        return f"{decimals(auc.value)} [{decimals(auc.low)}, {decimals(auc.high)}]"

    return (
        "τ-bench: the success rate of trials 0 to 2 predicts trial 3 with AUC "
        f"{told('last trial, all tasks', 0)}, within kind of task "
        f"{told('last trial, within kind of task', 0)}, within kind and earlier hand-overs "
        f"{told('last trial, within kind and earlier hand-overs', 0)}; the rate of the path taken, "
        f"from other tasks, {told('last trial, all tasks', 4)}, within kind "
        f"{told('last trial, within kind of task', 4)}."
    )

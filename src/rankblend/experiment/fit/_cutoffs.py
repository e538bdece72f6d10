"""Choosing a floor from known hits and known misses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from rankblend import limits
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.fit._weights import grouped_folds
from rankblend.experiment.plans import revise
from rankblend.profiles import RankingProfile


@frozen
class CutoffQuality:
    """What a floor keeps.

    Attributes:
        recall: Share of the hits that is kept.
        precision: Share of hits among what is kept; 1 where nothing is.
        dropped_misses: Share of the misses that is dropped.
    """

    recall: float
    precision: float
    dropped_misses: float

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2.0 * self.recall * self.precision / total if total > 0.0 else 0.0

    @property
    def balance(self) -> float:
        """Youden's J: recall + dropped_misses − 1."""
        return self.recall + self.dropped_misses - 1.0


@frozen
class Cutoff:
    """A floor and what it is worth.

    Attributes:
        value: Values from here on are kept, in [0, 1].
        seen: On what it was chosen on; too good.
        held_out: Of floors chosen without each fold, on that fold.
        hits, misses: How many there were.
        objective: What was maximized.
    """

    value: float
    seen: CutoffQuality
    held_out: CutoffQuality
    hits: int
    misses: int
    objective: str


def tune_cutoff(
    values: ArrayLike,
    hits: ArrayLike,
    clusters: Sequence[str],
    *,
    objective: Literal["f1", "balance"] = "f1",
    least_recall: float = 0.0,
    absent: Literal["pass", "drop"] = "pass",
    folds: int = 5,
    seed: int = 0,
) -> Cutoff:
    """Choose the floor that separates hits from misses best.

    Floors are tried at 0, half-way between neighbouring values and at the greatest; of equally good
    ones the lowest is taken, because what a floor drops cannot be ranked.

    Args:
        values: float64, shape (n,): scores or values of a signal, in [0, 1]; NaN where absent.
        hits: bool, shape (n,): whether each memory answered its query.
        clusters: The cluster of each; no cluster is learned on and judged on.
        objective: ``f1`` of hits among what is kept, or ``balance``: recall and share of misses
            dropped count the same, however rare hits are.
        least_recall: Floors that keep fewer of the hits are not considered, in [0, 1].
        absent: What happens to a memory without the value, as in a profile's floor.
        folds: How many, ≥ 2.
        seed: Of the folds.

    Raises:
        InvalidArgumentError: Shapes that do not fit, values out of [0, 1], no hits or no misses,
            fewer than two clusters.
    """
    table, marks = np.asarray(values, np.float64), np.asarray(hits, np.bool_)
    problems = limits.beyond(folds=folds, seed=seed)
    if table.ndim != 1 or table.shape != marks.shape or len(clusters) != table.size:
        problems.append("values, hits, clusters: expected one of each a memory")
    elif not marks.any() or marks.all():
        problems.append("hits: expected hits and misses, to tell them apart")
    if bool(((table < 0.0) | (table > 1.0)).any()):
        problems.append("values: expected numbers in [0, 1], or NaN where absent")
    if not 0.0 <= least_recall <= 1.0:
        problems.append(f"least_recall: expected a number in [0, 1], got {least_recall!r}")
    if problems:
        raise InvalidArgumentError(problems)
    known = np.where(np.isnan(table), np.inf if absent == "pass" else -np.inf, table)
    value = _best(known, marks, objective, least_recall)
    fold = grouped_folds(clusters, folds=folds, seed=seed)
    kept = np.zeros(table.size, np.bool_)
    for number in range(int(fold.max()) + 1):
        here = fold == number
        kept[here] = known[here] >= _best(known[~here], marks[~here], objective, least_recall)
    return Cutoff(
        value, _quality(known >= value, marks), _quality(kept, marks),
        int(marks.sum()), int((~marks).sum()), objective,
    )  # fmt: skip


def with_cutoff(
    profile: RankingProfile, cutoff: Cutoff, *, signal: str | None = None, name: str | None = None
) -> RankingProfile:
    """The profile with this floor of its score, or of a signal.

    Raises:
        ProfileError: The score or signal is relative to the pool and admits no floor.
    """
    path = "floors.min_score" if signal is None else f"floors.{signal}.min"
    return revise(profile, {path: cutoff.value}, name=name)


def _best(
    values: NDArray[np.float64], hits: NDArray[np.bool_], objective: str, least_recall: float
) -> float:
    order = np.argsort(values, kind="stable")
    ranked, marks = values[order], hits[order]
    found, total = np.unique(ranked[np.isfinite(ranked)]), max(int(marks.sum()), 1)
    floors = np.concatenate([[0.0], (found[1:] + found[:-1]) / 2.0, found[-1:]])
    at = np.searchsorted(ranked, floors, side="left")
    below = np.concatenate([[0], np.cumsum(marks)])[at]
    kept_hits, kept = marks.sum() - below, marks.size - at
    misses = max(int((~marks).sum()), 1)
    recall = kept_hits / total
    precision = np.divide(kept_hits, kept, out=np.ones(kept.size), where=kept > 0)
    if objective == "f1":
        both = recall + precision
        worth = np.divide(2 * recall * precision, both, out=np.zeros(both.size), where=both > 0)
    else:
        worth = recall + (at - below) / misses - 1.0
    worth = np.where(recall >= least_recall, worth, -np.inf)
    return float(floors[int(worth.argmax())])


def _quality(kept: NDArray[np.bool_], hits: NDArray[np.bool_]) -> CutoffQuality:
    both = int((kept & hits).sum())
    return CutoffQuality(
        both / max(int(hits.sum()), 1),
        both / int(kept.sum()) if kept.any() else 1.0,
        int((~kept & ~hits).sum()) / max(int((~hits).sum()), 1),
    )

"""Exact Shapley values: how much of a measure each signal earns, query by query."""

from __future__ import annotations

from math import factorial

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import Interval, bootstrap_intervals, group_units
from rankblend.experiment.plans import SubsetPlan
from rankblend.experiment.results import Results

__all__ = ["Shapley", "shapley_of_subsets", "shapley_values"]


@frozen(eq=False)
class Shapley:
    """What each signal earns of one measure.

    Attributes:
        measure: Which.
        signals: The s signals.
        queries: Ids of the judged queries.
        values: float64, shape (s, q): per query they sum to the measure of the profile with all
            signals, within rounding.
        intervals: Per signal the mean with a cluster bootstrap interval.
        unit: ``cluster`` or ``query``: what was resampled.
        excluded: Queries without judgments.
    """

    measure: str
    signals: tuple[str, ...]
    queries: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)
    intervals: tuple[Interval, ...]
    unit: str
    excluded: int


def shapley_values(
    subsets: SubsetPlan,
    results: Results,
    *,
    measure: str,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Shapley:
    """The Shapley values of the signals of a subset plan.

    A signal's value is what it adds to the measure, averaged over all orders in which the signals
    could have been added. Without any of the signals there is nothing to rank by: that counts 0,
    unless the profile keeps signals that are not studied; then too it counts 0, so their worth is
    shared among those studied.

    Args:
        subsets: The plan.
        results: Of all its arms.
        measure: Which.
        confidence: Of the intervals, in (0, 1).
        resamples: Bootstrap samples, ≥ 1.
        seed: Of the bootstrap.

    Raises:
        UnknownNameError: The results lack an arm or the measure.
        InvalidArgumentError: An arm did not run, or no query has judgments.

    Source: Shapley, A value for n-person games, 1953.
    """
    table = results.measure(measure)
    missing = [f"{arm}: did not run" for arm in subsets.arms if not results.ran(arm)]
    if not results.judged.any():
        missing.append("results: no query has judgments")
    if missing:
        raise InvalidArgumentError(missing)
    judged = np.flatnonzero(results.judged)
    worth = np.zeros((len(subsets.arms) + 1, judged.size))
    for number, arm in enumerate(subsets.arms, start=1):
        worth[number] = table[results.arm(arm), judged]
    values = shapley_of_subsets(worth)
    units = group_units(judged.size, [results.clusters[i] for i in judged])
    intervals = bootstrap_intervals(
        values, units, confidence=confidence, resamples=resamples, seed=seed
    )
    return Shapley(
        measure, subsets.signals, tuple(results.queries[i] for i in judged), values, intervals,
        units.kind, results.judged.size - judged.size,
    )  # fmt: skip


def shapley_of_subsets(worth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shapley values of q games with s players each.

    φᵢ = Σ over the sets S without i of |S|! (s − |S| − 1)! / s! · (v(S ∪ i) − v(S))

    Args:
        worth: float64, shape (2^s, q): the worth of every set of players; player i is in set
            number k where bit i of k is 1.

    Returns:
        float64, shape (s, q); columns sum to v(all) − v(none) within rounding.

    Raises:
        InvalidArgumentError: The number of rows is no power of two.

    Example:
        >>> shapley_of_subsets(np.array([[0.0], [1.0], [2.0], [4.0]])).ravel().tolist()
        [1.5, 2.5]
    """
    sets = worth.shape[0]
    if sets < 1 or sets & (sets - 1):
        raise InvalidArgumentError(f"worth: expected 2^s rows, got {sets}")
    players = sets.bit_length() - 1
    numbers = np.arange(sets)
    sizes = np.bitwise_count(numbers)
    shares = np.array(
        [
            factorial(size) * factorial(players - size - 1) / factorial(players)
            for size in range(players)
        ]
    )
    values = np.empty((players, worth.shape[1]))
    for player in range(players):
        without = numbers[(numbers >> player) & 1 == 0]
        gains = worth[without | (1 << player)] - worth[without]
        values[player] = shares[sizes[without]] @ gains
    return values

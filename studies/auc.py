"""The area under the ROC curve within strata, with intervals over whole clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError

__all__ = ["Auc", "stratified_aucs"]


@frozen
class Auc:
    """How often a success was given the greater score than a failure it is compared with.

    Attributes:
        value: The share of such pairs, ties counting half; 0.5 says nothing was known.
        low, high: 95 % percentile interval over clusters.
        pairs: How many pairs.
    """

    value: float
    low: float
    high: float
    pairs: int


def stratified_aucs(
    scores: NDArray[np.float64],
    successes: NDArray[np.bool_],
    *,
    strata: Sequence[str],
    clusters: Sequence[str],
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[list[Auc], list[Auc]]:
    """The AUC of several predictors, only pairs of one stratum being compared.

    Args:
        scores: float64, shape (k, n): k predictors of n outcomes; the greater, the likelier.
        successes: bool, shape (n,).
        strata: The stratum of each outcome.
        clusters: The cluster of each; a pair counts as often as both its clusters are drawn.
        resamples: Bootstrap samples.
        seed: Of the bootstrap.

    Returns:
        Of each predictor; and of each the difference to the first, from the same samples.

    Raises:
        InvalidArgumentError: No pair of a success and a failure in any stratum.

    Source: Hanley and McNeil, The meaning and use of the area under a ROC curve, 1982. Samples
    without any pair are left out.
    """
    _, unit = np.unique(np.asarray(clusters, np.str_), return_inverse=True)
    _, stratum = np.unique(np.asarray(strata, np.str_), return_inverse=True)
    count = int(unit.max()) + 1
    compared = np.outer(successes, ~successes) & (stratum[:, None] == stratum[None, :])
    if not compared.any():
        raise InvalidArgumentError("successes: no success and failure in one stratum to compare")
    member = np.eye(count)[unit]  # (n, units)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)

    def folded(pairs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = member.T @ pairs @ member
        return float(table.sum()), np.einsum("ru,uv,rv->r", drawn, table, drawn, optimize=True)

    whole, all_drawn = folded(compared.astype(np.float64))
    usable = all_drawn > 0
    values, samples = [], []
    for row in scores:
        above = (row[:, None] > row[None, :]) + 0.5 * (row[:, None] == row[None, :])
        won, won_drawn = folded(np.where(compared, above, 0.0))
        values.append(won / whole)
        samples.append(won_drawn[usable] / all_drawn[usable])
    pairs = int(compared.sum())
    own = [_interval(v, s, pairs) for v, s in zip(values, samples, strict=True)]
    gaps = [
        _interval(v - values[0], s - samples[0], pairs)
        for v, s in zip(values, samples, strict=True)
    ]
    return own, gaps


def _interval(value: float, samples: NDArray[np.float64], pairs: int) -> Auc:
    low, high = np.quantile(samples, [0.025, 0.975])
    return Auc(value, float(low), float(high), pairs)

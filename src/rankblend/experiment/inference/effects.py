"""How great a difference is, on how many queries, and how small a one could have been found."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference.units import Units, check_differences

__all__ = ["TIE", "effect_sizes", "minimum_detectable", "standard_errors", "wins_ties_losses"]

TIE = 1e-12
"""Differences up to this are ties: measures of equal rankings may differ in their last bit."""


def effect_sizes(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's d for paired data: mean difference over the standard deviation of the differences.

    It is taken over queries, so that it is comparable between data sets, whatever their clusters.

    Args:
        differences: float64, shape (r, q).

    Returns:
        float64, shape (r,): 0 where no query differs; infinite, with the sign of the difference,
        where all differ by the same; NaN for a single query that does.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988 (d_z).
    """
    rows = check_differences(differences)
    means = rows.mean(axis=1)
    if rows.shape[1] < 2:
        return np.where(means == 0.0, 0.0, np.nan)
    spread = rows.std(axis=1, ddof=1)
    flat = spread <= TIE
    safe = np.where(flat, 1.0, spread)
    return np.where(
        flat, np.where(np.abs(means) <= TIE, 0.0, np.copysign(np.inf, means)), means / safe
    )


def wins_ties_losses(differences: NDArray[np.float64]) -> NDArray[np.int64]:
    """int64, shape (r, 3): queries on which the arm does better, as well (within `TIE`), worse."""
    rows = check_differences(differences)
    wins, losses = (rows > TIE).sum(axis=1), (rows < -TIE).sum(axis=1)
    return np.stack([wins, rows.shape[1] - wins - losses, losses], axis=1)


def standard_errors(differences: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    """Cluster-robust standard errors of the mean over queries.

    √(G / (G − 1) · Σ (S − m·n)²) / q over the units' sums S and sizes n, m the mean; with queries as
    units the usual s / √q.

    Args:
        differences: float64, shape (r, q).
        units: G of them.

    Returns:
        float64, shape (r,); NaN with a single unit.

    Source: Liang and Zeger, Longitudinal data analysis using generalized linear models, 1986, for
    the mean, with the usual small-sample factor.
    """
    rows = check_differences(differences)
    count = len(units)
    if count < 2:
        return np.full(len(rows), np.nan)
    residuals = units.sums(rows) - rows.mean(axis=1)[:, None] * units.sizes
    total = (residuals * residuals).sum(axis=1)
    errors: NDArray[np.float64] = np.sqrt(total * count / (count - 1)) / rows.shape[1]
    return errors


def minimum_detectable(
    differences: NDArray[np.float64], units: Units, *, alpha: float = 0.05, power: float = 0.8
) -> NDArray[np.float64]:
    """The least true mean difference that this many units would find with the given power.

    (t₁₋α⸝₂ + t_power) · standard error, t with G − 1 degrees of freedom: of one two-sided test at
    α. A difference that was not found and lies below this was not shown to be none.

    Args:
        differences: float64, shape (r, q): their spread is taken as that to come.
        units: G of them.
        alpha: In (0, 1).
        power: In (0, 1).

    Returns:
        float64, shape (r,); NaN with a single unit.

    Source: Bloom, Minimum detectable effects, Evaluation Review 19, 1995.
    """
    if not (0.0 < alpha < 1.0 and 0.0 < power < 1.0):
        raise InvalidArgumentError("alpha, power: expected numbers in (0, 1)")
    errors = standard_errors(differences, units)
    if len(units) < 2:
        return errors
    from scipy.special import stdtrit

    freedom = len(units) - 1
    factor = float(stdtrit(freedom, 1.0 - alpha / 2.0) + stdtrit(freedom, power))
    return errors * (factor if math.isfinite(factor) else math.nan)

"""Fitting the parameters of a curve so that its signal follows how often evidence is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from rankblend import limits
from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.experiment.fit._weights import grouped_folds
from rankblend.experiment.plans import revise
from rankblend.profiles import RankingProfile
from rankblend.relevance import CURVES, CurveStep, plain_curve

FloatArray = NDArray[np.float64]
_EDGE = 1e-6  # probabilities are kept this far from 0 and 1, so that one surprise is finite


def _middle(values: FloatArray) -> float:
    above = values[values > 0.0]
    return float(np.median(above)) if above.size else 1.0


# Curve → parameters to begin with. All of them but a logistic's middle are positive.
_STARTS: Mapping[str, Callable[[FloatArray], dict[str, float]]] = {
    "logistic": lambda x: {"k": 1.0 / (float(x.std()) or 1.0), "m": float(np.median(x))},
    "saturation": lambda x: {"c": _middle(x)},
    "half_life": lambda x: {"seconds": _middle(x)},
    "log_saturation": lambda x: {"n_max": max(float(x.max()), 1.0)},
    "power": lambda _: {"p": 1.0},
}


@frozen
class Calibration:
    """A curve with fitted parameters.

    Attributes:
        step: The curve.
        scale: What the curve's value is multiplied by to be the chance of a hit, in (0, 1]: a
            signal orders, it need not be a probability.
        loss: Mean log loss per memory on folds the parameters were not fitted on.
        constant_loss: The same for one chance for all: what knowing nothing costs.
        isotonic_loss: The same for the best rising (or falling) step function: about what any
            curve of this evidence could reach.
        hits, misses: How many there were.
    """

    step: CurveStep
    scale: float
    loss: float
    constant_loss: float
    isotonic_loss: float
    hits: int
    misses: int


def calibrate_curve(
    evidence: ArrayLike,
    hits: ArrayLike,
    clusters: Sequence[str],
    *,
    curve: str,
    folds: int = 5,
    seed: int = 0,
) -> Calibration:
    """Fit a curve's parameters to known hits and misses by maximum likelihood.

    Args:
        evidence: float64, shape (n,), in its own unit; NaN where absent: left out.
        hits: bool, shape (n,): whether each memory answered its query.
        clusters: The cluster of each.
        curve: ``half_life``, ``log_saturation``, ``logistic``, ``power`` or ``saturation``.
        folds: How many, ≥ 2.
        seed: Of the folds.

    Raises:
        UnknownNameError: A curve that has nothing to fit.
        InvalidArgumentError: Shapes that do not fit, no hits or no misses, values the curve cannot
            take, fewer than two clusters.
    """
    if curve not in _STARTS:
        raise UnknownNameError("curve to calibrate", curve, _STARTS)
    values, marks = np.asarray(evidence, np.float64), np.asarray(hits, np.bool_)
    if values.ndim != 1 or values.shape != marks.shape or len(clusters) != values.size:
        raise InvalidArgumentError("evidence, hits, clusters: expected one of each a memory")
    there = np.flatnonzero(~np.isnan(values))
    x, y = values[there], marks[there].astype(np.float64)
    low, high = CURVES[curve].needs
    problems = limits.beyond(folds=folds, seed=seed)
    if not 0.0 < y.mean() < 1.0 if y.size else True:
        problems.append("hits: expected hits and misses with evidence, to tell them apart")
    if not np.isfinite(x).all() or bool(((x < low) | (x > high)).any()):
        problems.append(f"evidence: expected finite values that {curve} takes")
    if problems:
        raise InvalidArgumentError(problems)
    fold = grouped_folds([clusters[i] for i in there.tolist()], folds=folds, seed=seed)
    rising = CURVES[curve].direction == "rising"
    losses = np.zeros((3, y.size))
    for number in range(int(fold.max()) + 1):
        here, rest = fold == number, fold != number
        params, scale = _fit(curve, x[rest], y[rest])
        losses[0, here] = _loss(scale * _apply(curve, x[here], params), y[here])
        losses[1, here] = _loss(np.full(int(here.sum()), y[rest].mean()), y[here])
        losses[2, here] = _loss(_isotonic(x[rest], y[rest], x[here], rising=rising), y[here])
    params, scale = _fit(curve, x, y)
    own, constant, isotonic = map(float, losses.mean(axis=1))
    step = CurveStep(curve, tuple(params.items()))
    return Calibration(step, scale, own, constant, isotonic, int(y.sum()), int(y.size - y.sum()))


def with_curve(
    profile: RankingProfile, signal: str, calibration: Calibration, *, name: str | None = None
) -> RankingProfile:
    """The profile with the calibrated curve for a signal.

    Raises:
        ProfileError: The profile has no such signal, or its evidence does not fit the curve.
    """
    return revise(profile, {f"signals.{signal}.curve": plain_curve([calibration.step])}, name=name)


def _apply(curve: str, values: FloatArray, params: Mapping[str, float]) -> FloatArray:
    return np.asarray(CURVES[curve].function(values, **params), np.float64)


def _loss(chances: FloatArray, hits: FloatArray) -> FloatArray:
    safe = np.clip(chances, _EDGE, 1.0 - _EDGE)
    return np.asarray(-(hits * np.log(safe) + (1.0 - hits) * np.log1p(-safe)), np.float64)


def _fit(curve: str, x: FloatArray, y: FloatArray) -> tuple[dict[str, float], float]:
    """Parameters and scale of the greatest likelihood, searched without derivatives."""
    from scipy.optimize import minimize
    from scipy.special import expit, logit

    start = _STARTS[curve](x)
    names = tuple(start)
    # Deviations from where the search begins: positive numbers in their logarithm, a middle in
    # units of the spread, the scale through a logistic.
    spread = float(x.std()) or 1.0

    def read(point: FloatArray) -> tuple[dict[str, float], float]:
        moved = {
            name: start[name] + shift * spread
            if name == "m"
            else start[name] * float(np.exp(np.clip(shift, -50.0, 50.0)))
            for name, shift in zip(names, point, strict=False)
        }
        return moved, float(expit(point[-1]))

    def objective(point: FloatArray) -> float:
        params, scale = read(point)
        return float(_loss(scale * _apply(curve, x, params), y).mean())

    rate = float(np.clip(2.0 * y.mean(), 0.02, 0.98))
    begin = np.array([0.0] * len(names) + [float(logit(rate))])
    options: Any = {"xatol": 1e-6, "fatol": 1e-10, "maxiter": 2_000}
    found = minimize(objective, begin, method="Nelder-Mead", options=options)
    return read(np.asarray(found.x, np.float64))


def _isotonic(x: FloatArray, y: FloatArray, at: FloatArray, *, rising: bool) -> FloatArray:
    from scipy.optimize import isotonic_regression

    points, index = np.unique(x, return_inverse=True)
    counts = np.bincount(index).astype(np.float64)
    means = np.bincount(index, weights=y) / counts
    steps = isotonic_regression(means, weights=counts, increasing=rising).x
    return np.asarray(np.interp(at, points, steps), np.float64)

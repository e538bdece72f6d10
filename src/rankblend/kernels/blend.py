"""Scope blending: what a memory's score still counts for at a distance of some levels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError, MemoryContractError

__all__ = ["BELOW_TIPS", "backfilled", "blended", "gates", "ungated"]

FloatArray = NDArray[np.float64]

# The greatest rank score of an ancestor under backfill: the largest double below 1/2.
BELOW_TIPS = math.nextafter(0.5, 0.0)


def gates(distances: ArrayLike, *, half_life_levels: float, floor: float) -> FloatArray:
    """1 at distance 0, else floor + (1 − floor)·0.5^(distance / half_life_levels).

    Args:
        distances: Whole numbers of levels, shape (n,), ≥ 0.
        half_life_levels: Finite and > 0.
        floor: In [0, 1].

    Returns:
        Shape (n,), in [floor, 1], never greater at a greater distance. With a floor of 1 or a huge
        half-life the gate of an ancestor is 1 too.

    Raises:
        MemoryContractError: A distance is negative, i.e. an invisible memory is being scored.

    Example:
        >>> gates([0, 1, 2], half_life_levels=1.0, floor=0.0).tolist()
        [1.0, 0.5, 0.25]
    """
    if not (math.isfinite(half_life_levels) and half_life_levels > 0.0):
        raise InvalidArgumentError(
            f"half_life_levels: expected a finite number > 0, got {half_life_levels!r}"
        )
    if not 0.0 <= floor <= 1.0:
        raise InvalidArgumentError(f"floor: expected a number in [0, 1], got {floor!r}")
    levels = _levels(distances)
    with np.errstate(over="ignore"):
        decayed = np.exp2(-(levels / half_life_levels))
    return np.where(levels == 0, 1.0, floor + (1.0 - floor) * decayed)


def ungated(distances: ArrayLike) -> FloatArray:
    """1 at every distance: ``gates`` where nothing is discounted.

    Raises:
        MemoryContractError: A distance is negative, i.e. an invisible memory is being scored.
    """
    return np.ones(len(_levels(distances)))


def blended(scores: ArrayLike, gate_values: FloatArray) -> FloatArray:
    """The gated score: score · gate.

    Args:
        scores: Shape (n,), finite, in [0, 1]: multiplying a discount onto a negative score would
            promote what is far away.
        gate_values: Shape (n,), from ``gates``, or ones.

    Raises:
        InvalidArrayError: A score is not in [0, 1], or the shapes differ.
    """
    try:
        checked = np.asarray(scores).astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        raise InvalidArrayError("scores", "numbers of shape (n,)", "something else") from None
    if checked.ndim != 1 or checked.shape != gate_values.shape:
        raise InvalidArrayError("scores", f"shape {gate_values.shape}", f"shape {checked.shape}")
    fine = (checked >= 0.0) & (checked <= 1.0)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidArrayError("scores", "finite, in [0, 1]", f"{checked[row]:g} in row {row}")
    return checked * gate_values + 0.0


def backfilled(gated: FloatArray, distances: ArrayLike) -> FloatArray:
    """Tips (distance 0) to [1/2, 1], ancestors strictly below 1/2: they fill up, never displace.

    A tip gets 0.5 + 0.5·gated, an ancestor min(0.5·gated, ``BELOW_TIPS``); the plain product
    reaches 1/2 where the gate rounds to 1. Order inside each band is kept, though scores closer
    than about 1e-16 may become equal.

    Args:
        gated: Shape (n,), in [0, 1].
        distances: Shape (n,), ≥ 0.

    Source: the rule of symfonic's scope blending, with the clamp added.
    """
    levels = _levels(distances)
    return np.where(levels == 0, 0.5 + 0.5 * gated, np.minimum(0.5 * gated, BELOW_TIPS))


def _levels(distances: ArrayLike) -> NDArray[np.int64]:
    try:
        levels = np.asarray(distances)
    except ValueError:  # ragged rows
        raise InvalidArrayError("distances", "whole numbers of shape (n,)", "no array") from None
    if levels.ndim != 1 or (levels.dtype.kind not in "iu" and levels.size):
        raise InvalidArrayError(
            "distances", "whole numbers of shape (n,)", f"{levels.dtype} of shape {levels.shape}"
        )
    if levels.size and levels.min() < 0:
        raise MemoryContractError(
            f"distances: expected levels ≥ 0, got {levels.min()} in row {int(np.argmin(levels))}; "
            "a memory that the query cannot see must not be scored"
        )
    return levels.astype(np.int64, copy=False)

"""Composition of signals, as pure functions on float64 columns in which NaN means absent.

Every function takes *columns*: s arrays of shape (n,), one per input, values in [0, 1] or NaN, in
the order of *weights* (s,). Sums run over the inputs one after the other in that order and row by
row independently, so a row has the same bits alone and among a million others, and whatever the
layout of its column. Inputs of weight 0 take no part.

*fills* (s,) holds, per input, the value an absent one is replaced by, NaN for "leave it absent".
*counts* (s,) says which of the fills count as present weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "boosted",
    "geometric_mean",
    "hit_share",
    "present_weight",
    "scaled_weights",
    "strongest",
    "total_weight",
    "weighted_scores",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# 65,536 products are 512 KiB, half of a second-level cache of 1 MiB. For a million rows of 8 inputs
# blocks of 16,384, 32,768, 65,536, 131,072 products took 18.8, 14.5, 12.4, 11.5 × one read of the
# matrix there, the check of the values included; smaller caches want the smaller ones.
_BLOCK_CELLS = 65_536
_BLOCK_ROWS = 8_192  # of functions that take one column at a time
# Up to here the presence pattern of a row is one byte, and its denominator one look-up (11.8 ×
# instead of 13.0 × one read of the matrix), if there are rows enough to pay for the table.
_PATTERN_BITS = 8
_PATTERN_ROWS = 4096
_TINY = math.ulp(0.0)


def total_weight(weights: Sequence[float] | FloatArray) -> float:
    """The sum of the weights, one after the other (``sum`` compensates from Python 3.12 on)."""
    total = 0.0
    for weight in weights:
        total += float(weight)
    return total


def scaled_weights(weights: FloatArray, *, strength: float = 0.0) -> FloatArray:
    """The weights times a power of two, so that products neither vanish nor overflow.

    Weights all below 1 are raised until the greatest is in [0.5, 1): exact, so it changes no bit of
    an ordinary result, and weights such as 5e-324 keep their meaning. Weights whose pull toward a
    prior, ``strength · Σ weights``, would overflow are lowered.

    Args:
        weights: Shape (s,), finite, ≥ 0, with a finite sum.
        strength: Finite, ≥ 0.

    Returns:
        Shape (s,); all zeros stay zeros.
    """
    greatest = float(weights.max(initial=0.0))
    if greatest == 0.0:
        return weights.copy()
    exponent = math.frexp(greatest)[1]
    if exponent < 0:
        weights, exponent = np.ldexp(weights, -exponent), 0
    most = exponent + math.frexp(max(strength, 1.0))[1] + len(weights).bit_length()
    excess = most - 1000 if strength > 0.0 else 0
    return np.ldexp(weights, -excess) if excess > 0 else weights.copy()


def weighted_scores(
    columns: Sequence[FloatArray],
    weights: FloatArray,
    *,
    fills: FloatArray | None = None,
    counts: BoolArray | None = None,
    by_all: bool = False,
    factor: FloatArray | None = None,
    pull: float = 0.0,
    prior: float = 0.0,
    inspect: Callable[[slice], None] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums, divided by the present weight or by all weight, pulled toward a prior.

    score = (factor · Σ wᵢvᵢ + pull · prior) / (D + pull), where the sum runs over the present and
    the filled inputs and D is the present weight, or all weight. 0 where D + pull is 0. Never above
    1, without clamping: both sums run in the same order, no term above the line exceeds its partner
    below, and rounding keeps that order.

    Args:
        columns: s arrays (n,), NaN absent; any strides.
        weights: Shape (s,), from `scaled_weights`.
        fills: Shape (s,), NaN for none; None for no fills at all.
        counts: Shape (s,); which fills count as present weight.
        by_all: Divide by all weight.
        factor: Shape (n,) in [0, 1], or None for 1.
        pull: Weight of the prior, finite, ≥ 0.
        prior: In [0, 1].
        inspect: Called with each block of rows before it is read, for a check of the values that
            is to share the way from memory to cache.

    Returns:
        scores (n,) in [0, 1] and present weight (n,).
    """
    rows = len(columns[0]) if columns else 0
    scores, present = np.zeros(rows), np.zeros(rows)
    used = np.flatnonzero(weights > 0.0)
    whole = total_weight(weights)
    heavy = weights[used][:, None]
    filled = [
        (at, float(weights[i] * fills[i]), counts is not None and bool(counts[i]))
        for at, i in enumerate(used)
        if fills is not None and not math.isnan(fills[i])
    ]
    by_pattern = len(used) <= _PATTERN_BITS and rows >= _PATTERN_ROWS
    table: FloatArray | None = None
    size = _block_rows(len(used))
    products = np.empty((len(used), min(size, rows)))
    found = np.empty(products.shape, dtype=np.bool_)
    nothing = np.zeros(products.shape[1])  # an array: fmax with a number is three times slower
    for block in _blocks(rows, size):
        if inspect is not None:
            inspect(block)
        numerator, weight = scores[block], present[block]
        product, here = products[:, : len(numerator)], found[:, : len(numerator)]
        for at, i in enumerate(used.tolist()):
            np.multiply(columns[i][block], weights[i], out=product[at])
        np.isfinite(product, out=here)
        complete = bool(here.all())
        if not complete:
            # NaN becomes 0; none is below 0.
            np.fmax(product, nothing[: len(numerator)], out=product)
            for at, amount, counted in filled:
                if amount > 0.0:  # adding 0 to what is present keeps its bits: no masked copy
                    np.add(product[at], np.multiply(~here[at], amount), out=product[at])
                if counted:
                    here[at] = True
        for row in product:
            np.add(numerator, row, out=numerator)
        if complete:
            weight.fill(whole)
        elif by_pattern:
            table = _pattern_weights(weights[used]) if table is None else table
            bits = (1 << np.arange(len(used))).astype(np.uint8)[:, None]
            pattern = np.bitwise_or.reduce(here.view(np.uint8) * bits, axis=0)
            np.take(table, pattern, out=weight, mode="clip")
        else:
            np.multiply(here, heavy, out=product)
            for row in product:
                np.add(weight, row, out=weight)
        if factor is not None:
            np.multiply(numerator, factor[block], out=numerator)
        if pull > 0.0:
            np.add(numerator, pull * prior, out=numerator)
        # A weight of 0 becomes the least double: nothing was added above it, so the result is 0.
        if by_all:
            np.divide(numerator, max(whole + pull, _TINY), out=numerator)
        elif pull > 0.0:
            np.divide(numerator, weight + pull, out=numerator)
        else:
            np.divide(numerator, np.fmax(weight, _TINY), out=numerator)
    return scores, present


def present_weight(
    columns: Sequence[FloatArray], weights: FloatArray, *, counts: BoolArray
) -> FloatArray:
    """The weight of the inputs that are present or whose fill counts, shape (n,)."""
    total = np.zeros(len(columns[0]) if columns else 0)
    for block in _blocks(len(total), _BLOCK_ROWS):
        for column, weight, counted in zip(columns, weights, counts, strict=True):
            if weight > 0.0:
                here = np.isfinite(column[block])
                total[block] += np.multiply(here | counted, float(weight))
    return total


def hit_share(
    columns: Sequence[FloatArray], weights: FloatArray, *, fills: FloatArray
) -> FloatArray:
    """The share of the inputs of positive weight that are above 0, fills included, shape (n,)."""
    hits = np.zeros(len(columns[0]) if columns else 0)
    for block in _blocks(len(hits), _BLOCK_ROWS):
        for column, weight, fill in zip(columns, weights, fills, strict=True):
            if weight > 0.0:
                hits[block] += _filled(column[block], fill) > 0.0
    return hits / max(int(np.count_nonzero(weights)), 1)


def strongest(
    columns: Sequence[FloatArray], weights: FloatArray, *, fills: FloatArray
) -> tuple[FloatArray, NDArray[np.intp]]:
    """The greatest of the inputs of positive weight, and which one it was.

    Returns:
        scores (n,), 0 where there is none; winners (n,), the position of the first input that has
        that value, −1 where there is none.
    """
    rows = len(columns[0]) if columns else 0
    scores, winners = np.full(rows, -1.0), np.full(rows, -1, dtype=np.intp)
    for block in _blocks(rows, _BLOCK_ROWS):
        best, winner = scores[block], winners[block]
        for position, (column, weight, fill) in enumerate(
            zip(columns, weights, fills, strict=True)
        ):
            if weight > 0.0:
                values = _filled(column[block], fill)
                np.copyto(winner, position, where=values > best)
                np.fmax(best, values, out=best)
        np.fmax(best, 0.0, out=best)
    return scores, winners


def geometric_mean(
    columns: Sequence[FloatArray], weights: FloatArray, *, fills: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """exp(Σ wᵢ ln vᵢ / Σ wᵢ) over the present and filled inputs of positive weight.

    A single 0 makes it 0. The result is held between the least and the greatest value, which the
    rounding of exp and ln could leave by some hundred units in the last place.

    Returns:
        scores (n,), 0 where there is nothing; the sum of the weights that took part (n,).
    """
    rows = len(columns[0]) if columns else 0
    scores, total = np.zeros(rows), np.zeros(rows)
    for block in _blocks(rows, _BLOCK_ROWS):
        logs, weighed = scores[block], total[block]
        least, greatest = np.ones(len(logs)), np.zeros(len(logs))
        for column, weight, fill in zip(columns, weights, fills, strict=True):
            if weight > 0.0:
                values = _filled(column[block], fill)
                here = np.isfinite(values)
                with np.errstate(divide="ignore"):
                    # An absent one counts as 1, whose logarithm adds nothing.
                    logs += np.log(np.where(here, values, 1.0)) * weight
                weighed += np.multiply(here, float(weight))
                np.fmin(least, values, out=least)
                np.fmax(greatest, values, out=greatest)
        means = np.exp(logs / np.fmax(weighed, _TINY))
        np.minimum(np.maximum(means, least), greatest, out=logs)
    return scores, total


def boosted(
    columns: Sequence[FloatArray], strengths: FloatArray, *, base: int, fills: FloatArray
) -> FloatArray:
    """The base times bounded factors: base · Π (1 + aᵢ(vᵢ − ½)) / Π (1 + aᵢ/2), an absent factor being exactly 1.

    Args:
        columns: s arrays (n,), NaN absent.
        strengths: Shape (s,); aᵢ in [0, 2); the base's own is not read.
        base: Position of the base.
        fills: Shape (s,), NaN for none; the base's own is read too.

    Returns:
        Shape (n,) in [0, 1]; 0 where the base is absent.
    """
    scores = _filled(columns[base], fills[base])
    for position, (column, strength, fill) in enumerate(
        zip(columns, strengths, fills, strict=True)
    ):
        if position != base and strength > 0.0:
            factors = 1.0 + strength * (_filled(column, fill) - 0.5)
            # Divided step by step: no product of many bounds can overflow.
            scores = scores * np.where(np.isnan(factors), 1.0, factors) / (1.0 + strength / 2.0)
    return np.fmin(np.fmax(scores, 0.0), 1.0)


def _pattern_weights(weights: FloatArray) -> FloatArray:
    """The present weight of each of the 2^s presence patterns, summed in the order of the inputs."""
    patterns = np.arange(1 << len(weights))
    table = np.zeros(len(patterns))
    for bit, weight in enumerate(weights):
        table[(patterns >> bit) & 1 == 1] += weight
    return table


def _block_rows(inputs: int) -> int:
    return max(_BLOCK_CELLS // max(inputs, 1), 256)


def _blocks(rows: int, size: int) -> Iterator[slice]:
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def _filled(column: FloatArray, fill: float) -> FloatArray:
    """A contiguous copy with the absent ones replaced; ``log`` may round strided input otherwise."""
    values = np.array(column, dtype=np.float64)
    if not math.isnan(fill):
        values[np.isnan(values)] = fill
    return values

"""Between which bounds the values of evidence lie, before, between and behind the steps of a curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from rankblend.kernels.curves import LEAST
from rankblend.relevance.evidence import Evidence

if TYPE_CHECKING:
    from rankblend.relevance.curves import CurveStep

__all__ = ["Span", "after", "hull", "interval"]


@frozen
class Span:
    """Where values lie, and whether 0 means "not at all" there."""

    name: str
    low: float
    high: float
    zero: bool = False

    def beyond(self, low: float, high: float) -> bool:
        """Whether some values may lie outside of [low, high]."""
        return self.low < low or self.high > high

    def __str__(self) -> str:
        return f"{self.name} lies in {interval(self.low, self.high)}"


def hull(kinds: Sequence[Evidence]) -> Span:
    """The span that holds the values of all these kinds of evidence."""
    low, high = min(kind.low for kind in kinds), max(kind.high for kind in kinds)
    return Span(kinds[0].name, low, high, all(kind.natural_zero for kind in kinds))


def after(step: CurveStep, span: Span) -> Span:
    """The span behind one step: a curve that only rises or falls takes ends to ends."""
    curve, name = step.curve, f"the result of {step.name}"
    if curve.batch_relative or curve.direction == "mixed" or span.beyond(*curve.needs):
        return Span(name, 0.0, 1.0, span.zero and curve.batch_relative)
    ends = np.array([span.low, span.high, 0.0 if span.zero else span.low])
    low, high, zero = map(float, curve.function(ends, **dict(step.params)))
    # Of a falling curve 0 is the far end, such as "not reached"; a rising one can keep a zero.
    is_zero = high == 0.0 if curve.direction == "falling" else span.zero and zero == 0.0
    return Span(name, min(low, high), max(low, high), is_zero)


def interval(low: float, high: float) -> str:
    """For people: ``[0, 1]``, ``(0, inf)``."""
    left = "(0" if low == LEAST else "(-inf" if low <= -1e308 else f"[{low:g}"
    return f"{left}, inf)" if high >= 1e308 else f"{left}, {high:g}]"

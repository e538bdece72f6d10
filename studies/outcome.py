"""What a part of the study yields, and how its numbers are written."""

from __future__ import annotations

import math

from attrs import frozen

from rankblend.experiment.inference import Comparison, Contrast, Interval
from rankblend.experiment.report import Section

__all__ = ["MEASURE", "Outcome", "clear", "contrast_cell", "contrast_of", "decimals", "interval_cell", "signed"]

MEASURE = "nDCG@10"


@frozen(eq=False)
class Outcome:
    """One part of the study.

    Attributes:
        findings: Sentences for the summary, each with its numbers.
        sections: For the page.
    """

    findings: tuple[str, ...]
    sections: tuple[Section, ...]


def decimals(value: float) -> str:
    """Three decimals without the zero before the point, as tables of measures are written."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}".replace("0.", ".", 1)


def signed(value: float) -> str:
    """The same with a sign; a true minus."""
    shown = f"{value:+.3f}"
    if shown in ("+0.000", "-0.000"):
        return ".000"
    return shown.replace("0.", ".", 1).replace("-", "−")


def interval_cell(interval: Interval) -> str:
    """``+.014 [+.001, +.028]``."""
    return f"{signed(interval.mean)} [{signed(interval.low)}, {signed(interval.high)}]"


def contrast_cell(contrast: Contrast) -> str:
    """The interval of a contrast, with ``*`` where its family-wise p is below .05."""
    if contrast.not_run is not None or contrast.interval is None:
        return "not run"
    return interval_cell(contrast.interval) + (" *" if contrast.p < 0.05 else "")


def clear(interval: Interval | None) -> int:
    """1 where an interval lies above zero, −1 below, 0 where it holds zero."""
    if interval is None or interval.low <= 0.0 <= interval.high:
        return 0
    return 1 if interval.low > 0.0 else -1


def contrast_of(comparison: Comparison, arm: str) -> Contrast:
    """The contrast of an arm."""
    return next(contrast for contrast in comparison if contrast.arm == arm)

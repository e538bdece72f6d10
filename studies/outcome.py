"""What a part of the study yields, and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from rankblend.experiment.inference import Comparison, Contrast, Interval
from rankblend.experiment.report import Section, interval_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "MEASURE",
    "Claim",
    "Outcome",
    "clear",
    "contrast_cell",
    "contrast_figure",
    "contrast_of",
    "decimals",
    "interval_cell",
    "judged",
    "listed",
    "signed",
]

MEASURE = "nDCG@10"


@frozen
class Claim:
    """A figure of the earlier prototype, looked at again.

    Attributes:
        text: What was claimed.
        before: Its numbers then.
        now: Its numbers here.
        verdict: ``confirmed``, ``partly``, ``not shown`` or ``refuted``; see `judged`.
    """

    text: str
    before: str
    now: str
    verdict: str


@frozen(eq=False)
class Outcome:
    """One part of the study.

    Attributes:
        findings: Sentences for the summary, each with its numbers.
        sections: For the page.
        claims: What of the earlier prototype it speaks to.
    """

    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    claims: tuple[Claim, ...] = ()


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


def judged(contrasts: Sequence[Contrast], *, sign: int) -> str:
    """Whether contrasts bear out a claimed direction.

    An entry is clear where its interval leaves out zero. ``confirmed``: the mean has the claimed
    sign, some are clear, none the other way. ``partly``: the same with clear ones either way.
    ``refuted``: the mean has the other sign and some are clear that way. Else ``not shown``.
    """
    mean = sign * sum(contrast.difference for contrast in contrasts) / len(contrasts)
    signs = [clear(contrast.interval) * sign for contrast in contrasts]
    if mean > 0.0 and 1 in signs:
        return "partly" if -1 in signs else "confirmed"
    return "refuted" if mean < 0.0 and -1 in signs else "not shown"


def listed(contrasts: Sequence[Contrast]) -> str:
    """``better in 3, worse in 5 of 9 (mean −.020)``: by intervals that leave out zero."""
    signs = [clear(contrast.interval) for contrast in contrasts]
    mean = sum(contrast.difference for contrast in contrasts) / len(contrasts)
    return (
        f"better in {signs.count(1)}, worse in {signs.count(-1)} of {len(signs)} "
        f"(mean {signed(mean)})"
    )


def contrast_figure(rows: Sequence[tuple[str, Contrast]], *, label: str, zero: str = "") -> Figure:
    """Contrasts with their intervals, one line each; a single cluster has none to draw."""
    ends = [c.interval or Interval(c.difference, -math.inf, math.inf, 1) for _, c in rows]
    return interval_plot(
        [name for name, _ in rows],
        [contrast.difference for _, contrast in rows],
        [interval.low for interval in ends],
        [interval.high for interval in ends],
        label=label,
        zero=zero,
    )

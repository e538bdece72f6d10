"""The regression gate: a change passes when it is shown to be no worse than allowed."""

from __future__ import annotations

import math
from enum import StrEnum

from attrs import evolve, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import Comparison, Contrast, Interval, compare
from rankblend.experiment.results import Results

__all__ = ["GateResult", "GateRow", "GateVerdict", "judge_gate", "judge_results"]


class GateVerdict(StrEnum):
    """What the interval of a difference says against the least effect that matters."""

    PASSED = "passed"  # the whole interval lies above −min_effect: no worse than allowed
    REGRESSED = "regressed"  # the whole interval lies below 0 and reaches beyond −min_effect
    INCONCLUSIVE = "inconclusive"  # too few queries to tell
    NOT_RUN = "not run"


@frozen
class GateRow:
    """One arm and measure.

    Attributes:
        contrast: The numbers.
        verdict: What follows from them.
        words: One line for people.
    """

    contrast: Contrast
    verdict: GateVerdict
    words: str


@frozen
class GateResult:
    """The gate's decision.

    Attributes:
        rows: One a contrast.
        min_effect: The loss that is allowed.
    """

    rows: tuple[GateRow, ...]
    min_effect: float

    @property
    def passed(self) -> bool:
        """Every row passed; an arm that did not run and one that cannot be told do not."""
        return all(row.verdict is GateVerdict.PASSED for row in self.rows)


def judge_gate(comparison: Comparison, *, min_effect: float) -> GateResult:
    """Judge every contrast for non-inferiority.

    A row passes when the lower end of its interval is above ``−min_effect``, after widening it for
    few units: a percentile interval over n units is too narrow by t/z·√(n/(n−1)). No correction for many
    rows is needed: all have to pass (intersection-union). Not having found a difference is not
    enough; with too few queries the gate stays shut and says how many would do.

    Args:
        comparison: Of the candidate arms with what is in use now.
        min_effect: The greatest loss of the measure that does not matter, > 0.

    Raises:
        InvalidArgumentError: ``min_effect`` is not above 0, or there is nothing to judge.

    Source: widening: Hesterberg, What teachers should know about the bootstrap, The American
    Statistician 69, 2015. Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 24,
    1982 (intersection-union); non-inferiority by confidence interval: ICH E9, 1998.
    """
    problems = []
    if not 0.0 < min_effect < 1e308:
        problems.append(f"min_effect: expected a finite number > 0, got {min_effect!r}")
    if not comparison.contrasts:
        problems.append("comparison: expected at least one contrast")
    if problems:
        raise InvalidArgumentError(problems)
    rows = tuple(
        _judge(contrast, min_effect, comparison.confidence) for contrast in comparison.contrasts
    )
    return GateResult(rows, min_effect)


def judge_results(results: Results, *, min_effect: float) -> GateResult:
    """Judge every arm of some results against the first, by every measure.

    Where the first did not run, or no other, nothing can be told and the gate stays shut.

    Raises:
        InvalidArgumentError: As `judge_gate`, or no query has judgments.
    """
    baseline, *others = results.arms
    if results.ran(baseline) and any(map(results.ran, others)):
        return judge_gate(compare(results), min_effect=min_effect)
    why = results.not_run.get(baseline)
    rows = [
        Contrast(arm, baseline, measure, not_run=results.not_run.get(arm, f"{baseline}: {why}"))
        for measure in results.values
        for arm in others
    ]
    return GateResult(tuple(_judge(row, min_effect, math.nan) for row in rows), min_effect)


def _widened(interval: Interval, confidence: float) -> Interval:
    if interval.clusters < 2:
        return interval
    from scipy.special import ndtri, stdtrit

    tail, n = (1.0 + confidence) / 2.0, interval.clusters
    factor = float(stdtrit(n - 1, tail) / ndtri(tail)) * math.sqrt(n / (n - 1))
    low, high = (interval.mean + (end - interval.mean) * factor
                 for end in (interval.low, interval.high))  # fmt: skip
    return evolve(interval, low=low, high=high)


def _judge(contrast: Contrast, min_effect: float, confidence: float) -> GateRow:
    where = f"{contrast.arm} against {contrast.baseline}, {contrast.measure}"
    interval = contrast.interval and _widened(contrast.interval, confidence)
    if interval is None:
        return GateRow(contrast, GateVerdict.NOT_RUN, f"{where}: not run: {contrast.not_run}")
    allowed = f"a loss of {min_effect:g} is allowed"
    if interval.clusters > 1 and interval.low > -min_effect:
        return GateRow(contrast, GateVerdict.PASSED, f"{where}: {interval}, {allowed}")
    if interval.clusters > 1 and interval.high < 0.0:
        return GateRow(contrast, GateVerdict.REGRESSED, f"{where}: {interval}, {allowed}")
    if interval.clusters == 1:
        told = f"{where}: a single cluster tells nothing about others"
        return GateRow(contrast, GateVerdict.INCONCLUSIVE, told)
    # The distance from the mean to the lower end shrinks with the root of the number of units.
    room = interval.mean + min_effect
    needed = (
        f"about {interval.clusters * ((interval.mean - interval.low) / room) ** 2:.0f} units needed"
        if room > 0.0
        else "the mean itself is below what is allowed"
    )
    return GateRow(
        contrast, GateVerdict.INCONCLUSIVE,
        f"{where}: {interval} of {interval.clusters} units, {allowed}, {needed}",
    )  # fmt: skip

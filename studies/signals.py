"""Which signals earn what: leave one out, and exact Shapley values, per data set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from attrs import frozen

from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.plans import grid, leave_one_out, subsets
from rankblend.experiment.report import Section, Table, interval_plot
from rankblend.experiment.shapley import Shapley, shapley_values
from studies.outcome import (
    MEASURE,
    Claim,
    Outcome,
    clear,
    contrast_cell,
    contrast_figure,
    decimals,
    interval_cell,
)
from studies.replays import measured
from studies.subjects import Subject, studied_profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["signal_study"]

RECENCY_WEIGHTS = (0.05, 0.1, 0.3)
RECENCY_DAYS = (7, 90)


@frozen(eq=False)
class _Measured:
    """What leaving out and adding in showed on one subject."""

    subject: Subject
    left_out: Comparison
    shapley: Shapley


def signal_study(subjects: Sequence[Subject]) -> Outcome:
    """Part (a)."""
    found = [_measure(subject) for subject in subjects]
    left_out, earned = _tables(found)
    first = [each for each in found if each.subject.embedder == subjects[0].embedder]
    sections = [
        Section(
            "(a) Leave one signal out",
            (
                f"Difference in {MEASURE} between the profile without the signal and the whole "
                "profile: below zero, the signal helps. `keyword` and `coverage` are both of the "
                "keyword store and largely redundant, so each may be missed little alone. "
                "`*`: p < .05, corrected over the signals of the row's data set.",
            ),
            (left_out,),
            (_left_out_figure(first),),
        ),
        Section(
            "(a) What each signal earns: Shapley values",
            (
                f"Each signal's share of {MEASURE}, averaged over all orders in which the signals "
                "could have been added; a row sums to the value of the whole profile. "
                "`proximity` alone returns nothing, because the walk through the graph starts from "
                "what other stores propose: those arms count 0, and its whole worth is what it "
                "adds to others.",
            ),
            (earned,),
            (_shapley_figure(first),),
        ),
    ]
    dated = [(one, _recency(one)) for one in subjects if one.name == "locomo"]
    if dated:
        sections.append(_recency_section(dated))
    claims = tuple(_recency_claim(comparison) for _, comparison in dated[:1])
    return Outcome((_finding(first),), tuple(sections), claims)


def _measure(subject: Subject) -> _Measured:
    profile = studied_profile()
    left_out = compare(measured(subject, leave_one_out(profile)))
    every = subsets(profile)
    results = measured(subject, every.plan)
    return _Measured(subject, left_out, shapley_values(every, results, measure=MEASURE))


def _tables(found: Sequence[_Measured]) -> tuple[Table, Table]:
    signals = found[0].shapley.signals
    left_out, earned = [], []
    for each in found:
        subject, whole = each.subject, each.left_out.contrasts[0].baseline_value
        head = (subject.title, subject.embedder, decimals(whole))
        size = (len(subject.recording), subject.clusters)
        left_out.append((*head, *(contrast_cell(c) for c in each.left_out), *size))
        earned.append((*head, *(interval_cell(i) for i in each.shapley.intervals), *size))
    columns = ("data set", "embedder", "whole")
    return (
        Table((*columns, *(f"− {name}" for name in signals), "queries", "clusters"), left_out),
        Table((*columns, *signals, "queries", "clusters"), earned),
    )


def _left_out_figure(found: Sequence[_Measured]) -> Figure:
    return contrast_figure(
        [(f"{each.subject.title} {c.arm}", c) for each in found for c in each.left_out],
        label=f"difference in {MEASURE}, {found[0].subject.embedder}",
        zero="whole profile",
    )


def _shapley_figure(found: Sequence[_Measured]) -> Figure:
    rows = [
        (f"{each.subject.title}: {signal}", interval)
        for each in found
        for signal, interval in zip(each.shapley.signals, each.shapley.intervals, strict=True)
    ]
    return interval_plot(
        [name for name, _ in rows],
        [i.mean for _, i in rows],
        [i.low for _, i in rows],
        [i.high for _, i in rows],
        label=f"share of {MEASURE}, {found[0].subject.embedder}",
    )


def _recency(subject: Subject) -> Comparison:
    plan = grid(
        studied_profile(),
        {
            "score.weights.recency": RECENCY_WEIGHTS,
            "signals.recency.curve.half_life.days": RECENCY_DAYS,
        },
    )
    # The baseline reads recency only to order equals, for which its half-life does not matter.
    return compare(measured(subject, plan))


def _recency_section(found: Sequence[tuple[Subject, Comparison]]) -> Section:
    points = list(product(RECENCY_WEIGHTS, RECENCY_DAYS))
    rows = [
        (subject.title, subject.embedder, f"{weight:g}", days, decimals(c.value), contrast_cell(c),
         len(subject.recording), subject.clusters)
        for subject, comparison in found
        for (weight, days), c in zip(points, comparison, strict=True)
    ]  # fmt: skip
    return Section(
        "(a) Adding recency, where there are dates",
        (
            "Recency as one more signal of the score; only LoCoMo is dated. Its questions are asked "
            "on the day of the last session and mostly about what lies months back. `*`: p < .05, "
            "corrected over the rows of an embedder.",
        ),
        (
            Table(
                ("data set", "embedder", "weight", "half-life, days", MEASURE,
                 "difference to weight 0", "queries", "clusters"),
                rows,
            ),
        ),
    )  # fmt: skip


def _recency_claim(comparison: Comparison) -> Claim:
    costs = dict(zip(product(RECENCY_WEIGHTS, RECENCY_DAYS), comparison, strict=True))
    small, great = costs[0.1, 7], costs[0.3, 7]
    holds = clear(small.interval) == 0 and -0.031 <= great.difference <= -0.010
    return Claim(
        "recency (half-life 7 days) of weight .1 is neutral on LoCoMo, of .3 costs little",
        ".1: .000; .3: −.010 to −.031",
        f".1: {contrast_cell(small)}; .3: {contrast_cell(great)}",
        "confirmed" if holds else "refuted",
    )


def _finding(found: Sequence[_Measured]) -> str:
    parts = []
    for each in found:
        missed = [c for c in each.left_out if clear(c.interval) == -1]
        harmful = [c for c in each.left_out if clear(c.interval) == 1]
        told = [f"{c.arm.removeprefix('without ')} {contrast_cell(c)}" for c in missed]
        part = f"{each.subject.title} {', '.join(told) or 'none clearly'}"
        if harmful:
            part += f"; better {', '.join(f'{c.arm} {contrast_cell(c)}' for c in harmful)}"
        parts.append(part)
    return (
        f"Signals that are missed when left out ({found[0].subject.embedder}): {'. '.join(parts)}."
    )

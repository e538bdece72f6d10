"""Which signals earn what: leave one out, and exact Shapley values, per data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.plans import grid, leave_one_out, subsets
from rankblend.experiment.report import Section, Table, interval_plot
from rankblend.experiment.shapley import Shapley, shapley_values
from studies.outcome import (
    MEASURE,
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
    dated = [subject for subject in subjects if subject.name == "locomo"]
    if dated:
        sections.append(_recency_section(dated))
    return Outcome((_finding(first),), tuple(sections))


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


def _recency_section(subjects: Sequence[Subject]) -> Section:
    rows = []
    for subject in subjects:
        plan = grid(studied_profile(), {"score.weights.recency": RECENCY_WEIGHTS})
        comparison = compare(measured(subject, plan))
        rows += [
            (subject.title, subject.embedder, f"{weight:g}", decimals(c.value), contrast_cell(c),
             len(subject.recording), subject.clusters)
            for weight, c in zip(RECENCY_WEIGHTS, comparison, strict=True)
        ]  # fmt: skip
    return Section(
        "(a) Adding recency, where there are dates",
        ("Recency (half-life 7 days) as one more signal of the score; only LoCoMo is dated.",),
        (Table(("data set", "embedder", "weight", MEASURE, "difference to weight 0", "queries",
                "clusters"), rows),),
    )  # fmt: skip


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

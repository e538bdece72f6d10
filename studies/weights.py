"""Fitted weights against those given and against uniform ones, on clusters they never saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.experiment.fit import WeightFit, fit_weights
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.experiment.report import Section, Table
from rankblend.profiles import RankingProfile
from studies.outcome import MEASURE, Outcome, contrast_cell, contrast_figure, decimals, listed
from studies.subjects import Subject, studied_profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["weight_study"]

STARTS = 16


@frozen(eq=False)
class _Measured:
    subject: Subject
    fit: WeightFit


def weight_study(subjects: Sequence[Subject]) -> Outcome:
    """Part (d)."""
    found = [_Measured(subject, _fitted(subject)) for subject in subjects]
    section = Section(
        "(d) Fitted weights on held-out clusters",
        (
            f"The weights of the score's inputs (`words`, `similarity`, `proximity`) are learned "
            f"for {MEASURE} by coordinate ascent on four fifths of the clusters and judged on the "
            "rest, five times, so that every query is judged by weights that never saw its "
            "cluster. *given* are the weights of `default`; they were chosen on every other "
            "conversation of LoCoMo, every other question of MuSiQue and every other scenario of "
            "BFCL, so they are not wholly held out there, which favours them; they never saw τ². "
            "*seen*: the final weights on the queries they were fitted on. `*`: p < .05, corrected "
            "over the row.",
        ),
        (_values(found), _weights(found)),
        (_figure(found),),
    )
    return Outcome((_finding(found),), (section,))


def _fitted(subject: Subject) -> WeightFit:
    recording = subject.recording
    return fit_weights(
        studied_profile(),
        lambda profiles: _measured(recording, profiles),
        queries=recording.ids,
        clusters=recording.clusters,
        measure=MEASURE,
        dataset=recording.manifest.dataset,
        starts=STARTS,
    )


def _measured(recording: Recording, profiles: Sequence[RankingProfile]) -> NDArray[np.float64]:
    named = {str(number): profile for number, profile in enumerate(profiles)}
    return replay(recording, named, [MEASURE]).measure(MEASURE)


def _values(found: Sequence[_Measured]) -> Table:
    rows = []
    for each in found:
        fitted, given, uniform = each.fit.held_out.mean(MEASURE)
        against = {c.baseline: c for c in each.fit.comparison if c.arm == "fitted"}
        uniform_to_given = next(c for c in each.fit.comparison if c.arm == "uniform")
        rows.append(
            (
                each.subject.title, each.subject.embedder, decimals(fitted), decimals(given),
                decimals(uniform), contrast_cell(against["given"]),
                contrast_cell(against["uniform"]), contrast_cell(uniform_to_given),
                decimals(each.fit.seen), each.fit.tried,
                len(each.subject.recording), each.subject.clusters,
            )
        )  # fmt: skip
    return Table(
        ("data set", "embedder", "fitted", "given", "uniform", "fitted − given",
         "fitted − uniform", "uniform − given", "seen", "weightings tried", "queries", "clusters"),
        rows,
    )  # fmt: skip


def _weights(found: Sequence[_Measured]) -> Table:
    rows = []
    for each in found:
        for name, weight in each.fit.weights.items():
            folds = [fold[name] for fold in each.fit.folds]
            rows.append(
                (each.subject.title, each.subject.embedder, name, decimals(weight),
                 f"{decimals(min(folds))} to {decimals(max(folds))}", decimals(_given(name)))
            )  # fmt: skip
    return Table(("data set", "embedder", "input", "fitted on all", "over folds", "given"), rows)


def _given(name: str) -> float:
    held = dict(studied_profile().score.weights)
    return held[name] / sum(held.values())


def _figure(found: Sequence[_Measured]) -> Figure:
    return contrast_figure(
        [
            (f"{each.subject.title}, {each.subject.embedder}: − {c.baseline}", c)
            for each in found
            for c in each.fit.comparison
            if c.arm == "fitted"
        ],
        label=f"held-out {MEASURE}, fitted minus the other",
    )


def _finding(found: Sequence[_Measured]) -> str:
    gains = {
        baseline: [
            c
            for each in found
            for c in each.fit.comparison
            if c.arm == "fitted" and c.baseline == baseline
        ]
        for baseline in ("given", "uniform")
    }
    told = ", ".join(
        f"{each.subject.title} ({each.subject.embedder}) {contrast_cell(c)}"
        for each, c in zip(found, gains["given"], strict=True)
    )
    return (
        "Fitted weights on held-out clusters: against those given "
        f"{listed(gains['given'])}: {told}; against uniform {listed(gains['uniform'])}."
    )

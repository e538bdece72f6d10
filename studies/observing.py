"""Propose-only against propose-then-observe, and lone hits when a curve is mis-scaled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.plans import Arm, Plan, missing_policies, revise
from rankblend.experiment.replay import replay
from rankblend.experiment.report import Section, Table
from rankblend.relevance.missing import Shrink, Zero
from studies.absence import CONDITIONS, measure_condition
from studies.outcome import MEASURE, Outcome, clear, contrast_cell, contrast_of, decimals
from studies.subjects import Subject, studied_profile

__all__ = ["lone_hits_study", "observing_study"]

POOLS = (20, 50, 100)
_CUT = "cut + renormalize"
_MIS_SCALED = 0.5  # c of x / (x + c) where 6 is right: almost every word match is near 1


@frozen(eq=False)
class _Cell:
    subject: Subject
    pool: int
    comparison: Comparison


def observing_study(subjects: Sequence[Subject]) -> Outcome:
    """Part (b), whether every store should be asked about every candidate."""
    cells = [_cell(subject, pool) for subject in subjects for pool in POOLS]
    rows = [
        (
            cell.subject.name, cell.subject.embedder, cell.pool,
            decimals(cell.comparison.contrasts[0].baseline_value),
            *(contrast_cell(contrast) for contrast in cell.comparison),
            len(cell.subject.recording), cell.subject.clusters,
        )
        for cell in cells
    ]  # fmt: skip
    arms = [contrast.arm for contrast in cells[0].comparison]
    section = Section(
        "(b) Propose only, or propose and then observe",
        (
            f"Differences in {MEASURE} to asking every store about every candidate "
            "(`renormalize`). *cut*: a store is heard only on what it proposed itself, as where "
            "result lists are cut and fused. `*`: p < .05, corrected over the row.",
        ),
        (
            Table(
                ("data set", "embedder", "pool", "observed", *arms, "queries", "clusters"), rows
            ),
        ),
    )
    return Outcome(tuple(_findings(cells)), (section,))


def _cell(subject: Subject, pool: int) -> _Cell:
    whole = revise(studied_profile(), {"pool.size": pool})
    policies = missing_policies(whole, [Zero(), Shrink(0.2, 0.5)])
    cut = [evolve(arm, name=f"cut + {arm.name}", observe=False) for arm in policies.arms]
    plan = Plan(
        Arm("observed", whole),
        [*policies.arms, Arm(_CUT, whole, observe=False), *cut],
        ("replay.observe", *policies.studied),
    )
    return _Cell(subject, pool, compare(replay(subject.recording, plan, [MEASURE])))


def _findings(cells: Sequence[_Cell]) -> list[str]:
    told = []
    for arm in (_CUT, "cut + zero"):
        contrasts = [contrast_of(cell.comparison, arm) for cell in cells]
        signs = [clear(contrast.interval) for contrast in contrasts]
        told.append(
            f"{arm} {np.mean([c.value for c in contrasts]):.3f} (worse in {signs.count(-1)}, "
            f"better in {signs.count(1)} cells)"
        )
    observed = np.mean([cell.comparison.contrasts[0].baseline_value for cell in cells])
    return [
        f"Propose-then-observe reaches {observed:.3f} on the mean of {len(cells)} cells (data set "
        f"× embedder × pool), against {' and '.join(told)}."
    ]


def lone_hits_study(subjects: Sequence[Subject]) -> Outcome:
    """Part (b), whether memories of which little is known win when a curve is mis-scaled."""
    condition = next(one for one in CONDITIONS if one.name == "30 % without a vector")
    rows, gaps = [], {True: [], False: []}
    for subject in subjects:
        for mis_scaled in (False, True):
            profile = studied_profile()
            if mis_scaled:
                profile = revise(
                    profile, {"signals.keyword.curve": {"saturation": {"c": _MIS_SCALED}}}
                )
            results = measure_condition(subject, condition, profile, top=10)
            comparison = compare(results)
            shares = np.nanmean(results.coverage, axis=1)
            zero, shrink = (contrast_of(comparison, arm) for arm in ("zero", "shrink(0.2, 0.5)"))
            gaps[mis_scaled].append(shrink.difference)
            rows.append(
                (
                    subject.name, subject.embedder, f"c = {_MIS_SCALED if mis_scaled else 6:g}",
                    decimals(zero.baseline_value), contrast_cell(zero), contrast_cell(shrink),
                    *(decimals(float(shares[results.arm(arm)]))
                      for arm in ("renormalize", "zero", "shrink(0.2, 0.5)")),
                    len(subject.recording), len(condition.regimes), subject.clusters,
                )
            )  # fmt: skip
    section = Section(
        "(b) Lone hits and a mis-scaled curve",
        (
            f"30 % of the memories without a vector; BM25 through x / (x + c). With c = "
            f"{_MIS_SCALED:g} almost every memory that shares a word scores near 1, so that one "
            "without a vector, which keeps only that, passes those whose cosine speaks against "
            "them. The last three columns of shares: how much of the score's weight was present, "
            "on average, in the ten memories returned; the less, the more lone hits won.",
        ),
        (
            Table(
                ("data set", "embedder", "keyword curve", "renormalize", "zero",
                 "shrink(0.2, 0.5)", "present: renormalize", "present: zero", "present: shrink",
                 "queries", "draws", "clusters"),
                rows,
            ),
        ),
    )  # fmt: skip
    finding = (
        "With the keyword curve mis-scaled, shrink(.2, .5) gains "
        f"{np.mean(gaps[True]):+.3f} over renormalize on average where 30 % have no vector; with "
        f"the right scale {np.mean(gaps[False]):+.3f}."
    )
    return Outcome((finding,), (section,))

"""What an absent signal should count as, under stated regimes of absence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.plans import (
    AllObserved,
    Combined,
    Disjoint,
    Plan,
    Regime,
    Unheld,
    missing_policies,
    revise,
)
from rankblend.experiment.replay import replay
from rankblend.experiment.report import Section, Table, interval_plot
from rankblend.experiment.results import Results
from rankblend.experiment.slices import Slice, compare_slices, presence_patterns
from rankblend.profiles import RankingProfile
from rankblend.relevance.missing import Neutral, Renormalize, Require, Shrink, Zero
from studies.draws import stacked
from studies.outcome import MEASURE, Outcome, clear, contrast_cell, contrast_of, decimals
from studies.subjects import Subject, studied_profile

__all__ = ["CONDITIONS", "Condition", "absence_study", "measure_condition"]

POLICIES = (Renormalize(), Zero(), Neutral(0.5), Shrink(0.2, 0.5), Require(0.5))
DRAWS = 3
FEWEST = 20  # queries, over all draws, of a slice that is shown
_STORES = ("vectors", "keywords", "graph")


@frozen
class Condition:
    """Under which the policies are compared.

    Attributes:
        name: As tables show it.
        regimes: One a draw.
        observe: False: a store tells only of what it proposed itself.
        pool: Proposals of each store.
    """

    name: str
    regimes: tuple[Regime, ...] = (AllObserved(),)
    observe: bool = True
    pool: int = 100

    @property
    def random(self) -> bool:
        """Memories are taken from stores at random."""
        return not isinstance(self.regimes[0], AllObserved)


CONDITIONS = (
    Condition("all observed"),
    Condition("30 % without a vector", tuple(Unheld("vectors", 0.3, n) for n in range(DRAWS))),
    Condition(
        "disjoint stores", tuple(Disjoint(("keywords", "vectors"), n) for n in range(DRAWS))
    ),
    Condition(
        "every store lacks 30 %",
        tuple(
            Combined(tuple(Unheld(store, 0.3, n) for store in _STORES)) for n in range(DRAWS)
        ),
    ),
    Condition("cut-off pools of 100", observe=False),
    Condition("cut-off pools of 20", observe=False, pool=20),
)


@frozen(eq=False)
class _Measured:
    subject: Subject
    condition: Condition
    results: Results
    comparison: Comparison


def absence_study(subjects: Sequence[Subject]) -> Outcome:
    """Part (b), the policies."""
    found = [
        _Measured(subject, condition, results, compare(results))
        for subject in subjects
        for condition in CONDITIONS
        for results in [measure_condition(subject, condition, studied_profile())]
    ]
    sections = [
        Section(
            "(b) What an absent signal counts as",
            (
                f"Differences in {MEASURE} to `renormalize`, the default, under the same "
                "condition. Below zero: `renormalize` is better. `require(0.5)` drops what less "
                "than half of the weight is known of, which is everything without words. `*`: "
                "p < .05, corrected over the four policies of a row; with 5 clusters (BFCL) no p "
                "can be below .0625, so no star can appear there.",
            ),
            (_policy_table(found),),
            (_policy_figure([f for f in found if f.subject.embedder == subjects[0].embedder]),),
        ),
        _slices_section([each for each in found if each.condition.random]),
    ]
    return Outcome(tuple(_findings(found)), tuple(sections))


def measure_condition(
    subject: Subject, condition: Condition, profile: RankingProfile, *, top: int = 100
) -> Results:
    """The policies on a subject, first `Renormalize`; all draws, stacked."""
    whole = revise(profile, {"pool.size": condition.pool})
    plan = missing_policies(whole, POLICIES)
    plan = Plan(
        evolve(plan.baseline, name="renormalize", observe=condition.observe),
        [evolve(arm, observe=condition.observe) for arm in plan.arms],
        plan.studied,
        skipped=plan.skipped,
    )
    return stacked(
        [
            replay(subject.recording, plan.under(regime), [MEASURE], top=top)
            for regime in condition.regimes
        ]
    )


def _policy_table(found: Sequence[_Measured]) -> Table:
    rows = []
    for each in found:
        contrasts = list(each.comparison)
        rows.append(
            (
                each.subject.name, each.subject.embedder, each.condition.name,
                decimals(contrasts[0].baseline_value),
                *(contrast_cell(contrast) for contrast in contrasts),
                len(each.subject.recording), len(each.condition.regimes), each.subject.clusters,
            )
        )  # fmt: skip
    arms = [contrast.arm for contrast in found[0].comparison]
    return Table(
        ("data set", "embedder", "condition", "renormalize", *arms, "queries", "draws",
         "clusters"),
        rows,
    )  # fmt: skip


def _policy_figure(found: Sequence[_Measured]):
    rows = [
        (f"{each.subject.name}, {each.condition.name}", contrast_of(each.comparison, "zero"))
        for each in found
    ]
    return interval_plot(
        [name for name, _ in rows],
        [c.difference for _, c in rows],
        [c.interval.low for _, c in rows],
        [c.interval.high for _, c in rows],
        label=f"zero − renormalize, {MEASURE}, {found[0].subject.embedder}",
    )


def _slices_section(found: Sequence[_Measured]) -> Section:
    rows = []
    for each in found:
        for part in _slices(each):
            contrasts = {contrast.arm: contrast for contrast in part.contrasts}
            count = part.contrasts[0].queries
            if count < FEWEST:
                continue
            rows.append(
                (
                    each.subject.name, each.subject.embedder, each.condition.name, part.name,
                    decimals(part.contrasts[0].baseline_value),
                    *(contrast_cell(contrast) for contrast in contrasts.values()),
                    count, part.units,
                )
            )  # fmt: skip
    arms = [contrast.arm for contrast in found[0].comparison]
    return Section(
        "(b) By what the relevant memories lacked",
        (
            "The same differences on the queries of which at least one relevant memory lacked the "
            "named signals in its pool. `*`: p < .05, corrected over all patterns and policies of "
            f"a data set and condition. Patterns with fewer than {FEWEST} queries over all draws "
            "are left out; a query counts once a draw.",
        ),
        (
            Table(
                ("data set", "embedder", "condition", "relevant memories", "renormalize", *arms,
                 "queries × draws", "clusters"),
                rows,
            ),
        ),
    )  # fmt: skip


def _slices(each: _Measured) -> Sequence[Slice]:
    profile, recording = studied_profile(), each.subject.recording
    labels: list[str] = []
    for regime in each.condition.regimes:
        pools = (query.candidates(profile, regime=regime) for query in recording)
        labels += presence_patterns(profile, pools, [query.grades for query in recording])
    return compare_slices(each.results, labels, measure=MEASURE)


def _findings(found: Sequence[_Measured]) -> list[str]:
    """For each policy: where it beats `renormalize` and where it loses to it, in how many cells."""
    sentences = []
    for truly, name in ((True, "evidence truly absent"), (False, "cut-off pools")):
        cells = [
            each
            for each in found
            if (each.condition.random if truly else not each.condition.observe)
        ]
        told = []
        for arm in [contrast.arm for contrast in found[0].comparison]:
            contrasts = [contrast_of(each.comparison, arm) for each in cells]
            signs = [clear(contrast.interval) for contrast in contrasts]
            mean = np.mean([contrast.difference for contrast in contrasts])
            told.append(
                f"{arm} is better than renormalize in {signs.count(1)}, worse in "
                f"{signs.count(-1)} (mean difference {mean:+.3f})"
            )
        sentences.append(
            f"With {name}, of {len(cells)} cells (data set × embedder × condition): "
            f"{'; '.join(told)}."
        )
    return sentences



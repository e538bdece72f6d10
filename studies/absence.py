"""What an absent signal should count as, under stated regimes of absence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from rankblend.experiment.inference import Comparison, Contrast, compare
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
from rankblend.experiment.report import Section, Table
from rankblend.experiment.results import Results
from rankblend.experiment.slices import (
    COMPLETE,
    NOT_IN_POOL,
    Slice,
    compare_slices,
    presence_patterns,
)
from rankblend.profiles import RankingProfile
from rankblend.relevance import Neutral, Renormalize, Require, Shrink, Zero
from studies.draws import stacked
from studies.outcome import (
    MEASURE,
    Claim,
    Outcome,
    contrast_cell,
    contrast_figure,
    contrast_of,
    decimals,
    judged,
    listed,
    signed,
)
from studies.replays import measured
from studies.subjects import Subject, studied_profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONDITIONS", "Condition", "absence_study", "measure_condition"]

POLICIES = (Renormalize(), Zero(), Neutral(0.5), Shrink(0.2, 0.5), Require(0.5))
DRAWS = 3
FEWEST = 20  # queries, over all draws, of a slice that is shown
_STORES = ("vectors", "keywords", "graph")
# What the earlier prototype had under a condition: renormalize, zero, shrink(.2, .5).
_BEFORE = {
    "30 % without a vector": (".576", ".542", ".593"),
    "disjoint stores": (".481", ".452", ".476"),
    "every store lacks 30 %": (".485", ".382", ".489"),
}


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
    Condition("disjoint stores", tuple(Disjoint(("keywords", "vectors"), n) for n in range(DRAWS))),
    Condition(
        "every store lacks 30 %",
        tuple(Combined(tuple(Unheld(store, 0.3, n) for store in _STORES)) for n in range(DRAWS)),
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
    parts = [(each, part) for each in found if each.condition.random for part in _slices(each)]
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
        _slices_section(parts),
    ]
    return Outcome(_findings(found, parts), tuple(sections), _claims(found))


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
    return stacked([measured(subject, plan.under(regime), top=top) for regime in condition.regimes])


def _policy_table(found: Sequence[_Measured]) -> Table:
    rows = []
    for each in found:
        contrasts = list(each.comparison)
        rows.append(
            (
                each.subject.title, each.subject.embedder, each.condition.name,
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


def _policy_figure(found: Sequence[_Measured]) -> Figure:
    return contrast_figure(
        [
            (f"{each.subject.title}, {each.condition.name}", contrast_of(each.comparison, "zero"))
            for each in found
        ],
        label=f"zero − renormalize, {MEASURE}, {found[0].subject.embedder}",
    )


def _slices_section(parts: Sequence[tuple[_Measured, Slice]]) -> Section:
    rows = [
        (
            each.subject.title, each.subject.embedder, each.condition.name, part.name,
            decimals(part.contrasts[0].baseline_value), *map(contrast_cell, part.contrasts),
            part.contrasts[0].queries, part.units,
        )
        for each, part in parts
        if part.contrasts[0].queries >= FEWEST
    ]  # fmt: skip
    arms = [contrast.arm for contrast in parts[0][1].contrasts]
    return Section(
        "(b) By what the relevant memories lacked",
        (
            "The same differences on the queries of which at least one relevant memory lacked the "
            "named signals in its pool. `*`: p < .05, corrected over all patterns and policies of "
            f"a data set and condition. Patterns with fewer than {FEWEST} queries over all draws "
            "are left out; a query counts once a draw. τ² has no links, so `proximity` is lacking "
            "there throughout; a memory of MuSiQue or BFCL without any link lacks it too.",
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


def _findings(
    found: Sequence[_Measured], parts: Sequence[tuple[_Measured, Slice]]
) -> tuple[str, ...]:
    absent = [each.comparison for each in found if each.condition.random]
    cut = [each.comparison for each in found if not each.condition.observe]

    def against(cells: Sequence[Comparison]) -> str:
        return "; ".join(
            f"{arm} {listed([contrast_of(cell, arm) for cell in cells])}"
            for arm in [contrast.arm for contrast in cells[0]]
        )

    whole = [p for each, p in parts if p.name == _complete(each)]
    lacking = [p for each, p in parts if p.name not in (_complete(each), NOT_IN_POOL)]
    return (
        "Where stores truly lack memories, against leaving an absent signal out (renormalize), in "
        f"cells of data set × embedder × condition: {against(absent)}.",
        "Zero is a trade: it moves questions whose relevant memories lack nothing by "
        f"{signed(_mean_of_zero(whole))} and those with a relevant memory that lacks a signal by "
        f"{signed(_mean_of_zero(lacking))}.",
        f"In cut-off pools, where an absent value means *further down*: {against(cut)}.",
    )


def _complete(each: _Measured) -> str:
    """What the pattern is called where nothing lacks that the data set gives at all."""
    return "lacks proximity" if each.subject.name == "tau2-banking" else COMPLETE


def _mean_of_zero(parts: Sequence[Slice]) -> float:
    contrasts = [c for part in parts for c in part.contrasts if c.arm == "zero"]
    sizes = [contrast.queries for contrast in contrasts]
    return float(np.average([c.difference for c in contrasts], weights=sizes)) if sizes else np.nan


def _claims(found: Sequence[_Measured]) -> tuple[Claim, ...]:
    claims = []
    for condition, (renormalize, zero, shrink) in _BEFORE.items():
        cells = [each.comparison for each in found if each.condition.name == condition]
        zeros = [contrast_of(cell, "zero") for cell in cells]
        shrunk = [contrast_of(cell, "shrink(0.2, 0.5)") for cell in cells]
        claims.append(
            Claim(
                f"renormalize beats zero: {condition}",
                f"{renormalize} against {zero}",
                f"{_mean(zeros, 'baseline_value')} against {_mean(zeros, 'value')}; zero "
                f"{listed(zeros)}",
                judged(zeros, sign=-1),
            )
        )
        claims.append(
            Claim(
                f"shrink(.2, .5) {'beats' if shrink > renormalize else 'is below'} renormalize: "
                f"{condition}",
                f"{shrink} against {renormalize}",
                f"{_mean(shrunk, 'value')} against {_mean(shrunk, 'baseline_value')}; shrink "
                f"{listed(shrunk)}",
                judged(shrunk, sign=1 if shrink > renormalize else -1),
            )
        )
    return tuple(claims)


def _mean(contrasts: Sequence[Contrast], name: str) -> str:
    return decimals(float(np.mean([getattr(contrast, name) for contrast in contrasts])))

"""Propose-only against propose-then-observe, and lone hits when a curve is mis-scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.plans import Arm, Plan, Regime, missing_policies, revise
from rankblend.experiment.report import Section, Table
from rankblend.profiles import RankingProfile
from rankblend.recall import rank_candidates
from rankblend.recall._derive import derive
from rankblend.relevance import Shrink, Zero
from studies.absence import CONDITIONS, measure_condition
from studies.outcome import (
    MEASURE,
    Claim,
    Outcome,
    contrast_cell,
    contrast_of,
    decimals,
    judged,
    listed,
)
from studies.replays import measured
from studies.subjects import Subject, studied_profile

__all__ = ["lone_hits_study", "observing_study"]

POOLS = (20, 50, 100)
_CUT, _CUT_ZERO = "cut + renormalize", "cut + zero"
_FILLING = ("zero", "shrink(0.2, 0.5)")
_GOOD_SCALE = 6.0
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
            cell.subject.title, cell.subject.embedder, cell.pool,
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
        (Table(("data set", "embedder", "pool", "observed", *arms, "queries", "clusters"), rows),),
    )
    return Outcome((_finding(cells),), (section,), _claims(cells))


def _cell(subject: Subject, pool: int) -> _Cell:
    whole = revise(studied_profile(), {"pool.size": pool})
    policies = missing_policies(whole, [Zero(), Shrink(0.2, 0.5)])
    cut = [evolve(arm, name=f"cut + {arm.name}", observe=False) for arm in policies.arms]
    plan = Plan(
        Arm("observed", whole),
        [*policies.arms, Arm(_CUT, whole, observe=False), *cut],
        ("replay.observe", *policies.studied),
    )
    return _Cell(subject, pool, compare(measured(subject, plan)))


def _finding(cells: Sequence[_Cell]) -> str:
    told = [
        f"{arm} {_mean(cells, arm)}, {listed([contrast_of(c.comparison, arm) for c in cells])}"
        for arm in (_CUT, _CUT_ZERO)
    ]
    return (
        f"Asking every store about every candidate reaches {_observed(cells)} on the mean of data "
        f"set × embedder × pool; hearing a store only on its own proposals: {'; '.join(told)}."
    )


def _claims(cells: Sequence[_Cell]) -> tuple[Claim, ...]:
    claims = []
    for arm, before in ((_CUT, ".552"), (_CUT_ZERO, ".602")):
        contrasts = [contrast_of(cell.comparison, arm) for cell in cells]
        claims.append(
            Claim(
                f"propose-then-observe beats {arm}",
                f".606 against {before}",
                f"{_observed(cells)} against {_mean(cells, arm)}; {arm} {listed(contrasts)}",
                judged(contrasts, sign=-1),
            )
        )
    return tuple(claims)


def _observed(cells: Sequence[_Cell]) -> str:
    values = [cell.comparison.contrasts[0].baseline_value for cell in cells]
    return decimals(float(np.mean(values)))


def _mean(cells: Sequence[_Cell], arm: str) -> str:
    return decimals(float(np.mean([contrast_of(c.comparison, arm).value for c in cells])))


@frozen(eq=False)
class _Scaled:
    """The policies under one scale of the keyword curve.

    Attributes:
        subject: On what.
        c: Of x / (x + c).
        comparison: Of the policies.
        lacking: Policy → share of the first ten memories that have no vector; ``pool`` → of all.
    """

    subject: Subject
    c: float
    comparison: Comparison
    lacking: Mapping[str, float]


def lone_hits_study(subjects: Sequence[Subject]) -> Outcome:
    """Part (b), whether memories of which little is known win when a curve is mis-scaled."""
    condition = next(one for one in CONDITIONS if one.name == "30 % without a vector")
    found = []
    for subject in subjects:
        for c in (_GOOD_SCALE, _MIS_SCALED):
            profile = revise(studied_profile(), {"signals.keyword.curve": {"saturation": {"c": c}}})
            comparison = compare(measure_condition(subject, condition, profile))
            lacking = _lacking(subject, profile, condition.regimes[0])
            found.append(_Scaled(subject, c, comparison, lacking))
    rows = [
        (
            each.subject.title, each.subject.embedder, f"c = {each.c:g}",
            decimals(each.comparison.contrasts[0].baseline_value),
            *(contrast_cell(contrast_of(each.comparison, arm)) for arm in _FILLING),
            *map(decimals, each.lacking.values()),
            len(each.subject.recording), len(condition.regimes), each.subject.clusters,
        )
        for each in found
    ]  # fmt: skip
    section = Section(
        "(b) Lone hits and a mis-scaled curve",
        (
            f"30 % of the memories without a vector; BM25 through x / (x + c). With c = "
            f"{_MIS_SCALED:g} almost every memory that shares a word scores near 1, so that one "
            "without a vector, which keeps only that, passes those whose cosine speaks against "
            "them. *no vector*: the share of memories without a vector in the pool and among the "
            "first ten of each policy (first draw); above that of the pool, lone hits win. `*`: "
            "p < .05, corrected over the policies.",
        ),
        (
            Table(
                ("data set", "embedder", "keyword curve", "renormalize", *_FILLING,
                 *(f"no vector: {name}" for name in found[0].lacking), "queries", "draws",
                 "clusters"),
                rows,
            ),
        ),
    )  # fmt: skip
    good, bad = ([each for each in found if each.c == c] for c in (_GOOD_SCALE, _MIS_SCALED))
    gained = [contrast_of(each.comparison, "shrink(0.2, 0.5)") for each in bad]
    finding = (
        f"Lone hits: without a vector are {_share(bad, 'pool')} of the pool, and of renormalize's "
        f"first ten {_share(good, 'renormalize')} with the keyword curve scaled as shipped, "
        f"{_share(bad, 'renormalize')} with it mis-scaled, where shrink(.2, .5) is "
        f"{listed(gained)}."
    )
    claim = Claim(
        "lone hits win when curves are mis-scaled, and shrink mends it",
        "–",
        f"no vector: pool {_share(bad, 'pool')}, first ten {_share(bad, 'renormalize')} "
        f"(right scale {_share(good, 'renormalize')}); shrink {listed(gained)}",
        judged(gained, sign=1),
    )
    return Outcome((finding,), (section,), (claim,))


def _share(found: Sequence[_Scaled], name: str) -> str:
    return f"{100 * float(np.mean([each.lacking[name] for each in found])):.0f} %"


def _lacking(subject: Subject, profile: RankingProfile, regime: Regime) -> Mapping[str, float]:
    """The share of memories without a vector: in the pool, and in the first ten of each policy."""
    plan = missing_policies(profile, [Zero(), Shrink(0.2, 0.5)])
    arms = {"renormalize": profile} | {arm.name: arm.profile for arm in plan.arms}
    shares: dict[str, list[float]] = {name: [] for name in ("pool", *arms)}
    for query in subject.recording:
        pool = query.candidates(profile, regime=regime)
        absent = np.isnan(derive(profile, pool).table.column("similarity"))
        shares["pool"].append(float(absent.mean()))
        for name, arm in arms.items():
            ranking = rank_candidates(arm, pool, top=10)
            shares[name].append(float(absent[ranking.rows[ranking.shown]].mean()))
    return {name: float(np.mean(column)) for name, column in shares.items()}

"""Off, blend and backfill on hierarchies whose construction is stated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from rankblend.experiment.datasets import load_dataset
from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.plans import Arm, Plan, revise
from rankblend.experiment.report import Section, Table
from rankblend.experiment.slices import Slice, compare_slices
from studies.hierarchies import CONSTRUCTIONS, placed, whereabouts
from studies.outcome import MEASURE, Outcome, contrast_cell, contrast_figure, decimals, signed
from studies.replays import measured
from studies.subjects import PATHS, Subject, few_queries, recorded, studied_profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SETS", "scope_study"]

SETS = ("locomo", "bfcl")


@frozen(eq=False)
class _Measured:
    subject: Subject
    construction: str
    comparison: Comparison
    slices: tuple[Slice, ...]


def scope_study(
    embedders: Sequence[str],
    *,
    data: Path,
    work: Path,
    limit: int | None = None,
    sets: Sequence[str] = SETS,
) -> Outcome:
    """Part (c)."""
    found = [
        _measure(_subject(name, embedder, construction, data=data, work=work, limit=limit),
                 construction)
        for embedder in embedders
        for name in sets
        for construction in CONSTRUCTIONS
    ]  # fmt: skip
    halves = [
        each
        for each in found
        if each.construction == "half shared" and each.subject.embedder == embedders[0]
    ]
    section = Section(
        "(c) Off, blend, backfill",
        (
            "No public data set is known whose memories lie at several levels by nature, so these "
            "hierarchies are made. Of each conversation (LoCoMo) or scenario (BFCL) a seeded half "
            "of the sessions is moved to the root that all conversations share, the other half "
            "stays with the conversation (*half shared*); or all stay near; or all are shared. "
            "Questions are asked at their conversation with reach `ancestors`: near memories are "
            "at distance 0, shared ones at distance 1, amid those of all other conversations. By "
            "chance alone half of the answers are near: a hierarchy in which what is near is more "
            "often right would favour blending more, one in which it is not less.",
            f"Differences in {MEASURE} to mode `off`, with one embedder, by where the relevant memories lie. `*`: "
            "p < .05, corrected over the modes and places of a data set and construction.",
        ),
        (_table(found),),
        (_figure(halves),),
    )
    return Outcome((_finding(halves),), (section,))


def _subject(
    name: str, embedder: str, construction: str, *, data: Path, work: Path, limit: int | None
) -> Subject:
    dataset = few_queries(load_dataset(name, data / PATHS[name]), limit)
    dataset = placed(dataset, CONSTRUCTIONS[construction])
    file = f"{name}-{construction.replace(' ', '-')}"
    recording = recorded(dataset, file, embedder, [studied_profile()], work=work)
    return Subject(name, embedder, dataset, recording)


def _measure(subject: Subject, construction: str) -> _Measured:
    profile = studied_profile()
    modes = {
        "blend": {"scope.mode": "blend"},
        "blend, half-life 4": {"scope.mode": "blend", "scope.half_life_levels": 4.0},
        "backfill": {"scope.mode": "backfill"},
    }
    plan = Plan(
        Arm("off", profile),
        [Arm(name, revise(profile, values)) for name, values in modes.items()],
        ("scope",),
    )
    results = measured(subject, plan)
    labels = [f"all {construction}"] if construction != "half shared" else []
    slices = (
        () if labels else compare_slices(results, whereabouts(subject.dataset), measure=MEASURE)
    )
    return _Measured(subject, construction, compare(results), tuple(slices))


def _table(found: Sequence[_Measured]) -> Table:
    rows = []
    for each in found:
        head = (each.subject.title, each.subject.embedder, each.construction)
        whole = Slice("anywhere", each.comparison.units, each.comparison.contrasts)
        rows += [
            (*head, part.name, decimals(part.contrasts[0].baseline_value),
             *(contrast_cell(contrast) for contrast in part.contrasts),
             part.contrasts[0].queries, part.units)
            for part in (whole, *each.slices)
        ]  # fmt: skip
    arms = [contrast.arm for contrast in found[0].comparison]
    return Table(
        ("data set", "embedder", "construction", "relevant memories", "off", *arms, "queries",
         "clusters"),
        rows,
    )  # fmt: skip


def _figure(found: Sequence[_Measured]) -> Figure:
    return contrast_figure(
        [
            (f"{each.subject.title}, {part.name}: {contrast.arm}", contrast)
            for each in found
            for part in each.slices
            for contrast in part.contrasts
        ],
        label=f"difference in {MEASURE}, half shared",
        zero="off",
    )


def _finding(found: Sequence[_Measured]) -> str:
    told = []
    for each in found:
        whole = ", ".join(f"{c.arm} {contrast_cell(c)}" for c in each.comparison)
        places = "; ".join(
            f"{part.name} {', '.join(f'{c.arm} {signed(c.difference)}' for c in part.contrasts)}"
            for part in each.slices
        )
        told.append(f"{each.subject.title}: {whole} (by where the answers lie: {places})")
    return (
        f"Scope modes against off, half of the sessions shared ({found[0].subject.embedder}): "
        f"{'. '.join(told)}."
    )

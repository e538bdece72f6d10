"""The figures of an earlier prototype, each confirmed or refuted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rankblend.experiment.inference import Contrast, compare
from rankblend.experiment.report import Section, Table
from studies.outcome import MEASURE, Claim, Outcome, contrast_cell, decimals, judged
from studies.replays import measured
from studies.subjects import Subject, presets_compared

__all__ = ["preset_study"]


def preset_study(subjects: Sequence[Subject]) -> Outcome:
    """Presets against keyword search alone, where the earlier prototype had looked: on LoCoMo."""
    rows: list[tuple[str | int | float | None, ...]] = []
    claims: tuple[Claim, ...] = ()
    for subject in (one for one in subjects if one.name == "locomo"):
        results = measured(subject, presets_compared())
        comparison = compare(results)
        size = (len(subject.recording), subject.clusters)
        keyword = comparison.contrasts[0].baseline_value
        rows.append((subject.embedder, "keyword only", decimals(keyword), None, *size))
        rows += [
            (subject.embedder, c.arm, decimals(c.value), contrast_cell(c), *size)
            for c in comparison
        ]
        if subject.embedder == "wordllama":
            claims = _claims({c.arm: c for c in comparison})
    section = Section(
        "Presets on LoCoMo",
        (
            f"{MEASURE}, difference to keyword only (BM25 of this package's keyword store). "
            "*symfonic, overlap cue*: its weights with the share of the question's words as cue in "
            "place of the cosine. `*`: p < .05, corrected over the presets.",
        ),
        (
            Table(
                ("embedder", "profile", MEASURE, "difference to keyword only", "queries",
                 "clusters"),
                rows,
            ),
        ),
    )  # fmt: skip
    return Outcome((), (section,), claims)


def _claims(told: Mapping[str, Contrast]) -> tuple[Claim, ...]:
    rrf, symfonic = told["rrf"], told["symfonic, overlap cue"]
    return (
        Claim(
            "equal-weight RRF is below BM25 on LoCoMo",
            ".360 against .436",
            f"{decimals(rrf.value)} against {decimals(rrf.baseline_value)}, {contrast_cell(rrf)}",
            judged([rrf], sign=-1),
        ),
        Claim(
            "symfonic's weights with an overlap cue are far below BM25 on LoCoMo",
            ".239 against .436",
            f"{decimals(symfonic.value)} against {decimals(symfonic.baseline_value)}, "
            f"{contrast_cell(symfonic)}",
            judged([symfonic], sign=-1),
        ),
    )

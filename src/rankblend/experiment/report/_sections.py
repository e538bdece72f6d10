"""The sections reports are made of: what was measured, how arms compare, and how to read it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rankblend.experiment.inference import Comparison, Contrast
from rankblend.experiment.report._plots import interval_plot
from rankblend.experiment.report._report import Section, Table, p_value
from rankblend.experiment.results import Results
from rankblend.experiment.shapley import Shapley
from rankblend.experiment.slices import Slice

_ENOUGH_UNITS = 20
_MANIFEST = (
    ("dataset", "data set"),
    ("licence", "licence"),
    ("dataset_hash", "data set hash"),
    ("memories", "memories"),
    ("queries", "queries"),
    ("excluded", "left out of the data set"),
    ("embedder", "embedder"),
    ("statistics", "keyword statistics"),
    ("reach", "reach"),
    ("depth", "proposals a store"),
    ("scoring_version", "scoring version"),
    ("rankblend", "rankblend"),
)


def manifest_section(results: Results) -> Section:
    """What was measured, and the hash of every arm."""
    manifest = results.manifest
    rows = [(label, _shown(manifest[key])) for key, label in _MANIFEST if manifest.get(key)]
    arms = [(name, digest[:16]) for name, digest in zip(results.arms, results.hashes, strict=True)]
    return Section(
        "What was measured", (), (Table(("", "value"), rows), Table(("arm", "hash"), arms))
    )


def comparison_section(
    comparison: Comparison,
    *,
    title: str,
    text: tuple[str, ...] = (),
    arms: Collection[str] | None = None,
    results: Results | None = None,
) -> Section:
    """Arms against their baselines, by each measure: a table, and a figure a measure.

    Args:
        comparison: The contrasts.
        title: The heading.
        text: Paragraphs below it.
        arms: Show only these; None for all.
        results: With `judged_measures`, to show how much of each result was judged.
    """
    wanted = [c for c in comparison if arms is None or c.arm in arms]
    ran = [contrast for contrast in wanted if contrast.not_run is None]
    rows = [
        (
            c.measure,
            c.arm,
            c.baseline,
            c.value,
            c.difference,
            c.interval.ends if c.interval else None,
            p_value(c.p),
            c.effect,
            f"{c.wins}/{c.ties}/{c.losses}",
            c.empty,
            c.coverage,
            _judged_share(results, c),
        )
        for c in ran
    ]
    columns = (
        "measure", "arm", "against", "value", "difference",
        f"{comparison.confidence:.0%} interval", "p", "effect d", "wins/ties/losses", "empty",
        "coverage", "judged",
    )  # fmt: skip
    tables = [Table(columns, rows)]
    not_run = {c.arm: c.not_run for c in wanted if c.not_run is not None}
    if not_run:
        tables.append(Table(("arm", "not run, because"), list(not_run.items())))
    groups: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in ran:
        groups.setdefault((contrast.measure, contrast.baseline), []).append(contrast)
    figures = [_interval_figure(measure, base, found) for (measure, base), found in groups.items()]
    return Section(title, text, tables, figures)


def reading_section(comparison: Comparison, results: Results) -> Section:
    """How the numbers were made and what they cannot say."""
    judged = int(results.judged.sum())
    unit = comparison.unit
    tried = (
        f" The ledger knows {comparison.tried} profiles measured on these queries; p is corrected "
        "for all of them."
        if comparison.tried is not None
        else " Profiles measured on these queries at other times are not in it: a ledger would know."
    )
    narrow = (
        " With fewer than 20 units a percentile interval is too narrow (one of 95 % covers about "
        "91 % with 10 units, 85 % with 5): trust p more."
        if comparison.units < _ENOUGH_UNITS
        else ""
    )
    signs = "every sign vector" if comparison.exact else f"{comparison.flips:,} random sign vectors"
    return Section(
        "How to read this",
        (
            f"{judged:,} queries with judgments, in {comparison.units:,} independent units "
            f"({unit}). {results.judged.size - judged:,} queries without judgments are excluded. A "
            "query that returned nothing counts as 0 and under empty; an arm that did not run is "
            "listed as not run, never as 0.",
            f"Intervals: percentile bootstrap of the mean paired difference over whole units, "
            f"{comparison.resamples:,} resamples, seed {comparison.seed}. p: two-sided sign-flip "
            f"test over whole units ({signs}), corrected by the greatest statistic over the family "
            f"of {comparison.family} rows (max-T). With so many units no p can be below "
            f"{p_value(comparison.smallest_p)}.{tried}",
            "Intervals are not corrected for the number of rows: judge one row by its interval, "
            "and a choice among many by p. Coverage: mean share of the score's weight whose signal "
            "was present; judged: share of the first k results that have a judgment. nDCG has linear gains and log2 discounts."
            + narrow,
        ),
    )


def judged_measures(measures: Iterable[str]) -> tuple[str, ...]:
    """``Judged@k`` for each cutoff k among some measures, to be measured beside them."""
    cutoffs = dict.fromkeys(name.rpartition("@")[2] for name in measures if "@" in name)
    return tuple(f"Judged@{cutoff}" for cutoff in cutoffs if cutoff.isdigit())


def _judged_share(results: Results | None, contrast: Contrast) -> float | None:
    name = f"Judged@{contrast.measure.rpartition('@')[2]}"
    if results is None or name not in results.values:
        return None
    return float(results.mean(name)[results.arm(contrast.arm)])


def slices_section(slices: Sequence[Slice], *, measure: str, title: str = "By family") -> Section:
    """Every arm on every slice of the queries; p is corrected over all of them."""
    rows = [
        (
            part.name or "(none)",
            c.arm,
            c.queries,
            part.units,
            c.value,
            c.difference,
            c.interval.ends if c.interval else None,
            p_value(c.p),
        )
        for part in slices
        for c in part.contrasts
        if c.not_run is None
    ]
    columns = ("slice", "arm", "queries", "units", measure, "difference", "95% interval", "p")
    return Section(title, (), (Table(columns, rows),))


def shapley_section(shapley: Shapley) -> Section:
    """What each signal earns of a measure, as a table and as bars."""
    rows = [
        (name, i.mean, i.ends) for name, i in zip(shapley.signals, shapley.intervals, strict=True)
    ]
    text = (
        f"Each signal's share of {shapley.measure}, averaged over all orders in which signals "
        "could be added; the shares sum to the measure of the profile with all of them.",
    )
    figure = interval_plot(
        shapley.signals,
        [i.mean for i in shapley.intervals],
        [i.low for i in shapley.intervals],
        [i.high for i in shapley.intervals],
        label=f"share of {shapley.measure}",
    )
    table = Table(("signal", f"share of {shapley.measure}", "95% interval"), rows)
    return Section("What each signal earns (Shapley values)", text, (table,), (figure,))


def _interval_figure(measure: str, baseline: str, contrasts: list[Contrast]) -> Any:
    return interval_plot(
        [c.arm for c in contrasts],
        [c.difference for c in contrasts],
        [c.interval.low if c.interval else c.difference for c in contrasts],
        [c.interval.high if c.interval else c.difference for c in contrasts],
        label=f"difference in {measure}",
        zero=baseline,
    )


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {number}" for key, number in value.items())
    return str(value)

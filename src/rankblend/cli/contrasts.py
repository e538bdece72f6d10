"""The table of a comparison: one line an arm, the first measure of all that were asked for."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankblend.experiment.inference import Comparison, Contrast
from rankblend.experiment.report import p_value

__all__ = ["contrast_table"]


def contrast_table(comparison: Comparison) -> RenderableType:
    """Arms against their baselines, measure by measure."""
    parts: list[RenderableType] = []
    groups: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in comparison:
        groups.setdefault((contrast.measure, contrast.baseline), []).append(contrast)
    for (measure, baseline), contrasts in groups.items():
        value = next((c.baseline_value for c in contrasts if c.not_run is None), None)
        shown = "" if value is None else f" {value:.4f}"
        parts.append(Text(f"{measure}, difference to {baseline}{shown}", "bold"))
        parts.append(_table(contrasts, comparison.confidence))
    first = next(iter(comparison))
    parts.append(
        Text(
            f"{first.queries:,} judged queries ({first.excluded:,} without judgments) in "
            f"{comparison.units:,} units ({comparison.unit}); p corrected for "
            f"{comparison.family} rows, none can be below {p_value(comparison.smallest_p)}",
            "dim",
        )
    )
    return Group(*parts)


def _table(contrasts: list[Contrast], confidence: float) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("arm")
    for column in ("value", "difference", f"{confidence:.0%} interval", "p", "w/t/l"):
        table.add_column(column, justify="right", no_wrap=True)
    for c in contrasts:
        if c.not_run is not None:
            table.add_row(Text(c.arm), Text("not run"), "", Text(c.not_run, "yellow"), "", "")
            continue
        low, high = (c.interval.low, c.interval.high) if c.interval else (None, None)
        sure = low is not None and high is not None and (low > 0 or high < 0)
        table.add_row(
            Text(c.arm),
            f"{c.value:.4f}",
            Text(f"{c.difference:+.4f}", "bold" if sure else ""),
            "" if low is None else f"[{low:+.4f}, {high:+.4f}]",
            p_value(c.p),
            f"{c.wins}/{c.ties}/{c.losses}",
        )
    return table

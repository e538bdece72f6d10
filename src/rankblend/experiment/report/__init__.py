"""Reports of experiments as HTML, Markdown, LaTeX, CSV and JSON, with their figures."""

from __future__ import annotations

from rankblend.experiment.report._plots import heat_map, interval_plot, line_plot, rank_moves
from rankblend.experiment.report._report import Report, Section, Table, p_value
from rankblend.experiment.report._sections import (
    comparison_section,
    judged_measures,
    manifest_section,
    reading_section,
    shapley_section,
    slices_section,
)

__all__ = [
    "Report",
    "Section",
    "Table",
    "comparison_section",
    "heat_map",
    "interval_plot",
    "judged_measures",
    "line_plot",
    "manifest_section",
    "p_value",
    "rank_moves",
    "reading_section",
    "shapley_section",
    "slices_section",
]

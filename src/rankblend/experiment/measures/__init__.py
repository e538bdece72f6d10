"""Measures of rankings: named as ir-measures names them, computed in batches where it matters."""

from __future__ import annotations

from rankblend.experiment.measures._judgments import Graded, Judgments
from rankblend.experiment.measures._measure import (
    Measure,
    measure_rankings,
    parse_measure,
    parse_measures,
)

__all__ = [
    "Graded",
    "Judgments",
    "Measure",
    "measure_rankings",
    "parse_measure",
    "parse_measures",
]

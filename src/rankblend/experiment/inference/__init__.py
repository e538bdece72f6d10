"""How sure a difference between two profiles is, and how many were tried to find it."""

from __future__ import annotations

from rankblend.experiment.inference.compare import Comparison, Contrast, Tried, compare
from rankblend.experiment.inference.effects import (
    effect_sizes,
    minimum_detectable,
    standard_errors,
    wins_ties_losses,
)
from rankblend.experiment.inference.holm import holm
from rankblend.experiment.inference.intervals import (
    Interval,
    bootstrap_intervals,
    paired_interval,
)
from rankblend.experiment.inference.permutation import SignFlipTest, sign_flip_test, smallest_p
from rankblend.experiment.inference.units import Units, group_units

__all__ = [
    "Comparison",
    "Contrast",
    "Interval",
    "SignFlipTest",
    "Tried",
    "Units",
    "bootstrap_intervals",
    "compare",
    "effect_sizes",
    "group_units",
    "holm",
    "minimum_detectable",
    "paired_interval",
    "sign_flip_test",
    "smallest_p",
    "standard_errors",
    "wins_ties_losses",
]

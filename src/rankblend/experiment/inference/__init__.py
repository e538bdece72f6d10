"""How sure a difference between two profiles is, and how many were tried to find it."""

from __future__ import annotations

from rankblend.experiment.inference._contrasts import (
    Comparison,
    Contrast,
    Differences,
    Tried,
    compare,
    contrasts_not_run,
    describe,
    with_p,
)
from rankblend.experiment.inference._intervals import (
    Interval,
    bootstrap_intervals,
    effect_sizes,
    minimum_detectable,
    paired_interval,
    standard_errors,
    wins_ties_losses,
)
from rankblend.experiment.inference._permutation import (
    SignFlipTest,
    holm,
    sign_flip_test,
    smallest_p,
)
from rankblend.experiment.inference._units import Units, group_units

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

"""Plans: which arms an experiment runs, generated from a profile and checked for confounding."""

from __future__ import annotations

from rankblend.experiment.plans._edit import (
    profile_differences,
    revise,
    scored_signals,
    without_signals,
)
from rankblend.experiment.plans._parts import (
    SubsetPlan,
    add_one_in,
    leave_one_out,
    proposing,
    store_dropout,
    subsets,
)
from rankblend.experiment.plans._plan import Arm, Plan
from rankblend.experiment.plans._regime import (
    AllObserved,
    Combined,
    Disjoint,
    Regime,
    Unheld,
    keep_proposed,
    mask_evidence,
)
from rankblend.experiment.plans._search import guided_search
from rankblend.experiment.plans._variants import (
    Range,
    curve_swaps,
    grid,
    missing_policies,
    pool_depths,
    random_search,
    random_weights,
    scope_modes,
)

__all__ = [
    "AllObserved",
    "Arm",
    "Combined",
    "Disjoint",
    "Plan",
    "Range",
    "Regime",
    "SubsetPlan",
    "Unheld",
    "add_one_in",
    "curve_swaps",
    "grid",
    "guided_search",
    "keep_proposed",
    "leave_one_out",
    "mask_evidence",
    "missing_policies",
    "pool_depths",
    "profile_differences",
    "proposing",
    "random_search",
    "random_weights",
    "revise",
    "scope_modes",
    "scored_signals",
    "store_dropout",
    "subsets",
    "without_signals",
]

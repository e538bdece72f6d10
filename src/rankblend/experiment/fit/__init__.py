"""Fitting profiles to judgments: weights, floors and curves, each judged on held-out clusters."""

from __future__ import annotations

from rankblend.experiment.fit._calibration import Calibration, calibrate_curve, with_curve
from rankblend.experiment.fit._cutoffs import Cutoff, CutoffQuality, tune_cutoff, with_cutoff
from rankblend.experiment.fit._weights import Evaluator, WeightFit, fit_weights, grouped_folds

__all__ = [
    "Calibration",
    "Cutoff",
    "CutoffQuality",
    "Evaluator",
    "WeightFit",
    "calibrate_curve",
    "fit_weights",
    "grouped_folds",
    "tune_cutoff",
    "with_curve",
    "with_cutoff",
]

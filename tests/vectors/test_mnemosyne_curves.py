"""The shared expected values for the success rate and the freshness of procedures."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rankblend.relevance import EVIDENCE, apply_curve, apply_curve_details, parse_curve

Vectors = Callable[[str], Any]
DAY = 86_400.0
COUNTS = ("runs", "successes", "judged_runs", "judged_successes")
KINDS = [EVIDENCE[name] for name in COUNTS] + [EVIDENCE[f"parent_{name}"] for name in COUNTS]


def rate(case: dict[str, Any]) -> tuple[float, bool]:
    parent = case["parent"] or dict.fromkeys(COUNTS, math.nan)
    counts = [case[name] for name in COUNTS] + [parent[name] for name in COUNTS]
    options = {name: case[name] for name in ("prior_weight", "agent_verdict_weight")}
    signal, told = apply_curve_details(
        parse_curve({"smoothed_rate": options}), [np.array([float(n)]) for n in counts], KINDS
    )
    return float(signal[0]), bool(told["uses_parent_prior"][0])


def test_success_rate_when_compared_with_the_expected_values_then_equal(vectors: Vectors) -> None:
    cases = vectors("mnemosyne")["success_rate"]
    assert any(case["parent"] for case in cases)
    for case in cases:
        expected = pytest.approx(case["success_rate"], rel=1e-15, abs=0)
        assert rate(case) == (expected, case["uses_parent_prior"]), case["name"]


def test_success_rate_when_there_is_no_parent_then_four_columns_are_enough(
    vectors: Vectors,
) -> None:
    for case in vectors("mnemosyne")["success_rate"]:
        if case["parent"] is None:
            options = {name: case[name] for name in ("prior_weight", "agent_verdict_weight")}
            columns = [np.array([float(case[name])]) for name in COUNTS]
            signal = apply_curve(parse_curve({"smoothed_rate": options}), columns, KINDS[:4])
            assert signal[0] == rate(case)[0]


def test_freshness_when_compared_with_the_expected_values_then_equal(vectors: Vectors) -> None:
    cases = vectors("mnemosyne")["freshness"]
    assert any(case["days_since_last_run"] < 0 for case in cases)
    for case in cases:
        steps = parse_curve({"half_life": {"days": case["half_life_days"]}})
        ages = np.array([case["days_since_last_run"] * DAY])
        result = apply_curve(steps, [ages], [EVIDENCE["age_last_run"]])
        assert result[0] == pytest.approx(case["freshness"], rel=1e-14, abs=0), case


def test_worked_example_when_its_rates_are_computed_then_as_printed(vectors: Vectors) -> None:
    rows = {row["name"]: row for row in vectors("mnemosyne")["worked_example"]["rows"]}
    for row in rows.values():
        counts = {"judged_runs": 0, "judged_successes": 0}
        parent = rows[row["parent"]] if row["parent"] else None
        case = {
            **row,
            **counts,
            "parent": {**parent, **counts} if parent else None,
            "prior_weight": 5.0,
            "agent_verdict_weight": 0.5,
        }
        expected = pytest.approx(row["success_rate"], rel=1e-15, abs=0)
        assert rate(case) == (expected, row["uses_parent_prior"]), row["name"]

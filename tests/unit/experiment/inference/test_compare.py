"""Comparisons: every number of a row, exclusions, several baselines, arms that did not run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.experiment.inference import (
    Tried,
    compare,
    effect_sizes,
    group_units,
    holm,
    minimum_detectable,
    standard_errors,
)
from rankblend.experiment.results import Results


def make_results(values, *, clusters=None, judged=None, not_run=None, measure="nDCG@10"):
    table = np.asarray(values, np.float64)
    a, q = table.shape
    mask = np.ones(q, np.bool_) if judged is None else np.asarray(judged, np.bool_)
    return Results(
        tuple(f"arm{i}" for i in range(a)),
        tuple(f"{i:064x}" for i in range(a)),
        tuple(f"q{i}" for i in range(q)),
        tuple(clusters) if clusters else tuple(f"q{i}" for i in range(q)),
        ("",) * q,
        {measure: np.where(mask, table, np.nan)},
        mask,
        np.zeros((a, q), np.bool_),
        not_run or {},
    )


def test_row_when_compared_then_every_number_is_what_it_says():
    results = make_results([[0.5, 0.5, 0.5, 0.5, 9.0], [0.7, 0.5, 0.4, 1.0, 9.0]],
                           judged=[True, True, True, True, False])  # fmt: skip
    row = compare(results).contrasts[0]
    assert (row.arm, row.baseline, row.measure) == ("arm1", "arm0", "nDCG@10")
    assert (row.value, row.baseline_value) == (pytest.approx(0.65), 0.5)
    assert row.difference == pytest.approx((0.2 + 0.0 - 0.1 + 0.5) / 4)
    assert (row.wins, row.ties, row.losses) == (2, 1, 1)
    assert (row.queries, row.excluded) == (4, 1)
    assert row.interval.low <= row.difference <= row.interval.high
    # .5 ± .2 ± .1 is .8, .6, .4 or .2, and 0 has two signs: half of all sign vectors reach .6.
    assert row.p == 8 / 16
    assert row.effect == pytest.approx(0.15 / np.std([0.2, 0.0, -0.1, 0.5], ddof=1))


def test_p_when_there_are_more_arms_then_family_wise(rng):
    base = rng.random(40)
    arms = [base, *(base + rng.normal(0.03, 0.1, 40) for _ in range(30))]
    comparison = compare(make_results(arms))
    assert comparison.family == 30
    for row in comparison:
        assert row.p_single <= row.p <= 1.0
        assert row.p_single <= row.p_holm
    alone = compare(make_results(arms[:2])).contrasts[0]
    assert comparison.contrasts[0].p > alone.p


def test_baselines_when_there_are_two_then_each_pair_once(rng):
    results = make_results(rng.random((4, 20)))
    comparison = compare(results, baselines=["arm0", "arm1"])
    pairs = [(row.arm, row.baseline) for row in comparison]
    assert pairs == [("arm1", "arm0"), ("arm2", "arm0"), ("arm3", "arm0"),
                     ("arm2", "arm1"), ("arm3", "arm1")]  # fmt: skip
    assert comparison.family == 5


def test_arm_when_it_did_not_run_then_said_so_and_never_zero(rng):
    table = rng.random((3, 10))
    table[2] = np.nan
    results = make_results(table, not_run={"arm2": "store failed", "never made": "no such node"})
    comparison = compare(results)
    assert comparison.family == 1
    rows = {row.arm: row for row in comparison}
    for name in ("arm2", "never made"):
        assert rows[name].not_run
        assert math.isnan(rows[name].difference)
        assert math.isnan(rows[name].p)
        assert rows[name].interval is None
    with pytest.raises(InvalidArgumentError, match="did not run"):
        compare(results, baselines="arm2")


def test_results_when_a_judged_query_lacks_a_value_then_refused_not_scored(rng):
    table = rng.random((2, 10))
    table[1, 3] = np.nan
    with pytest.raises(InvalidArgumentError, match="judged query"):
        compare(make_results(table))


def test_results_when_nothing_is_judged_or_unknown_then_refused(rng):
    results = make_results(rng.random((2, 3)), judged=[False] * 3)
    with pytest.raises(InvalidArgumentError, match="no query has judgments"):
        compare(results)
    with pytest.raises(UnknownNameError):
        compare(results, measures="RR")
    with pytest.raises(UnknownNameError):
        compare(results, baselines="nobody")


def test_unit_when_queries_share_clusters_then_clusters_and_the_smallest_p_is_told(rng):
    clusters = [f"c{i % 5}" for i in range(50)]
    better = rng.random(50)
    comparison = compare(make_results([better - 0.5, better], clusters=clusters))
    assert (comparison.unit, comparison.units, comparison.exact) == ("cluster", 5, True)
    assert comparison.smallest_p == comparison.contrasts[0].p == 2 / 2**5
    assert compare(make_results([better - 0.5, better])).unit == "query"


def test_plain_when_written_as_json_then_without_nan(rng):
    results = make_results(rng.random((2, 10)), not_run={"x": "failed"})
    told = json.loads(json.dumps(compare(results).plain(), allow_nan=False))
    row, absent = told["arms"]
    assert {"arm", "measure", "difference", "interval", "p", "queries", "excluded"} <= row.keys()
    assert len(row["interval"]) == 2
    assert absent["difference"] is None
    assert absent["not_run"] == "failed"


def test_tried_when_other_profiles_were_measured_before_then_p_pays_for_them(rng):
    base = rng.random(60)
    results = make_results([base, base + rng.normal(0.03, 0.1, 60)])
    # Queries are units here, in the order of their labels.
    order = np.argsort([f"q{i}" for i in range(60)])
    before = np.stack([(base + rng.normal(0.0, 0.1, 60))[order] for _ in range(100)])
    hashes = tuple(f"{1_000 + i:064x}" for i in range(100))
    fresh = compare(results)
    paid = compare(results, tried=Tried(hashes, {"nDCG@10": before}))
    assert fresh.tried is None
    assert (paid.tried, paid.family) == (102, 101)
    assert paid.contrasts[0].p > fresh.contrasts[0].p
    assert paid.contrasts[0].p_single == fresh.contrasts[0].p_single


def test_holm_when_worked_out_by_hand_then_the_same():
    # sorted .005·4, .01·3, .03·2, .04·1, each at least the one before
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, np.nan, 0.9])[[0, 2]].tolist() == [1.0, 1.0]
    assert np.isnan(holm([0.5, np.nan, 0.9])[1])
    assert holm([]).size == 0


def test_effect_when_differences_do_not_vary_then_zero_or_infinite():
    assert effect_sizes(np.zeros((1, 5))).tolist() == [0.0]
    assert effect_sizes(np.full((1, 5), -0.1)).tolist() == [-math.inf]


def test_standard_error_when_queries_are_units_then_the_usual_one(rng):
    rows = rng.normal(size=(3, 50))
    usual = rows.std(axis=1, ddof=1) / math.sqrt(50)
    np.testing.assert_allclose(standard_errors(rows, group_units(50)), usual)
    assert np.isnan(standard_errors(rows, group_units(50, ["a"] * 50))).all()


def test_minimum_detectable_when_the_effect_is_that_great_then_found_four_times_in_five(rng):
    # se = 1/√100, t(99): 1.984 + .845 = 2.829 → .283
    unit = rng.normal(size=(1, 100))
    unit = (unit - unit.mean()) / unit.std(ddof=1)
    assert minimum_detectable(unit, group_units(100))[0] == pytest.approx(0.283, abs=0.001)
    samples = rng.normal(0.283, 1.0, (4_000, 100))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / 10)
    assert (np.abs(t) > 1.984).mean() == pytest.approx(0.8, abs=0.03)

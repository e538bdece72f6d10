"""The gate opens only when a change is shown to be no worse than allowed."""

from __future__ import annotations

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.gate import GateVerdict, judge_gate
from rankblend.experiment.inference import compare
from rankblend.experiment.results import Results


def make_comparison(*shifts, noise=0.05, queries=200, clusters=None, not_run=None):
    generator = np.random.default_rng(4)
    base = generator.random(queries)
    table = np.stack([base, *(base + s + generator.normal(0, noise, queries) for s in shifts)])
    names = ("now", *(f"change{i}" for i in range(len(shifts))))
    labels = clusters or tuple(f"q{i}" for i in range(queries))
    return compare(
        Results(
            names, names, tuple(f"q{i}" for i in range(queries)), labels, ("",) * queries,
            {"nDCG@10": table}, np.ones(queries, np.bool_), np.zeros(table.shape, np.bool_),
            not_run or {},
        )
    )  # fmt: skip


def verdicts(comparison, min_effect=0.02):
    return [row.verdict for row in judge_gate(comparison, min_effect=min_effect).rows]


def test_gate_when_a_change_is_better_or_hardly_worse_then_passed():
    comparison = make_comparison(0.05, 0.0)
    assert verdicts(comparison) == [GateVerdict.PASSED] * 2
    assert judge_gate(comparison, min_effect=0.02).passed


def test_gate_when_one_of_two_is_worse_than_allowed_then_shut():
    result = judge_gate(make_comparison(0.05, -0.05), min_effect=0.02)
    assert [row.verdict for row in result.rows] == [GateVerdict.PASSED, GateVerdict.REGRESSED]
    assert not result.passed


def test_gate_when_a_loss_is_certain_but_smaller_than_matters_then_passed():
    (row,) = judge_gate(make_comparison(-0.01, noise=0.01), min_effect=0.02).rows
    assert row.contrast.interval.high < 0
    assert row.verdict is GateVerdict.PASSED


def test_gate_when_there_are_too_few_queries_then_inconclusive_and_says_how_many():
    (row,) = judge_gate(make_comparison(0.2, noise=0.5, queries=20), min_effect=0.02).rows
    assert row.verdict is GateVerdict.INCONCLUSIVE
    assert "units needed" in row.words


def test_gate_when_an_arm_did_not_run_or_all_is_one_cluster_then_shut():
    comparison = make_comparison(0.05, not_run={"other": "store failed"})
    assert verdicts(comparison) == [GateVerdict.PASSED, GateVerdict.NOT_RUN]
    assert not judge_gate(comparison, min_effect=0.02).passed
    single = make_comparison(0.05, clusters=("c",) * 200)
    assert verdicts(single) == [GateVerdict.INCONCLUSIVE]


@pytest.mark.parametrize("wrong", [0.0, -0.1, float("nan"), float("inf")])
def test_gate_when_no_loss_is_allowed_then_refused(wrong):
    with pytest.raises(InvalidArgumentError):
        judge_gate(make_comparison(0.0), min_effect=wrong)

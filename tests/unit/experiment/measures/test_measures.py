"""Names, values worked out by hand, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.measures import Judgments, measure_rankings, parse_measure, parse_measures

JUDGED = Judgments.of({"q": {"a": 3.0, "b": 1.0, "c": 0.0}})


def _value(name: str, ranking: list[str], judgments: Judgments = JUDGED) -> float:
    return float(next(iter(measure_rankings([name], [ranking], judgments).values()))[0])


def test_ndcg_when_worked_out_by_hand_then_the_same():
    # (1/log2 2 + 3/log2 3) / (3/log2 2 + 1/log2 3)
    expected = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert _value("nDCG@10", ["b", "a"]) == pytest.approx(expected, abs=1e-15)


def test_ndcg_when_gains_are_exponential_then_two_to_the_grade_less_one():
    # (1 + 7/log2 3) / (7 + 1/log2 3)
    expected = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert _value("nDCG(dcg='exp-log2')@10", ["b", "a"]) == pytest.approx(expected, abs=1e-15)
    assert "2^grade" in parse_measure("nDCG(dcg='exp-log2')@10").definition


def test_ndcg_when_judged_memories_were_not_returned_then_the_ideal_counts_them():
    assert _value("nDCG@10", ["b"]) == pytest.approx(1 / (3 + 1 / math.log2(3)), abs=1e-15)


def test_precision_when_fewer_are_returned_than_the_cutoff_then_over_the_cutoff():
    assert _value("P@5", ["a", "b"]) == 2 / 5
    assert _value("P(rel=2)@5", ["a", "b"]) == 1 / 5


def test_judged_share_when_fewer_are_returned_then_over_what_was():
    assert _value("Judged@10", ["a", "c", "x"]) == 2 / 3


def test_grade_below_zero_when_returned_then_gains_nothing_and_is_judged():
    judgments = Judgments.of({"q": {"a": 1.0, "b": -2.0}})
    assert _value("nDCG@10", ["b", "a"], judgments) == pytest.approx(1 / math.log2(3))
    assert _value("Judged@2", ["b", "x"], judgments) == 0.5


def test_grades_when_they_are_no_whole_numbers_then_ndcg_uses_them_as_they_are():
    judgments = Judgments.of({"q": {"a": 0.5, "b": 0.25}})
    expected = (0.25 + 0.5 / math.log2(3)) / (0.5 + 0.25 / math.log2(3))
    assert _value("nDCG@10", ["b", "a"], judgments) == pytest.approx(expected)


def test_values_when_nothing_was_judged_or_nothing_returned_then_absent_and_zero():
    judgments = Judgments.of({"unjudged": {}, "empty": {"a": 1.0}, "irrelevant": {"a": 0.0}})
    names = ["nDCG@10", "R@5", "RR", "AP", "P@5", "Success@3", "Judged@10"]
    for values in measure_rankings(names, [["a"], [], ["x"]], judgments).values():
        assert math.isnan(values[0])
        assert values[1:].tolist() == [0.0, 0.0]


def test_values_when_no_ranking_returned_anything_then_all_are_zero():
    judgments = Judgments.of({"q1": {"a": 1.0}, "q2": {"b": 1.0}})
    for values in measure_rankings(["nDCG@10", "RR", "AP", "Bpref"], [[], []], judgments).values():
        assert values.tolist() == [0.0, 0.0]


def test_names_when_they_are_aliases_then_called_as_ir_measures_calls_them():
    assert [m.name for m in parse_measures(["MRR", "MAP", "NDCG@5"])] == ["RR", "AP", "nDCG@5"]
    assert parse_measure("P(rel=2)@5").rel == 2.0


@pytest.mark.parametrize("name", ["goodness@10", "P", "nDCG@0", "nDCG@", "", "R@-1", "AP(a=1)"])
def test_names_when_unknown_or_incomplete_then_refused(name):
    with pytest.raises(InvalidArgumentError, match="measures"):
        parse_measure(name)


def test_names_when_several_are_wrong_then_all_are_reported():
    with pytest.raises(InvalidArgumentError) as caught:
        parse_measures(["x@1", "nDCG@10", "y@2", "nDCG@10"])
    assert len(caught.value.problems) == 3  # x, y, and nDCG@10 twice


def test_measure_when_no_provider_computes_it_then_said_so():
    with pytest.raises(InvalidArgumentError, match="provider"):
        measure_rankings(["RBP"], [["a"]], JUDGED)


def test_rankings_when_an_id_comes_twice_or_one_is_lacking_then_refused():
    with pytest.raises(InvalidArgumentError, match="distinct ids"):
        measure_rankings(["RR"], [["a", "a"]], JUDGED)
    with pytest.raises(InvalidArgumentError, match="expected 1"):
        measure_rankings(["RR"], [], JUDGED)


def test_judgments_when_several_things_are_wrong_then_all_are_reported():
    with pytest.raises(InvalidArgumentError) as caught:
        Judgments(("q", "q"), ({"a": math.nan}, {"b": True}, {}))
    assert len(caught.value.problems) == 4


def test_grades_when_not_whole_and_there_is_no_kernel_then_refused_rather_than_truncated():
    with pytest.raises(InvalidArgumentError, match="whole numbers"):
        measure_rankings(["Bpref"], [["a"]], Judgments.of({"q": {"a": 0.5}}))


def test_kernels_when_there_are_no_ranks_then_zero():
    grades = np.empty((2, 1, 0))
    for name in ("nDCG@10", "R@5", "RR", "AP", "P@5", "Success@3"):
        assert parse_measure(name).of_grades(grades, JUDGED).tolist() == [[0.0], [0.0]]

"""Results keep what is absent absent, and survive being written."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.experiment.results import Results


@pytest.fixture
def results(rng):
    table = rng.random((2, 4))
    table[:, 3] = np.nan
    return Results(
        ("a", "b"), ("0" * 64, "1" * 64), ("q1", "q2", "q3", "q4"), ("x", "x", "y", "y"),
        ("f", "g", "f", "g"), {"nDCG@10": table}, np.array([True, True, True, False]),
        np.array([[False] * 4, [True] + [False] * 3]), {"c": "no such node"},
        coverage=np.where(np.isnan(table), np.nan, 0.5), manifest={"dataset": "toy"},
    )  # fmt: skip


def test_json_when_written_and_read_then_the_same_bits(results):
    again = Results.from_json(results.to_json())
    np.testing.assert_array_equal(again.values["nDCG@10"], results.values["nDCG@10"])
    np.testing.assert_array_equal(again.coverage, results.coverage)
    np.testing.assert_array_equal(again.empty, results.empty)
    assert (again.arms, again.clusters, again.not_run) == (
        results.arms, results.clusters, results.not_run)  # fmt: skip
    assert "NaN" not in results.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"arms": 3}', "null"])
def test_json_when_it_is_something_else_then_refused(text):
    with pytest.raises(InvalidArgumentError):
        Results.from_json(text)


def test_mean_when_queries_are_unjudged_then_without_them(results):
    assert (
        results.mean("nDCG@10").tolist() == results.values["nDCG@10"][:, :3].mean(axis=1).tolist()
    )


def test_parts_when_taken_then_everything_goes_along(results):
    part = results.only(np.array([False, True, True, False])).pick(["b"])
    assert (part.arms, part.queries, part.clusters) == (("b",), ("q2", "q3"), ("x", "y"))
    assert part.values["nDCG@10"].tolist() == results.values["nDCG@10"][1:, 1:3].tolist()
    assert part.empty.shape == (1, 2)
    with pytest.raises(UnknownNameError):
        results.pick(["z"])


def test_results_when_shapes_do_not_fit_then_all_of_it_is_reported(results):
    with pytest.raises(InvalidArgumentError) as caught:
        evolve(results, families=("f",), empty=np.zeros((1, 1), np.bool_), queries=("q",) * 4)
    assert len(caught.value.problems) == 3

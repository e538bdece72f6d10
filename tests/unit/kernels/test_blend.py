from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidArrayError, MemoryContractError
from rankblend.kernels.blend import BELOW_TIPS, backfilled, blended, gates


def test_gates_when_a_half_life_is_two_levels_then_half_at_two() -> None:
    result = gates(np.array([0, 1, 2, 4]), half_life_levels=2.0, floor=0.0)
    np.testing.assert_allclose(result, [1.0, 1 / math.sqrt(2), 0.5, 0.25], rtol=1e-15)


def test_gates_when_there_is_a_floor_then_never_below_it() -> None:
    # 0.2 + 0.8·0.5, 0.2 + 0.8·0.25, 0.2
    result = gates([1, 2, 10**9], half_life_levels=1.0, floor=0.2)
    np.testing.assert_allclose(result, [0.6, 0.4, 0.2], rtol=1e-15)


@pytest.mark.parametrize(("half_life_levels", "floor"), [(1e300, 0.0), (1.0, 1.0), (5e-324, 1.0)])
def test_gates_when_nothing_decays_then_one(half_life_levels: float, floor: float) -> None:
    result = gates([0, 1, 63], half_life_levels=half_life_levels, floor=floor)
    assert result.tolist() == [1.0, 1.0, 1.0]


def test_gates_when_the_half_life_is_tiny_then_zero_without_overflow() -> None:
    assert gates([0, 1], half_life_levels=5e-324, floor=0.0).tolist() == [1.0, 0.0]


def test_gates_when_empty_then_empty() -> None:
    assert gates([], half_life_levels=1.0, floor=0.0).shape == (0,)


def test_gates_when_a_distance_is_negative_then_the_contract_is_broken() -> None:
    with pytest.raises(MemoryContractError, match="row 1"):
        gates([0, -1], half_life_levels=1.0, floor=0.0)


@pytest.mark.parametrize("distances", [[0.5], [True], [[1]], 1, ["1"]])
def test_gates_when_distances_are_no_column_of_whole_numbers_then_refused(distances: Any) -> None:
    with pytest.raises(InvalidArrayError):
        gates(distances, half_life_levels=1.0, floor=0.0)


@pytest.mark.parametrize(
    ("half_life_levels", "floor"),
    [(0.0, 0.0), (-1.0, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, math.nan)],
)
def test_gates_when_a_parameter_is_out_of_range_then_refused(
    half_life_levels: float, floor: float
) -> None:
    with pytest.raises(InvalidArgumentError):
        gates([0], half_life_levels=half_life_levels, floor=floor)


def test_blended_when_gated_then_the_product() -> None:
    assert blended([0.5, 1.0], np.array([0.5, 0.25])).tolist() == [0.25, 0.25]


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan, math.inf])
def test_blended_when_a_score_is_outside_then_refused(score: float) -> None:
    with pytest.raises(InvalidArrayError, match="row 1"):
        blended([0.5, score], np.ones(2))


def test_blended_when_the_lengths_differ_then_refused() -> None:
    with pytest.raises(InvalidArrayError):
        blended([0.5], np.ones(2))


def test_backfilled_when_a_gate_is_one_then_ancestors_stay_below_every_tip() -> None:
    result = backfilled(np.array([0.0, 1.0, 1.0, 0.0]), [0, 0, 1, 1])
    assert result.tolist() == [0.5, 1.0, BELOW_TIPS, 0.0]
    assert BELOW_TIPS < 0.5
    assert math.nextafter(BELOW_TIPS, 1.0) == 0.5

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import InvalidArgumentError, InvalidArrayError, MemoryContractError
from rankblend.relevance import ScopeBlend, ScopeBlendMode

MODES = list(ScopeBlendMode)


def test_scope_blend_when_nothing_is_given_then_off() -> None:
    assert ScopeBlend() == ScopeBlend(ScopeBlendMode.OFF, half_life_levels=1.0, floor=0.0)


@pytest.mark.parametrize("mode", MODES)
def test_scope_blend_when_the_mode_is_text_then_the_same_value(mode: ScopeBlendMode) -> None:
    blend = ScopeBlend(str(mode))
    assert blend.mode is mode
    assert blend == ScopeBlend(mode)
    assert hash(blend) == hash(ScopeBlend(mode))
    assert pickle.loads(pickle.dumps(blend)) == blend


def test_scope_blend_when_written_to_then_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ScopeBlend().floor = 0.5


def test_scope_blend_when_several_arguments_are_wrong_then_all_are_told() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ScopeBlend("backfil", half_life_levels=0.0, floor=2.0)
    assert caught.value.problems == (
        'mode: unknown mode "backfil": did you mean "backfill"?',
        "half_life_levels: expected a finite number > 0, got 0.0",
        "floor: expected a number in [0, 1], got 2.0",
    )


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, None, "1"])
def test_scope_blend_when_the_half_life_is_no_positive_number_then_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="half_life_levels"):
        ScopeBlend("blend", half_life_levels=value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, True, None, "0"])
def test_scope_blend_when_the_floor_is_no_share_then_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="floor"):
        ScopeBlend("blend", floor=value)


@pytest.mark.parametrize("mode", [None, 1, "", "OFF", b"off"])
def test_scope_blend_when_the_mode_is_unknown_then_refused(mode: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="mode"):
        ScopeBlend(mode)


def test_gate_when_off_then_one_at_every_distance() -> None:
    assert ScopeBlend(half_life_levels=0.1).gates([0, 1, 50]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("mode", ["blend", "backfill"])
def test_gate_when_on_then_decays_to_the_floor(mode: str) -> None:
    # 0.2 + 0.8·0.5^(2/2) = 0.6
    assert ScopeBlend(mode, half_life_levels=2.0, floor=0.2).gate(2) == pytest.approx(
        0.6, rel=1e-15
    )


@pytest.mark.parametrize("mode", MODES)
def test_gate_when_the_distance_is_negative_then_the_contract_is_broken(
    mode: ScopeBlendMode,
) -> None:
    with pytest.raises(MemoryContractError):
        ScopeBlend(mode).gate(-1)
    with pytest.raises(MemoryContractError):
        ScopeBlend(mode).rank_score(0.5, -1)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("off", [0.8, 0.8, 0.8]),
        ("blend", [0.8, 0.4, 0.2]),
        ("backfill", [0.9, 0.2, 0.1]),
    ],
)
def test_rank_scores_when_blended_then_by_mode(mode: str, expected: list[float]) -> None:
    result = ScopeBlend(mode).rank_scores(np.full(3, 0.8), np.array([0, 1, 2]))
    np.testing.assert_allclose(result, expected, rtol=1e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("score", [-0.1, 1.0000001, math.nan, math.inf])
def test_rank_score_when_the_score_is_outside_then_refused(
    mode: ScopeBlendMode, score: float
) -> None:
    with pytest.raises(InvalidArrayError):
        ScopeBlend(mode).rank_score(score, 0)


@pytest.mark.parametrize("half_life_levels", [1e17, 1e300])
@pytest.mark.parametrize("floor", [0.0, 1.0 - 2**-53, 1.0])
def test_rank_score_when_backfill_hardly_decays_then_ancestors_stay_below_tips(
    half_life_levels: float, floor: float
) -> None:
    blend = ScopeBlend("backfill", half_life_levels=half_life_levels, floor=floor)
    assert blend.rank_score(1.0, 1) < 0.5 <= blend.rank_score(0.0, 0)


def test_rank_scores_when_there_are_none_then_none() -> None:
    assert ScopeBlend("backfill").rank_scores([], []).shape == (0,)


def test_blend_when_given_other_real_numbers_then_keeps_them_as_floats() -> None:
    blend = ScopeBlend("blend", np.float32(2), Fraction(1, 4))  # type: ignore[arg-type]
    assert (type(blend.half_life_levels), type(blend.floor)) == (float, float)
    assert blend == ScopeBlend("blend", 2.0, 0.25)


def test_blend_when_an_integer_is_beyond_the_floats_then_refused_with_the_rest() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ScopeBlend(half_life_levels=10**400, floor="0.5")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("score", ["0.5", None, math.nan, 1j])
def test_rank_score_when_the_score_is_no_number_then_refused(score: Any) -> None:
    with pytest.raises(InvalidArrayError):
        ScopeBlend().rank_score(score, 0)

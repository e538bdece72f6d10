"""What holds for every scope blend."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.relevance import ScopeBlend, ScopeBlendMode

half_lives = st.floats(0.0, exclude_min=True, allow_infinity=False) | st.floats(0.1, 10.0)
shares = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, 1.0 - 2**-53])
blends = st.builds(
    ScopeBlend, st.sampled_from(ScopeBlendMode), half_life_levels=half_lives, floor=shares
)
distances = st.integers(0, 63) | st.integers(0, 2**40)
rows = st.lists(st.tuples(shares, distances), max_size=9)


@given(blend=blends, rows=rows)
def test_array_forms_when_compared_with_the_scalar_ones_then_the_same_bits(
    blend: ScopeBlend, rows: list[tuple[float, int]]
) -> None:
    scores, levels = [score for score, _ in rows], [level for _, level in rows]
    assert blend.gates(levels).tolist() == [blend.gate(level) for level in levels]
    assert blend.rank_scores(scores, levels).tolist() == [blend.rank_score(*row) for row in rows]
    strided = np.array([[level, 0] for level in levels], np.int64).reshape(-1, 2)[:, 0]
    assert blend.rank_scores(scores, strided).tolist() == blend.rank_scores(scores, levels).tolist()


@given(blend=blends, levels=st.lists(distances, max_size=9))
def test_gate_when_farther_then_never_greater_and_within_floor_and_one(
    blend: ScopeBlend, levels: list[int]
) -> None:
    gates = blend.gates(sorted(levels))
    assert (np.diff(gates) <= 0.0).all()
    assert ((gates >= blend.floor - 1e-16) & (gates <= 1.0)).all()
    assert blend.gate(0) == 1.0


@given(blend=blends, rows=rows)
def test_rank_score_when_any_score_and_distance_then_in_the_unit_interval(
    blend: ScopeBlend, rows: list[tuple[float, int]]
) -> None:
    result = blend.rank_scores([score for score, _ in rows], [level for _, level in rows])
    assert ((result >= 0.0) & (result <= 1.0)).all()
    assert not np.signbit(result).any()


@given(blend=blends, level=distances, scores=st.lists(shares, max_size=9))
def test_rank_score_when_a_score_is_higher_then_never_lower_at_the_same_distance(
    blend: ScopeBlend, level: int, scores: list[float]
) -> None:
    result = blend.rank_scores(sorted(scores), [level] * len(scores))
    assert (np.diff(result) >= 0.0).all()


@given(blend=blends, score=shares, near=distances, farther=distances)
def test_rank_score_when_farther_then_never_higher_at_the_same_score(
    blend: ScopeBlend, score: float, near: int, farther: int
) -> None:
    assert blend.rank_score(score, near) >= blend.rank_score(score, near + farther)


@given(half_life=half_lives, floor=shares, tip=shares, ancestor=shares, level=st.integers(1, 2**40))
def test_backfill_when_any_parameters_then_every_ancestor_is_below_every_tip(
    half_life: float, floor: float, tip: float, ancestor: float, level: int
) -> None:
    blend = ScopeBlend("backfill", half_life_levels=half_life, floor=floor)
    assert blend.rank_score(ancestor, level) < 0.5 <= blend.rank_score(tip, 0)


@given(
    blend=blends,
    high=st.integers(0, 1000),
    low=st.integers(0, 1000),
    level=st.integers(0, 8),
)
def test_rank_score_when_scores_are_well_apart_then_strictly_ordered_unless_the_gate_is_tiny(
    blend: ScopeBlend, high: int, low: int, level: int
) -> None:
    if high > low and blend.gate(level) > 1e-9:
        assert blend.rank_score(high / 1000, level) > blend.rank_score(low / 1000, level)

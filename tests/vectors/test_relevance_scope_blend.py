"""The shared expected values for scopes, scope blending and cue overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rankblend.relevance import Scope, ScopeBlend, cue_overlap

Vectors = Callable[[str], Any]


def blend_of(case: dict[str, Any], mode: str) -> ScopeBlend:
    return ScopeBlend(mode, half_life_levels=case["half_life_levels"], floor=case["floor"])


def test_gate_when_compared_with_the_expected_values_then_equal(vectors: Vectors) -> None:
    cases = vectors("relevance")["gate"]
    assert cases
    for case in cases:
        for mode in ("blend", "backfill"):
            gate = blend_of(case, mode).gate(case["distance"])
            assert gate == pytest.approx(case["gate"], rel=1e-15, abs=0), case
        assert blend_of(case, "off").gate(case["distance"]) == 1.0


def test_rank_score_when_compared_with_the_expected_values_then_equal(vectors: Vectors) -> None:
    cases = vectors("relevance")["rank_score"]
    assert {case["mode"] for case in cases} == {"off", "blend", "backfill"}
    for case in cases:
        result = blend_of(case, case["mode"]).rank_score(case["score"], case["distance"])
        assert result == pytest.approx(case["rank_score"], rel=1e-15, abs=0), case


def test_rank_scores_when_all_of_one_blend_then_equal_too(vectors: Vectors) -> None:
    groups: dict[ScopeBlend, list[dict[str, Any]]] = {}
    for case in vectors("relevance")["rank_score"]:
        groups.setdefault(blend_of(case, case["mode"]), []).append(case)
    for blend, cases in groups.items():
        result = blend.rank_scores(
            [case["score"] for case in cases], [case["distance"] for case in cases]
        )
        expected = [case["rank_score"] for case in cases]
        assert result.tolist() == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize("half_life_levels", [1e-300, 0.5, 1.0, 2.0, 1e17, 1e308])
@pytest.mark.parametrize("floor", [0.0, 0.5, 1.0 - 2**-53, 1.0])
def test_backfill_bands_when_any_parameters_then_as_the_note_says(
    vectors: Vectors, half_life_levels: float, floor: float
) -> None:
    assert "strictly below 0.5" in vectors("relevance")["backfill_bands"]["note"]
    blend = ScopeBlend("backfill", half_life_levels=half_life_levels, floor=floor)
    for score in (0.0, 1e-17, 0.3, 1.0 - 2**-53, 1.0):
        assert blend.rank_score(score, 0) >= 0.5
        for distance in (1, 2, 63):
            assert blend.rank_score(score, distance) < 0.5


def test_cue_overlap_when_compared_with_the_expected_values_then_equal(vectors: Vectors) -> None:
    cases = vectors("relevance")["cue_overlap"]
    assert cases
    for case in cases:
        assert cue_overlap(case["cue"], case["text"]) == case["overlap"], case


def test_scope_when_compared_with_the_expected_values_then_equal(vectors: Vectors) -> None:
    cases = vectors("relevance")["scope"]
    assert cases
    for case in cases:
        distance = Scope.parse(case["query"]).distance(Scope.parse(case["memory"]))
        if case["distance"] == "not visible":
            assert distance < 0, case
        else:
            assert distance == case["distance"], case

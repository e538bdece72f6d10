from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidArrayError
from rankblend.relevance import ScopeBlend, rank_order

NAN = math.nan


def order(ids: str | list[str], *, blend: bool = True, **columns: Any) -> str | list[str]:
    n = len(ids)
    positions = rank_order(
        np.array(columns.get("rank_scores", [0.5] * n)),
        np.array(columns.get("distances", [0] * n)),
        np.array(columns.get("scores", [0.5] * n)),
        [np.array(tie) for tie in columns.get("ties", [])],
        list(ids),
        blend=blend,
    )
    assert positions.dtype == np.int64
    ordered = [ids[position] for position in positions]
    return "".join(ordered) if isinstance(ids, str) else ordered


def test_rank_order_when_rank_scores_differ_then_they_decide_alone() -> None:
    assert order("abc", rank_scores=[0.1, 0.9, 0.5], distances=[0, 5, 1], scores=[1, 0, 0]) == "bca"


def test_rank_order_when_rank_scores_tie_and_blend_is_on_then_the_nearest_first() -> None:
    assert order("abc", distances=[2, 0, 1], scores=[1.0, 0.1, 0.5]) == "bca"


def test_rank_order_when_blend_is_off_then_distance_does_not_count() -> None:
    assert order("abc", blend=False, distances=[2, 0, 1], scores=[1.0, 0.1, 0.5]) == "acb"


def test_rank_order_when_distances_tie_then_the_score_decides() -> None:
    assert order("abc", scores=[0.1, 0.3, 0.2], ties=[[1.0, 0.0, 0.0]]) == "bca"


def test_rank_order_when_scores_tie_then_the_ties_in_their_order_absent_last() -> None:
    first, second = [0.2, NAN, 0.2, 0.0], [0.1, 1.0, 0.9, 1.0]
    assert order("abcd", ties=[first, second]) == "cadb"
    assert order("abcd", ties=[second, first]) == "dbca"


def test_rank_order_when_all_ties_then_the_id_by_code_point() -> None:
    ids = ["b", "a", "B", "ä", "a\x00", "aa", "10", "9", "", "\U0001f600", "\uffff", "\ud800"]
    assert order(ids) == sorted(ids)
    assert order(ids)[:4] == ["", "10", "9", "B"]


def test_rank_order_when_an_id_occurs_twice_then_they_keep_their_order() -> None:
    positions = rank_order(np.ones(3), np.zeros(3), np.ones(3), [], ["x", "x", "x"], blend=True)
    assert positions.tolist() == [0, 1, 2]


def test_rank_order_when_zero_is_negative_then_it_ties_with_zero() -> None:
    assert order("ab", rank_scores=[-0.0, 0.0], scores=[0.0, -0.0], ties=[[-0.0, 0.0]]) == "ab"


def test_rank_order_when_empty_then_empty() -> None:
    none = np.array([])
    assert rank_order(none, none, none, [none], [], blend=True).tolist() == []


@pytest.mark.parametrize("column", ["rank_scores", "distances", "scores"])
@pytest.mark.parametrize("values", [[0.1, NAN], [0.1], [[0.1, 0.2]]])
def test_rank_order_when_a_column_does_not_fit_then_refused_by_name(
    column: str, values: list[Any]
) -> None:
    with pytest.raises(InvalidArrayError) as caught:
        order("ab", **{column: values})
    assert caught.value.name == column


def test_rank_order_when_a_tie_does_not_fit_then_refused_by_name() -> None:
    with pytest.raises(InvalidArrayError) as caught:
        order("ab", ties=[[0.1, 0.2], [0.1]])
    assert caught.value.name == "ties[1]"


def test_rank_order_when_blend_is_no_bool_then_refused() -> None:
    blend: Any = ScopeBlend("off")
    with pytest.raises(InvalidArgumentError):
        order("ab", blend=blend)

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidArrayError
from rankblend.kernels.select import duplicate_penalties, kth_greatest, leading, mmr

NAN = math.nan
COPIES = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_leading_when_tied_then_by_name_whatever_the_order_of_the_items() -> None:
    names = ["d", "b", "é", "a", "B"]
    for items in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1]):
        found = leading(np.array(items), [np.full(5, 0.5)], 4, names)
        assert [names[item] for item in found] == ["B", "a", "b", "d"]


def test_leading_when_the_first_key_ties_then_the_next_one_decides() -> None:
    first, second = np.array([0.5, 0.9, 0.5, 0.5]), np.array([1.0, 0.0, 3.0, 1.0])
    assert leading(np.arange(4), [first, second], 3, "dcba").tolist() == [1, 2, 3]
    assert leading(np.arange(4), [], 2, "dcba").tolist() == [3, 2]


def test_leading_when_absent_then_last_and_like_minus_infinity() -> None:
    values = np.array([NAN, 0.0, NAN, -math.inf])
    assert leading(np.arange(4), [values], 4, "dcba").tolist() == [1, 3, 2, 0]
    assert leading(np.arange(4), [values], 2, "dcba").tolist() == [1, 3]


def test_leading_when_items_are_some_of_many_then_names_are_theirs() -> None:
    values = np.array([0.1, 0.2, 0.2])
    assert leading(np.array([7, 2, 5]), [values], 2, "hgfedcba").tolist() == [5, 2]


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (1, [1]), (2, [1, 0]), (99, [1, 0])])
def test_leading_when_the_limit_varies_then_at_most_what_there_is(
    limit: int, expected: list[int]
) -> None:
    result = leading(np.arange(2), [np.array([0.1, 0.2])], limit, "ab")
    assert result.tolist() == expected
    assert result.dtype == np.int64
    assert leading(np.arange(0), [np.array([])], limit, "").tolist() == []


def test_leading_when_few_tie_at_the_boundary_then_nobody_is_ranked() -> None:
    def ranks() -> Any:
        raise AssertionError("ranks were asked for")

    values = np.array([0.5, 0.9, 0.5, 0.1])
    assert leading(np.arange(4), [values], 2, "dcba", ranks=ranks).tolist() == [1, 2]


def test_leading_when_a_key_does_not_fit_then_refused() -> None:
    for key in (np.zeros(3), np.zeros((2, 1))):
        with pytest.raises(InvalidArrayError, match="key"):
            leading(np.arange(2), [np.zeros(2), key], 1, "ab")


def test_kth_greatest_when_the_sample_misleads_then_still_exact() -> None:
    values = np.zeros(4096)
    values[::16] = np.arange(256) + 1.0  # every sampled value is great, no other one is
    assert kth_greatest(values, 100) == 157.0
    assert kth_greatest(values, 300) == 0.0
    values = np.arange(4096.0)
    values[::16] = -1.0  # every sampled value is small
    assert kth_greatest(values, 3) == 4093.0


@pytest.mark.parametrize("k", [-1, 1.0, True, None])
def test_selection_when_a_count_is_none_then_refused(k: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="limit"):
        leading(np.arange(2), [np.zeros(2)], k, "ab")
    with pytest.raises(InvalidArgumentError, match="k:"):
        mmr(np.zeros(3), COPIES, k, 0.5)


def test_mmr_when_a_copy_is_second_then_something_else_comes_before_it() -> None:
    # second step: 0.5·0.8 − 0.5·0.9 = −0.05 against 0.5·0.5 − 0 = 0.25
    assert mmr(np.array([0.9, 0.8, 0.5]), COPIES, 3, 0.5).tolist() == [0, 2, 1]


def test_mmr_when_compared_with_all_instead_of_the_chosen_then_it_would_differ() -> None:
    # 1 is most like 2, which is not chosen yet: that must not count against it.
    alike = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    assert mmr(np.array([0.9, 0.8, 0.1]), alike, 2, 0.5).tolist() == [0, 1]


def test_mmr_when_the_trade_off_is_one_then_the_top() -> None:
    assert mmr(np.array([0.2, 0.9, 0.9]), COPIES, 3, 1.0).tolist() == [1, 2, 0]


def test_mmr_when_the_trade_off_is_zero_then_position_then_difference() -> None:
    assert mmr(np.array([0.2, 0.9, 0.1]), COPIES, 3, 0.0).tolist() == [0, 2, 1]


def test_mmr_when_a_similarity_is_unknown_then_it_costs_nothing() -> None:
    unknown = np.full((3, 3), NAN)
    assert mmr(np.array([0.9, 0.8, 0.5]), unknown, 3, 0.5).tolist() == [0, 1, 2]


def test_mmr_when_unlike_then_a_negative_similarity_is_a_gain() -> None:
    # 0.5·0.5 + 0.5·0.8 = 0.65 against 0.5·0.8 = 0.4
    opposite = np.array([[1.0, 0.0, -0.8], [0.0, 1.0, 0.0], [-0.8, 0.0, 1.0]])
    assert mmr(np.array([0.9, 0.8, 0.5]), opposite, 2, 0.5).tolist() == [0, 2]


@pytest.mark.parametrize("k", [0, 5])
def test_mmr_when_k_is_beyond_the_ends_then_none_or_all(k: int) -> None:
    assert mmr(np.array([0.9, 0.8, 0.5]), COPIES, k, 0.5).size == min(k, 3)
    assert mmr(np.array([]), np.zeros((0, 0)), k, 0.5).size == 0


def test_duplicate_penalties_when_a_copy_scores_lower_then_it_sinks() -> None:
    # 1 − 0.5·0.9 = 0.55
    result = duplicate_penalties(np.array([0.9, 0.8, 0.5]), COPIES, 0.5)
    np.testing.assert_allclose(result, [1.0, 0.55, 1.0], rtol=1e-15)


def test_duplicate_penalties_when_equal_scores_then_they_leave_one_another_alone() -> None:
    assert duplicate_penalties(np.array([0.8, 0.8, 0.5]), COPIES, 1.0).tolist() == [1.0, 1.0, 1.0]


def test_duplicate_penalties_when_the_higher_one_is_penalized_then_it_still_counts() -> None:
    chain = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.6], [0.0, 0.6, 1.0]])
    result = duplicate_penalties(np.array([0.9, 0.8, 0.7]), chain, 1.0)
    np.testing.assert_allclose(result, [1.0, 0.0, 0.4], rtol=1e-15)


def test_duplicate_penalties_when_opposite_or_unknown_then_none() -> None:
    opposite = np.array([[1.0, -1.0, NAN], [-1.0, 1.0, NAN], [NAN, NAN, NAN]])
    assert duplicate_penalties(np.array([0.9, 0.8, 0.7]), opposite, 1.0).tolist() == [1.0, 1.0, 1.0]


def test_duplicate_penalties_when_rounding_exceeds_one_then_never_below_the_bound() -> None:
    beyond = np.full((2, 2), 1.0 + 1e-7)
    assert duplicate_penalties(np.array([0.9, 0.8]), beyond, 1.0).tolist() == [1.0, 0.0]


def test_duplicate_penalties_when_empty_then_empty() -> None:
    assert duplicate_penalties(np.array([]), np.zeros((0, 0)), 0.5).shape == (0,)


@pytest.mark.parametrize("share", [-0.1, 1.1, NAN])
def test_selection_when_a_share_is_outside_then_refused(share: float) -> None:
    with pytest.raises(InvalidArgumentError):
        mmr(np.zeros(3), COPIES, 1, share)
    with pytest.raises(InvalidArgumentError):
        duplicate_penalties(np.zeros(3), COPIES, share)


@pytest.mark.parametrize(
    ("scores", "similarity"),
    [
        (np.array([NAN, 0.0, 0.0]), COPIES),
        (np.array([math.inf, 0.0, 0.0]), COPIES),
        (np.zeros((3, 1)), COPIES),
        (np.zeros(2), COPIES),
        (np.zeros(3), np.full((3, 3), math.inf)),
    ],
)
def test_selection_when_arrays_do_not_fit_then_refused(scores: Any, similarity: Any) -> None:
    with pytest.raises(InvalidArrayError):
        mmr(scores, similarity, 1, 0.5)
    with pytest.raises(InvalidArrayError):
        duplicate_penalties(scores, similarity, 0.5)

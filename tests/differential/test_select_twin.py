"""Selection against loops that read like the definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.kernels.select import duplicate_penalty, mmr, top_positions

# Sixteenths are exact, so that ties are real ties in both computations.
sixteenths = st.integers(0, 16).map(lambda value: value / 16)
cosines = st.integers(-16, 16).map(lambda value: value / 16) | st.just(math.nan)


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[float], list[list[float]]]:
    n = draw(st.integers(0, 8))
    upper = [[draw(cosines) for _ in range(n)] for _ in range(n)]
    similarity = [[upper[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]
    return draw(st.lists(sixteenths, min_size=n, max_size=n)), similarity


def slow_mmr(scores: Any, similarity: Any, k: int, trade_off: float) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < min(k, len(scores)):
        best, best_value = -1, -math.inf
        for i in range(len(scores)):
            if i in chosen:
                continue
            known = [similarity[i][j] for j in chosen if not math.isnan(similarity[i][j])]
            value = trade_off * scores[i] - (1 - trade_off) * (max(known) if known else 0.0)
            if value > best_value:
                best, best_value = i, value
        chosen.append(best)
    return chosen


def slow_penalty(scores: Any, similarity: Any, penalty: float) -> list[float]:
    result = []
    for i, score in enumerate(scores):
        nearest = 0.0
        for j, other in enumerate(scores):
            if other > score and similarity[i][j] > nearest:
                nearest = similarity[i][j]
        result.append(score * (1 - penalty * nearest))
    return result


def square(similarity: list[list[float]]) -> Any:
    return np.array(similarity, np.float64).reshape(len(similarity), len(similarity))


@given(pool=pools(), k=st.integers(0, 10), trade_off=sixteenths)
def test_mmr_when_compared_with_brute_force_then_the_same_choice(
    pool: tuple[list[float], list[list[float]]], k: int, trade_off: float
) -> None:
    scores, similarity = pool
    fast = mmr(np.array(scores, np.float64), square(similarity), k, trade_off)
    assert fast.tolist() == slow_mmr(scores, similarity, k, trade_off)


@given(pool=pools(), k=st.integers(0, 10))
def test_mmr_when_the_trade_off_is_one_then_top_positions(
    pool: tuple[list[float], list[list[float]]], k: int
) -> None:
    scores = np.array(pool[0], np.float64)
    assert mmr(scores, square(pool[1]), k, 1.0).tolist() == top_positions(scores, k).tolist()


@given(pool=pools(), k=st.integers(0, 10), trade_off=sixteenths)
def test_mmr_when_fewer_are_asked_for_then_the_beginning_of_more(
    pool: tuple[list[float], list[list[float]]], k: int, trade_off: float
) -> None:
    scores, similarity = np.array(pool[0], np.float64), square(pool[1])
    everything = mmr(scores, similarity, len(pool[0]), trade_off).tolist()
    assert mmr(scores, similarity, k, trade_off).tolist() == everything[:k]


@given(pool=pools(), penalty=sixteenths)
def test_duplicate_penalty_when_compared_with_a_loop_then_the_same_bits(
    pool: tuple[list[float], list[list[float]]], penalty: float
) -> None:
    scores, similarity = pool
    fast = duplicate_penalty(np.array(scores, np.float64), square(similarity), penalty)
    assert fast.tolist() == slow_penalty(scores, similarity, penalty)


@given(pool=pools(), penalty=sixteenths, data=st.data())
def test_duplicate_penalty_when_permuted_then_the_same_bits_permuted(
    pool: tuple[list[float], list[list[float]]], penalty: float, data: st.DataObject
) -> None:
    scores, similarity = np.array(pool[0], np.float64), square(pool[1])
    order = np.array(data.draw(st.permutations(range(len(scores)))), np.int64)
    permuted = duplicate_penalty(scores[order], similarity[np.ix_(order, order)], penalty)
    assert permuted.tolist() == duplicate_penalty(scores, similarity, penalty)[order].tolist()


@given(
    scores=st.lists(st.floats() | st.sampled_from([0.0, -0.0, 0.5, 1.0]), max_size=20),
    k=st.integers(0, 25),
)
def test_top_positions_when_compared_with_a_full_sort_then_the_same(
    scores: list[float], k: int
) -> None:
    present = [i for i, score in enumerate(scores) if not math.isnan(score)]
    expected = sorted(present, key=lambda i: (-scores[i], i))[:k]
    assert top_positions(np.array(scores, np.float64), k).tolist() == expected

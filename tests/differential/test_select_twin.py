"""Selection against loops that read like the definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.kernels.select import duplicate_penalties, kth_greatest, leading, mmr

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


def slow_penalties(scores: Any, similarity: Any, penalty: float) -> list[float]:
    result = []
    for i, score in enumerate(scores):
        nearest = 0.0
        for j, other in enumerate(scores):
            if other > score and similarity[i][j] > nearest:
                nearest = similarity[i][j]
        result.append(1 - penalty * nearest)
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
def test_mmr_when_the_trade_off_is_one_then_the_order_of_the_scores(
    pool: tuple[list[float], list[list[float]]], k: int
) -> None:
    expected = sorted(range(len(pool[0])), key=lambda i: (-pool[0][i], i))[:k]
    assert mmr(np.array(pool[0], np.float64), square(pool[1]), k, 1.0).tolist() == expected


@given(pool=pools(), k=st.integers(0, 10), trade_off=sixteenths)
def test_mmr_when_fewer_are_asked_for_then_the_beginning_of_more(
    pool: tuple[list[float], list[list[float]]], k: int, trade_off: float
) -> None:
    scores, similarity = np.array(pool[0], np.float64), square(pool[1])
    everything = mmr(scores, similarity, len(pool[0]), trade_off).tolist()
    assert mmr(scores, similarity, k, trade_off).tolist() == everything[:k]


@given(pool=pools(), penalty=sixteenths)
def test_duplicate_penalties_when_compared_with_a_loop_then_the_same_bits(
    pool: tuple[list[float], list[list[float]]], penalty: float
) -> None:
    scores, similarity = pool
    fast = duplicate_penalties(np.array(scores, np.float64), square(similarity), penalty)
    assert fast.tolist() == slow_penalties(scores, similarity, penalty)


@given(pool=pools(), penalty=sixteenths, data=st.data())
def test_duplicate_penalties_when_permuted_then_the_same_bits_permuted(
    pool: tuple[list[float], list[list[float]]], penalty: float, data: st.DataObject
) -> None:
    scores, similarity = np.array(pool[0], np.float64), square(pool[1])
    order = np.array(data.draw(st.permutations(range(len(scores)))), np.int64)
    permuted = duplicate_penalties(scores[order], similarity[np.ix_(order, order)], penalty)
    assert permuted.tolist() == duplicate_penalties(scores, similarity, penalty)[order].tolist()


def slow_leading(
    items: Sequence[int], keys: Sequence[Sequence[float]], limit: int, names: Sequence[str]
) -> list[int]:
    """Every item sorted by everything."""
    rows = [
        (*(math.inf if math.isnan(key[at]) else -key[at] for key in keys), names[item], item)
        for at, item in enumerate(items)
    ]
    return [item for *_, item in sorted(rows)][:limit]


values = st.floats() | st.sampled_from([0.0, -0.0, 0.5, 1.0, math.inf, -math.inf, math.nan])


@st.composite
def candidates(draw: st.DrawFn) -> tuple[list[int], list[list[float]], list[str]]:
    names = draw(st.lists(st.text(max_size=3), unique=True, max_size=20))
    items = draw(st.permutations(range(len(names))))[: draw(st.integers(0, 20))]
    column = st.lists(values, min_size=len(items), max_size=len(items))
    return items, draw(st.lists(column, max_size=3)), names


@given(given_=candidates(), limit=st.integers(0, 25))
def test_leading_when_compared_with_sorting_everything_then_the_same(
    given_: tuple[list[int], list[list[float]], list[str]], limit: int
) -> None:
    items, keys, names = given_
    columns = [np.array(key, np.float64) for key in keys]
    found = leading(np.array(items, np.int64), columns, limit, names)
    assert found.tolist() == slow_leading(items, keys, limit, names)


@pytest.mark.parametrize("distinct", [1, 3, 200, 100_000])
@pytest.mark.parametrize("ranked", [0, 5000, 6000])
def test_leading_of_thousands_with_any_ties_and_ranks_is_that_of_sorting_everything(
    rng: np.random.Generator, distinct: int, ranked: int
) -> None:
    names = [f"{number:x}" for number in rng.permutation(6000).tolist()]
    order = sorted(range(ranked), key=names.__getitem__)
    ranks = np.empty(ranked, np.int32)
    ranks[order] = np.arange(ranked, dtype=np.int32)
    items = rng.permutation(6000)[:5500]
    keys = [rng.integers(0, distinct, 5500) / 7.0, rng.integers(0, 2, 5500) * 1.0]
    keys[0][rng.random(5500) < 0.3] = math.nan
    for limit in (1, 10, 300, 3000, 5500):
        found = leading(items, keys, limit, names, ranks=lambda: ranks)
        assert found.tolist() == slow_leading(items.tolist(), keys, limit, names)


@given(
    few=st.lists(
        st.sampled_from([-np.inf, 0.0, 0.5, 1.0, 2.0]) | st.floats(0, 1), min_size=1, max_size=9
    ),
    repeats=st.integers(1, 400),
    k=st.integers(1, 2000),
)
def test_kth_greatest_when_random_then_as_sorting_says(
    few: list[float], repeats: int, k: int
) -> None:
    values = np.tile(np.array(few), repeats)
    k = min(k, len(values))
    assert kth_greatest(values, k) == np.sort(values)[-k]

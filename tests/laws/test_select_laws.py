"""Laws of choosing the first of scored items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.select import leading

NAMES = ["m", "b", "é", "a", "B", "z", "", "aa", "返", "c", "n", "y"]
sixteenths = st.integers(-3, 3).map(lambda value: value / 16) | st.just(math.nan)


@st.composite
def pools(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray]]:
    """Some of the named items in any order, with one to three keys full of ties."""
    items = np.array(draw(st.permutations(range(len(NAMES)))), np.int64)
    items = items[: draw(st.integers(0, len(NAMES)))]
    column = st.lists(sixteenths, min_size=len(items), max_size=len(items))
    keys = draw(st.lists(column, min_size=1, max_size=3))
    return items, [np.array(key, np.float64) for key in keys]


def chosen(items: np.ndarray, keys: list[np.ndarray], limit: int) -> list[int]:
    return leading(items, keys, limit, NAMES).tolist()


@given(pool=pools(), limit=st.integers(0, 14))
def test_a_smaller_limit_gives_the_beginning_of_a_greater_one(pool, limit):
    items, keys = pool
    everything = chosen(items, keys, len(NAMES))
    assert sorted(everything) == sorted(items.tolist())
    assert chosen(items, keys, limit) == everything[:limit]


@given(pool=pools(), limit=st.integers(0, 14), data=st.data())
def test_the_order_of_the_items_plays_no_part(pool, limit, data):
    items, keys = pool
    order = np.array(data.draw(st.permutations(range(len(items)))), np.int64)
    assert chosen(items[order], [key[order] for key in keys], limit) == chosen(items, keys, limit)


@given(pool=pools(), limit=st.integers(0, 14), split=st.integers(0, 12))
def test_the_first_of_two_parts_first_are_the_first_of_the_whole(pool, limit, split):
    items, keys = pool
    finalists = {
        item
        for part in (slice(split), slice(split, None))
        for item in chosen(items[part], [key[part] for key in keys], limit)
    }
    left = np.isin(items, list(finalists))
    assert chosen(items[left], [key[left] for key in keys], limit) == chosen(items, keys, limit)


@given(pool=pools(), limit=st.integers(0, 14))
def test_only_the_order_of_the_values_counts(pool, limit):
    items, keys = pool
    stretched = [np.exp(4.0 * key) for key in keys]
    assert chosen(items, stretched, limit) == chosen(items, keys, limit)


@given(pool=pools(), limit=st.integers(0, 14))
def test_absent_is_minus_infinity(pool, limit):
    items, keys = pool
    filled = [np.where(np.isnan(key), -np.inf, key) for key in keys]
    assert chosen(items, filled, limit) == chosen(items, keys, limit)


@given(pool=pools(), limit=st.integers(0, 14))
def test_a_last_key_that_is_constant_changes_nothing(pool, limit):
    items, keys = pool
    assert chosen(items, [*keys, np.zeros(len(items))], limit) == chosen(items, keys, limit)


@given(pool=pools(), limit=st.integers(max_value=-1))
def test_a_negative_limit_is_refused(pool, limit):
    with pytest.raises(InvalidArgumentError):
        chosen(*pool, limit)

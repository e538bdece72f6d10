import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.caches import Lru


def test_lru_when_full_then_forgets_what_was_not_asked_for_longest() -> None:
    cache: Lru[str, int] = Lru(2)
    cache.get("a", lambda: 1)
    cache.get("b", lambda: 2)
    cache.get("a", lambda: 0)
    cache.get("c", lambda: 3)
    assert list(cache) == ["a", "c"]
    assert (cache.hits, cache.misses, len(cache)) == (1, 3, 2)


def test_lru_when_making_fails_then_nothing_is_kept() -> None:
    cache: Lru[str, int] = Lru(2)

    def fail() -> int:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        cache.get("a", fail)
    assert "a" not in cache
    assert cache.get("a", lambda: 1) == 1


def test_lru_when_put_popped_peeked_and_cleared_then_does_as_told() -> None:
    cache: Lru[str, int] = Lru(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    cache.peek("b")
    cache.put("c", 4)
    assert list(cache) == ["a", "c"]
    assert (cache.peek("a"), cache.pop("a"), cache.pop("a")) == (3, 3, None)
    cache.clear()
    assert len(cache) == 0


def test_lru_when_once_then_many_threads_make_a_value_one_time() -> None:
    cache: Lru[str, object] = Lru(2, once=True)
    inside = threading.Event()
    made = []

    def make() -> object:
        inside.set()
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: cache.get("a", make), range(64)))
    assert found == set(made)
    assert len(made) == 1


def test_lru_when_threads_make_one_value_at_a_time_then_all_get_the_first() -> None:
    cache: Lru[str, object] = Lru(2)
    together = threading.Barrier(4)

    def make() -> object:
        together.wait(10)
        return object()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cache.get("a", make), range(4)))
    assert len(set(found)) == 1


@given(st.integers(1, 4), st.lists(st.integers(0, 6), max_size=40))
def test_lru_when_asked_then_is_as_a_list_in_order_of_use(most: int, asked: list[int]) -> None:
    cache: Lru[int, int] = Lru(most)
    model: list[int] = []
    for key in asked:
        assert cache.get(key, lambda key=key: key) == key  # type: ignore[misc]
        model = [*(each for each in model if each != key), key][-most:]
        assert list(cache) == model

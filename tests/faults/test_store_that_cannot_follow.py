"""A store that cannot follow a write: it is stored all the same, and recalls say who is behind."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from bad_parts import Forgetful
from scenario import START, USER

import rankblend as rb
from rankblend.errors import CacheWarning, StoreFailedError


@pytest.mark.parametrize("error", [OSError, rb.MemoryContractError])
def test_remember_when_a_store_cannot_follow_then_it_is_stored_and_the_others_know(
    opened: Callable[..., rb.Memory], error: type[Exception]
) -> None:
    store = Forgetful(error)
    # First in line, so that the others come after the failure.
    memory = opened(stores=[store, *rb.default_stores()])
    store.failing = True
    with pytest.warns(
        CacheWarning, match=f"'own' failed to follow a write \\({error.__name__}\\)"
    ) as told:
        assert memory.remember("refund of today", scope=USER, id="c") == "c"
    assert "4711" not in str(told[0].message)
    with pytest.warns(CacheWarning):
        memory.forget("a", scope=USER)
    result = memory.recall("refund today", scope=USER)
    assert set(result.ids) == {"b", "c"}
    assert ("own", "write") in [(f.store, f.during) for f in result.trace.failures]
    past = memory.recall("refund", scope=USER, as_of=START)
    assert ("own", "write") in [(f.store, f.during) for f in past.trace.failures]
    with pytest.raises(StoreFailedError, match="'own' failed during write"):
        memory.recall("refund", scope=USER, strict=True)


def test_remember_when_warnings_are_errors_then_the_memory_is_stored_all_the_same(
    opened: Callable[..., rb.Memory],
) -> None:
    store = Forgetful(OSError)
    memory = opened(stores=[*rb.default_stores(), store])
    store.failing = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CacheWarning):
            memory.remember("refund of today", scope=USER, id="c")
    assert memory.get("c", scope=USER).text == "refund of today"
    assert "c" in memory.recall("refund", scope=USER).ids

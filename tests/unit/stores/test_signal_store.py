"""A function from ids to signals as a store."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidSignalError, MemoryContractError
from rankblend.relevance import EVIDENCE, RelevanceSignals, Scope
from rankblend.stores import Reason, SignalStore, Store, StoreQuery, SupportsWrite

QUERY = StoreQuery("how do we refund?", (Scope.parse("tenant:acme/user:7"),))


def store(answer: Any, *emits: str) -> SignalStore:
    return SignalStore("own", lambda ids: answer, emits=emits or ("liked_test", "sure_test"))


def test_signal_store_is_a_store_that_keeps_nothing() -> None:
    own = store({})
    assert isinstance(own, Store)
    assert not isinstance(own, SupportsWrite)
    own.close()
    own.close()


def test_signal_store_when_made_then_its_signals_are_evidence_of_unit_signal() -> None:
    store({}, "liked_test", "salience")
    evidence = EVIDENCE["liked_test"]
    assert (evidence.unit, evidence.low, evidence.high) == ("signal", 0.0, 1.0)
    assert not evidence.relevance


def test_propose_gives_nothing_whatever_the_level() -> None:
    own = store({"a": {"liked_test": 1.0}})
    assert list(own.propose(QUERY, 10)) == list(own.propose(QUERY, 10, level=1)) == []


def test_observe_when_signals_are_given_either_way_then_columns_follow_the_ids() -> None:
    own = store(
        {
            "a": RelevanceSignals(liked_test=0.25, sure_test=1.0),
            "b": {"liked_test": 0.0, "sure_test": None},
        }
    )
    seen = own.observe(QUERY, ["b", "nobody", "a", "b"])
    assert list(seen.columns) == ["liked_test", "sure_test"]
    np.testing.assert_array_equal(seen.columns["liked_test"], [0.0, np.nan, 0.25, 0.0])
    np.testing.assert_array_equal(seen.columns["sure_test"], [np.nan, np.nan, 1.0, np.nan])
    assert seen.columns["liked_test"].dtype == np.float64


def test_observe_when_something_is_absent_then_the_reason_tells_id_from_signal() -> None:
    seen = store({"a": {"liked_test": 0.5}}).observe(QUERY, ["a", "nobody"])
    assert seen.reason("liked_test").tolist() == [Reason.PRESENT, Reason.UNKNOWN]
    assert seen.reason("sure_test").tolist() == [Reason.NOT_APPLICABLE, Reason.UNKNOWN]


def test_observe_when_ids_repeat_then_the_function_is_asked_once_for_each() -> None:
    asked: list[Sequence[str]] = []

    def function(ids: Sequence[str]) -> dict[str, dict[str, float]]:
        asked.append(ids)
        return {}

    SignalStore("own", function, emits=("liked_test",)).observe(QUERY, ["b", "a", "b"])
    assert asked == [("b", "a")]


def test_observe_when_no_ids_are_asked_then_the_function_is_left_alone() -> None:
    seen = store(None).observe(QUERY, [])
    assert seen.columns["liked_test"].shape == (0,)


def test_observe_when_the_function_says_more_than_asked_then_that_is_ignored() -> None:
    own = store({"a": {"liked_test": 0.5}, "other": {"no_such_signal": 7.0}})
    assert own.observe(QUERY, ["a"]).columns["liked_test"].tolist() == [0.5]


@pytest.mark.parametrize("value", [0, 1, np.float32(0.5), np.int64(1), Fraction(1, 2), -0.0])
def test_observe_when_a_value_is_a_real_in_range_then_it_counts(value: Any) -> None:
    seen = store({"a": {"liked_test": value}}).observe(QUERY, ["a"])
    assert seen.columns["liked_test"].tolist() == [float(value)]


@pytest.mark.parametrize(
    "value", [1.5, -1e-9, np.nan, np.inf, True, np.bool_(True), "0.5", [0.5], 1j]
)
def test_observe_when_a_value_is_no_signal_then_it_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InvalidSignalError) as caught:
        store({"a": {"liked_test": value}}).observe(QUERY, ["a"])
    assert caught.value.signal == "liked_test"


@pytest.mark.parametrize(
    "answer", [None, [("a", {})], {"a": 0.5}, {"a": None}, {"a": {"not_listed": 0.5}}]
)
def test_observe_when_the_function_breaks_its_promise_then_it_is_refused(answer: Any) -> None:
    with pytest.raises(MemoryContractError, match="'own'"):
        store(answer).observe(QUERY, ["a"])


def test_observe_when_the_function_raises_then_its_error_passes() -> None:
    def function(ids: Sequence[str]) -> dict[str, dict[str, float]]:
        raise ConnectionError("service is down")

    with pytest.raises(ConnectionError):
        SignalStore("own", function, emits=("liked_test",)).observe(QUERY, ["a"])


@pytest.mark.parametrize(
    ("name", "emits"),
    [
        ("no name", ("liked_test",)),
        ("", ("liked_test",)),
        ("own", ()),
        ("own", "liked_test"),
        ("own", ("liked_test", "liked_test")),
        ("own", ("no name",)),
        ("own", ("cosine",)),  # known, with another range
    ],
)
def test_signal_store_when_an_argument_is_invalid_then_it_is_refused(name: str, emits: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        SignalStore(name, lambda ids: {}, emits=emits)


def test_signal_store_when_given_no_function_then_it_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="callable"):
        SignalStore("own", 3, emits=("liked_test",))  # type: ignore[arg-type]

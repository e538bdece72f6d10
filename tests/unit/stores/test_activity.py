"""Ages and uses, and proposals by recency."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankblend.relevance import Scope, lookup_evidence
from rankblend.stores import Key, Reason, Record, Store, StoreQuery
from rankblend.stores.catalog import ActivityStore, Catalog

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
QUERY = StoreQuery("", [USER], now=1000.0)
NAN = float("nan")


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with Catalog.open(":memory:") as opened:
        yield opened


def memory(identifier: str, scope: Scope = TENANT, **fields: Any) -> Record:
    return Record(Key(scope, identifier), "text", **fields)


def test_store_when_asked_who_it_is_then_it_fits_the_protocol(catalog: Catalog) -> None:
    store = ActivityStore(catalog)
    assert isinstance(store, Store)
    assert store.name == "activity"
    assert all(lookup_evidence(name) for name in store.emits)
    store.close()
    assert len(catalog) == 0  # the catalog stays open


def test_observe_when_never_used_then_uses_are_zero_and_age_used_is_absent(
    catalog: Catalog,
) -> None:
    catalog.put([memory("a", created=100.0, at=200.0), memory("b", created=1200.0, at=1200.0)])
    catalog.reinforce([Key(TENANT, "b")], 999.0)
    seen = ActivityStore(catalog).observe(QUERY, ["a", "b", "unknown"])
    columns = {name: values.tolist() for name, values in seen.columns.items()}
    assert columns["age_created"][:2] == [900.0, -200.0]  # in the future: negative
    assert columns["age_updated"][:2] == [800.0, -200.0]
    assert columns["uses"][:2] == [0.0, 1.0]
    assert np.isnan(columns["age_used"][0])
    assert columns["age_used"][1] == 1.0
    assert all(np.isnan(values[2]) for values in columns.values())
    assert seen.reason("age_used").tolist() == [
        Reason.NOT_APPLICABLE, Reason.PRESENT, Reason.UNKNOWN,
    ]  # fmt: skip
    assert seen.reason("uses").tolist() == [Reason.PRESENT, Reason.PRESENT, Reason.UNKNOWN]


def test_observe_when_a_memory_is_revised_then_only_its_updated_age_changes(
    catalog: Catalog,
) -> None:
    catalog.put([memory("a", created=100.0, at=100.0)])
    catalog.put([memory("a", created=600.0, at=600.0)])
    seen = ActivityStore(catalog).observe(QUERY, ["a"])
    assert seen.columns["age_created"].tolist() == [900.0]
    assert seen.columns["age_updated"].tolist() == [400.0]


def test_propose_when_some_were_used_then_used_come_first_then_updated_then_ids(
    catalog: Catalog,
) -> None:
    catalog.put(
        [
            memory("old", at=1.0),
            memory("new", at=9.0),
            memory("same-b", at=5.0),
            memory("same-a", USER, at=5.0),
            memory("used-long-ago", at=2.0),
            memory("used-lately", at=1.0),
            memory("foreign", Scope.parse("tenant:x"), at=99.0),
        ]
    )
    catalog.reinforce([Key(TENANT, "used-long-ago")], 10.0)
    catalog.reinforce([Key(TENANT, "used-lately")], 20.0)
    store = ActivityStore(catalog)
    order = ["used-lately", "used-long-ago", "new", "same-a", "same-b", "old"]
    for limit in range(8):
        assert list(store.propose(QUERY, limit)) == order[:limit]
    assert list(store.propose(QUERY, 9, level=0)) == ["same-a"]
    catalog.forget([Key(TENANT, "used-lately")])
    assert list(store.propose(QUERY, 1)) == ["used-long-ago"]


def test_propose_when_asked_then_reading_does_not_reinforce(catalog: Catalog) -> None:
    catalog.put([memory("a")])
    generation = catalog.generation
    store = ActivityStore(catalog)
    store.propose(QUERY, 5)
    store.observe(QUERY, ["a"])
    assert catalog.generation == generation
    assert catalog.get(Key(TENANT, "a")).uses == 0  # type: ignore[union-attr]

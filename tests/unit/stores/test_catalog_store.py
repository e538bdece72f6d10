"""The catalog as a store: salience, labels, satisfied preferences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope, lookup_evidence
from rankblend.stores import Key, Reason, Record, Store, StoreQuery
from rankblend.stores.catalog import Catalog, CatalogStore

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
QUERY = StoreQuery("", [USER])
NAN = float("nan")


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with Catalog.open(":memory:") as opened:
        yield opened


def memory(identifier: str, scope: Scope = TENANT, **fields: Any) -> Record:
    return Record(Key(scope, identifier), "text", **fields)


def column(store: CatalogStore, name: str, ids: Sequence[str], query: StoreQuery = QUERY) -> object:
    seen = store.observe(query, ids)
    return [None if np.isnan(value) else value for value in seen.columns[name].tolist()]


def test_store_when_asked_who_it_is_then_it_fits_the_protocol(catalog: Catalog) -> None:
    store = CatalogStore(catalog)
    assert isinstance(store, Store)
    assert store.name == "catalog"
    assert all(lookup_evidence(name) for name in store.emits)
    store.close()
    store.close()
    assert len(catalog) == 0  # the catalog stays open


def test_propose_when_salience_ties_then_by_id_and_absent_is_left_out(catalog: Catalog) -> None:
    catalog.put(
        [
            memory("c", salience=0.5),
            memory("b", USER, salience=0.5),
            memory("z", salience=0.9),
            memory("none"),
            memory("zero", salience=0.0),
            memory("foreign", Scope.parse("tenant:acme-corp"), salience=1.0),
        ]
    )
    store = CatalogStore(catalog)
    assert list(store.propose(QUERY, 10)) == ["z", "b", "c", "zero"]
    assert list(store.propose(QUERY, 2)) == ["z", "b"]
    assert list(store.propose(QUERY, 0)) == []
    assert list(store.propose(QUERY, 10, level=0)) == ["b"]
    assert list(store.propose(QUERY, 10, level=1)) == ["z", "c", "zero"]


def test_propose_when_many_tie_then_the_least_ids_come_first(
    catalog: Catalog, rng: np.random.Generator
) -> None:
    ids = [f"m{n:05d}" for n in range(5000)]
    scopes = [TENANT, USER]
    for part in np.array_split(rng.permutation(5000), 4):  # sorted rows, and a tail
        catalog.put([memory(ids[n], scopes[n % 2], salience=0.5) for n in part.tolist()])
    catalog.put([memory("m99999", salience=0.75)])
    assert list(CatalogStore(catalog).propose(QUERY, 40)) == ["m99999", *ids[:39]]


def test_observe_when_labels_are_given_then_their_values_else_not_applicable(
    catalog: Catalog,
) -> None:
    catalog.put(
        [
            memory("a", review="confirmed", maturity="settled", certainty="stated", confidence=0.4),
            memory("b", review="unreviewed", maturity="provisional", certainty="inferred"),
            memory("c", review="flagged", salience=0.0),
        ]
    )
    store = CatalogStore(catalog)
    ids = ["a", "b", "c", "unknown"]
    assert column(store, "review", ids) == [1.0, 0.75, 0.25, None]
    assert column(store, "maturity", ids) == [1.0, 0.5, None, None]
    assert column(store, "certainty", ids) == [1.0, 0.5, None, None]
    assert column(store, "confidence", ids) == [0.4, None, None, None]
    assert column(store, "salience", ids) == [None, None, 0.0, None]
    seen = store.observe(QUERY, ids)
    assert [Reason(code).name for code in seen.reason("maturity").tolist()] == [
        "PRESENT", "PRESENT", "NOT_APPLICABLE", "UNKNOWN",
    ]  # fmt: skip


def test_observe_when_nothing_is_asked_then_empty_columns(catalog: Catalog) -> None:
    seen = CatalogStore(catalog).observe(QUERY, [])
    assert {name: len(values) for name, values in seen.columns.items()} == dict.fromkeys(
        CatalogStore.emits, 0
    )


def test_observe_when_preferences_are_given_then_structured_is_the_satisfied_share(
    catalog: Catalog,
) -> None:
    catalog.put(
        [
            memory("a", metadata={"lang": "en", "n": 3}),
            memory("b", metadata={"lang": "en"}, salience=0.9),
            memory("c", layer="own"),
        ]
    )
    store = CatalogStore(catalog)
    prefer = {"lang": "en", "n": {"gte": 2}, "layer": "semantic", "salience": {"lt": 0.5}}
    query = StoreQuery("", [USER], preferred=prefer)
    assert column(store, "structured", ["a", "b", "c", "d"], query) == [0.75, 0.5, 0.0, None]
    assert column(store, "structured", ["a"]) == [None]
    reasons = store.observe(QUERY, ["a", "d"]).reason("structured").tolist()
    assert reasons == [Reason.NOT_APPLICABLE, Reason.UNKNOWN]
    with pytest.raises(InvalidArgumentError):
        store.observe(StoreQuery("", [USER], preferred={"lang": {"like": "e"}}), ["a"])

"""The conformance kit on every store that comes with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.relevance import CERTAINTY_LEVELS, MATURITY_LEVELS, REVIEW_LEVELS, cue_overlap
from rankblend.stores import Key, Observation, Record, SignalStore, Store, StoreQuery
from rankblend.stores.catalog import ActivityStore, Catalog, CatalogStore
from rankblend.stores.graph import GraphStore
from rankblend.stores.keywords import KeywordStore
from rankblend.stores.vectors import VectorStore
from rankblend.testing import SignalStoreConformance, StoreConformance


def value(given: float | None) -> float:
    return np.nan if given is None else given


class TestVectorStore(StoreConformance):
    def make_store(self) -> VectorStore:
        return VectorStore()

    def expected(self, query: StoreQuery, record: Record) -> Mapping[str, float]:
        assert query.vector is not None
        assert record.vector is not None
        one, other = query.vector.astype(np.float64), record.vector.astype(np.float64)
        return {"cosine": float(one @ other)}


class TestKeywordStore(StoreConformance):
    examples = 8

    def make_store(self) -> KeywordStore:
        return KeywordStore()

    def expected(self, query: StoreQuery, record: Record) -> Mapping[str, float]:
        return {"coverage": cue_overlap(query.text, record.text)}


class TestKeywordStoreWithoutLanguage(StoreConformance):
    examples = 4

    def make_store(self) -> KeywordStore:
        return KeywordStore(language=None)


class _GraphConformance(StoreConformance):
    propose_by = "activation"

    def make_store(self) -> GraphStore:
        return GraphStore(propose_by=self.propose_by)

    def strength(self, query: StoreQuery, observation: Observation) -> NDArray[np.float64]:
        return observation.columns[self.propose_by]


class TestGraphStoreByActivation(_GraphConformance):
    pass


class TestGraphStoreByPageRank(_GraphConformance):
    propose_by = "ppr"
    examples = 6


class _OverACatalog(StoreConformance):
    """Stores that read a catalog: the catalog is written, and closed with the store."""

    examples = 5
    reads: Any

    def make_store(self) -> Store:
        catalog = Catalog.open(":memory:")

        class Owning(self.reads):
            def close(self) -> None:
                catalog.close()

        store = Owning(catalog)
        store.catalog = catalog
        return store

    def write(self, store: Any, records: Sequence[Record]) -> Sequence[Record]:
        return store.catalog.put(records)

    def erase(self, store: Any, keys: Sequence[Key]) -> None:
        store.catalog.forget(keys)


class TestCatalogStore(_OverACatalog):
    reads = CatalogStore

    def expected(self, query: StoreQuery, record: Record) -> Mapping[str, float]:
        return {
            "salience": value(record.salience),
            "confidence": value(record.confidence),
            "review": REVIEW_LEVELS[record.review or ""],
            "maturity": MATURITY_LEVELS[record.maturity or ""],
            "certainty": CERTAINTY_LEVELS[record.certainty or ""],
        }


class TestActivityStore(_OverACatalog):
    reads = ActivityStore

    def strength(self, query: StoreQuery, observation: Observation) -> NDArray[np.float64]:
        # the most recently used, then the most recently updated: as places in that order
        used = np.nan_to_num(-observation.columns["age_used"], nan=-np.inf)
        pairs = np.stack([used, -observation.columns["age_updated"]], axis=1)
        _, places = np.unique(pairs, axis=0, return_inverse=True)
        return places.astype(np.float64)

    def expected(self, query: StoreQuery, record: Record) -> Mapping[str, float]:
        return {
            "age_created": query.now - record.created,
            "age_updated": query.now - record.at,
            "age_used": value(None if record.used is None else query.now - record.used),
            "uses": record.uses,
        }


class TestSignalStore(SignalStoreConformance):
    ids = ("n1", "n2", "n3", "返金")

    def make_store(self) -> SignalStore:
        known = {
            "n1": {"helpful_test": 0.25, "trusted_test": None},
            "n2": {"helpful_test": 0.0, "trusted_test": 1.0},
            "n3": {},
            "返金": {"trusted_test": 0.5},
        }
        return SignalStore(
            "votes",
            lambda ids: {id_: known[id_] for id_ in ids if id_ in known},
            emits=("helpful_test", "trusted_test"),
        )

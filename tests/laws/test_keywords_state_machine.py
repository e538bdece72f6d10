"""Whatever was written before, a keyword store answers as one freshly filled with what is left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Record, Statistics, StoreQuery
from rankblend.stores._rows import ScopedRows
from rankblend.stores.keywords import KeywordStore
from rankblend.stores.keywords import _index as index
from rankblend.stores.keywords import _store as store

SCOPES = [Scope.parse(text) for text in ("t:1", "t:1/u:1", "t:1/u:1/s:1", "t:1/u:10", "t:10/u:1")]
IDS = ["a", "b", "c", "d", "e", "f"]
WORDS = ["tea", "teas", "coffee", "coffe", "coff", "the", "x", "東京都", "中", "milk", "Σίσυφος"]

keys = st.builds(Key, st.sampled_from(SCOPES), st.sampled_from(IDS))
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
queries = st.builds(
    StoreQuery,
    texts,
    st.lists(st.sampled_from(SCOPES), min_size=1, max_size=2, unique=True),
    reach=st.sampled_from(Reach),
    statistics=st.sampled_from(Statistics),
)


class KeywordMachine(RuleBasedStateMachine):
    """Writes, questions, compactions and reopenings in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.store = KeywordStore()
        self.held: dict[Key, Record] = {}
        self.serials: dict[Key, int] = {}

    @rule(batch=st.lists(st.tuples(keys, texts), max_size=6))
    def add(self, batch: list[tuple[Key, str]]) -> None:
        records = [
            Record(key, text, self.serials.setdefault(key, len(self.serials)))
            for key, text in batch
        ]
        self.store.add(records)
        self.held.update({record.key: record for record in records})

    @rule(gone=st.lists(keys, max_size=6))
    def remove(self, gone: list[Key]) -> None:
        self.store.remove(gone)
        for key in gone:
            self.held.pop(key, None)

    @rule()
    def reopen(self) -> None:
        reopened = KeywordStore()
        keys = sorted(self.held)
        rows = ScopedRows()
        rows.add(keys, [self.held[key].serial for key in keys])
        assert reopened.restore(self.store.snapshot(), rows=rows)
        self.store = reopened

    @rule(query=queries, level=st.sampled_from([None, 0, 1, 2]), limit=st.integers(0, 8))
    def answers_as_new(self, query: StoreQuery, level: int | None, limit: int) -> None:
        fresh = KeywordStore()
        fresh.add(list(self.held.values()))
        assert self.store.propose(query, limit, level=level) == fresh.propose(
            query, limit, level=level
        )
        got, expected = (each.observe(query, [*IDS, "nobody"]) for each in (self.store, fresh))
        for name in fresh.emits:
            assert np.array_equal(got.columns[name], expected.columns[name], equal_nan=True)
            assert np.array_equal(got.reason(name), expected.reason(name))

    @invariant()
    def length_is_what_is_held(self) -> None:
        assert len(self.store) == len(self.held)


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging and compacting every few writes, not every few thousand."""
    monkeypatch.setattr(store, "_PENDING", 12)
    monkeypatch.setattr(index, "_STEP", 5)
    monkeypatch.setattr(index, "_CHUNK", 2)
    monkeypatch.setattr("rankblend.stores._rows._LEAST_SLACK", 3)


class TestKeywordMachine(KeywordMachine.TestCase):
    settings = settings(max_examples=25, stateful_step_count=25)

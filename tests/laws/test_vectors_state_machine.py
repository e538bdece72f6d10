"""VectorStore against a dict of records through any history of writes."""

from __future__ import annotations

import numpy as np
from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Reason, Record, StoreQuery
from rankblend.stores.vectors import VectorStore

SCOPES = [Scope.parse(text) for text in ("t:a", "t:a/u:1", "t:a/u:1/s:1", "t:a/u:10", "t:a-b")]
IDS = ["a", "b", "c", "é"]
keys = st.builds(Key, st.sampled_from(SCOPES), st.sampled_from(IDS))
# Few directions, so that ties are common: three numbers of {-1, 0, 1, 2}, not all zero.
directions = st.tuples(*[st.sampled_from([-1, 0, 1, 2])] * 3).filter(any)
vectors = directions.map(lambda numbers: np.array(numbers, dtype=np.float32))
records = st.builds(Record, keys, st.just(""), st.integers(-1, 9), vector=st.none() | vectors)
queries = st.builds(
    StoreQuery,
    st.just(""),
    st.lists(st.sampled_from(SCOPES), min_size=1, max_size=2),
    vector=vectors,
    reach=st.sampled_from(Reach),
    admitted=st.none() | st.lists(st.booleans(), max_size=9).map(lambda m: np.array(m, bool)),
)


def cosine(record: Record, query: StoreQuery) -> float:
    """In exact arithmetic a ratio of integers and one square root: good to 1e-15."""
    assert record.vector is not None
    assert query.vector is not None
    left, right = record.vector.astype(int), query.vector.astype(int)
    return float(left @ right / np.sqrt(float((left @ left) * (right @ right))))


class VectorMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.store = VectorStore(3)
        self.model: dict[Key, Record] = {}

    def shown(self, query: StoreQuery) -> dict[str, Record]:
        seen: dict[str, Record] = {}
        for record in self.model.values():
            if query.admits(record):
                other = seen.get(record.id)
                rank = (query.rank_of_scope(record.scope), record.scope.path)
                if other is None or rank < (query.rank_of_scope(other.scope), other.scope.path):
                    seen[record.id] = record
        return seen

    @rule(batch=st.lists(records, max_size=6))
    def add(self, batch):
        self.store.add(batch)
        for record in batch:
            self.model[record.key] = record

    @rule(gone=st.lists(keys, max_size=4))
    def remove(self, gone):
        self.store.remove(gone)
        for key in gone:
            self.model.pop(key, None)

    @rule()
    def compact(self):
        self.store._compact()

    @rule(query=queries, limit=st.integers(0, 6), level=st.none() | st.integers(0, 2))
    def propose(self, query, limit, level):
        candidates = {
            identifier: record
            for identifier, record in self.shown(query).items()
            if record.vector is not None and level in (None, query.distance(record.scope))
        }
        # float32 storage moves a cosine by up to 1e-7; equal directions stay exactly equal.
        expected = sorted(
            candidates, key=lambda one: (-round(cosine(candidates[one], query), 6), one)
        )
        assert self.store.propose(query, limit, level=level) == self.fair(expected, query)[:limit]

    def fair(self, expected, query):
        """The store's own order where two different directions have one cosine."""
        observed = self.store.observe(query, expected).columns["cosine"]
        return [
            identifier for _, identifier in sorted(zip((-observed).tolist(), expected, strict=True))
        ]

    @rule(query=queries, blank=st.booleans())
    def observe(self, query, blank):
        query = evolve(query, vector=None) if blank else query
        seen = self.store.observe(query, [*IDS, "never"])
        shown = self.shown(query)
        for identifier, value, reason in zip(
            [*IDS, "never"], seen.columns["cosine"], seen.reason("cosine"), strict=True
        ):
            if identifier not in shown:
                assert np.isnan(value)
                assert reason == Reason.UNKNOWN
            elif shown[identifier].vector is None or query.vector is None:
                assert np.isnan(value)
                assert reason == Reason.NOT_APPLICABLE
            else:
                assert abs(value - cosine(shown[identifier], query)) < 3e-7
                assert reason == Reason.PRESENT

    @rule(query=queries, limit=st.integers(1, 6), seed=st.integers(0, 5))
    def written_in_another_order(self, query, limit, seed):
        order = np.random.default_rng(seed).permutation(len(self.model))
        held = list(self.model.values())
        other = VectorStore(3)
        for at in order:
            other.add([held[at]])
        assert other.propose(query, limit) == self.store.propose(query, limit)
        np.testing.assert_array_equal(
            other.observe(query, IDS).columns["cosine"],
            self.store.observe(query, IDS).columns["cosine"],
        )

    @invariant()
    def as_many_as_were_written(self):
        assert len(self.store) == len(self.model)


TestVectorMachine = VectorMachine.TestCase
TestVectorMachine.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)

"""The keyword store against a slow twin, bit for bit, and against bm25s, score for score."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Reason, Record, Statistics, StoreQuery
from rankblend.stores.keywords import Analysis, KeywordStore

K1, B = 1.2, 0.75


class SlowKeywords:
    """What the store must answer, read off the definition: every memory looked at, no index."""

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}
        self.analysis = Analysis()

    def terms(self, text: str) -> list[str]:
        return [stem for stem in self.analysis.stems(self.analysis.tokens(text)) if stem]

    def visible(self, query: StoreQuery) -> dict[str, Record]:
        nearest: dict[str, Record] = {}
        for record in self.records.values():
            if query.admits(record):
                known = nearest.setdefault(record.id, record)
                nearest[record.id] = min(
                    (known, record), key=lambda r: (query.rank_of_scope(r.scope), r.scope.path)
                )
        return nearest

    def corpus(self, query: StoreQuery) -> list[Record]:
        if query.statistics is Statistics.VISIBLE:
            return list(self.visible(query).values())
        return [
            record
            for record in self.records.values()
            if query.statistics is Statistics.STORE or record.scope.root in query.roots
        ]

    def bm25(self, query: StoreQuery, record: Record) -> float:
        corpus = [self.terms(other.text) for other in self.corpus(query)]
        mean = sum(map(len, corpus)) / len(corpus)
        own = self.terms(record.text)
        score = 0.0
        for term in dict.fromkeys(self.terms(query.text)):
            tf = own.count(term)
            if tf:
                df = sum(term in terms for terms in corpus)
                idf = math.log1p((len(corpus) - df + 0.5) / (df + 0.5))
                score += idf * (tf / (tf + K1 * (1 - B + B * (len(own) / mean))))
        return score

    def propose(self, query: StoreQuery, limit: int, level: int | None) -> list[str]:
        scores = {
            id_: self.bm25(query, record)
            for id_, record in self.visible(query).items()
            if level in (None, query.distance(record.scope))
        }
        found = [id_ for id_, score in scores.items() if score > 0]
        return sorted(found, key=lambda id_: (-scores[id_], id_))[:limit]

    def observe(self, query: StoreQuery, id_: str) -> tuple[float, float, Reason, Reason]:
        record = self.visible(query).get(id_)
        if record is None:
            return math.nan, math.nan, Reason.UNKNOWN, Reason.UNKNOWN
        words, own = set(self.analysis.tokens(query.text)), set(self.analysis.tokens(record.text))
        coverage = len(words & own) / len(words) if words else 1.0
        if not self.terms(query.text):
            return math.nan, coverage, Reason.NOT_APPLICABLE, Reason.PRESENT
        return self.bm25(query, record), coverage, Reason.PRESENT, Reason.PRESENT


SCOPES = [
    Scope.parse(text)
    for text in (
        "t:1",
        "t:1/u:1",
        "t:1/u:1/s:1",
        "t:1/u:1/s:2",
        "t:1/u:10",
        "t:10",
        "t:10/u:1",
        "t:2/u:1/s:1",
    )
]
IDS = ["a", "b", "c", "d", "e", "é"]
WORDS = ["tea", "teas", "run", "running", "runs", "the", "who", "x", "東京都", "東京", "中", "milk"]

scopes = st.sampled_from(SCOPES)
texts = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)
keys = st.builds(Key, scopes, st.sampled_from(IDS))
writes = st.lists(
    st.lists(st.tuples(keys, texts), max_size=8)
    | st.lists(keys, max_size=4).map(tuple)
    | st.sampled_from(["merge", "compact", "reopen"]),
    min_size=1,
    max_size=7,
)


@st.composite
def queries(draw: st.DrawFn) -> StoreQuery:
    admitted = draw(st.none() | st.lists(st.booleans(), max_size=len(SCOPES) * len(IDS)))
    return StoreQuery(
        draw(texts),
        draw(st.lists(scopes, min_size=1, max_size=3, unique=True)),
        reach=draw(st.sampled_from(Reach)),
        statistics=draw(st.sampled_from(Statistics)),
        admitted=None if admitted is None else np.array(admitted, dtype=np.bool_),
    )


def written(steps: Sequence[object], store: KeywordStore, twin: SlowKeywords) -> KeywordStore:
    serials: dict[Key, int] = {}
    for step in steps:
        if isinstance(step, tuple):
            store.remove(step)
            for key in step:
                twin.records.pop(key, None)
        elif isinstance(step, list):
            records = [
                Record(key, text, serials.setdefault(key, len(serials))) for key, text in step
            ]
            store.add(records)
            twin.records.update({record.key: record for record in records})
        elif step == "merge":
            store._index.merge()
            store._renumbered()
        elif step == "compact":
            store._compact()
        else:
            reopened = KeywordStore()
            assert reopened.restore(store.snapshot())
            store = reopened
    return store


@given(steps=writes, asked=st.lists(queries(), min_size=1, max_size=3))
def test_store_answers_as_the_definition_says(steps: list[object], asked: list[StoreQuery]) -> None:
    twin = SlowKeywords()
    store = written(steps, KeywordStore(k1=K1, b=B), twin)
    assert len(store) == len(twin.records)
    for query in asked:
        for level in (None, 0, 1, 2):
            for limit in (2, 100):
                assert store.propose(query, limit, level=level) == twin.propose(query, limit, level)
        ids = [*IDS, "nobody", "a"]
        seen = store.observe(query, ids)
        got = zip(
            seen.columns["bm25"].tolist(),
            seen.columns["coverage"].tolist(),
            seen.reason("bm25").tolist(),
            seen.reason("coverage").tolist(),
            strict=True,
        )
        for id_, row in zip(ids, got, strict=True):
            assert repr(row) == repr(tuple(map(_plain, twin.observe(query, id_))))


def _plain(value: float | Reason) -> float | int:
    return int(value) if isinstance(value, Reason) else value


@pytest.mark.parametrize("crowd", [40, 1500])
def test_store_of_many_scopes_answers_as_the_definition_says(
    crowd: int, rng: np.random.Generator
) -> None:
    """Enough rows for every way of reading them: slices, the unsorted middle, rows one by one."""
    store, twin = KeywordStore(k1=K1, b=B), SlowKeywords()
    for start in range(0, crowd, crowd // 5):
        batch = [
            Record(
                Key(SCOPES[int(rng.integers(len(SCOPES)))], f"m{int(rng.integers(crowd // 2))}"),
                " ".join(rng.choice(WORDS, int(rng.integers(1, 9)))),
                serial,
            )
            for serial in range(start, start + crowd // 5)
        ]
        store.add(batch)
        twin.records.update({record.key: record for record in batch})
        gone = [record.key for record in batch[::7]]
        store.remove(gone)
        for key in gone:
            twin.records.pop(key, None)
        if start == crowd // 5:
            store._compact()
        if start in (2 * (crowd // 5), 3 * (crowd // 5)):
            store._index.merge()
            store._renumbered()
    spots = (store._rows.sorted_rows, store._index.postings.rows, store._rows.size)
    assert 0 < spots[0] < spots[1] < spots[2]
    for scope in (SCOPES[2], SCOPES[4], SCOPES[7]):
        for reach in Reach:
            query = StoreQuery("tea running 東京 milk", (scope,), reach=reach)
            ids = sorted({key.id for key in twin.records})[:: crowd // 20]
            got = store.observe(query, ids).columns["bm25"].tolist()
            assert repr(got) == repr([twin.observe(query, id_)[0] for id_ in ids])
            shown = twin.visible(query)
            scores = dict(
                zip(shown, store.observe(query, list(shown)).columns["bm25"].tolist(), strict=True)
            )
            ranked = sorted((i for i in scores if scores[i] > 0), key=lambda i: (-scores[i], i))
            assert store.propose(query, 10) == ranked[:10]
            assert store.propose(query, 10_000) == ranked


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.0, 0.75), (2.5, 0.0), (0.9, 1.0)])
def test_scores_are_those_of_bm25s_where_the_statistics_agree(
    k1: float, b: float, rng: np.random.Generator
) -> None:
    bm25s = pytest.importorskip("bm25s", reason="needs bm25s to compare with")
    analysis = Analysis()
    vocabulary = [f"word{at}s" for at in range(120)] + WORDS
    weights = 1 / np.arange(1, len(vocabulary) + 1)
    texts = [
        " ".join(rng.choice(vocabulary, int(rng.integers(1, 40)), p=weights / weights.sum()))
        for _ in range(400)
    ]

    def terms(text: str) -> list[str]:
        return [stem for stem in analysis.stems(analysis.tokens(text)) if stem is not None]

    peer = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    peer.index([terms(text) for text in texts], show_progress=False)
    store = KeywordStore(k1=k1, b=b)
    scope = SCOPES[0]
    ids = [f"m{at:03}" for at in range(len(texts))]
    store.add([Record(Key(scope, id_), text) for id_, text in zip(ids, texts, strict=True)])
    for _ in range(30):
        words = rng.choice(vocabulary, int(rng.integers(1, 9)))
        query = StoreQuery(" ".join(words), (scope,))
        wanted = list(dict.fromkeys(terms(query.text)))
        if not wanted:
            continue
        expected = peer.get_scores(wanted)
        got = store.observe(query, ids).columns["bm25"]
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)

"""ScopedRows against a dict that is searched from end to end, through any history of writes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Record, StoreQuery
from rankblend.stores._rows import ScopedRows

SCOPES = [
    Scope.parse(text)
    for text in (
        "t:a",
        "t:a/u:1",
        "t:a/u:10",
        "t:a/u:1/s:1",
        "t:a/u:1/s:2",
        "t:a/u:2/s:1",
        "t:a-b",
        "t:a-b/u:1",
        "t:ab/u:1",
        "t:é/u:😀",
    )
]
IDS = ["a", "b", "c", "Z", "é", ""]
keys = st.builds(Key, st.sampled_from(SCOPES), st.sampled_from(IDS))
serials = st.integers(-1, 12)
writes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.dictionaries(keys, serials, max_size=8)),
        st.tuples(st.just("remove"), st.lists(keys, max_size=4)),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("share"), st.booleans()),
    ),
    max_size=8,
)
queries = st.builds(
    StoreQuery,
    st.just(""),
    st.lists(st.sampled_from(SCOPES), min_size=1, max_size=3),
    reach=st.sampled_from(Reach),
    admitted=st.none() | st.lists(st.booleans(), max_size=12).map(lambda m: np.array(m, bool)),
)


def replay(history) -> tuple[ScopedRows, dict[Key, int]]:
    """The rows, and what they should hold, after a history of writes."""
    rows, model = ScopedRows(), {}
    others: list[tuple[ScopedRows, dict[Key, int]]] = []
    for what, given_ in history:
        if what == "add":
            new = {key: serial for key, serial in given_.items() if key not in model}
            added = rows.add(list(new), list(new.values()))
            assert [rows.key(row) for row in added] == list(new)
            model |= new
        elif what == "remove":
            freed = [rows.key(row) for row in rows.remove(given_)]
            assert freed == [
                key for key in dict.fromkeys(given_) if model.pop(key, None) is not None
            ]
        elif what == "share":
            other = rows.shared()
            others.append((rows if given_ else other, dict(model)))
            rows = other if given_ else rows
        else:
            old = [rows.key(row) for row in range(rows.size)]
            order = rows.compact()
            assert [rows.key(row) for row in range(rows.size)] == [old[row] for row in order]
            assert rows.sorted_rows == rows.size == len(model)
            assert [rows.key(row) for row in range(rows.size)] == sorted(model)
    for other, held in others:  # nothing that was done to one of two that share was done to both
        living = np.flatnonzero(other.alive)
        assert {other.key(row): other.serials[row] for row in living} == held
        assert {key: other.serials[other.row(key)] for key in held} == held
    return rows, model


def shown(model: dict[Key, int], query: StoreQuery) -> dict[str, Key]:
    """The key each id stands for, by the words of the contract."""
    seen: dict[str, Key] = {}
    for key, serial in model.items():
        if not query.admits(Record(key, "", serial)):
            continue
        best = seen.get(key.id)

        def rank(one: Key) -> tuple[object, ...]:
            return query.rank_of_scope(one.scope), one.scope.path

        if best is None or rank(key) < rank(best):
            seen[key.id] = key
    return seen


@given(writes, queries, st.none() | st.integers(0, 3))
def test_visible_after_any_history_equals_a_full_search(history, query, level):
    rows, model = replay(history)
    expected = {
        key
        for key in shown(model, query).values()
        if level is None or query.distance(key.scope) == level
    }
    found = rows.visible(query, level)
    assert {rows.key(row) for row in found} == expected
    assert (np.diff(found) > 0).all()


@given(writes, queries)
def test_locate_after_any_history_finds_the_row_that_is_visible(history, query):
    rows, model = replay(history)
    expected = shown(model, query)
    located = rows.locate(query, [*IDS, "never written"])
    assert [None if row < 0 else rows.key(row) for row in located] == [
        expected.get(identifier) for identifier in [*IDS, "never written"]
    ]


@given(writes, queries, st.none() | st.integers(0, 3))
def test_blocks_describe_exactly_the_visible_scopes(history, query, level):
    rows, _ = replay(history)
    blocks = rows.blocks(query, level)
    assert blocks.count == len(blocks.rows()) == len(rows.visible(query, level))
    in_ranges = {row for start, stop in blocks.ranges for row in range(start, stop)}
    for row in range(rows.sorted_rows):
        distance = query.distance(rows.key(row).scope)
        assert (row in in_ranges) == (distance == level if level is not None else distance >= 0)
    inside = [row for start, stop in blocks.ranges for row in blocks.excluded_in(start, stop)]
    assert inside == blocks.excluded.tolist()
    assert (blocks.tail >= rows.sorted_rows).all()


@given(writes, queries)
def test_keys_and_distances_after_any_history_equal_a_full_search(history, query):
    rows, model = replay(history)
    assert len(rows) == len(model) == int(rows.alive.sum())
    for key in (Key(scope, identifier) for scope in SCOPES for identifier in IDS):
        row = rows.row(key)
        assert (row is not None) == (key in model)
        if row is not None:
            assert rows.key(row) == key
            assert rows.ids[row] == key.id
            assert rows.serials[row] == model[key]
    everything = np.arange(rows.size)
    assert rows.distances(query, everything).tolist() == [
        query.distance(rows.key(row).scope) for row in everything
    ]

"""Filters: parsing with all problems at once, exact types, one form for hard and soft conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores import Key, Record, StoreQuery
from rankblend.stores.catalog import Catalog, Filters
from rankblend.stores.catalog._filters import metadata_value

TENANT = Scope.parse("tenant:acme")
QUERY = StoreQuery("", [TENANT], now=1e6)
NAN = float("nan")


def accepts(given: object, value: object) -> bool:
    (condition,) = Filters.parse({"field": given}).conditions
    return condition.accepts(value)


@pytest.mark.parametrize(
    ("given", "yes", "no"),
    [
        (1, [1, 1.0, [3, 1]], [True, "1", 2, None, [], [True], {"x": 1}]),
        (1.5, [1.5], [1, "1.5", None]),
        ("1", ["1", ["0", "1"]], [1, True, "1 ", None]),
        (True, [True, [False, True]], [1, 1.0, "true", "True", False, None]),
        (False, [False], [0, 0.0, None, ""]),
        (None, [None, [None]], [0, "", False, "None", []]),
        ([1, "a", None], [1, "a", None, ["z", "a"]], [True, "1", "b", 0]),
        ((1, 2), [1, 2], [3]),
        ({"b"}, ["b"], ["a", None]),
        ([], [], [None, 0, "", []]),
        ({"ne": 1}, [2, True, "1", None, []], [1, 1.0, [2, 1]]),
        ({"ne": None}, [0, "", False], [None]),
        ({"ne": True}, [1, None, "true"], [True]),
        ({"gte": 2}, [2, 2.0, 3, 10**30, [1, 2]], [1.9, "2", "3", True, None, []]),
        ({"gt": 2}, [2.1], [2]),
        ({"lte": 2}, [2, -1], [2.1, False, None]),
        ({"lt": 2}, [1.9], [2]),
        ({"gte": "b"}, ["b", "ba", "é"], ["a", "B", 5, None]),
        ({"gte": 1, "lt": 3, "ne": 2}, [1, 2.5], [0, 2, 3]),
        (2**53 + 1, [2**53 + 1], [2**53, float(2**53)]),
        (np.int64(3), [3], ["3"]),
        (np.float64(0.5), [0.5], [0]),
    ],
)
def test_accepts_when_types_differ_then_values_are_not_equal(
    given: object, yes: list[object], no: list[object]
) -> None:
    assert [value for value in yes if not accepts(given, value)] == []
    assert [value for value in no if accepts(given, value)] == []


def test_parse_when_much_is_wrong_then_every_problem_is_told_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Filters.parse(
            {
                "a": {"like": "x", "gte": None},
                "b": {},
                "c": object(),
                "d": {"gt": True},
                "": 1,
                "created": 5,
                "at": datetime(2024, 1, 1),  # noqa: DTZ001
                "used": "yesterday",
                "expires": {"gte": "2024-01-01T00:00:00"},
                "salience": "high",
                "confidence": NAN,
                "layer": {"gte": "a"},
                "e": [1, [2]],
                "f": datetime(2024, 1, 1, tzinfo=UTC),
                "g": float("inf"),
                7: 1,
            }  # type: ignore[dict-item]
        )
    told = caught.value.problems
    assert len(told) == 17
    for part in (
        "'a': unknown operator 'like'; known: gte, lte, gt, lt, ne",
        "'a': gte: expected a number, text or time, got None",
        "'b': expected at least one operator",
        "'c': expected text, a number, a bool or None, got object",
        "'d': gt",
        "'at': expected a time with an offset (UTC), got a naive one",
        "'used': expected a datetime or ISO text, got str",
        "'salience': expected a number, got str",
        "'layer': gte: the values of layer have no order",
        "'7': expected the name of a field",
    ):
        assert any(part in problem for problem in told), part


@pytest.mark.parametrize("given", [5, "x", [("a", 1)], object()])
def test_parse_when_not_a_mapping_then_refused(given: object) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a mapping"):
        Filters.parse(given)  # type: ignore[arg-type]


def test_parse_when_none_or_parsed_then_taken_as_it_is() -> None:
    assert not Filters.parse(None)
    assert not Filters.parse({})
    parsed = Filters.parse({"a": 1})
    assert Filters.parse(parsed) is parsed


def test_metadata_value_when_dotted_then_the_whole_name_comes_before_the_path() -> None:
    metadata = {"a.b": 1, "a": {"b": 2, "c": {"d": 3}}, "x": [1]}
    assert metadata_value(metadata, "a.b") == 1
    assert metadata_value(metadata, "a.c.d") == 3
    assert metadata_value(metadata, "a.c") == {"d": 3}
    for missing in ("a.z", "a.b.c", "x.0", "zz", "a.c.d.e"):
        assert metadata_value(metadata, missing) is None


MEMORIES = [
    Record(
        Key(TENANT, "m0"),
        "t",
        created=100.0,
        at=200.0,
        salience=0.5,
        metadata={"lang": "en", "n": 1, "tags": ["x", "y"], "deep": {"k": True}},
    ),
    Record(
        Key(TENANT, "m1"),
        "t",
        layer="episodic",
        created=300.0,
        at=300.0,
        used=400.0,
        uses=1,
        expires=2e6,
        salience=0.25,
        confidence=1.0,
        metadata={"lang": "de", "n": "1", "tags": ["y"], "deep": {"k": 1}},
    ),
    Record(Key(TENANT, "m2"), "t", layer="own", metadata={"n": True, "deep": {}, "'; --": 1}),
    Record(Key(TENANT, "m3"), "t", at=50.0, metadata={}),
]


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with Catalog.open(":memory:") as opened:
        opened.put(MEMORIES)
        yield opened


def admitted(catalog: Catalog, filters: Mapping[str, Any]) -> list[str]:
    mask = catalog.admit(QUERY, filters=filters)
    if mask is None:
        return [each.id for each in catalog.iter_records()]
    return [each.id for each in catalog.iter_records() if mask[each.serial]]


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["m0", "m1", "m2", "m3"]),
        ({"lang": "en"}, ["m0"]),
        ({"lang": ["en", "de"]}, ["m0", "m1"]),
        ({"lang": {"ne": "en"}}, ["m1", "m2", "m3"]),
        ({"lang": None}, ["m2", "m3"]),
        ({"n": 1}, ["m0"]),
        ({"n": "1"}, ["m1"]),
        ({"n": True}, ["m2"]),
        ({"n": {"gte": 0}}, ["m0"]),
        ({"tags": "y"}, ["m0", "m1"]),
        ({"tags": "y", "lang": "de"}, ["m1"]),
        ({"deep.k": True}, ["m0"]),
        ({"deep.k": 1}, ["m1"]),
        ({"'; --": 1}, ["m2"]),
        ({"'; DROP TABLE memories; --": None}, ["m0", "m1", "m2", "m3"]),
        ({"layer": "semantic"}, ["m0", "m3"]),
        ({"layer": ["own", "episodic"]}, ["m1", "m2"]),
        ({"layer": {"ne": "semantic"}}, ["m1", "m2"]),
        ({"layer": "nothing"}, []),
        ({"salience": 0.5}, ["m0"]),
        ({"salience": {"gt": 0.25}}, ["m0"]),
        ({"salience": None}, ["m2", "m3"]),
        ({"salience": {"ne": 0.5}}, ["m1", "m2", "m3"]),
        ({"confidence": {"gte": 1}}, ["m1"]),
        ({"created": {"gte": at(100), "lt": at(300)}}, ["m0"]),
        ({"created": {"lte": "1970-01-01T00:05:00Z"}}, ["m0", "m1", "m2", "m3"]),
        ({"at": "1970-01-01T02:00:50+02:00"}, ["m3"]),
        ({"used": None}, ["m0", "m2", "m3"]),
        ({"used": {"ne": None}}, ["m1"]),
        ({"expires": {"gt": at(1e6)}}, ["m1"]),
    ],
)
def test_admit_when_filtered_then_only_matching_memories_are_shown(
    catalog: Catalog, filters: dict[str, Any], expected: list[str]
) -> None:
    assert admitted(catalog, filters) == expected


def test_times_when_given_in_another_zone_then_they_are_the_same_moment(catalog: Catalog) -> None:
    moment = at(300).astimezone(timezone(timedelta(hours=-7)))
    assert admitted(catalog, {"created": moment}) == ["m1"]
    assert admitted(catalog, {"created": moment.isoformat()}) == ["m1"]


def test_admit_when_a_memory_is_written_again_then_its_new_metadata_counts(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for directly in (10_000, 0):  # read one by one; then kept in memory
        monkeypatch.setattr("rankblend.stores.catalog._filter_fields._READ_DIRECTLY", directly)
        catalog.put([Record(Key(TENANT, "m3"), "t", at=60.0, metadata={"lang": "fr"})])
        assert admitted(catalog, {"lang": "fr"}) == ["m3"]
        catalog.put([Record(Key(TENANT, "m3"), "t", at=60.0, metadata={"lang": ["fr", "en"]})])
        assert admitted(catalog, {"lang": "en"}) == ["m0", "m3"]
        catalog.put([Record(Key(TENANT, "m3"), "t", at=60.0)])
        assert admitted(catalog, {"lang": "fr"}) == []
        assert admitted(catalog, {"lang": None}) == ["m2", "m3"]


def test_admit_when_many_fields_were_asked_then_the_least_recent_are_dropped_and_read_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankblend.stores.catalog._filter_fields._READ_DIRECTLY", 0)
    for _ in range(2):
        for n in range(20):
            assert admitted(catalog, {f"unknown{n}": 1}) == []
            assert admitted(catalog, {"lang": "en"}) == ["m0"]
        assert len(catalog._columns.fields) == 16
        assert admitted(catalog, {"n": True}) == ["m2"]


_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, -2.5, 3.0]),
    st.sampled_from(["", "0", "1", "a", "b"]),
)  # fmt: skip
_values = st.one_of(_scalars, st.lists(_scalars, max_size=3))
_ordered = st.one_of(st.integers(-3, 3), st.sampled_from(["0", "a"]), st.just(0.5))
_conditions = st.one_of(
    _scalars,
    st.lists(_scalars, max_size=3),
    st.dictionaries(st.sampled_from(["gte", "lte", "gt", "lt"]), _ordered, min_size=1),
    st.fixed_dictionaries({"ne": _scalars}),
)


class Rows:
    """A reader over plain metadata, with codes that are as unhelpful as allowed."""

    def __init__(self, metadata: Sequence[Mapping[str, object]]) -> None:
        self.metadata = metadata

    def numbers(self, name: str) -> Any:
        raise AssertionError(name)

    def coded(self, name: str) -> Any:
        values = [metadata_value(each, name) for each in self.metadata]
        unused = [None] * 40
        return np.arange(len(values), dtype=np.int32), values + unused


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), _values), min_size=1, max_size=8),
    st.dictionaries(st.sampled_from("abc"), _conditions),
)
def test_matches_and_share_when_random_then_as_one_by_one(
    memories: list[dict[str, object]], given: dict[str, object]
) -> None:
    filters = Filters.parse(given)
    verdicts = [
        [condition.accepts(each.get(condition.field)) for condition in filters.conditions]
        for each in memories
    ]
    reader = Rows(memories)
    assert filters.matches(reader, len(memories)).tolist() == [all(row) for row in verdicts]
    share = filters.share(reader, len(memories))
    if filters:
        assert share.tolist() == [sum(row) / len(row) for row in verdicts]
    else:
        assert np.isnan(share).all()


@given(
    st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=6),
    st.one_of(
        st.sampled_from([0.0, 0.5, None]),
        st.lists(st.sampled_from([0.0, 0.5, None]), max_size=3),
        st.fixed_dictionaries({"ne": st.sampled_from([0.5, None])}),
        st.dictionaries(
            st.sampled_from(["gte", "lte", "gt", "lt"]), st.sampled_from([0, 0.25]), min_size=1
        ),
    ),
)
def test_accepts_numbers_when_random_then_as_one_by_one(
    values: list[float | None], given: object
) -> None:
    (condition,) = Filters.parse({"salience": given}).conditions
    column = np.array([NAN if value is None else value for value in values])
    expected = [condition.accepts(value) for value in values]
    assert condition.accepts_numbers(column).tolist() == expected


@pytest.fixture
def labelled() -> Iterator[Catalog]:
    with Catalog.open(":memory:") as catalog:
        catalog.put(
            [
                Record(Key(TENANT, "a"), "t", review="flagged", slot="k1", uses=3, used=5.0),
                Record(Key(TENANT, "b"), "t", maturity="settled", certainty="stated", slot="k2"),
                Record(Key(TENANT, "c"), "t", metadata={"n": 10**30, "tags": ["x", ["y"]]}),
            ]
        )
        yield catalog


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"review": "flagged"}, "a"),
        ({"review": None}, "bc"),
        ({"review": {"ne": "flagged"}}, "bc"),
        ({"review": ["flagged", None]}, "abc"),
        ({"maturity": "settled"}, "b"),
        ({"certainty": ["stated", "inferred"]}, "b"),
        ({"key": "k1"}, "a"),
        ({"key": None}, "c"),
        ({"key": {"gt": "k1"}}, "b"),
        ({"id": ["a", "c", "z"]}, "ac"),
        ({"id": {"ne": "a"}}, "bc"),
        ({"uses": 3}, "a"),
        ({"uses": {"lt": 1}}, "bc"),
        ({"uses": {"lt": 10**300}}, "abc"),
        ({"n": {"gte": 10**30}}, "c"),
        ({"created": {"lte": datetime.max.replace(tzinfo=UTC)}}, "abc"),
    ],
)
def test_matches_when_a_field_of_every_memory_is_asked_for_then_it_is_not_metadata(
    labelled: Catalog, given: dict[str, object], found: str
) -> None:
    for view in (labelled, labelled.snapshot(1e9)):
        admitted = view.admit(QUERY, filters=given)
        shown = [
            record.id
            for record in view.iter_records()
            if admitted is None or admitted[record.serial]
        ]
        assert "".join(shown) == found


@pytest.mark.parametrize(
    "given",
    [
        {"n": 10**400},
        {"n": [1, -(10**400)]},
        {"salience": {"lte": 10**400}},
        {"uses": 10**400},
        {"at": {"lte": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}},
        {"at": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))},
        {"review": "confimed"},
        {"review": {"gte": "flagged"}},
        {"maturity": 1},
        {"id": None},
        {"key": 5},
        {"uses": "many"},
    ],
)
def test_parse_when_a_value_cannot_be_compared_then_the_refusal_is_typed(
    given: dict[str, object],
) -> None:
    with pytest.raises(InvalidArgumentError):
        Filters.parse(given)


def test_snapshot_when_a_result_is_changed_then_the_snapshot_is_not(labelled: Catalog) -> None:
    snapshot = labelled.snapshot(1e9)
    key = Key(TENANT, "c")
    for give in (
        lambda: snapshot.get(key),
        lambda: snapshot.records([key])[0],
        lambda: list(snapshot.iter_records())[2],
    ):
        metadata: Any = give().metadata
        metadata["tags"][1].append("z")
        metadata["tags"].append("w")
        metadata["n"] = 0
        assert give().metadata == {"n": 10**30, "tags": ["x", ["y"]]}
    assert snapshot.admit(QUERY, filters={"tags": "w"}) is not None

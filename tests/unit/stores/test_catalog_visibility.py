"""Visibility decisions: layer policies, expiry, equal ids, slots; against a slow, readable twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores import (
    DEFAULT_LAYERS,
    Key,
    LayerPolicy,
    LayerVisibility,
    Reach,
    Record,
    StoreQuery,
    layer_policy,
)
from rankblend.stores.catalog import Catalog, Filters

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
SESSION = USER / "session:9"


def shown(catalog: Catalog, query: StoreQuery, **options: Any) -> list[tuple[str, str]]:
    """(scope, id) of what the mask admits, checked against the query's own verdict."""
    mask = catalog.admit(query, **options)
    admitted = evolve(query, admitted=mask)
    found = [each for each in catalog.iter_records() if admitted.admits(each)]
    if mask is not None:
        assert mask.dtype == np.bool_
        assert int(mask.sum()) == len(found)  # nothing invisible is marked
    return [(str(each.scope), each.id) for each in found]


def catalog_of(*records: Record) -> Catalog:
    catalog = Catalog.open(":memory:")
    catalog.put(records)
    return catalog


def memory(scope: Scope, identifier: str, **fields: Any) -> Record:
    return Record(Key(scope, identifier), "text", **fields)


def ids(found: Sequence[tuple[str, str]]) -> list[str]:
    return [identifier for _, identifier in found]


def test_admit_when_nothing_visible_is_out_then_none() -> None:
    sibling = TENANT / "user:8"
    with catalog_of(
        memory(TENANT, "a"),
        memory(USER, "b", layer="working"),
        memory(sibling, "c", layer="working", expires=5.0),  # out, but not visible anyway
        memory(USER, "d", layer="procedural", slot="s"),
        memory(sibling, "d"),
    ) as catalog:
        assert catalog.admit(StoreQuery("", [USER], now=10.0)) is None
        assert (
            catalog.admit(StoreQuery("", [USER], now=10.0), filters={"layer": {"ne": "x"}}) is None
        )


def test_admit_when_a_layer_is_tip_only_then_only_the_query_scope_shows_it() -> None:
    with catalog_of(
        memory(TENANT, "t", layer="working"),
        memory(USER, "u", layer="working"),
        memory(SESSION, "s", layer="working"),
        memory(TENANT, "fact"),
    ) as catalog:
        assert ids(shown(catalog, StoreQuery("", [USER]))) == ["fact", "u"]
        assert ids(shown(catalog, StoreQuery("", [SESSION]))) == ["fact", "s"]
        assert ids(shown(catalog, StoreQuery("", [SESSION, USER]))) == ["fact", "u", "s"]
        below = StoreQuery("", [USER], reach=Reach.SUBTREE)
        assert ids(shown(catalog, below)) == ["fact", "u"]
        inherit = {"working": LayerPolicy("inherit")}
        assert ids(shown(catalog, below, layers=inherit)) == ["fact", "t", "u", "s"]


def test_admit_when_a_layer_shadows_then_per_slot_the_nearest_scope_hides_the_farther() -> None:
    def procedure(scope: Scope, identifier: str, slot: str | None) -> Record:
        return memory(scope, identifier, layer="procedural", slot=slot)

    with catalog_of(
        procedure(TENANT, "deploy-all", "deploy"),
        procedure(USER, "deploy-mine", "deploy"),
        procedure(USER, "deploy-mine-2", "deploy"),  # same scope: hides nothing, is not hidden
        procedure(SESSION, "deploy-now", "deploy"),
        procedure(TENANT, "test-all", "test"),
        procedure(TENANT, "free", None),
        procedure(USER, "free-2", None),
        memory(TENANT, "fact", slot="deploy"),  # of another layer
    ) as catalog:
        assert ids(shown(catalog, StoreQuery("", [USER]))) == [
            "fact", "free", "test-all", "deploy-mine", "deploy-mine-2", "free-2",
        ]  # fmt: skip
        assert "deploy-now" in ids(shown(catalog, StoreQuery("", [SESSION])))
        assert "deploy-mine" not in ids(shown(catalog, StoreQuery("", [SESSION])))
        below = StoreQuery("", [USER], reach=Reach.SUBTREE)
        assert "deploy-now" not in ids(shown(catalog, below))
        assert "deploy-mine" in ids(shown(catalog, below))


def test_admit_when_the_nearer_memory_is_out_then_it_hides_nothing() -> None:
    with catalog_of(
        memory(TENANT, "x"),
        memory(USER, "x", expires=5.0),
        memory(TENANT, "p1", layer="procedural", slot="s"),
        memory(USER, "p2", layer="procedural", slot="s", expires=5.0),
    ) as catalog:
        acme, user = "tenant:acme", "tenant:acme/user:7"
        before, after = (StoreQuery("", [USER], now=now) for now in (4.0, 5.0))
        assert shown(catalog, before) == [(user, "p2"), (user, "x")]
        assert shown(catalog, after) == [(acme, "p1"), (acme, "x")]
        assert shown(catalog, after, include_expired=True) == [(user, "p2"), (user, "x")]
        assert catalog.locate(evolve(after, admitted=catalog.admit(after)), ["x", "p2"]) == [
            Key(TENANT, "x"),
            None,
        ]


def test_admit_when_the_nearer_memory_fails_a_filter_then_it_still_hides() -> None:
    with catalog_of(
        memory(TENANT, "x", metadata={"lang": "en"}),
        memory(USER, "x", metadata={"lang": "de"}),
    ) as catalog:
        assert shown(catalog, StoreQuery("", [USER]), filters={"lang": "en"}) == []


def test_admit_when_an_id_is_at_two_named_scopes_then_the_first_named_is_seen() -> None:
    project = TENANT / "project:1"
    with catalog_of(memory(USER, "x"), memory(project, "x")) as catalog:
        for first, second in ((USER, project), (project, USER)):
            assert shown(catalog, StoreQuery("", [first, second])) == [(str(first), "x")]
            assert catalog.locate(StoreQuery("", [first, second]), ["x"]) == [Key(first, "x")]


def test_admit_when_filters_are_invalid_then_refused() -> None:
    with catalog_of() as catalog, pytest.raises(InvalidArgumentError):
        catalog.admit(StoreQuery("", [USER]), filters={"x": {"like": 1}})


def test_admit_when_the_catalog_is_empty_then_none() -> None:
    with catalog_of() as catalog:
        assert catalog.admit(StoreQuery("", [USER]), filters={"x": 1}) is None
        assert catalog.locate(StoreQuery("", [USER]), ["x"]) == [None]
        assert catalog.leading(StoreQuery("", [USER]), 3, ("at",)) == []


def test_locate_when_admitted_is_given_then_it_is_honoured() -> None:
    with catalog_of(memory(TENANT, "x"), memory(USER, "x"), memory(USER, "y")) as catalog:
        far, near, y = (
            catalog.get(key).serial  # type: ignore[union-attr]
            for key in (Key(TENANT, "x"), Key(USER, "x"), Key(USER, "y"))
        )
        mask = np.zeros(max(far, near, y) + 1, dtype=np.bool_)
        mask[far] = True
        query = StoreQuery("", [USER], admitted=mask)
        assert catalog.locate(query, ["x", "y", "x", "z"]) == [
            Key(TENANT, "x"), None, Key(TENANT, "x"), None,
        ]  # fmt: skip
        short = evolve(query, admitted=np.ones(min(near, y), dtype=np.bool_))
        assert catalog.locate(short, ["y"]) == [None]


# The slow twin: the same decisions, one memory at a time.


def expected_shown(
    records: Sequence[Record],
    query: StoreQuery,
    layers: Mapping[str, LayerPolicy],
    filters: Filters,
    include_expired: bool,
) -> set[Key]:
    def visibility(record: Record) -> LayerVisibility:
        return layer_policy(layers, record.layer).visibility

    def distance(record: Record) -> int:
        """Levels up; below the query's scopes it is −1, whatever the reach."""
        return query.path_distances.get(record.scope.path, -1)

    def out_by_itself(record: Record) -> bool:
        if query.distance(record.scope) < 0:
            return True
        if not include_expired and record.expires is not None and record.expires <= query.now:
            return True
        if visibility(record) is LayerVisibility.TIP_ONLY:
            return distance(record) != 0
        return visibility(record) is LayerVisibility.SHADOW and distance(record) < 0

    left = [record for record in records if not out_by_itself(record)]
    nearest: dict[str, Record] = {}
    for record in sorted(left, key=lambda r: (query.rank_of_scope(r.scope), r.scope.path)):
        nearest.setdefault(record.id, record)
    left = list(nearest.values())

    def overshadowed(record: Record) -> bool:
        return any(
            other.layer == record.layer
            and other.slot == record.slot
            and distance(other) < distance(record)
            for other in left
        )

    left = [
        record
        for record in left
        if not (
            visibility(record) is LayerVisibility.SHADOW
            and record.slot is not None
            and overshadowed(record)
        )
    ]

    def passes(record: Record) -> bool:
        fields = {"layer": record.layer, "salience": record.salience, **record.metadata}
        return all(c.accepts(fields.get(c.field)) for c in filters.conditions)

    return {record.key for record in left if passes(record)}


_SCOPES = [
    Scope.parse(text)
    for text in (
        "t:1", "t:1/u:1", "t:1/u:2", "t:1/u:1/s:1", "t:1/u:1/s:2", "t:1/u:10", "t:1/u:10/s:1",
        "t:10", "t:10/u:1",
    )
]  # fmt: skip
_records = st.lists(
    st.builds(
        lambda scope, number, layer, slot, expires, salience, lang: Record(
            Key(scope, f"m{number}"),
            "t",
            layer=layer,
            slot=slot,
            expires=expires,
            salience=salience,
            metadata={} if lang is None else {"lang": lang},
        ),
        st.sampled_from(_SCOPES),
        st.integers(0, 5),
        st.sampled_from(["semantic", "working", "procedural", "own"]),
        st.sampled_from([None, "s1", "s2"]),
        st.sampled_from([None, None, 5.0, 10.0, 20.0]),
        st.sampled_from([None, 0.25, 0.5]),
        st.sampled_from([None, "en", 1]),
    ),
    max_size=30,
)
_queries = st.builds(
    lambda scopes, reach: StoreQuery("", scopes, now=10.0, reach=reach),
    st.lists(st.sampled_from(_SCOPES), min_size=1, max_size=3),
    st.sampled_from(Reach),
)
_layers = st.sampled_from(
    [
        DEFAULT_LAYERS,
        {},
        {"semantic": LayerPolicy("tip_only"), "own": LayerPolicy("shadow")},
        {"semantic": LayerPolicy("shadow"), "procedural": LayerPolicy("shadow")},
    ]
)
_filters = st.sampled_from(
    [
        {},
        {"lang": "en"},
        {"lang": {"ne": 1}, "salience": {"gte": 0.5}},
        {"layer": ["own", "working"]},
    ]
)


@given(_records, _records, _queries, _layers, _filters, st.booleans(), st.booleans())
def test_admit_when_random_then_as_the_slow_twin_says(
    first: list[Record],
    second: list[Record],
    query: StoreQuery,
    layers: Mapping[str, LayerPolicy],
    filters: dict[str, object],
    include_expired: bool,
    compact: bool,
) -> None:
    with catalog_of(*first) as catalog:
        if compact:
            catalog._columns.compact()
        catalog.put([evolve(record, at=1.0) for record in second])  # a tail, and revisions
        records = list(catalog.iter_records())
        visible = {r.key for r in records if query.distance(r.scope) >= 0}
        expected = expected_shown(records, query, layers, Filters.parse(filters), include_expired)
        mask = catalog.admit(query, layers=layers, filters=filters, include_expired=include_expired)
        if mask is None:
            assert expected == visible
            return
        assert expected != visible
        assert {r.key for r in records if r.serial < len(mask) and mask[r.serial]} == expected
        asked = evolve(query, admitted=mask)
        found = catalog.locate(asked, [key.id for key in sorted(expected)])
        assert found == sorted(expected)
        assert set(catalog.leading(asked, 99, ("at",))) == {key.id for key in expected}


_levels = st.sampled_from([None, 0, 1, 2])


@given(_records, _queries, st.integers(0, 8), _levels, st.booleans(), st.booleans())
def test_leading_when_random_then_as_sorting_everything_says(
    records: list[Record],
    query: StoreQuery,
    limit: int,
    level: int | None,
    present: bool,
    compact: bool,
) -> None:
    with catalog_of(*records) as catalog:
        if compact:
            catalog._columns.compact()
        nearest: dict[str, Record] = {}
        stored = [r for r in catalog.iter_records() if query.distance(r.scope) >= 0]
        for record in sorted(stored, key=lambda r: (query.rank_of_scope(r.scope), r.scope.path)):
            nearest.setdefault(record.id, record)
        rows = [
            (-(-np.inf if r.salience is None else r.salience), -(r.expires or -np.inf), r.id)
            for r in nearest.values()
            if (level is None or query.distance(r.scope) == level)
            and not (present and r.salience is None)
        ]
        found = catalog.leading(query, limit, ("salience", "expires"), level=level, present=present)
        assert found == [identifier for *_, identifier in sorted(rows)][:limit]


def test_leading_when_the_limit_is_negative_then_refused() -> None:
    with catalog_of() as catalog, pytest.raises(InvalidArgumentError, match="limit"):
        catalog.leading(StoreQuery("", [USER]), -1, ("at",))


def test_layer_policy_when_unknown_then_it_inherits_everything() -> None:
    policy = layer_policy(DEFAULT_LAYERS, "diary")
    assert policy == LayerPolicy("inherit")
    assert policy.permits("cosine")
    assert [DEFAULT_LAYERS[name].visibility.value for name in sorted(DEFAULT_LAYERS)] == [
        "inherit", "shadow", "inherit", "tip_only",
    ]  # fmt: skip


def test_layer_policy_when_evidence_is_permitted_then_by_name_or_by_store_and_name() -> None:
    policy = LayerPolicy("inherit", {"cosine", "keywords.bm25"})
    assert policy.permits("cosine")
    assert policy.permits("vectors.cosine")
    assert policy.permits("keywords.bm25")
    assert not policy.permits("bm25")
    assert not policy.permits("other.bm25")
    assert not LayerPolicy(permitted=()).permits("cosine")


@pytest.mark.parametrize(
    "wrong",
    [
        {"visibility": "sideways"},
        {"permitted": "cosine"},
        {"permitted": ["a b"]},
        {"permitted": [1]},
    ],
)
def test_layer_policy_when_invalid_then_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="layer policy"):
        LayerPolicy(**wrong)

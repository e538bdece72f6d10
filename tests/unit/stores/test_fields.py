"""A memory's fields are declared once; everything else that lists them says the same."""

from __future__ import annotations

import inspect
import json
import sqlite3
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import CatalogCorruptError, InvalidArgumentError
from rankblend.recall import _items
from rankblend.recall._result import StoredMemory
from rankblend.relevance import Scope
from rankblend.stores import Key, Link, Record
from rankblend.stores._record import FIELDS
from rankblend.stores.catalog import Catalog
from rankblend.stores.catalog._codec import MEMORY, REVISED
from rankblend.stores.catalog._filters import NUMBER_FIELDS, TEXT_FIELDS, TIME_FIELDS

TENANT = Scope.parse("tenant:acme")
ARGUMENTS = {each.argument for each in FIELDS}
FULL = Record(
    Key(TENANT, "ü"), "text ü", layer="own", slot="s", salience=0.5, confidence=1.0,
    review="confirmed", maturity="settled", certainty="stated", created=1.5, at=2.5, expires=9.5,
    metadata={"a": [1, None, {"b": "ü"}]}, uses=3, used=4.5, links=(Link("x", "k", 0.5, True),),
    vector=np.array([0.6, 0.8], np.float32),
)  # fmt: skip


def test_record_when_it_has_attributes_then_all_but_identity_and_vector_are_declared() -> None:
    names = {each.name for each in attrs.fields(Record)}
    assert names - {each.name for each in FIELDS} == {"key", "serial", "vector"}
    assert {*MEMORY, *REVISED} - {"digest"} == {each.name for each in FIELDS}


def test_fields_when_they_are_declared_then_arguments_and_results_have_them() -> None:
    assert {each.name for each in attrs.fields(StoredMemory)} == ARGUMENTS | {"id", "scope"}
    assert ARGUMENTS | {"id", "scope", "vector"} == _items._ARGUMENTS
    moved = {"created", "used", "uses"}  # only of what is moved from elsewhere
    remembered = set(inspect.signature(rb.Memory.remember).parameters) - {"self"}
    assert remembered == (ARGUMENTS - moved) | {"id", "scope", "vector"}
    filtered = {*TIME_FIELDS, *NUMBER_FIELDS, *TEXT_FIELDS}
    assert filtered == (ARGUMENTS - {"text", "links", "metadata"}) | {"id"}


def test_fields_when_they_are_declared_then_the_file_has_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    Catalog.open(path).close()
    connection = sqlite3.connect(path)
    columns = {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table in ("memories", "history")
    }
    connection.close()
    assert columns["memories"] == {
        *MEMORY,
        *REVISED,
        "serial",
        "scope",
        "id",
        "generation",
        "revision",
    }
    assert columns["history"] == {*REVISED, "revision", "serial", "vector"}


def test_record_when_every_field_is_given_then_it_is_read_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Catalog.open(path) as catalog:
        (stored,) = catalog.put([FULL])
        columns = {
            name: catalog._columns.array(name).tolist() for name in ("at", "uses", "expires")
        }
        assert columns == {"at": [2.5], "uses": [3], "expires": [9.5]}
    with Catalog.open(path) as catalog:
        (read,) = catalog.iter_records()
    for each in attrs.fields(Record):
        for found in (stored, read):
            value = getattr(found, each.name)
            if each.name == "vector":
                np.testing.assert_array_equal(value, FULL.vector)
            elif each.name != "serial":
                assert value == getattr(FULL, each.name), each.name
                assert type(value) is type(getattr(FULL, each.name)), each.name


@pytest.mark.parametrize("each", FIELDS, ids=lambda each: each.name)
def test_field_when_a_value_is_of_another_kind_then_it_is_refused_with_its_name(each: Any) -> None:
    with Catalog.open(":memory:") as catalog:
        for wrong in (object(), b"bytes", float("nan"), "\ud800", [], -1e15, True, {1: 2}):
            if each.name == "links" and wrong == []:
                continue
            with pytest.raises(InvalidArgumentError, match=rf"drafts\[1\]: {each.name}"):
                catalog.put([FULL, attrs.evolve(FULL, **{each.name: wrong})])
        assert len(catalog) == 0


@pytest.mark.parametrize("each", FIELDS, ids=lambda each: each.name)
def test_field_when_another_kind_of_value_is_in_the_file_then_it_is_told_as_damage(
    tmp_path: Path, each: Any
) -> None:
    for wrong in (b"\xff\x00", "other", 10**18, -1.5e300):
        if each.name == "text" and wrong == "other":
            continue
        path = tmp_path / f"{json.dumps(str(wrong))[1:6]}.db"
        with Catalog.open(path) as catalog:
            catalog.put([FULL])
        connection = sqlite3.connect(path)
        connection.execute(f"UPDATE memories SET {each.name} = ?", (wrong,))
        (kept,) = connection.execute(f"SELECT {each.name} FROM memories").fetchone()
        connection.commit()
        connection.close()
        if each.kind.dtype is None or type(kept) is type(getattr(FULL, each.name)):
            continue  # a text is a text, whichever it is
        with pytest.raises(CatalogCorruptError), Catalog.open(path) as catalog:
            list(catalog.iter_records())

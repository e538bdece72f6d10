"""What is forgotten is in no table any more, also not in what stores keep to open faster."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rankblend.errors import EmbedderMismatchError, InvalidArgumentError
from rankblend.recall import Memory
from rankblend.relevance import Scope
from rankblend.stores import Key, Record
from rankblend.stores.catalog import Catalog

TENANT = Scope.parse("tenant:acme")
SECRETS = (b"xylophone", b"secret-id", b"secret-slot", b"secretlayer")


def kept(file: Path) -> bytes:
    """All bytes that stores keep in the file."""
    connection = sqlite3.connect(file)
    try:
        return b"".join(
            data for (data,) in connection.execute("SELECT data FROM index_cache_parts")
        )
    finally:
        connection.close()


def fill(file: Path) -> None:
    with Memory.open(file) as memory:
        memory.remember_many(
            {"text": f"number {i} is common", "scope": "tenant:acme", "id": f"m{i}"}
            for i in range(1200)
        )
        memory.remember(
            "xylophone", scope="tenant:acme", id="secret-id", key="secret-slot", layer="secretlayer"
        )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    fill(path)
    assert all(secret in kept(path) for secret in SECRETS)
    return path


def test_forget_when_it_returns_then_the_kept_indexes_are_gone(file: Path) -> None:
    with Memory.open(file) as memory:
        memory.forget("secret-id", scope="tenant:acme")
        assert kept(file) == b""


def test_forget_when_closed_and_reopened_then_no_word_or_name_comes_back(file: Path) -> None:
    with Memory.open(file) as memory:
        memory.forget("secret-id", scope="tenant:acme")
    for _ in range(2):
        assert b"common" in kept(file)
        assert [secret for secret in SECRETS if secret in kept(file)] == []
        with Memory.open(file) as memory:
            memory.remember("another", scope="tenant:acme")


def test_forget_when_another_process_closes_that_has_not_seen_it_then_nothing_comes_back(
    file: Path,
) -> None:
    other = Memory.open(file)
    other.remember("something to be kept", scope="tenant:acme")
    with Catalog.open(file) as catalog:
        catalog.forget([Key(TENANT, "secret-id")])
    other.close()
    assert [secret for secret in SECRETS if secret in kept(file)] == []


def test_forget_when_nothing_is_erased_then_the_kept_indexes_stay(file: Path) -> None:
    with Catalog.open(file) as catalog:
        assert catalog.forget([Key(TENANT, "unknown")]) == 0
        assert b"common" in kept(file)


def test_put_when_it_is_refused_then_no_embedder_is_noted() -> None:
    with Catalog.open(":memory:") as catalog:
        with pytest.raises(InvalidArgumentError):
            catalog.put([Record(Key(TENANT, "a"), "t", salience=7.0)], embedder="x/2")
        assert catalog.get_meta("embedder") is None
        catalog.put([Record(Key(TENANT, "a"), "t")], embedder="x/2", dimension=2)
        assert (catalog.get_meta("embedder"), catalog.get_meta("dimension")) == ("x/2", "2")
        with pytest.raises(EmbedderMismatchError):
            catalog.put([Record(Key(TENANT, "b"), "t")], embedder="y/2")
        assert len(catalog) == 1

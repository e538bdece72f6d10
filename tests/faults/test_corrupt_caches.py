"""What stores keep in the file to open faster: whatever it is, it changes no answer."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenario import USER, agree, image, opened, steps

import rankblend.stores.catalog._catalog as catalog_module
from rankblend.errors import CacheWarning
from rankblend.stores.catalog import Catalog

# Found in the file, not listed here: a store that begins to keep something is tested as well.
_NAMES = "SELECT store FROM index_cache ORDER BY store"


def changed(data: bytes, at: int) -> bytes:
    damaged = bytearray(data)
    damaged[at] ^= 1 << (at % 8)
    return bytes(damaged)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "first bit": lambda data: changed(data, 0),
    "a bit in the middle": lambda data: changed(data, len(data) // 2),
    "last bit": lambda data: changed(data, len(data) - 1),
    "cut": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"\x00",
    "noise": lambda data: np.random.default_rng(1).bytes(len(data)),
}

_FEW = ("a bit in the middle", "cut", "empty")  # the others are slow for being many


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed memory that kept all it keeps."""
    path = tmp_path_factory.mktemp("original") / "m.db"
    with pytest.MonkeyPatch.context() as patched, opened(path) as memory:
        patched.setattr(catalog_module, "_LEAST_KEPT", 1, raising=False)
        for _ in steps(memory):
            pass
        memory.close()
    return path.read_bytes()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only large memories keep, kept by small ones."""
    monkeypatch.setattr(catalog_module, "_LEAST_KEPT", 1, raising=False)


@pytest.fixture
def written(original: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    path.write_bytes(original)
    return path


def names(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [name for (name,) in connection.execute(_NAMES)]
    connection.close()
    assert {"keywords", "catalog.columns"} <= set(found)
    return found


def execute(path: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def check_rebuilt(path: Path, *, warned: bool) -> None:
    """It opens and agrees, tells what it built anew, and does so once."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with opened(path) as memory:
            held = image(memory)
            agree(memory, path.parent)
    assert all(issubclass(each.category, CacheWarning) for each in told)
    assert bool(told) == warned
    assert all("built anew" in str(each.message) for each in told)
    with opened(path) as memory:
        assert image(memory) == held


def test_cache_when_intact_then_nothing_is_said(written: Path) -> None:
    check_rebuilt(written, warned=False)


@pytest.mark.parametrize(
    "damage",
    [pytest.param(name, marks=() if name in _FEW else pytest.mark.slow) for name in DAMAGE],
)
def test_cache_when_damaged_then_built_anew_with_a_warning(
    original: bytes, written: Path, damage: str
) -> None:
    for name in names(written):
        written.write_bytes(original)
        connection = sqlite3.connect(written)
        select = "SELECT data FROM index_cache_parts WHERE store = ? AND part = 0"
        (data,) = connection.execute(select, (name,)).fetchone()
        connection.close()
        execute(
            written,
            "UPDATE index_cache_parts SET data = ? WHERE store = ? AND part = 0",
            DAMAGE[damage](data),
            name,
        )
        check_rebuilt(written, warned=True)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM index_cache_parts WHERE store = ?",
        "UPDATE index_cache SET digest = x'00' WHERE store = ?",
        "UPDATE index_cache SET generation = 1000000 WHERE store = ?",
        "UPDATE index_cache SET generation = -1 WHERE store = ?",
        "UPDATE index_cache_parts SET data = 'text' WHERE store = ?",
        "UPDATE index_cache_parts SET data = 5 WHERE store = ?",
        "UPDATE index_cache SET generation = 'many' WHERE store = ?",
    ],
)
def test_cache_when_its_rows_are_wrong_then_built_anew_with_a_warning(
    original: bytes, written: Path, statement: str
) -> None:
    for name in names(written):
        written.write_bytes(original)
        execute(written, statement, name)
        check_rebuilt(written, warned=True)


def test_cache_when_its_page_is_damaged_then_built_anew_with_a_warning(
    original: bytes, written: Path
) -> None:
    for name in names(written):
        written.write_bytes(original)
        connection = sqlite3.connect(written)
        select = "SELECT data FROM index_cache_parts WHERE store = ? AND part = 0"
        (data,) = connection.execute(select, (name,)).fetchone()
        connection.close()
        slices = [data[at : at + 40] for at in range(len(data) // 2, len(data) - 40)]
        part = next(each for each in slices if original.count(each) == 1)
        written.write_bytes(changed(original, original.index(part) + 3))
        check_rebuilt(written, warned=True)


@pytest.mark.parametrize(
    "junk", [b"", b"junk", b"\x02\x00\x00\x00\x00\x00\x00\x00{}", b"\xff" * 99]
)
def test_cache_when_something_else_was_kept_as_it_then_it_is_of_no_use(
    original: bytes, written: Path, junk: bytes
) -> None:
    # Such as another version of rankblend keeps: the digest is right, and it means nothing here.
    for name in names(written):
        written.write_bytes(original)
        with Catalog.open(written) as catalog:
            catalog.save_cache(name, junk)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            with opened(written) as memory:
                agree(memory, written.parent)
        with Catalog.open(written) as catalog:
            renewed = catalog.load_cache(name)
            assert renewed is not None
            assert renewed[1] != junk
        check_rebuilt(written, warned=False)


def test_cache_when_stale_then_what_was_written_since_is_added(
    original: bytes, written: Path
) -> None:
    with Catalog.open(written) as catalog:  # keeps nothing but the columns when it is closed
        before = {name: catalog.load_cache(name) for name in names(written)}
    memory = opened(written)
    memory.remember("refund number n0 as of now", scope=USER, id="n0")
    memory.remember("refund of the day", scope=USER, id="fresh", links=["n0"])
    memory.reinforce("n3", scope=USER)
    memory._engine.catalog._database.close()  # as a kill leaves it: nothing is kept
    with Catalog.open(written) as catalog:
        assert {name: catalog.load_cache(name) for name in names(written)} == before
        latest = catalog.generation
        assert all(kept is not None and kept[0] < latest for kept in before.values())
    check_rebuilt(written, warned=False)


def test_cache_when_memories_were_forgotten_since_then_none_of_their_words_is_left(
    written: Path,
) -> None:
    with opened(written) as memory:
        memory.remember("xylophone", scope=USER, id="secret")
    with opened(written) as memory:
        memory.forget("secret", scope=USER)
        memory._engine.catalog._database.close()
    connection = sqlite3.connect(written)
    parts = [data for (data,) in connection.execute("SELECT data FROM index_cache_parts")]
    connection.close()
    assert not any(b"xylophon" in data for data in parts)
    check_rebuilt(written, warned=False)

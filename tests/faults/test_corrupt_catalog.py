"""A damaged file is refused as it is, and never becomes an empty memory."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from scenario import START, USER, image, opened, steps

import rankblend as rb
from rankblend.errors import (
    CatalogCorruptError,
    CatalogVersionError,
    InvalidArgumentError,
    RankblendError,
    StoreError,
)
from rankblend.stores.catalog import Catalog
from rankblend.stores.catalog._schema import APPLICATION_ID, SCHEMA_VERSION

# A cache may be noticed first, and then all of the file.
pytestmark = pytest.mark.filterwarnings("ignore::rankblend.errors.CacheWarning")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed memory with a few pages of everything."""
    path = tmp_path_factory.mktemp("original") / "m.db"
    with opened(path) as memory:
        for _ in steps(memory):
            pass
        memory.remember_many(
            {"text": f"text {n} " * 30, "scope": USER, "id": f"m{n}", "metadata": {"n": n}}
            for n in range(200)
        )
        memory.remember_many({"text": "revised", "scope": USER, "id": f"m{n}"} for n in range(100))
    assert [each.name for each in path.parent.iterdir()] == ["m.db"]
    return path.read_bytes()


@pytest.fixture
def written(original: bytes, tmp_path: Path) -> Path:
    """A copy of it."""
    path = tmp_path / "m.db"
    path.write_bytes(original)
    return path


def assert_refused_untouched(path: Path, kind: type[StoreError] = CatalogCorruptError) -> None:
    before = path.read_bytes()
    with pytest.raises(kind) as caught:
        opened(path)
    said = str(caught.value)
    assert "restore a backup" in said or "upgrade rankblend" in said
    assert "refund" not in said
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_open_when_truncated_then_an_error_and_never_an_empty_memory(
    written: Path, share: float
) -> None:
    with written.open("r+b") as stream:
        stream.truncate(int(written.stat().st_size * share))
    assert_refused_untouched(written)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 5000,
        b"Dear diary",
        b"SQLite format 3\x00",
        b"SQLite format 3\x00" + b"\xff" * 8176,
    ],
)
def test_open_when_it_is_no_database_then_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    assert_refused_untouched(path)


@pytest.mark.parametrize("at", [0, 15, 16, 18, 28, 68, 96])
def test_open_when_the_header_is_damaged_then_an_error_or_nothing_is_wrong(
    written: Path, original: bytes, at: int
) -> None:
    damaged = bytearray(original)
    damaged[at : at + 4] = b"\xee\xee\xee\xee"
    written.write_bytes(damaged)
    try:
        with opened(written) as memory:
            assert len(memory) > 200
            assert "m150" in memory.recall("text 150", scope=USER).ids
    except CatalogCorruptError:
        assert written.read_bytes() == damaged


def test_open_when_it_is_the_database_of_something_else_then_an_error(tmp_path: Path) -> None:
    for name, statements in {
        "tables": ["CREATE TABLE notes (text)"],
        "owner": [f"PRAGMA application_id = {APPLICATION_ID + 1}", "CREATE TABLE state (x)"],
        "ours, without version": [f"PRAGMA application_id = {APPLICATION_ID}"],
        "ours, without tables": [
            f"PRAGMA application_id = {APPLICATION_ID}",
            f"PRAGMA user_version = {SCHEMA_VERSION}",
        ],
    }.items():
        path = tmp_path / name / "x.db"
        path.parent.mkdir()
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        assert_refused_untouched(path)


def test_open_when_an_sqlite_file_is_empty_then_it_becomes_a_memory(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.close()
    assert path.stat().st_size > 0
    for count in (1, 2):
        with opened(path) as memory:
            memory.remember("refund", scope=USER, id=f"m{count}")
            assert len(memory) == count


def test_open_when_written_by_a_newer_version_then_it_says_which_and_what_to_do(
    written: Path,
) -> None:
    connection = sqlite3.connect(written)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    assert_refused_untouched(written, CatalogVersionError)
    with pytest.raises(CatalogVersionError, match=f"version {SCHEMA_VERSION + 1}") as newer:
        rb.Memory.open(written)
    assert (newer.value.found, newer.value.supported) == (SCHEMA_VERSION + 1, SCHEMA_VERSION)


def test_open_when_only_the_log_is_left_then_an_error(written: Path) -> None:
    copy = written.with_name("copy.db")
    with opened(written) as memory:
        memory.remember("refund", scope=USER, id="late")
        shutil.copy(f"{written}-wal", f"{copy}-wal")
    with pytest.raises(CatalogCorruptError, match="log"):
        opened(copy)
    assert not copy.exists()


@pytest.mark.parametrize("first", [1, 2, 7])
def test_open_when_pages_are_overwritten_then_an_error(written: Path, first: int) -> None:
    size = written.stat().st_size
    with written.open("r+b") as stream:
        stream.seek(8192 * first)
        stream.write(b"\xa5" * (size - 8192 * first))
    assert_refused_untouched(written)


def test_read_when_bytes_are_damaged_then_only_errors_of_ours(
    written: Path, original: bytes, rng: np.random.Generator
) -> None:
    told = 0
    for _ in range(20):
        damaged = bytearray(original)
        start = int(rng.integers(100, len(original) - 64))
        length = int(rng.choice([1, 8, 64, 4096]))
        part = rng.integers(0, 256, length, dtype=np.uint8).tobytes()
        damaged[start : start + length] = part[: len(original) - start]
        written.write_bytes(damaged)
        try:
            with opened(written) as memory:
                image(memory)
                memory.recall("revised text", scope=USER, filters={"n": 5}, strict=True)
                memory.recall("revised", scope=USER, as_of=START)
                memory._engine.catalog.changes(0)
                memory._engine.catalog.check()
        except RankblendError:
            told += 1
        for left in written.parent.glob("m.db?*"):
            left.unlink()
    assert told > 1


def test_read_when_the_file_is_damaged_while_open_then_an_error_of_ours(written: Path) -> None:
    with Catalog.open(written) as catalog:
        size = written.stat().st_size
        with written.open("r+b") as stream:
            stream.seek(8192)
            stream.write(b"\xa5" * (size - 8192))
        with pytest.raises(StoreError):
            list(catalog.iter_records())
        with pytest.raises(CatalogCorruptError, match="restore a backup"):
            catalog.check()


def test_open_when_the_place_is_wrong_then_the_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="folder"):
        Catalog.open(tmp_path)
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        Catalog.open(tmp_path / "missing" / "c.db")
    for path in ("nul\0.db", "\ud800", 5, None, b"bytes.db"):
        with pytest.raises(InvalidArgumentError, match="path"):
            Catalog.open(path)  # type: ignore[arg-type]
    for timeout in (-1.0, float("nan"), float("inf"), True, "5"):
        with pytest.raises(InvalidArgumentError, match="busy_timeout"):
            Catalog.open(":memory:", busy_timeout=timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a b.db", "ü?#%41.db", "file:x.db", "semi;colon'.db"])
def test_open_when_the_name_is_strange_then_it_is_that_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with opened(path) as memory:
        memory.remember("refund", scope=USER, id="a")
    assert [each.name for each in tmp_path.iterdir()] == [name]
    with opened(str(path)) as memory:
        assert len(memory) == 1


def test_open_when_the_path_is_a_link_then_the_log_is_beside_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real" / "c.db")
    with opened(link) as memory:
        memory.remember("refund", scope=USER, id="a")
        assert {each.name for each in tmp_path.iterdir()} == {"real", "link.db"}
        assert (tmp_path / "real" / "c.db-wal").exists()
    assert link.is_symlink()
    with opened(tmp_path / "real" / "c.db") as memory:
        assert len(memory) == 1

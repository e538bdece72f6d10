"""Random bytes anywhere in a catalog: what cannot be read is said to be damaged, and nothing else."""

from __future__ import annotations

import sqlite3
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import (
    CacheWarning,
    CatalogCorruptError,
    CatalogVersionError,
    EmbedderMismatchError,
)
from rankblend.stores.catalog import Catalog

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from scenario import START, USER, image, opened, steps

_PAGE = 8192


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed memory with rows in every table and pages of every sort."""
    path = tmp_path_factory.mktemp("original") / "m.db"
    with opened(path) as memory:
        for _ in steps(memory):
            pass
        memory.remember_many(
            {"text": f"text {n} " * 30, "scope": USER, "id": f"m{n}", "metadata": {"n": n},
             "links": ["Refunds"], "review": "confirmed", "confidence": 0.5, "layer": "episodic",
             "expires": "2030-01-01T00:00:00Z", "key": f"k{n}"}
            for n in range(60)
        )  # fmt: skip
        memory.remember_many({"text": "revised", "scope": USER, "id": f"m{n}"} for n in range(30))
        memory.remember("overflowing " * 3000, scope=USER, id="long")
        for n in range(20):
            memory.link(f"m{n}", f"m{n + 1}", scope=USER)
        memory.reinforce([f"m{n}" for n in range(20)], scope=USER)
    return path.read_bytes()


def damages(original: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Copies in which a few bytes are others; every second one within what is in use of a page."""
    used = [at for at in range(0, len(original), _PAGE) if any(original[at : at + _PAGE])]
    while True:
        damaged = bytearray(original)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.choice(used))
            inside = np.frombuffer(original[at : at + _PAGE], np.uint8).nonzero()[0]
            start = at + int(rng.choice(inside))
            start = max(start, 100) if rng.random() < 0.9 else start
            part = rng.integers(0, 256, int(rng.choice([1, 1, 2, 8, 64])), dtype=np.uint8)
            stop = min(start + len(part), len(damaged))
            damaged[start:stop] = part[: stop - start].tobytes()
        yield bytes(damaged)


def use(path: Path) -> None:
    """Everything that reads, and then everything that writes."""
    with opened(path) as memory:
        image(memory)
        memory.recall("revised text", scope=USER, filters={"n": 5}, strict=True)
        memory.recall("text 3", scope=USER, prefer={"layer": "episodic", "n": 3}, strict=True)
        memory.recall("revised", scope=USER, as_of=START, strict=True)
        for match in memory.recall("", scope=USER, strict=True, profile="crewai"):
            assert match.memory.text
        memory._engine.catalog.changes(0)
        memory.remember("new", scope=USER, id="m3", at=START)
        memory.reinforce("m3", scope=USER)
        memory.forget(["m3", "m4"], scope=USER)
        memory.compact()
    with Catalog.open(path) as catalog:
        catalog.check()


def check(original: bytes, path: Path, seed: int, count: int) -> int:
    """How many of so many damages were noticed; each of them as damage."""
    noticed = 0
    damaged = damages(original, np.random.default_rng(seed))
    for number in range(count):
        for left in path.parent.iterdir():
            left.unlink()
        path.write_bytes(next(damaged))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CacheWarning)
                use(path)
        except rb.errors.MemoryNotFoundError:
            noticed += 1  # the row that held the id is another's now
        # Another version or embedder is as good a number or name as any.
        except (CatalogCorruptError, CatalogVersionError, EmbedderMismatchError):
            noticed += 1
        except Exception as error:
            cause = repr(error.__cause__)
            raise AssertionError((seed, number, repr(error), cause)) from error
    return noticed


def test_catalog_when_random_bytes_are_damaged_then_only_damage_is_told(
    original: bytes, tmp_path: Path
) -> None:
    assert check(original, tmp_path / "m.db", 1, 60) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_catalog_when_thousands_of_bytes_are_damaged_then_only_damage_is_told(
    original: bytes, tmp_path: Path, seed: int
) -> None:
    assert check(original, tmp_path / "m.db", seed, 400) > 50


@pytest.mark.parametrize("statement", [
    "UPDATE sqlite_master SET sql = cast(x'ff41' AS TEXT) WHERE name = 'memories'",
    "UPDATE sqlite_master SET sql = replace(sql, 'salience', 'saliense') WHERE name = 'memories'",
    "UPDATE sqlite_master SET name = cast(x'ff' AS TEXT) WHERE name = 'edges_by_target'",
    "DELETE FROM sqlite_master WHERE name = 'uses'",
])  # fmt: skip
def test_open_when_a_row_of_the_schema_is_damaged_then_it_is_told(
    original: bytes, tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(original)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(CatalogCorruptError):
        opened(path)

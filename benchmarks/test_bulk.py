"""Many memories written at once, beside SQLite writing the same rows (P7).

Durable on both sides: one transaction, on the disk when it returns. The vectors are given; the
memory reads and checks its items and makes its keyword and vector index besides. What the reference
writes are the very rows of the catalog, into a catalog's empty tables. Beside it: the least anybody
could write (one table of scope, id, text, salience and vector), and that with a full-text index.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import rankblend as rb
from many_memories import N, memories, write
from rankblend.stores.catalog import Catalog

pytestmark = pytest.mark.benchmark(group=f"write {N:,} memories × 384 in one transaction")
ROUNDS = 3


@pytest.fixture(scope="module")
def items():
    return memories()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "memories.db"
    write(path)
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("memories", "vectors")
        }


@pytest.fixture
def fresh(tmp_path):
    numbers = iter(range(100))
    return lambda: tmp_path / f"{next(numbers)}.db"


def connected(path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def insert(connection, tables):
    with closing(connection):
        connection.execute("BEGIN IMMEDIATE")
        for table, rows in tables.items():
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        connection.execute("COMMIT")


def test_reference_the_same_rows(benchmark, fresh, rows):
    benchmark.extra_info["reference"] = True

    def setup():
        path = fresh()
        Catalog.open(path).close()
        return (connected(path), rows), {}

    benchmark.pedantic(insert, setup=setup, rounds=ROUNDS)


@pytest.mark.parametrize("indexed", [False, True], ids=["", "and FTS5"])
def test_one_small_table(benchmark, fresh, items, indexed):
    rows = [
        (number, item["scope"], item["id"], item["text"], item["salience"], item["vector"].data)
        for number, item in enumerate(items)
    ]

    def setup():
        connection = connected(fresh())
        connection.execute(
            "CREATE TABLE memories (serial INTEGER PRIMARY KEY, scope TEXT NOT NULL, "
            "id TEXT NOT NULL, text TEXT NOT NULL, salience REAL, vector BLOB, UNIQUE (scope, id))"
        )
        tables = {"memories": rows}
        if indexed:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '')")
            tables["words (rowid, text)"] = [(row[0], row[3]) for row in rows]
        return (connection, tables), {}

    benchmark.pedantic(insert, setup=setup, rounds=ROUNDS)


def test_remember_many(benchmark, fresh, items):
    benchmark.extra_info["target"] = "<= 4 x"
    opened = [rb.Memory.open(fresh())]

    def setup():
        opened.pop().close()
        opened.append(rb.Memory.open(fresh()))

    try:
        benchmark.pedantic(lambda: opened[0].remember_many(items), setup=setup, rounds=ROUNDS)
    finally:
        opened.pop().close()

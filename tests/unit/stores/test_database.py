"""How long a read waits for other processes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rankblend.stores.catalog._database import MEMORY, Database


def patience(connection: sqlite3.Connection | None) -> int:
    """Milliseconds the engine itself says that it would wait."""
    assert connection is not None
    return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])


def test_read_waits_as_long_as_was_said_also_after_a_read_that_must_not(tmp_path: Path) -> None:
    with closing(Database.open(tmp_path / "m.db", busy_timeout=2.5)) as database:
        told = []
        for _ in range(2):
            with database.read() as connection:
                told.append(patience(connection))
            for _ in range(2):
                with database.read_if_free() as free:
                    told.append(patience(free))
        assert told == [2500, 0, 0] * 2


def test_read_in_memory_waits_for_nobody_and_works() -> None:
    with closing(Database.open(MEMORY)) as database, database.read_if_free() as free:
        assert free is not None
        assert free.execute("SELECT 1").fetchone() == (1,)

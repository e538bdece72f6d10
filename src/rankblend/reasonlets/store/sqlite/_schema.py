"""The tables of procedures, beside those of the catalog in one file, with a version of their own.

::

    reasonlets ──── reasonlet_runs      one row a run, its feedback included
    reasonlet_state                     version, generation, dimension

What is small and read by every recall comes first in a row, what is large comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from rankblend.errors import CatalogVersionError

_COUNTS = ("runs", "successes", "judged_runs", "judged_successes")
_OWN = "".join(f"{name} INTEGER NOT NULL DEFAULT 0," for name in _COUNTS)
_PRUNED = "".join(f"pruned_{name} INTEGER NOT NULL DEFAULT 0," for name in _COUNTS)

_VERSION_1 = (
    """
    CREATE TABLE reasonlet_state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        version INTEGER NOT NULL,
        generation INTEGER NOT NULL,      -- of the last change of what may be recalled
        deleted INTEGER NOT NULL,         -- of the last deletion
        next_serial INTEGER NOT NULL,
        dimension INTEGER                 -- of all vectors, NULL while there is none
    )
    """,
    "INSERT INTO reasonlet_state VALUES (1, 0, 0, 0, 0, NULL)",
    f"""
    CREATE TABLE reasonlets (
        serial INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,              -- Scope.path, ends in "/"
        status TEXT NOT NULL,
        parent INTEGER REFERENCES reasonlets ON DELETE SET NULL,
        {_OWN}
        last_run REAL NOT NULL,
        last_success REAL,
        {_PRUNED}
        pruned_last_run REAL,
        pruned_last_success REAL,
        generation INTEGER NOT NULL,
        created REAL NOT NULL,
        family TEXT NOT NULL,
        minor INTEGER NOT NULL,
        intent TEXT NOT NULL,
        name TEXT NOT NULL,
        source TEXT NOT NULL,
        run_id TEXT,
        subject_id TEXT,
        tags TEXT,
        digest TEXT NOT NULL,
        question TEXT NOT NULL,
        graph TEXT NOT NULL,
        vector BLOB NOT NULL,             -- float32, little-endian, unit length
        UNIQUE (family, minor)
    )
    """,
    "CREATE INDEX reasonlets_by_scope ON reasonlets (scope, status, id)",
    "CREATE INDEX reasonlets_by_generation ON reasonlets (generation)",
    "CREATE INDEX reasonlets_by_parent ON reasonlets (parent) WHERE parent IS NOT NULL",
    """
    CREATE TABLE reasonlet_runs (
        id TEXT PRIMARY KEY,
        reasonlet INTEGER NOT NULL REFERENCES reasonlets ON DELETE CASCADE,
        at REAL NOT NULL,
        agent INTEGER NOT NULL,
        evaluator INTEGER,
        human INTEGER,
        success INTEGER GENERATED ALWAYS AS (coalesce(human, evaluator, agent)) VIRTUAL,
        judged INTEGER GENERATED ALWAYS AS (human IS NOT NULL OR evaluator IS NOT NULL) VIRTUAL,
        seconds REAL,
        score REAL,
        source TEXT NOT NULL,
        run_id TEXT,
        subject_id TEXT,
        tags TEXT,
        utility REAL,                     -- of the feedback, NULL without any
        correctness REAL,
        reusability REAL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX reasonlet_runs_by_reasonlet ON reasonlet_runs (reasonlet, at, id)",
    """
    CREATE INDEX reasonlet_runs_by_subject ON reasonlet_runs (subject_id)
        WHERE subject_id IS NOT NULL
    """,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1,)
"""Statements that lead from version i to version i + 1; the first ones create everything."""


def is_current(connection: Connection) -> bool:
    """Whether the tables are there and up to date.

    Raises:
        CatalogVersionError: A newer rankblend wrote them.
    """
    found = _version(connection)
    if found > len(MIGRATIONS):
        raise CatalogVersionError(found, len(MIGRATIONS))
    return found == len(MIGRATIONS)


def migrate(connection: Connection, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the tables up to date, inside a transaction the caller opened for writing."""
    for statements in migrations[_version(connection) :]:
        for statement in statements:
            connection.execute(statement)
    connection.execute("UPDATE reasonlet_state SET version = ?", (len(migrations),))


def _version(connection: Connection) -> int:
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reasonlet_state'"
    ).fetchone()
    if there is None:
        return 0
    return int(connection.execute("SELECT version FROM reasonlet_state").fetchone()[0])

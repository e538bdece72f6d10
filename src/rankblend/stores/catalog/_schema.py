"""The tables of a catalog, and how files of older versions are brought up to date.

::

    memories ──┬── vectors      the embedding of the current revision
      current  ├── history      superseded and backdated revisions, embedding included
      revision └── uses         when it was reinforced, how often
    edges                       between memories and entities
    procedures ──── runs        what answered questions, and how each run of it went
    procedure_state             their counters; embedder and dimension of their questions
    tombstones, edge_tombstones that something was deleted, for readers in other processes
    index_cache(_parts)         what stores keep so that they open faster; never needed
    state, meta                 counters; embedder, dimension, version

The current revision lives in ``memories`` itself and only what it superseded in ``history``: a
memory written once is one row (and one vector), and everything about the present is one scan.
Vectors are apart because 1.5 kB of them per memory would otherwise be read through by every scan
for a few small columns.

A tombstone names nobody: of a memory it keeps the serial, which readers that held the memory know,
and of an edge 64 bits of a digest. It goes when nobody needs it (see `Database.compact`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sqlite3 import Connection

from rankblend.errors import CatalogVersionError
from rankblend.version import __version__

APPLICATION_ID = 0x726B6263  # "rkbc", offset 68 of the file
# 8192 bytes hold five 384-dimensional vectors with 5 % left over; 4096 hold two and waste 24 %.
PAGE_SIZE = 8192

_CONTENT = """
    at REAL NOT NULL,
    expires REAL,
    layer TEXT NOT NULL,
    slot TEXT,
    salience REAL,
    confidence REAL,
    review TEXT,
    maturity TEXT,
    certainty TEXT,
    digest INTEGER NOT NULL,
    text TEXT NOT NULL,
    links TEXT,
    metadata TEXT
"""

_VERSION_1 = (
    """
    CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        generation INTEGER NOT NULL,      -- of the last write
        next_serial INTEGER NOT NULL,
        next_revision INTEGER NOT NULL,
        forgotten INTEGER NOT NULL        -- tombstones up to this generation are gone
    )
    """,
    "INSERT INTO state VALUES (1, 0, 0, 0, 0)",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    f"""
    CREATE TABLE memories (
        serial INTEGER PRIMARY KEY,
        scope TEXT NOT NULL,              -- Scope.path, ends in "/"
        id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        created REAL NOT NULL,
        used REAL,
        uses INTEGER NOT NULL,
        revision INTEGER NOT NULL,        -- order of writing
        {_CONTENT},
        UNIQUE (scope, id)
    )
    """,
    "CREATE INDEX memories_by_generation ON memories (generation)",
    """
    CREATE TABLE vectors (
        serial INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
        vector BLOB NOT NULL              -- float32, little-endian
    )
    """,
    f"""
    CREATE TABLE history (
        revision INTEGER PRIMARY KEY,
        serial INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
        vector BLOB,
        {_CONTENT}
    )
    """,
    "CREATE INDEX history_by_time ON history (serial, at, revision)",
    """
    CREATE TABLE uses (
        serial INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
        used REAL NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (serial, used)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE edges (
        scope TEXT NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        kind TEXT NOT NULL,
        weight REAL NOT NULL,
        verified INTEGER NOT NULL,
        at REAL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (scope, source, target, kind)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX edges_by_target ON edges (scope, target)",
    "CREATE INDEX edges_by_generation ON edges (generation)",
    "CREATE TABLE tombstones (generation INTEGER NOT NULL, scope TEXT NOT NULL, id TEXT NOT NULL)",
    "CREATE INDEX tombstones_by_generation ON tombstones (generation)",
    """
    CREATE TABLE edge_tombstones (
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        kind TEXT NOT NULL
    )
    """,
    "CREATE INDEX edge_tombstones_by_generation ON edge_tombstones (generation)",
    """
    CREATE TABLE index_cache (
        store TEXT PRIMARY KEY,
        generation INTEGER NOT NULL,
        digest BLOB NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE index_cache_parts (
        store TEXT NOT NULL REFERENCES index_cache ON DELETE CASCADE,
        part INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (store, part)
    )
    """,
)

Step = str | Callable[[Connection], None]
_COUNTERS = ("runs", "successes", "judged_runs", "judged_successes")
_PROCEDURE = (
    "serial, id, scope, status, parent, runs, successes, judged_runs, judged_successes, last_run,"
    " last_success, pruned_runs, pruned_successes, pruned_judged_runs, pruned_judged_successes,"
    " pruned_last_run, pruned_last_success, generation, created, family, minor, intent, name,"
    " source, run_id, subject_id, tags, digest, question, graph, vector"
)
_RUN = (
    "at, agent, evaluator, human, seconds, score, source, run_id, subject_id, tags, utility,"
    " correctness, reusability"
)


def _adopt_procedures(connection: Connection) -> None:
    """Take over what earlier versions kept in tables of its own, and the copies it published."""
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reasonlet_state'"
    ).fetchone()
    if there is None:
        return
    found = int(connection.execute("SELECT version FROM reasonlet_state").fetchone()[0])
    if found > 1:
        raise CatalogVersionError(found, 1)
    for statement in (
        f"INSERT INTO procedures ({_PROCEDURE}) SELECT {_PROCEDURE} FROM reasonlets",
        f"INSERT INTO runs (id, procedure, {_RUN}) SELECT id, reasonlet, {_RUN} FROM reasonlet_runs",
        "UPDATE procedure_state SET (generation, erased, next_serial, dimension) ="
        " (SELECT generation, deleted, next_serial, dimension FROM reasonlet_state)",
        "DROP TABLE reasonlet_runs",
        "DROP TABLE reasonlets",
        "DROP TABLE reasonlet_state",
        "DELETE FROM vectors WHERE serial IN (SELECT m.serial FROM memories AS m"
        " JOIN procedures AS p ON p.scope = m.scope AND p.id = m.id WHERE m.layer = 'procedure')",
    ):
        connection.execute(statement)


_PROCEDURES: tuple[Step, ...] = (
    """
    CREATE TABLE procedure_state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        generation INTEGER NOT NULL,      -- of the last change of what may be recalled
        erased INTEGER NOT NULL,          -- of the last deletion
        embedded INTEGER NOT NULL,        -- of the last change of all vectors
        next_serial INTEGER NOT NULL,
        embedder TEXT,                    -- of all vectors, NULL while nobody said
        dimension INTEGER                 -- of all vectors, NULL while there is none
    )
    """,
    "INSERT INTO procedure_state VALUES (1, 0, 0, 0, 0, NULL, NULL)",
    f"""
    CREATE TABLE procedures (
        serial INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,              -- Scope.path, ends in "/"
        status TEXT NOT NULL,
        parent INTEGER REFERENCES procedures ON DELETE SET NULL,
        {" ".join(f"{name} INTEGER NOT NULL DEFAULT 0," for name in _COUNTERS)}
        last_run REAL NOT NULL,
        last_success REAL,
        {" ".join(f"pruned_{name} INTEGER NOT NULL DEFAULT 0," for name in _COUNTERS)}
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
    "CREATE INDEX procedures_by_scope ON procedures (scope, status, id)",
    "CREATE INDEX procedures_by_generation ON procedures (generation)",
    "CREATE INDEX procedures_by_parent ON procedures (parent) WHERE parent IS NOT NULL",
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        procedure INTEGER NOT NULL REFERENCES procedures ON DELETE CASCADE,
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
    "CREATE INDEX runs_by_procedure ON runs (procedure, at, id)",
    "CREATE INDEX runs_by_subject ON runs (subject_id) WHERE subject_id IS NOT NULL",
    _adopt_procedures,
)

# Tombstones had names until then: they go, and readers of states before have to read everything.
_NAMELESS = (
    "DROP TABLE tombstones",
    "DROP TABLE edge_tombstones",
    "CREATE TABLE tombstones (generation INTEGER NOT NULL, serial INTEGER NOT NULL)",
    "CREATE INDEX tombstones_by_generation ON tombstones (generation)",
    "CREATE TABLE edge_tombstones (generation INTEGER NOT NULL, digest INTEGER NOT NULL)",
    "CREATE INDEX edge_tombstones_by_generation ON edge_tombstones (generation)",
    "UPDATE state SET forgotten = generation",
    "DELETE FROM index_cache",
    # Until then an embedder was called by its function or class, whoever's that was.
    "INSERT INTO meta SELECT 'embedder_unsure', value FROM meta WHERE name = 'embedder'",
)

MIGRATIONS: tuple[tuple[Step, ...], ...] = (_VERSION_1, _PROCEDURES, _NAMELESS)
"""Steps that lead from version i to version i + 1; the first ones create everything."""

SCHEMA_VERSION = len(MIGRATIONS)


# In `meta` while pages of the file may hold what was deleted: overwriting it as SQLite does leaves
# copies behind that were made when a full page was split. Only a new file is without them.
UNCLEAN = "unclean"
MIGRATED = "migrated"  # the file is to be rewritten at once; else when the last one closes it


def mark_unclean(connection: Connection, why: str = "erased") -> None:
    """Note, in the transaction that deletes something of somebody's, that the file is to be rewritten."""
    connection.execute(
        "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2 "
        "WHERE value <> ?3",
        (UNCLEAN, why, MIGRATED),
    )


def migrate(connection: Connection, migrations: Sequence[Sequence[Step]] = MIGRATIONS) -> bool:
    """Bring the tables up to date, inside a transaction the caller opened for writing.

    A file that had tables before is noted as `UNCLEAN`: it has to be rewritten.

    Returns:
        Whether anything had to be done.

    Raises:
        CatalogVersionError: A newer rankblend wrote the file.
    """
    found = version_of(connection)
    if found > len(migrations):
        raise CatalogVersionError(found, len(migrations))
    for steps in migrations[found:]:
        for step in steps:
            if isinstance(step, str):
                connection.execute(step)
            else:
                step(connection)
    if found == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("INSERT INTO meta VALUES ('created_by', ?)", (__version__,))
    elif found < len(migrations):
        mark_unclean(connection, MIGRATED)
    if found < len(migrations):
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
    return found < len(migrations)


def version_of(connection: Connection) -> int:
    """The version of the tables, 0 where there are none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables_of(connection: Connection) -> set[tuple[object, ...]]:
    """What the tables and indexes are declared to be: type, name, table, statement."""
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return set(found.fetchall())

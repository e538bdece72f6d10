"""What a write does to the tables, inside a transaction that somebody else opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from sqlite3 import Connection
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import EmbedderMismatchError
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores.catalog._codec import MEMORY, REVISED, stacked_vectors
from rankblend.stores.catalog._edges import delete_edges, edges_at
from rankblend.stores.catalog._schema import mark_unclean

# How many generations back a reader may ask what was deleted since; older tombstones go. Those of a
# file that nobody else has open go when it is closed or compacted.
KEPT_GENERATIONS = 100_000
_SWEEP_EVERY = 1000

_REVISION = ", ".join(REVISED)
_INSERTED = ("serial", "scope", "id", "generation", "revision", *MEMORY, *REVISED)
_INSERT = f"""
INSERT INTO memories ({", ".join(_INSERTED)}) VALUES ({", ".join("?" for _ in _INSERTED)})
ON CONFLICT (scope, id) DO NOTHING
"""
_SUPERSEDE = f"""
INSERT INTO history (revision, serial, vector, {_REVISION})
SELECT revision, serial, (SELECT vector FROM vectors WHERE vectors.serial = memories.serial),
    {_REVISION}
FROM memories WHERE serial = ?
"""
_REPLACE = f"""
UPDATE memories SET generation = ?, revision = ?, {", ".join(f"{name} = ?" for name in REVISED)}
WHERE serial = ?
"""
_BACKDATE = f"""
INSERT INTO history (revision, serial, vector, {_REVISION})
VALUES (?, ?, ?, {", ".join("?" for _ in REVISED)})
"""
_AT = REVISED.index("at")
_COUNT_USE = """
INSERT INTO uses (serial, used, count) VALUES (?, ?, ?)
ON CONFLICT (serial, used) DO UPDATE SET count = count + excluded.count
"""
_SERIAL = "SELECT serial FROM memories WHERE scope = ? AND id = ?"


@frozen(eq=False)
class Written:
    """What `write_records` did.

    Args:
        serials: Serial of each draft's memory, in the order of the drafts.
        fresh: Whether each draft made a new memory, whose current revision it still is.
        vectors: float32 (m, d): the vectors of the drafts that have one.
        vector_rows: Row of ``vectors`` of each draft, −1 without one.
    """

    serials: list[int]
    fresh: list[bool]
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    vector_rows: list[int]


def next_generation(connection: Connection) -> int:
    """Count one more write and return its number; now and then drop old tombstones."""
    connection.execute("UPDATE state SET generation = generation + 1")
    generation = int(connection.execute("SELECT generation FROM state").fetchone()[0])
    if generation > KEPT_GENERATIONS and generation % _SWEEP_EVERY == 0:
        _drop_tombstones(connection, generation - KEPT_GENERATIONS)
    return generation


def write_records(
    connection: Connection,
    drafts: Sequence[Record],
    contents: Sequence[tuple[Any, ...]],
    generation: int,
    undated: AbstractSet[int] = frozenset(),
) -> Written:
    """Insert new memories and add a revision to existing ones.

    A revision whose valid time lies before the current one's is history at once; of two with the
    same valid time the one written later is current. First-written time and uses of an existing
    memory stay as they are.

    Args:
        connection: In a write transaction.
        drafts: What to write, in order; one key may occur several times.
        contents: Each draft encoded.
        generation: The number of this write.
        undated: Positions of drafts that are current whatever is there; see `Catalog.put`.
    """
    matrix, vector_rows = _vectors(connection, drafts)
    first, revision = connection.execute("SELECT next_serial, next_revision FROM state").fetchone()
    inserted = connection.executemany(
        _INSERT,
        (
            (
                first + i,
                draft.key.scope.path,
                draft.key.id,
                generation,
                revision + i,
                *content,
            )
            for i, (draft, content) in enumerate(zip(drafts, contents, strict=True))
        ),
    ).rowcount
    serials = list(range(first, first + len(drafts)))
    fresh = [True] * len(drafts)
    if inserted < len(drafts):
        new = {
            serial
            for (serial,) in connection.execute(
                "SELECT serial FROM memories WHERE serial >= ?", (first,)
            )
        }
        fresh = [serial in new for serial in serials]
        first = max(new, default=first - 1) + 1
    else:
        first += len(drafts)
    connection.execute(
        "UPDATE state SET next_serial = ?, next_revision = ?", (first, revision + len(drafts))
    )
    connection.executemany(
        "INSERT INTO vectors (serial, vector) VALUES (?, ?)",
        (
            (serial, matrix[row].data)
            for serial, row, is_new in zip(serials, vector_rows, fresh, strict=True)
            if is_new and row >= 0
        ),
    )
    connection.executemany(
        _COUNT_USE,
        (
            (serial, draft.created if draft.used is None else draft.used, draft.uses)
            for serial, draft, is_new in zip(serials, drafts, fresh, strict=True)
            if is_new and draft.uses
        ),
    )
    for i, draft in enumerate(drafts):
        if not fresh[i]:
            vector = matrix[vector_rows[i]].tobytes() if vector_rows[i] >= 0 else None
            serials[i] = _revise(
                connection, draft.key, contents[i][len(MEMORY) :], vector, generation, revision + i,
                undated=i in undated,
            )  # fmt: skip
    revised = {serial for serial, is_new in zip(serials, fresh, strict=True) if not is_new}
    fresh = [serial not in revised for serial in serials]
    return Written(serials, fresh, matrix, vector_rows)


def note_embedder(connection: Connection, embedder: str | None, dimension: int | None) -> None:
    """Note in the same transaction what made the vectors, where nothing was noted before.

    Args:
        connection: In a write transaction.
        embedder: Identity, ``name/dimension``; None says nothing.
        dimension: Length of all vectors; None says nothing.

    Raises:
        EmbedderMismatchError: Another embedder is noted.
    """
    if embedder is not None:
        found = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").fetchone()
        if found is None:
            connection.execute("INSERT INTO meta VALUES ('embedder', ?)", (embedder,))
        elif found[0] != embedder:
            raise EmbedderMismatchError(str(found[0]), embedder)
    if dimension is not None:
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('dimension', ?)", (str(dimension),))


def stored_dimension(connection: Connection) -> int | None:
    """The length of all vectors; None while there is none."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'dimension'").fetchone()
    return None if found is None else int(found[0])


def relabel_vectors(connection: Connection, name: str) -> int:
    """Note another name for what made the vectors; how many notes changed, 0 where there is none."""
    connection.execute("DELETE FROM meta WHERE name = 'embedder_unsure'")
    return connection.execute(
        "UPDATE meta SET value = ? || '/' || replace(value, rtrim(value, '0123456789'), '') "
        "WHERE name = 'embedder'",
        (name,),
    ).rowcount


def _vectors(
    connection: Connection, drafts: Sequence[Record]
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], list[int]]:
    dimension = stored_dimension(connection)
    positions, matrix = stacked_vectors(drafts, dimension)
    if len(matrix) and dimension is None:
        connection.execute("INSERT INTO meta VALUES ('dimension', ?)", (str(matrix.shape[1]),))
    rows = [-1] * len(drafts)
    for row, position in enumerate(positions.tolist()):
        rows[position] = row
    return matrix, rows


def _revise(
    connection: Connection,
    key: Key,
    content: tuple[Any, ...],
    vector: bytes | None,
    generation: int,
    revision: int,
    *,
    undated: bool,
) -> int:
    serial, current_at = connection.execute(
        "SELECT serial, at FROM memories WHERE scope = ? AND id = ?", (key.scope.path, key.id)
    ).fetchone()
    if undated and content[_AT] < current_at:
        content = (*content[:_AT], current_at, *content[_AT + 1 :])
    if content[_AT] < current_at:
        connection.execute(_BACKDATE, (revision, serial, vector, *content))
        connection.execute(
            "UPDATE memories SET generation = ? WHERE serial = ?", (generation, serial)
        )
        return int(serial)
    connection.execute(_SUPERSEDE, (serial,))
    connection.execute(_REPLACE, (generation, revision, *content, serial))
    if vector is None:
        connection.execute("DELETE FROM vectors WHERE serial = ?", (serial,))
    else:
        connection.execute("REPLACE INTO vectors (serial, vector) VALUES (?, ?)", (serial, vector))
    return int(serial)


def erase(
    connection: Connection, keys: Iterable[Key], generation: int
) -> tuple[dict[int, Key], list[Edge]]:
    """Delete memories with every revision, use and edge of theirs.

    Edges go when they were written at the memory's scope and start or end at its id; what stores
    keep in the file to open faster goes as a whole, for it may hold words and ids.

    Returns:
        Serial → key of the memories that existed, and the edges that went with them.
    """
    erased: dict[int, Key] = {}
    unlinked: list[Edge] = []
    for key in keys:
        found = connection.execute(_SERIAL, (key.scope.path, key.id)).fetchone()
        if found is None:
            continue
        connection.execute("DELETE FROM memories WHERE serial = ?", found)
        connection.execute("INSERT INTO tombstones VALUES (?, ?)", (generation, *found))
        unlinked += delete_edges(connection, edges_at(connection, key), generation)
        erased[found[0]] = key
    if erased:
        connection.execute("DELETE FROM index_cache")
        mark_unclean(connection)
    return erased, unlinked


def reinforce(
    connection: Connection, keys: Iterable[Key], now: float, generation: int
) -> list[Key]:
    """Count one use of each memory at ``now``; those that exist."""
    counted = []
    for key in keys:
        found = connection.execute(_SERIAL, (key.scope.path, key.id)).fetchone()
        if found is None:
            continue
        connection.execute(
            "UPDATE memories SET uses = uses + 1, used = max(coalesce(used, ?1), ?1), "
            "generation = ?2 WHERE serial = ?3",
            (now, generation, *found),
        )
        connection.execute(_COUNT_USE, (*found, now, 1))
        counted.append(key)
    return counted


def _drop_tombstones(connection: Connection, generation: int) -> None:
    connection.execute("DELETE FROM tombstones WHERE generation <= ?", (generation,))
    connection.execute("DELETE FROM edge_tombstones WHERE generation <= ?", (generation,))
    connection.execute("UPDATE state SET forgotten = ?", (generation,))


def replace_vectors(
    connection: Connection,
    vectors: Mapping[Key, NDArray[np.float32]],
    *,
    embedder: str,
    generation: int,
) -> None:
    """Drop every vector, of earlier revisions too, and store others.

    Args:
        connection: In a write transaction.
        vectors: By key, all of one length; keys without a memory are skipped.
        embedder: Identity of what made them.
        generation: The number of this write.
    """
    connection.execute("DELETE FROM vectors")
    connection.execute("UPDATE history SET vector = NULL")
    connection.execute("UPDATE memories SET generation = ?", (generation,))
    connection.execute("DELETE FROM meta WHERE name = 'dimension'")
    connection.execute("REPLACE INTO meta VALUES ('embedder', ?)", (embedder,))
    connection.execute("DELETE FROM meta WHERE name = 'embedder_unsure'")
    for vector in list(vectors.values())[:1]:
        connection.execute("INSERT INTO meta VALUES ('dimension', ?)", (str(vector.size),))
    connection.executemany(
        "INSERT INTO vectors (serial, vector) "
        "SELECT serial, ? FROM memories WHERE scope = ? AND id = ?",
        (
            (np.ascontiguousarray(vector, "<f4").tobytes(), key.scope.path, key.id)
            for key, vector in vectors.items()
        ),
    )

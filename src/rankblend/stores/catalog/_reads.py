"""What the tables say, as records: single ones, all of them, as they were, and what changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores._fields import NAME, dump_json
from rankblend.stores._record import FIELDS, LINKS, Edge, Key, Record
from rankblend.stores._scopes import subtree
from rankblend.stores.catalog._codec import MEMORY, REVISED, ScopeReader, listed, rebuild
from rankblend.stores.catalog._columns import DTYPES, Columns
from rankblend.stores.catalog._edges import edges_since
from rankblend.values import is_text

_CURRENT = f"""
SELECT m.scope, m.id, m.serial, {listed("m", MEMORY)}, {listed("m", REVISED)}, v.vector
FROM memories AS m LEFT JOIN vectors AS v USING (serial)
"""
_PAST = f"""
SELECT m.scope, m.id, m.serial, {listed("m", MEMORY)}, {listed("h", REVISED)}, h.vector
FROM memories AS m JOIN history AS h USING (serial)
"""
_BY_KEY = _CURRENT + "WHERE m.scope = ? AND m.id = ?"
_BY_SERIAL = f"""
SELECT m.scope, m.id, m.serial, {listed("m", MEMORY)}, {listed("m", REVISED)}, NULL
FROM memories AS m WHERE m.serial IN (SELECT value FROM json_each(?))
"""
_BY_GENERATION = _CURRENT + "WHERE m.generation > ? ORDER BY m.scope, m.id"
_NEXT = _CURRENT + "WHERE (m.scope, m.id) > (?, ?) ORDER BY m.scope, m.id LIMIT ?"
_REVISIONS = _PAST + "WHERE m.scope = ? AND m.id = ? ORDER BY h.at, h.revision"
_AT_CURRENT = _CURRENT + "WHERE m.at <= :as_of AND m.scope >= :low AND m.scope < :high"
_AT_PAST = "\n".join(
    (
        _PAST,
        """
WHERE m.at > :as_of AND m.scope >= :low AND m.scope < :high AND h.revision = (
    SELECT revision FROM history
    WHERE serial = m.serial AND at <= :as_of ORDER BY at DESC, revision DESC LIMIT 1
)
""",
    )
)
_COLUMNS = f"SELECT scope, id, serial, {', '.join(DTYPES)} FROM memories"
# What other reads find memories by; 50 ms for 100k.
_INDEXED = """
SELECT scope, id, serial FROM memories INDEXED BY sqlite_autoindex_memories_1 ORDER BY scope, id
"""
_USES_AT = "SELECT serial, sum(count), max(used) FROM uses WHERE used <= ? GROUP BY serial"
_CREATED, _REVISION = 3 + MEMORY.index("created"), 3 + len(MEMORY)
assert MEMORY == ("created", "uses", "used")
_LINKED = """
SELECT scope, id, serial, links FROM memories
WHERE links IS NOT NULL AND (?1 IS NULL OR instr(links, ?1))
"""
_VECTOR = np.dtype("<f4")
# Rows fetched at once: the vectors of 256 rows stay in cache between the blob and the matrix.
_FETCH = 256


@frozen(eq=False)
class Changes:
    """What was written after a generation, to be applied in this order: removed, then changed.

    What others removed is known by number only, because nothing in the file may name it: keys of
    memories are told by whoever held them, and edges are looked for among those that are held.

    Args:
        generation: The last write that is included.
        removed: Keys of memories deleted since; some may have been written anew after that.
        changed: The current record of every memory written or reinforced since, by scope and id.
        edges_removed: Edges deleted since by this process; only what identifies them is known.
        edges_gone: `Edge.digest` of those that others deleted.
        edges: Edges written since.
        complete: False when it is no longer known what was deleted since (or more was written than
            is worth listing): everything has to be read anew, and the other fields are empty.
    """

    generation: int
    removed: tuple[Key, ...] = ()
    changed: tuple[Record, ...] = ()
    edges_removed: tuple[Edge, ...] = ()
    edges: tuple[Edge, ...] = ()
    complete: bool = True
    edges_gone: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return not self.complete or bool(
            self.removed or self.changed or self.edges_removed or self.edges or self.edges_gone
        )


class Removals:
    """Names of what this process removed, until whoever follows the changes has seen it."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[int, Key]] = {}  # serial → generation, key
        self._edges: dict[int, tuple[int, Edge]] = {}  # digest → generation, edge

    def note(self, generation: int, keys: Mapping[int, Key], edges: Iterable[Edge]) -> None:
        """Something was removed by a write: memories by serial, and edges."""
        self._keys.update({serial: (generation, key) for serial, key in keys.items()})
        self._edges.update({edge.digest: (generation, edge) for edge in edges})

    def drop(self, generation: int) -> None:
        """Everything up to a write was seen."""
        self._keys = {n: noted for n, noted in self._keys.items() if noted[0] > generation}
        self._edges = {n: noted for n, noted in self._edges.items() if noted[0] > generation}

    def key(self, serial: int) -> Key | None:
        """The key of a memory that was removed here."""
        noted = self._keys.get(serial)
        return None if noted is None else noted[1]

    def edges(self, digests: Iterable[int]) -> list[Edge]:
        """Those of some edges that were removed here, by identity."""
        found = [self._edges[digest][1] for digest in digests if digest in self._edges]
        return sorted(found, key=lambda edge: edge.identity)


def records_of(
    connection: Connection, scopes: ScopeReader, keys: Iterable[Key]
) -> list[Record | None]:
    """The current record of each key, None where there is none."""
    rows = [
        connection.execute(_BY_KEY, (key.scope.path, key.id)).fetchone()
        if is_text(key.id)
        else None
        for key in keys
    ]
    found = iter(_records([row for row in rows if row is not None], scopes))
    return [None if row is None else next(found) for row in rows]


def contents_of(
    connection: Connection, scopes: ScopeReader, serials: NDArray[np.int64]
) -> list[Record | None]:
    """The current record of each serial without its vector, None where there is none."""
    rows = connection.execute(_BY_SERIAL, (json.dumps(serials.tolist()),)).fetchall()
    found = {record.serial: record for record in _records(rows, scopes)}
    return [found.get(serial) for serial in serials.tolist()]


def revisions_of(connection: Connection, scopes: ScopeReader, key: Key) -> list[Record]:
    """Every revision of a memory in order of valid time, then of writing; the last is current."""
    if not is_text(key.id):
        return []
    place = (key.scope.path, key.id)
    past = connection.execute(_REVISIONS, place).fetchall()
    return _records(past + connection.execute(_BY_KEY, place).fetchall(), scopes)


def linked_records(connection: Connection, scopes: ScopeReader, kind: str | None) -> list[Record]:
    """Key, serial and links of the memories with links, of one kind where that is given."""
    rows = connection.execute(_LINKED, (None if kind is None else dump_json(kind),)).fetchall()
    if not rows:
        return []
    paths, ids, serials, texts = zip(*rows, strict=True)
    found = [
        Record(Key(scopes(path), identifier), "", serial, links=links)
        for path, identifier, serial, links in zip(
            paths, NAME.decode(ids), serials, LINKS.decode(texts), strict=True
        )
    ]
    # The text of the kind may also be that of a target.
    return [r for r in found if kind is None or any(link.kind == kind for link in r.links)]


def next_records(
    connection: Connection, scopes: ScopeReader, after: tuple[str, str], size: int
) -> list[Record]:
    """The next ``size`` current records behind a (scope path, id), in that order."""
    return _records(connection.execute(_NEXT, (*after, size)).fetchall(), scopes)


def records_at(
    connection: Connection, scopes: ScopeReader, as_of: float, roots: Sequence[Scope] | None
) -> list[Record]:
    """The revision of each memory that was valid at ``as_of``, by scope path and id.

    Args:
        connection: In a read transaction.
        scopes: Path to scope.
        as_of: Seconds since the epoch. Memories without a revision that old are left out; uses
            counted later are not counted.
        roots: Only memories at or below these scopes; None for all.
    """
    ranges = _ranges(roots)
    rows: list[Sequence[Any]] = []
    for low, high in ranges:
        bound = {"as_of": as_of, "low": low, "high": high}
        rows += connection.execute(_AT_CURRENT, bound).fetchall()
        rows += connection.execute(_AT_PAST, bound).fetchall()
    used = {serial: counted for serial, *counted in connection.execute(_USES_AT, (as_of,))}
    # Of what is the memory's own, only when it was created does not depend on the time.
    rows = [
        (*row[:3], row[_CREATED], *used.get(row[2], (0, None)), *row[_REVISION:]) for row in rows
    ]
    rows.sort(key=lambda row: (row[0], row[1]))
    return _records(rows, scopes)


def select_changes(
    connection: Connection,
    scopes: ScopeReader,
    since: int,
    keys_of: Callable[[list[int]], Iterable[Key]],
    removals: Removals,
    held: int,
) -> Changes:
    """What was written after generation ``since``.

    Args:
        connection: In a read transaction.
        scopes: Path to scope.
        since: The last write that is known already.
        keys_of: Keys of those of some removed serials that are still held.
        removals: What was removed here.
        held: The last write that those columns include. What was removed up to it, nobody could
            name for whoever knows less: the changes are not complete then.
    """
    generation, forgotten = connection.execute("SELECT generation, forgotten FROM state").fetchone()
    if since >= generation:
        return Changes(generation)
    if since < forgotten:
        return Changes(generation, complete=False)
    gone = "SELECT DISTINCT serial FROM tombstones WHERE generation > ?"
    serials = [serial for (serial,) in connection.execute(gone, (since,))]
    removed = {*keys_of(serials), *filter(None, map(removals.key, serials))}
    if since < held and len(removed) < len(serials):
        return Changes(generation, complete=False)
    unlinked = "SELECT digest FROM edge_tombstones WHERE generation > ?"
    digests = {digest for (digest,) in connection.execute(unlinked, (since,))}
    own = removals.edges(digests)
    return Changes(
        generation,
        tuple(sorted(removed)),
        tuple(_records(connection.execute(_BY_GENERATION, (since,)).fetchall(), scopes)),
        tuple(own),
        tuple(edges_since(connection, scopes, since)),
        edges_gone=frozenset(digests - {edge.digest for edge in own}),
    )


def load_columns(connection: Connection, scopes: ScopeReader) -> Columns:
    """The columns of all current memories; ``connection`` is in a read transaction."""
    generation, limit = connection.execute("SELECT generation, next_serial FROM state").fetchone()
    columns = Columns(generation)
    # Sorted here: SQLite would fetch the rows through an index, one by one, which takes three times
    # as long. Scope and id differ between any two rows, so nothing behind them is compared.
    rows = sorted(connection.execute(_COLUMNS))
    if not rows:
        return columns
    paths, ids, serials, *values = zip(*rows, strict=True)
    if not max(serials) < limit:
        raise ValueError("a serial that was never given out")
    if connection.execute(_INDEXED).fetchall() != [row[:3] for row in rows]:
        raise ValueError("an index that disagrees with its table")
    given: dict[str, Sequence[Any]] = dict(zip(DTYPES, values, strict=True))
    for each in FIELDS:
        if each.name in given:
            given[each.name] = each.decoded(given[each.name])
    keys = [Key(scopes(path), id_) for path, id_ in zip(paths, NAME.decode(ids), strict=True)]
    columns.put(keys, serials, given)
    return columns


def written_since(connection: Connection, generation: int) -> int:
    """How many memories were written, reinforced or deleted after a generation."""
    (count,) = connection.execute(
        "SELECT (SELECT count(*) FROM memories WHERE generation > ?1) "
        "+ (SELECT count(*) FROM tombstones WHERE generation > ?1)",
        (generation,),
    ).fetchone()
    return int(count)


def vectors_into(
    connection: Connection, matrix: NDArray[np.float32], row_of: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Read the vectors of current revisions straight into their rows.

    Args:
        connection: In a read transaction.
        matrix: float32 (n, d), C-contiguous.
        row_of: int64 (serials + 1,): the row of each serial, −1 for those not wanted; the last one
            stands for all greater serials.

    Returns:
        bool (n,): the rows that were read; the others have no vector.
    """
    filled = np.zeros(len(matrix), dtype=np.bool_)
    cursor = connection.execute("SELECT serial, vector FROM vectors ORDER BY serial")
    while found := cursor.fetchmany(_FETCH):
        serials, blobs = zip(*found, strict=True)
        block = _matrix(blobs, matrix.shape[1])
        rows = row_of[np.minimum(serials, len(row_of) - 1)]
        if (rows < 0).any():
            block, rows = block[rows >= 0], rows[rows >= 0]
        matrix[rows] = block
        filled[rows] = True
    return filled


def _records(rows: Sequence[Sequence[Any]], scopes: ScopeReader) -> list[Record]:
    """Records of rows that end in the vector; the vectors are views of one array per length."""
    blobs = [row[-1] for row in rows if row[-1] is not None]
    if len(set(map(len, blobs))) == 1:
        views: Iterator[NDArray[np.float32]] = iter(_matrix(blobs, -1))
    else:
        views = (_matrix([blob], -1)[0] for blob in blobs)
    return rebuild(rows, scopes, [None if row[-1] is None else next(views) for row in rows])


def _matrix(blobs: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Vectors as they are kept: float32 (n, d).

    Raises:
        ValueError, TypeError: They were damaged: of another length, not finite, or all zero.
    """
    matrix = np.frombuffer(b"".join(blobs), _VECTOR).reshape(len(blobs), dimension)
    if not (np.isfinite(matrix.sum(dtype=np.float64)) and matrix.any(axis=1).all()):
        raise ValueError("a vector that cannot have been written")
    return matrix


def _ranges(roots: Sequence[Scope] | None) -> list[tuple[str, str | bytes]]:
    if roots is None:
        return [("", b"")]  # a blob sorts after every text
    outermost: list[str] = []
    for path in sorted(scope.path for scope in roots):
        if not outermost or not path.startswith(outermost[-1]):
            outermost.append(path)
    return [subtree(path) for path in outermost]

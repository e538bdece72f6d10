"""Edges: statements that two nodes are connected, each written at a scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores._fields import FRACTION, NAME, TIME
from rankblend.stores._record import Edge, Key, is_weight
from rankblend.stores.catalog._codec import ScopeReader
from rankblend.stores.catalog._schema import mark_unclean

_UPSERT = """
INSERT INTO edges (scope, source, target, kind, weight, verified, at, generation)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (scope, source, target, kind) DO UPDATE SET
    weight = excluded.weight, verified = excluded.verified, at = excluded.at,
    generation = excluded.generation
"""
_DELETE = "DELETE FROM edges WHERE scope = ? AND source = ? AND target = ? AND kind = ?"
_EDGES_AT = """
SELECT source, target, kind FROM edges WHERE scope = ?1 AND source = ?2
UNION
SELECT source, target, kind FROM edges WHERE scope = ?1 AND target = ?2
"""
_NEXT = """
SELECT scope, source, target, kind, weight, verified, at FROM edges
WHERE (scope, source, target, kind) > (?, ?, ?, ?) AND (at IS NULL OR at <= ?)
    AND (? IS NULL OR kind = ?)
ORDER BY scope, source, target, kind LIMIT ?
"""
_SINCE = """
SELECT scope, source, target, kind, weight, verified, at FROM edges
WHERE generation > ? ORDER BY scope, source, target, kind
"""
EdgeIdentity = tuple[str, str, str, str]


def check_edges(edges: Iterable[Edge]) -> list[Edge]:
    """The edges as a list.

    Raises:
        InvalidArgumentError: A blank node or kind, or a weight outside (0, 1]; all at once.
    """
    checked = list(edges)
    problems = [
        f"edges[{position}]: {problem}"
        for position, edge in enumerate(checked)
        for problem in _problems(edge)
    ]
    if problems:
        raise InvalidArgumentError(problems)
    return checked


def _problems(edge: object) -> list[str]:
    if not isinstance(edge, Edge) or type(edge.scope) is not Scope:
        return [f"expected an Edge at a Scope, got {type(edge).__name__}"]
    problems = [
        f"{name}{problem}"
        for name in ("source", "target", "kind")
        for problem in NAME.wrong(getattr(edge, name))
    ]
    if not is_weight(edge.weight):
        problems.append("weight: expected a number in (0, 1]")
    if edge.at is not None and TIME.wrong(edge.at):
        problems.append("at: expected finite seconds or None")
    return problems


def insert_edges(connection: Connection, generation: int, edges: Sequence[Edge]) -> None:
    """Write edges, replacing those with the same identity."""
    connection.executemany(
        _UPSERT,
        (
            (
                *edge.identity,
                float(edge.weight),
                bool(edge.verified),
                None if edge.at is None else float(edge.at),
                generation,
            )
            for edge in edges
        ),
    )


def delete_edges(connection: Connection, edges: Iterable[Edge], generation: int) -> list[Edge]:
    """Delete edges by their identity and leave a tombstone for each; those there were."""
    deleted = [edge for edge in edges if connection.execute(_DELETE, edge.identity).rowcount]
    if deleted:
        mark_unclean(connection)
    connection.executemany(
        "INSERT INTO edge_tombstones VALUES (?, ?)", [(generation, edge.digest) for edge in deleted]
    )
    return deleted


def edges_at(connection: Connection, key: Key) -> list[Edge]:
    """The edges that were written at the scope of a memory and start or end at its id."""
    found = connection.execute(_EDGES_AT, (key.scope.path, key.id)).fetchall()
    return [Edge(key.scope, *names) for names in found]


def next_edges(
    connection: Connection,
    scopes: ScopeReader,
    after: EdgeIdentity,
    as_of: float,
    kind: str | None,
    size: int,
) -> list[Edge]:
    """The next ``size`` edges behind an identity that hold at ``as_of``, in order of identity.

    ``kind`` leaves out those of other kinds.
    """
    rows = connection.execute(_NEXT, (*after, as_of, kind, kind, size)).fetchall()
    return _edges(rows, scopes)


def edges_since(connection: Connection, scopes: ScopeReader, generation: int) -> list[Edge]:
    """Edges written after a generation."""
    return _edges(connection.execute(_SINCE, (generation,)).fetchall(), scopes)


def _edges(rows: Sequence[Sequence[Any]], scopes: ScopeReader) -> list[Edge]:
    if not rows:
        return []
    paths, *names, weights, verified, times = zip(*rows, strict=True)
    for column in names:
        NAME.decode(column)
    FRACTION.decode(weights)
    TIME.decode([at for at in times if at is not None])
    held = map(scopes, paths)
    return list(map(Edge, held, *names, weights, map(bool, verified), times))

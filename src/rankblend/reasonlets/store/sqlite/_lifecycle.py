"""What takes runs and procedures away; each function inside a transaction the caller opened."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Any

from rankblend.reasonlets._reasonlet import Erased
from rankblend.reasonlets.store.sqlite._writing import note_deletion, recount
from rankblend.relevance import Scope

_COUNTERS = """
    SELECT serial, runs, successes, judged_runs, judged_successes, last_run, last_success,
        pruned_judged_runs, pruned_judged_successes
    FROM reasonlets ORDER BY serial
"""


def prune(
    connection: Connection, scope: Scope | None, before: float | None, keep: int | None
) -> int:
    """See `ReasonletStore.prune`."""
    path = None if scope is None else scope.path
    doomed = connection.execute(
        """
        SELECT id, reasonlet, at, success, judged FROM (
            SELECT r.*, row_number() OVER (PARTITION BY r.reasonlet ORDER BY r.at DESC, r.id DESC)
                AS place
            FROM reasonlet_runs AS r JOIN reasonlets AS o ON o.serial = r.reasonlet
            WHERE :path IS NULL OR o.scope = :path
        ) WHERE at < :before OR place > :keep
        """,
        {"path": path, "before": before, "keep": keep},  # a comparison with NULL is not true
    ).fetchall()
    connection.executemany(
        """
        UPDATE reasonlets SET
            pruned_runs = pruned_runs + 1,
            pruned_successes = pruned_successes + :success,
            pruned_judged_runs = pruned_judged_runs + :judged,
            pruned_judged_successes = pruned_judged_successes + (:judged AND :success),
            pruned_last_run = max(coalesce(pruned_last_run, :at), :at),
            pruned_last_success = CASE WHEN :success
                THEN max(coalesce(pruned_last_success, :at), :at) ELSE pruned_last_success END
        WHERE serial = :serial
        """,
        [
            {"serial": serial, "at": at, "success": success, "judged": judged}
            for _, serial, at, success, judged in doomed
        ],
    )
    _delete_runs(connection, [row[0] for row in doomed])
    return len(doomed)


def erase_subject(connection: Connection, scope: Scope, subject_id: str) -> Erased:
    """See `ReasonletStore.erase_subject`."""
    connection.execute("PRAGMA secure_delete = ON")
    asked = (scope.path, subject_id)
    theirs = _rows(
        connection,
        "SELECT r.id, r.utility IS NOT NULL FROM reasonlet_runs AS r"
        " JOIN reasonlets AS o ON o.serial = r.reasonlet WHERE o.scope = ? AND o.subject_id = ?",
        asked,
    )
    detached = _rows(
        connection,
        "SELECT o.serial FROM reasonlets AS o JOIN reasonlets AS p ON p.serial = o.parent"
        " WHERE p.scope = ? AND p.subject_id = ? AND o.subject_id IS NOT p.subject_id",
        asked,
    )
    reasonlets = _rows(
        connection,
        "SELECT serial, family FROM reasonlets WHERE scope = ? AND subject_id = ?",
        asked,
    )
    connection.executemany(
        "DELETE FROM reasonlets WHERE serial = ?", [(serial,) for serial, _ in reasonlets]
    )
    _rename_families(connection, {family for _, family in reasonlets})
    elsewhere = _rows(
        connection,
        "SELECT r.id, r.utility IS NOT NULL, r.reasonlet FROM reasonlet_runs AS r"
        " JOIN reasonlets AS o ON o.serial = r.reasonlet WHERE o.scope = ? AND r.subject_id = ?",
        asked,
    )
    _delete_runs(connection, [row[0] for row in elsewhere])
    recount(connection, sorted({row[2] for row in elsewhere}))
    if reasonlets:
        note_deletion(connection)
    gone = [*theirs, *elsewhere]
    return Erased(len(reasonlets), len(gone), sum(row[1] for row in gone), len(detached))


def rebuild_judged_counters(connection: Connection) -> int:
    """See `ReasonletStore.rebuild_judged_counters`."""
    before = _rows(connection, _COUNTERS)
    connection.execute("UPDATE reasonlets SET pruned_judged_runs = 0, pruned_judged_successes = 0")
    recount(connection, [row[0] for row in before])
    after = _rows(connection, _COUNTERS)
    return sum(old != new for old, new in zip(before, after, strict=True))


def _rename_families(connection: Connection, families: set[str]) -> None:
    """Call families whose first procedure is gone after the oldest that is left."""
    for family in sorted(families):
        connection.execute(
            "UPDATE reasonlets SET family = :oldest WHERE family = :family"
            " AND NOT EXISTS (SELECT 1 FROM reasonlets WHERE id = :family)",
            {"family": family, "oldest": _oldest(connection, family)},
        )


def _oldest(connection: Connection, family: str) -> str | None:
    oldest: str | None = _rows(
        connection, "SELECT min(id) FROM reasonlets WHERE family = ?", (family,)
    )[0][0]
    return oldest


def _rows(
    connection: Connection, statement: str, values: tuple[object, ...] = ()
) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()


def _delete_runs(connection: Connection, ids: list[str]) -> None:
    connection.executemany("DELETE FROM reasonlet_runs WHERE id = ?", [(id_,) for id_ in ids])

"""What takes runs and procedures away; each function inside a transaction the caller opened."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Any

from rankblend.reasonlets.reasonlet import Erased
from rankblend.reasonlets.store.sqlite.writing import note_deletion, recount
from rankblend.relevance.scope import Scope

__all__ = ["erase_subject", "prune", "rebuild_judged_counters"]


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
        connection, "SELECT serial FROM reasonlets WHERE scope = ? AND subject_id = ?", asked
    )
    connection.executemany("DELETE FROM reasonlets WHERE serial = ?", reasonlets)
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
    changed = _rows(
        connection,
        "SELECT serial FROM reasonlets WHERE pruned_judged_runs > 0 OR pruned_judged_successes > 0",
    )
    connection.execute("UPDATE reasonlets SET pruned_judged_runs = 0, pruned_judged_successes = 0")
    recount(connection, [row[0] for row in changed])
    return len(changed)


def _rows(
    connection: Connection, statement: str, values: tuple[object, ...] = ()
) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()


def _delete_runs(connection: Connection, ids: list[str]) -> None:
    connection.executemany("DELETE FROM reasonlet_runs WHERE id = ?", [(id_,) for id_ in ids])

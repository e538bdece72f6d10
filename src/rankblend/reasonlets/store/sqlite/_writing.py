"""What changes procedures and runs; each function inside a transaction the caller opened."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from attrs import astuple, frozen

from rankblend.reasonlets._errors import ReasonletConflictError, ReasonletNotFoundError
from rankblend.reasonlets._identifiers import next_id
from rankblend.reasonlets._reasonlet import Feedback, Produced, Status
from rankblend.reasonlets._verdicts import verdict_of, with_feedback
from rankblend.reasonlets.store._moving import check_dimension, check_entries, latest
from rankblend.reasonlets.store._protocol import Draft, Entry, Recorded, Run, StoredRun
from rankblend.reasonlets.store.sqlite._rows import (
    RUN,
    provenance_row,
    run_of,
    run_row,
    to_json,
    vector_bytes,
)
from rankblend.relevance import Scope
from rankblend.stores.catalog import ScopeReader


@frozen
class _Found:
    serial: int
    id: str
    minor: int
    family: str
    status: Status
    digest: str


def stored_dimension(connection: Connection) -> int | None:
    """Length of the stored vectors; None while there is none."""
    found = connection.execute("SELECT dimension FROM reasonlet_state").fetchone()[0]
    return None if found is None else int(found)


def remember(connection: Connection, draft: Draft) -> Recorded:
    """See `ReasonletStore.remember`."""
    dimension = stored_dimension(connection)
    check_dimension(dimension, draft.vector)
    parent = None
    if draft.parent_id is not None:
        parent = _find(connection, draft.scope, draft.parent_id, "parent")
        if parent.digest == draft.graph.digest:
            return _record(connection, parent, draft.run, Produced.EXECUTION)
    last = connection.execute("SELECT max(id) FROM reasonlets").fetchone()[0]
    identifier = next_id(draft.run.at, last)
    family, minor = identifier, 0
    if parent is not None:
        family = parent.family
        numbers = "SELECT max(minor) FROM reasonlets WHERE family = ?"
        minor = 1 + int(connection.execute(numbers, (family,)).fetchone()[0])
    made = _insert(
        connection,
        {
            "id": identifier,
            "scope": draft.scope.path,
            "status": str(draft.status),
            "parent": None if parent is None else parent.serial,
            "last_run": draft.run.at,
            "created": draft.run.at,
            "family": family,
            "minor": minor,
            "intent": draft.intent,
            "name": draft.name,
            **provenance_row(draft.provenance),
            "digest": draft.graph.digest,
            "question": draft.question,
            "graph": to_json(draft.graph.plain()),
            "vector": vector_bytes(draft.vector),
        },
        len(draft.vector),
    )
    found = _Found(made, identifier, minor, family, draft.status, draft.graph.digest)
    produced = Produced.CREATED if parent is None else Produced.VERSION
    return _record(connection, found, draft.run, produced)


def write_run(connection: Connection, scope: Scope, id: str, run: Run) -> Recorded:
    """See `ReasonletStore.record`."""
    return _record(connection, _find(connection, scope, id), run, Produced.EXECUTION)


def keep_feedback(connection: Connection, scope: Scope, execution: str, feedback: Feedback) -> None:
    """See `ReasonletStore.feedback`."""
    owner = connection.execute(
        "SELECT o.serial FROM reasonlet_runs AS r JOIN reasonlets AS o ON o.serial = r.reasonlet"
        " WHERE r.id = ? AND o.scope = ?",
        (execution, scope.path),
    ).fetchone()
    if owner is None:
        raise ReasonletNotFoundError("execution")
    row = connection.execute(f"{RUN} WHERE id = ?", (execution,)).fetchone()
    _replace_run(connection, owner[0], with_feedback(run_of(row), feedback))
    recount(connection, [owner[0]])


def approve(connection: Connection, scope: Scope, id: str) -> None:
    """See `ReasonletStore.approve`."""
    found = _find(connection, scope, id)
    if found.status is not Status.ACTIVE:
        generation = _next_generation(connection)
        connection.execute(
            "UPDATE reasonlets SET status = ?, generation = ? WHERE serial = ?",
            (str(Status.ACTIVE), generation, found.serial),
        )


def reject(connection: Connection, scope: Scope, id: str) -> None:
    """See `ReasonletStore.reject`."""
    found = _find(connection, scope, id)
    if found.status is Status.ACTIVE:
        raise ReasonletConflictError("active", "only what waits for review is rejected")
    below = "SELECT 1 FROM reasonlets WHERE parent = ? LIMIT 1"
    if connection.execute(below, (found.serial,)).fetchone() is not None:
        raise ReasonletConflictError(
            "has versions", "approve or reject the versions below it first"
        )
    connection.execute("DELETE FROM reasonlets WHERE serial = ?", (found.serial,))
    note_deletion(connection)


def recount(connection: Connection, serials: Sequence[int]) -> None:
    """Set the counters of procedures to what their stored and their pruned runs add up to."""
    for serial in serials:
        pruned = connection.execute(
            "SELECT pruned_runs, pruned_successes, pruned_judged_runs, pruned_judged_successes,"
            " pruned_last_run, pruned_last_success, created FROM reasonlets WHERE serial = ?",
            (serial,),
        ).fetchone()
        stored = connection.execute(
            "SELECT count(*), total(success), total(judged), total(judged AND success),"
            " max(at), max(CASE WHEN success THEN at END)"
            " FROM reasonlet_runs WHERE reasonlet = ?",
            (serial,),
        ).fetchone()
        counts = [int(stored[at]) + pruned[at] for at in range(4)]
        last_run = latest(stored[4], pruned[4])
        connection.execute(
            "UPDATE reasonlets SET runs = ?, successes = ?, judged_runs = ?,"
            " judged_successes = ?, last_run = ?, last_success = ? WHERE serial = ?",
            (
                *counts,
                pruned[6] if last_run is None else last_run,
                latest(stored[5], pruned[5]),
                serial,
            ),
        )


def load(connection: Connection, entries: Sequence[Entry]) -> None:
    """See `ReasonletStore.load`."""
    scopes = ScopeReader()
    there = connection.execute("SELECT id, scope, family, minor FROM reasonlets").fetchall()
    check_entries(
        entries,
        stored_dimension(connection),
        {row[0]: (scopes(row[1]), row[2]) for row in there},
        {(row[2], f"1.{row[3]}") for row in there},
        {row[0] for row in connection.execute("SELECT id FROM reasonlet_runs")},
    )
    serials = [_insert_entry(connection, entry) for entry in entries]
    for serial, entry in zip(serials, entries, strict=True):
        connection.execute(
            "UPDATE reasonlets SET parent = (SELECT serial FROM reasonlets WHERE id = ?)"
            " WHERE serial = ?",
            (entry.reasonlet.parent_id, serial),
        )
        for stored in entry.runs:
            _replace_run(connection, serial, stored)
    recount(connection, serials)


def note_deletion(connection: Connection) -> None:
    """Tell the readers, of this process and others, that something is gone."""
    generation = _next_generation(connection)
    connection.execute("UPDATE reasonlet_state SET deleted = ?", (generation,))


def _find(connection: Connection, scope: Scope, id: str, what: str = "reasonlet") -> _Found:
    row = connection.execute(
        "SELECT serial, id, minor, family, status, digest FROM reasonlets"
        " WHERE id = ? AND scope = ?",
        (id, scope.path),
    ).fetchone()
    if row is None:
        raise ReasonletNotFoundError(what)
    return _Found(row[0], row[1], row[2], row[3], Status(row[4]), row[5])


def _record(connection: Connection, found: _Found, run: Run, produced: Produced) -> Recorded:
    last = connection.execute("SELECT max(id) FROM reasonlet_runs").fetchone()[0]
    stored = StoredRun(next_id(run.at, last), run)
    _replace_run(connection, found.serial, stored)
    verdict = verdict_of(stored)
    connection.execute(
        "UPDATE reasonlets SET runs = runs + 1, successes = successes + :success,"
        " judged_runs = judged_runs + :judged, judged_successes = judged_successes + :both,"
        " last_run = CASE WHEN runs = 0 THEN :at ELSE max(last_run, :at) END,"
        " last_success = CASE WHEN :success THEN max(coalesce(last_success, :at), :at)"
        " ELSE last_success END WHERE serial = :serial",
        {
            "success": verdict.success,
            "judged": verdict.judged,
            "both": verdict.judged and verdict.success,
            "at": run.at,
            "serial": found.serial,
        },
    )
    return Recorded(found.id, f"1.{found.minor}", found.status, produced, stored.id)


def _insert_entry(connection: Connection, entry: Entry) -> int:
    made = entry.reasonlet
    created = made.created.timestamp()
    names = ("runs", "successes", "judged_runs", "judged_successes")
    pruned = dict(zip(names, astuple(entry.pruned), strict=True))
    return _insert(
        connection,
        {
            "id": made.id,
            "scope": made.scope.path,
            "status": str(made.status),
            **{f"pruned_{name}": count for name, count in pruned.items()},
            "pruned_last_run": entry.pruned_last_run,
            "pruned_last_success": entry.pruned_last_success,
            "last_run": created,
            "created": created,
            "family": made.family,
            "minor": int(made.version.partition(".")[2]),
            "intent": made.intent,
            "name": made.name,
            **provenance_row(made.provenance),
            "digest": made.graph.digest,
            "question": made.question,
            "graph": to_json(made.graph.plain()),
            "vector": vector_bytes(entry.vector),
        },
        len(entry.vector),
    )


def _insert(connection: Connection, row: dict[str, Any], dimension: int) -> int:
    """Add a procedure; returns its serial."""
    serial = int(connection.execute("SELECT next_serial FROM reasonlet_state").fetchone()[0])
    connection.execute(
        "UPDATE reasonlet_state SET next_serial = ?, dimension = ?", (serial + 1, dimension)
    )
    full = {"serial": serial, "generation": _next_generation(connection), **row}
    _put(connection, "reasonlets", full, "INSERT")
    return serial


def _replace_run(connection: Connection, serial: int, stored: StoredRun) -> None:
    _put(connection, "reasonlet_runs", run_row(serial, stored), "INSERT OR REPLACE")


def _put(connection: Connection, table: str, row: dict[str, Any], how: str) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"{how} INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def _next_generation(connection: Connection) -> int:
    connection.execute("UPDATE reasonlet_state SET generation = generation + 1")
    return int(connection.execute("SELECT generation FROM reasonlet_state").fetchone()[0])

"""What may happen to procedures and runs: lineage, numbers, verdicts, counters, what goes with what.

Each function works inside a transaction that the caller opened, so that all of it happens or
nothing. This is the only place where these rules are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import (
    ReasonletConflictError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    ReasonletValidationError,
)
from rankblend.relevance import Scope
from rankblend.stores._record import Key
from rankblend.stores.catalog import erase, mark_unclean, next_generation
from rankblend.stores.procedures._protocol import LAYER, Draft, Entry, Recorded, Run, StoredRun
from rankblend.stores.procedures._reasonlet import Erased, Feedback, Produced, Status
from rankblend.stores.procedures._schema import (
    draft_row,
    entry_row,
    run_row,
    state_of,
    to_json,
    vector_bytes,
)
from rankblend.times import next_id

# What runs add up to, in the order of the columns of a procedure.
_TALLY = """
    count(*) AS runs, sum(success) AS successes, sum(judged) AS judged_runs,
    sum(judged AND success) AS judged_successes,
    max(at) AS last_run, max(CASE WHEN success THEN at END) AS last_success
"""
_COUNTS = ("runs", "successes", "judged_runs", "judged_successes")
_COUNTERS = f"""
    SELECT {", ".join(_COUNTS)}, last_run, last_success, pruned_judged_runs,
        pruned_judged_successes
    FROM procedures ORDER BY serial
"""


@frozen
class _Found:
    serial: int
    id: str
    minor: int
    family: str
    status: Status
    digest: str


# ---- remembering ------------------------------------------------------------------------------


def remember(connection: Connection, draft: Draft) -> Recorded:
    """See `ReasonletStore.remember`."""
    check_vectors(connection, draft.embedder, [draft.vector])
    parent = None
    if draft.parent_id is not None:
        parent = _find(connection, draft.scope, draft.parent_id, "parent")
        if parent.digest == draft.graph.digest:
            return _record(connection, parent, draft.run, Produced.EXECUTION)
    identifier = next_id(draft.run.at, _value(connection, "SELECT max(id) FROM procedures"))
    family, minor = identifier, 0
    if parent is not None:
        family = parent.family
        numbers = "SELECT max(minor) FROM procedures WHERE family = ?"
        minor = 1 + _value(connection, numbers, family)
    row = draft_row(draft) | {
        "id": identifier,
        "parent": None if parent is None else parent.serial,
        "family": family,
        "minor": minor,
    }
    serial = _insert(connection, row)
    found = _Found(serial, identifier, minor, family, draft.status, draft.graph.digest)
    produced = Produced.CREATED if parent is None else Produced.VERSION
    return _record(connection, found, draft.run, produced)


def record(connection: Connection, scope: Scope, id: str, run: Run) -> Recorded:
    """See `ReasonletStore.record`."""
    return _record(connection, _find(connection, scope, id), run, Produced.EXECUTION)


def keep_feedback(connection: Connection, scope: Scope, execution: str, feedback: Feedback) -> None:
    """See `ReasonletStore.feedback`: a verdict can be changed, not withdrawn."""
    owner = _value(
        connection,
        "SELECT o.serial FROM runs AS r JOIN procedures AS o ON o.serial = r.procedure"
        " WHERE r.id = ? AND o.scope = ?",
        execution,
        scope.path,
    )
    if owner is None:
        raise ReasonletNotFoundError("execution")
    connection.execute(
        "UPDATE runs SET utility = ?, correctness = ?, reusability = ?, human = coalesce(?, human)"
        " WHERE id = ?",
        (
            *map(float, (feedback.utility, feedback.correctness, feedback.reusability)),
            feedback.worked,
            execution,
        ),
    )
    _recount(connection, [owner])


def _record(connection: Connection, found: _Found, run: Run, produced: Produced) -> Recorded:
    last = _value(connection, "SELECT max(id) FROM runs")
    stored = StoredRun(next_id(run.at, last), run)
    _put(connection, "runs", run_row(found.serial, stored))
    _add(connection, "", "id = ?", stored.id)
    return Recorded(found.id, f"1.{found.minor}", found.status, produced, stored.id)


# ---- review -----------------------------------------------------------------------------------


def approve(connection: Connection, scope: Scope, id: str) -> None:
    """See `ReasonletStore.approve`."""
    found = _find(connection, scope, id)
    if found.status is not Status.ACTIVE:
        connection.execute(
            "UPDATE procedures SET status = ?, generation = ? WHERE serial = ?",
            (str(Status.ACTIVE), _next(connection), found.serial),
        )


def reject(connection: Connection, scope: Scope, id: str) -> None:
    """See `ReasonletStore.reject`."""
    found = _find(connection, scope, id)
    if found.status is Status.ACTIVE:
        raise ReasonletConflictError("active", "only what waits for review is rejected")
    below = "SELECT 1 FROM procedures WHERE parent = ? LIMIT 1"
    if _value(connection, below, found.serial) is not None:
        raise ReasonletConflictError(
            "has versions", "approve or reject the versions below it first"
        )
    _delete(connection, [found.serial])


# ---- forgetting -------------------------------------------------------------------------------


def prune(
    connection: Connection, scope: Scope | None, before: float | None, keep: int | None
) -> int:
    """See `ReasonletStore.prune`."""
    path = None if scope is None else scope.path
    doomed = connection.execute(
        """
        SELECT id FROM (
            SELECT r.id, r.at,
                row_number() OVER (PARTITION BY r.procedure ORDER BY r.at DESC, r.id DESC) AS place
            FROM runs AS r JOIN procedures AS o ON o.serial = r.procedure
            WHERE :path IS NULL OR o.scope = :path
        ) WHERE at < :before OR place > :keep
        """,
        {"path": path, "before": before, "keep": keep},  # a comparison with NULL is not true
    ).fetchall()
    ids = to_json([id_ for (id_,) in doomed])
    _add(connection, "pruned_", "id IN (SELECT value FROM json_each(?))", ids)
    _delete_runs(connection, ids)
    return len(doomed)


def erase_subject(connection: Connection, scope: Scope, subject_id: str) -> Erased:
    """See `ReasonletStore.erase_subject`."""
    asked = (scope.path, subject_id)
    own = "SELECT serial FROM procedures WHERE scope = ? AND subject_id = ?"
    serials = [serial for (serial,) in connection.execute(own, asked)]
    runs, judged = connection.execute(
        f"SELECT count(*), count(utility) FROM runs WHERE procedure IN ({own})", asked
    ).fetchone()
    detached = _value(
        connection,
        f"SELECT count(*) FROM procedures WHERE parent IN ({own}) AND subject_id IS NOT ?",
        *asked,
        subject_id,
    )
    if serials:
        _delete(connection, serials)
    elsewhere = connection.execute(
        "SELECT r.id, r.utility IS NOT NULL, r.procedure FROM runs AS r"
        " JOIN procedures AS o ON o.serial = r.procedure WHERE o.scope = ? AND r.subject_id = ?",
        asked,
    ).fetchall()
    _delete_runs(connection, to_json([row[0] for row in elsewhere]))
    _recount(connection, {row[2] for row in elsewhere})
    judged += sum(row[1] for row in elsewhere)
    return Erased(len(serials), runs + len(elsewhere), judged, detached)


def rebuild_judged_counters(connection: Connection) -> int:
    """See `ReasonletStore.rebuild_judged_counters`."""
    before = connection.execute(_COUNTERS).fetchall()
    connection.execute("UPDATE procedures SET pruned_judged_runs = 0, pruned_judged_successes = 0")
    _recount(connection, None)
    return sum(old != new for old, new in zip(before, connection.execute(_COUNTERS), strict=True))


def _delete(connection: Connection, serials: Sequence[int]) -> None:
    """Delete procedures with their runs, and the memories of this file that stand for them.

    Versions of theirs become roots; a family whose first one goes is called after the oldest left.
    """
    chosen = to_json(list(serials))
    among = "serial IN (SELECT value FROM json_each(?))"
    gone = connection.execute(
        f"SELECT p.id, p.family, m.scope, m.id FROM procedures AS p LEFT JOIN memories AS m"
        f" ON m.scope = p.scope AND m.id = p.id AND m.layer = '{LAYER}' WHERE p.{among}",
        (chosen,),
    ).fetchall()
    connection.execute(f"DELETE FROM procedures WHERE {among}", (chosen,))
    mark_unclean(connection)
    for family in sorted({row[1] for row in gone} & {row[0] for row in gone}):
        oldest = _value(connection, "SELECT min(id) FROM procedures WHERE family = ?", family)
        connection.execute("UPDATE procedures SET family = ? WHERE family = ?", (oldest, family))
    connection.execute("UPDATE procedure_state SET erased = ?", (_next(connection),))
    shown = [Key(Scope.parse(path[:-1]), id_) for _, _, path, id_ in gone if id_ is not None]
    if shown:
        erase(connection, shown, next_generation(connection))


def _delete_runs(connection: Connection, ids: str) -> None:
    among = "id IN (SELECT value FROM json_each(?))"
    if connection.execute(f"DELETE FROM runs WHERE {among}", (ids,)).rowcount:
        mark_unclean(connection)


# ---- vectors ----------------------------------------------------------------------------------


def check_vectors(
    connection: Connection, embedder: str | None, vectors: Iterable[NDArray[np.float32]]
) -> None:
    """Note what made the vectors that are to be written, where nothing is noted yet.

    Raises:
        ReasonletUnavailableError: They are of another length, or of another embedder, than those
            that are stored; they could not be compared.
    """
    noted = state_of(connection)
    check_embedder(noted.embedder, embedder)
    dimension = noted.dimension
    for vector in vectors:
        dimension = len(vector) if dimension is None else dimension
        if len(vector) != dimension:
            raise ReasonletUnavailableError(
                "embedder", f"length: expected {dimension}, got {len(vector)}"
            )
    if dimension is not None:
        connection.execute(
            "UPDATE procedure_state SET embedder = coalesce(embedder, ?), dimension = ?",
            (embedder, dimension),
        )


def check_embedder(noted: str | None, embedder: str | None) -> None:
    """Refuse an embedder whose vectors cannot be compared with those that are stored.

    Raises:
        ReasonletUnavailableError: Another one made them; with what can be done.
    """
    if noted is not None and embedder is not None and noted != embedder:
        raise ReasonletUnavailableError(
            "embedder",
            f"identity: expected {noted}, got {embedder}; pass that one, or embed the whole file "
            "anew with: rankblend reembed --db FILE --embedder NAME",
        )


def questions(connection: Connection) -> set[str]:
    """Every question that has a vector."""
    return {question for (question,) in connection.execute("SELECT question FROM procedures")}


def relabel(connection: Connection, name: str) -> int:
    """Note another name for what made the vectors; how many notes changed, 0 where there is none."""
    return connection.execute(
        "UPDATE procedure_state SET embedder = ? || '/' || dimension WHERE embedder IS NOT NULL",
        (name,),
    ).rowcount


def replace_vectors(
    connection: Connection, vectors: Mapping[str, NDArray[np.float32]], embedder: str
) -> None:
    """Store other vectors for all procedures.

    Args:
        connection: In a write transaction.
        vectors: By question; every question has one, all of one length.
        embedder: Identity of what made them.
    """
    rows = connection.execute("SELECT serial, question FROM procedures").fetchall()
    generation = _next(connection)
    connection.executemany(
        "UPDATE procedures SET vector = ?, generation = ? WHERE serial = ?",
        [(vector_bytes(vectors[question]), generation, serial) for serial, question in rows],
    )
    dimension = len(vectors[rows[0][1]]) if rows else None
    connection.execute(
        "UPDATE procedure_state SET embedded = ?, embedder = ?, dimension = ?",
        (generation, embedder if rows else None, dimension),
    )


# ---- moving -----------------------------------------------------------------------------------


def load(connection: Connection, entries: Sequence[Entry]) -> None:
    """See `ReasonletStore.load`."""
    for embedder in sorted({entry.embedder for entry in entries}, key=str):
        vectors = [entry.vector for entry in entries if entry.embedder == embedder]
        check_vectors(connection, embedder, vectors)
    made = [entry.reasonlet for entry in entries]
    runs = [stored.id for entry in entries for stored in entry.runs]
    ids = to_json([each.id for each in made])
    numbers = to_json([[each.family, int(each.version.partition(".")[2])] for each in made])
    there = _value(
        connection,
        "SELECT EXISTS (SELECT 1 FROM procedures WHERE id IN (SELECT value FROM json_each(?)))"
        " OR EXISTS (SELECT 1 FROM json_each(?) AS n JOIN procedures AS p"
        " ON p.family = json_extract(n.value, '$[0]') AND p.minor = json_extract(n.value, '$[1]'))"
        " OR EXISTS (SELECT 1 FROM runs WHERE id IN (SELECT value FROM json_each(?)))",
        ids,
        numbers,
        to_json(runs),
    )
    distinct = {each.id for each in made}, {(each.family, each.version) for each in made}, {*runs}
    if there or [len(each) for each in distinct] != [len(made), len(made), len(runs)]:
        raise ReasonletConflictError(
            "already stored", "import into a store that holds none of these procedures"
        )
    serials = [_insert(connection, entry_row(entry)) for entry in entries]
    for serial, entry in zip(serials, entries, strict=True):
        _hang(connection, serial, entry)
        for stored in entry.runs:
            _put(connection, "runs", run_row(serial, stored))
    _recount(connection, serials)


def _hang(connection: Connection, serial: int, entry: Entry) -> None:
    """Join a procedure with its parent."""
    made = entry.reasonlet
    if made.parent_id is None:
        return
    parent = _find(connection, made.scope, made.parent_id, "parent")
    if parent.family != made.family:
        raise ReasonletValidationError(["parent_id: of another family"])
    connection.execute("UPDATE procedures SET parent = ? WHERE serial = ?", (parent.serial, serial))


# ---- counting ---------------------------------------------------------------------------------


def _add(connection: Connection, prefix: str, where: str, *values: object) -> None:
    """Add runs to the counters of their procedures.

    Args:
        connection: In a write transaction.
        prefix: ``""``: to the counters; ``"pruned_"``: to what pruned runs count.
        where: Which runs.
        values: Of the condition's marks.
    """
    sums = ", ".join(f"{prefix}{name} = p.{prefix}{name} + t.{name}" for name in _COUNTS)
    last, success = f"{prefix}last_run", f"{prefix}last_success"
    connection.execute(
        f"""
        UPDATE procedures AS p SET {sums},
            {last} = CASE WHEN p.{prefix}runs THEN max(p.{last}, t.last_run) ELSE t.last_run END,
            {success} =
                max(coalesce(p.{success}, t.last_success), coalesce(t.last_success, p.{success}))
        FROM (SELECT procedure, {_TALLY} FROM runs WHERE {where} GROUP BY procedure) AS t
        WHERE p.serial = t.procedure
        """,
        values,
    )


def _recount(connection: Connection, serials: Iterable[int] | None) -> None:
    """Set counters to what stored and pruned runs add up to; None: of all procedures."""
    chosen = "SELECT serial FROM procedures"
    values: tuple[object, ...] = ()
    if serials is not None:
        chosen, values = "SELECT value FROM json_each(?)", (to_json(sorted(serials)),)
    pruned = ", ".join(f"{name} = pruned_{name}" for name in (*_COUNTS, "last_success"))
    connection.execute(
        f"UPDATE procedures SET {pruned}, last_run = coalesce(pruned_last_run, created)"
        f" WHERE serial IN ({chosen})",
        values,
    )
    _add(connection, "", f"procedure IN ({chosen})", *values)


# ---- rows -------------------------------------------------------------------------------------


def _find(connection: Connection, scope: Scope, id: str, what: str = "reasonlet") -> _Found:
    row = connection.execute(
        "SELECT serial, id, minor, family, status, digest FROM procedures"
        " WHERE id = ? AND scope = ?",
        (id, scope.path),
    ).fetchone()
    if row is None:
        raise ReasonletNotFoundError(what)
    return _Found(row[0], row[1], row[2], row[3], Status(row[4]), row[5])


def _insert(connection: Connection, row: Mapping[str, Any]) -> int:
    """Add a procedure; returns its serial."""
    serial = int(_value(connection, "SELECT next_serial FROM procedure_state"))
    connection.execute("UPDATE procedure_state SET next_serial = ?", (serial + 1,))
    _put(connection, "procedures", {"serial": serial, "generation": _next(connection), **row})
    return serial


def _put(connection: Connection, table: str, row: Mapping[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def _next(connection: Connection) -> int:
    """Count one more change of what may be recalled."""
    connection.execute("UPDATE procedure_state SET generation = generation + 1")
    return int(_value(connection, "SELECT generation FROM procedure_state"))


def _value(connection: Connection, statement: str, *values: object) -> Any:
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]

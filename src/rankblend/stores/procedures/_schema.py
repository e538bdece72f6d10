"""Between procedures, runs and the rows of a catalog: the columns in one place, both ways.

The tables are made with those of memories (`rankblend.stores.catalog`)::

    procedures ──── runs      one row a run, its feedback included
    procedure_state           generation, embedder, dimension

What is small and read by every recall comes first in a row, what is large comes last. ``success``
and ``judged`` of a run are columns that SQLite works out: a person's verdict, else the evaluator's,
else the agent's. Nothing else says which verdict counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from sqlite3 import Connection
from typing import Any, TypeVar

import numpy as np
from attrs import asdict, frozen
from numpy.typing import NDArray

from rankblend.errors import (
    CatalogCorruptError,
    ReasonletError,
    ReasonletUnavailableError,
    StoreError,
)
from rankblend.relevance import Scope
from rankblend.stores.catalog import ScopeReader
from rankblend.stores.procedures._capture import Outcome, Provenance
from rankblend.stores.procedures._graph import Graph
from rankblend.stores.procedures._protocol import Candidate, Counts, Draft, Entry, Run, StoredRun
from rankblend.stores.procedures._reasonlet import Feedback, Metrics, Reasonlet, Status
from rankblend.times import as_utc

_DEFINITION = """
    r.id, r.scope, r.question, r.graph, r.intent, r.name, r.minor, r.family, p.id,
    r.source, r.run_id, r.subject_id, r.tags, r.status, r.created,
    r.runs, r.successes, r.judged_runs, r.judged_successes, r.last_run, r.last_success
"""
_JOINED = "FROM procedures AS r LEFT JOIN procedures AS p ON p.serial = r.parent "
PROCEDURE = f"SELECT {_DEFINITION} {_JOINED}"
ENTRY = f"""
    SELECT {_DEFINITION}, r.serial, r.vector, r.pruned_runs, r.pruned_successes,
        r.pruned_judged_runs, r.pruned_judged_successes, r.pruned_last_run, r.pruned_last_success
    {_JOINED} ORDER BY r.id
"""
CANDIDATE = f"""
    SELECT {_DEFINITION}, p.runs, p.successes, p.judged_runs, p.judged_successes
    FROM json_each(?) AS asked
    CROSS JOIN procedures AS r ON r.id = asked.value
    LEFT JOIN procedures AS p ON p.serial = r.parent
    WHERE r.status = 'active'
"""
RUN = """
    SELECT id, at, agent, seconds, score, source, run_id, subject_id, tags, evaluator,
        utility, correctness, reusability, human
    FROM runs
"""
T = TypeVar("T")
_VECTOR = np.dtype("<f4")

to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_load = json.JSONDecoder().decode


@frozen
class State:
    """What a file notes about all its procedures.

    Attributes:
        generation: Of the last change of what may be recalled; runs do not count.
        erased: Generation of the last deletion.
        embedded: Generation at which all vectors were made anew.
        embedder: Identity of what made the vectors, ``name/dimension``; None: nobody knows.
        dimension: Length of the vectors; None while there is none.
    """

    generation: int
    erased: int
    embedded: int
    embedder: str | None
    dimension: int | None


def state_of(connection: Connection) -> State:
    """What the file notes now."""
    return State(
        *connection.execute(
            "SELECT generation, erased, embedded, embedder, dimension FROM procedure_state"
        ).fetchone()
    )


def shielded(call: Callable[[], T]) -> T:
    """What a call gives; of what the engine or a damaged row makes it raise, only the kind is told.

    The error is raised outside of the handler, so that nothing the engine said hangs on it.

    Raises:
        ReasonletError: As raised.
        ReasonletUnavailableError: The file failed, or a row cannot be decoded.
    """
    try:
        return call()
    except ReasonletError:
        raise
    except StoreError as error:
        kind = type(error).__name__
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        kind = CatalogCorruptError.__name__
    raise ReasonletUnavailableError("store", kind)


def candidate_of(row: Sequence[Any], scopes: ScopeReader, similarity: float) -> Candidate:
    """A row of `CANDIDATE`; the definition in it is decoded when it is asked for."""
    scope = scopes(row[1])

    return Candidate(
        row[0],
        scope,
        similarity,
        Counts(*row[15:19]),
        None if row[21] is None else Counts(*row[21:25]),
        row[19],
        lambda: shielded(lambda: reasonlet_of(row, scope)),
    )


def reasonlet_of(row: Sequence[Any], scope: Scope) -> Reasonlet:
    """A row of `PROCEDURE`, whose scope has been read."""
    runs, successes, judged_runs, judged_successes, last_run, last_success = row[15:21]
    metrics = Metrics(
        runs,
        successes,
        judged_runs,
        judged_successes,
        as_utc(last_run),
        None if last_success is None else as_utc(last_success),
    )
    return Reasonlet(
        row[0],
        scope,
        row[2],
        Graph.from_stored(_load(row[3])),
        row[4],
        row[5],
        f"1.{row[6]}",
        row[7],
        row[8],
        _provenance(row[9:13]),
        Status(row[13]),
        as_utc(row[14]),
        metrics,
    )


def run_of(row: Sequence[Any]) -> StoredRun:
    """A row of `RUN`."""
    seconds, evaluator, human = row[3], row[9], row[13]
    duration = None if seconds is None else timedelta(seconds=seconds)
    run = Run(
        row[1],
        Outcome(bool(row[2]), duration, row[4]),
        _provenance(row[5:9]),
        None if evaluator is None else bool(evaluator),
    )
    utility, correctness, reusability = row[10:13]
    if utility is None:
        return StoredRun(row[0], run)
    worked = None if human is None else bool(human)
    return StoredRun(row[0], run, Feedback(utility, correctness, reusability, worked))


def run_row(serial: int, stored: StoredRun) -> dict[str, Any]:
    """Column → value of a run of the procedure with this serial."""
    run, feedback = stored.run, stored.feedback
    duration = run.outcome.duration
    return {
        "id": stored.id,
        "procedure": serial,
        "at": run.at,
        "agent": run.outcome.success,
        "evaluator": run.evaluator,
        "human": None if feedback is None else feedback.worked,
        "seconds": None if duration is None else duration.total_seconds(),
        "score": None if run.outcome.score is None else float(run.outcome.score),
        **provenance_row(run.provenance),
        "utility": None if feedback is None else float(feedback.utility),
        "correctness": None if feedback is None else float(feedback.correctness),
        "reusability": None if feedback is None else float(feedback.reusability),
    }


def entry_of(
    row: Sequence[Any], scope: Scope, runs: Sequence[StoredRun], embedder: str | None
) -> Entry:
    """A row of `ENTRY` with the runs that belong to it."""
    vector, *pruned, last_run, last_success = row[22:]
    made = reasonlet_of(row, scope)
    return Entry(
        made, vector_of(vector), Counts(*pruned), last_run, last_success, tuple(runs), embedder
    )


def draft_row(draft: Draft) -> dict[str, Any]:
    """Column → value of what a draft says about a new procedure, but for its place in a family."""
    return {
        **_content(draft.question, draft.graph, draft.intent, draft.name, draft.provenance),
        "scope": draft.scope.path,
        "status": str(draft.status),
        "created": draft.run.at,
        "last_run": draft.run.at,
        "vector": vector_bytes(draft.vector),
    }


def entry_row(entry: Entry) -> dict[str, Any]:
    """Column → value of a procedure that is moved here, without its parent and its runs."""
    made = entry.reasonlet
    created = made.created.timestamp()
    return {
        **_content(made.question, made.graph, made.intent, made.name, made.provenance),
        "id": made.id,
        "scope": made.scope.path,
        "status": str(made.status),
        **{f"pruned_{name}": count for name, count in asdict(entry.pruned).items()},
        "pruned_last_run": entry.pruned_last_run,
        "pruned_last_success": entry.pruned_last_success,
        "created": created,
        "last_run": created,
        "family": made.family,
        "minor": int(made.version.partition(".")[2]),
        "vector": vector_bytes(entry.vector),
    }


def _content(
    question: str, graph: Graph, intent: str, name: str, provenance: Provenance
) -> dict[str, Any]:
    return {
        "intent": intent,
        "name": name,
        **provenance_row(provenance),
        "digest": graph.digest,
        "question": question,
        "graph": to_json(graph.plain()),
    }


def provenance_row(made: Provenance) -> dict[str, Any]:
    """Column → value of where something comes from."""
    return {
        "source": made.source,
        "run_id": made.run_id,
        "subject_id": made.subject_id,
        "tags": to_json(dict(made.tags)) if made.tags else None,
    }


def vector_bytes(vector: NDArray[np.float32]) -> bytes:
    """A vector as it is stored."""
    return vector.astype(_VECTOR).tobytes()


def vector_of(data: bytes) -> NDArray[np.float32]:
    """A stored vector: float32, shape (d,)."""
    return np.frombuffer(data, _VECTOR).astype(np.float32)


def _provenance(row: Sequence[Any]) -> Provenance:
    source, run_id, subject_id, tags = row
    return Provenance(source, run_id, subject_id, _load(tags) if tags else {})

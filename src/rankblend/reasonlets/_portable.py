"""Procedures as JSON lines: a whole store in a file that anything can read, and back.

::

    {"type": "reasonlets", "schema_version": 1, "dimension": 256}
    {"type": "reasonlet", "id": …, "scope": "tenant:acme", "question": …, "graph": {…}, …}
    {"type": "run", "id": …, "reasonlet": …, "at": "2026-03-01T12:00:00+00:00", …}

Runs follow their procedure. Counters are not written, but counted from the runs and ``pruned``.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from attrs import asdict, evolve
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.reasonlets._capture import Outcome, Provenance, question_problems
from rankblend.reasonlets._checks import (
    MAX_INTENT,
    MAX_NAME,
    read_scope,
    scope_problems,
    text_problems,
)
from rankblend.reasonlets._errors import ReasonletValidationError
from rankblend.reasonlets._graph import Graph
from rankblend.reasonlets._identifiers import is_id
from rankblend.reasonlets._reasonlet import Feedback, Metrics, Reasonlet, Status
from rankblend.reasonlets._selector import is_sound
from rankblend.reasonlets.store._moving import as_time
from rankblend.reasonlets.store._protocol import Counts, Entry, Run, StoredRun
from rankblend.recall import write_lines
from rankblend.stores import as_unit

SCHEMA_VERSION = 1
_SHOWN_PROBLEMS = 20
_VERSION = re.compile(r"1\.(0|[1-9][0-9]{0,8})")
T = TypeVar("T")


def write_entries(path: str | os.PathLike[str], entries: Sequence[Entry]) -> int:
    """Write entries to a file, all of them or no file; returns how many."""
    write_lines(path, _lines(entries))
    return len(entries)


def read_entries(path: str | os.PathLike[str]) -> list[Entry]:
    """Read and check what `write_entries` wrote.

    Raises:
        ReasonletValidationError: The file cannot be read; what is wrong, with the numbers of the
            lines, the first 20 problems.
    """
    problems: list[str] = []
    entries: dict[str, Entry] = {}
    runs: dict[str, list[StoredRun]] = {}
    header = False
    for where, line in _parsed(path, problems):
        kind = line.get("type")
        if kind == "reasonlets":
            header = True
            if line.get("schema_version") != SCHEMA_VERSION:
                problems.append(f"{where}: schema_version: expected {SCHEMA_VERSION}")
                break
        elif not header:
            problems.append(f"{where}: expected a header of the type reasonlets first")
            break
        elif kind == "reasonlet":
            entry = _read(_entry, line, where, problems)
            if entry is not None and entry.reasonlet.id in entries:
                problems.append(f"{where}: id: on an earlier line, too")
            elif entry is not None:
                entries[entry.reasonlet.id] = entry
                problems += (f"{where}: {told}" for told in _lineage_problems(entry, entries))
        elif kind == "run":
            stored = _read(_run, line, where, problems)
            owner = line.get("reasonlet")
            if not isinstance(owner, str) or owner not in entries:
                problems.append(f"{where}: reasonlet: expected the id of one before this line")
            elif stored is not None:
                runs.setdefault(owner, []).append(stored)
        else:
            problems.append(f"{where}: type: expected reasonlets, reasonlet or run")
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        tail = [f"… and {more} more"] if more > 0 else []
        raise ReasonletValidationError(problems[:_SHOWN_PROBLEMS] + tail)
    return [
        evolve(entry, runs=tuple(runs.get(identifier, ()))) for identifier, entry in entries.items()
    ]


def _lines(entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    header: dict[str, Any] = {"type": "reasonlets", "schema_version": SCHEMA_VERSION}
    yield header | ({"dimension": len(entries[0].vector)} if entries else {})
    for entry in entries:
        made = entry.reasonlet
        yield _present(
            type="reasonlet",
            id=made.id,
            scope=str(made.scope),
            question=made.question,
            intent=made.intent,
            name=made.name,
            version=made.version,
            family=made.family,
            parent_id=made.parent_id,
            status=str(made.status),
            created=made.created.isoformat(),
            provenance=_plain_provenance(made.provenance),
            graph=made.graph.plain(),
            vector=base64.b64encode(entry.vector.astype("<f4").tobytes()).decode(),
            pruned=asdict(entry.pruned),
            pruned_last_run=_when(entry.pruned_last_run),
            pruned_last_success=_when(entry.pruned_last_success),
        )
        for stored in entry.runs:
            outcome, feedback = stored.run.outcome, stored.feedback
            yield _present(
                type="run",
                id=stored.id,
                reasonlet=made.id,
                at=_when(stored.run.at),
                success=outcome.success,
                seconds=None if outcome.duration is None else outcome.duration.total_seconds(),
                score=outcome.score,
                evaluator=stored.run.evaluator,
                provenance=_plain_provenance(stored.run.provenance),
                feedback=None if feedback is None else _present(**asdict(feedback)),
            )


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _plain_provenance(made: Provenance) -> dict[str, Any]:
    return _present(
        source=made.source,
        run_id=made.run_id,
        subject_id=made.subject_id,
        tags=dict(made.tags) or None,
    )


def _when(seconds: float | None) -> str | None:
    return None if seconds is None else as_time(seconds).isoformat()


def _parsed(
    path: str | os.PathLike[str], problems: list[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        with Path(path).open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError):
                    line = None
                if isinstance(line, dict):
                    yield f"line {number}", line
                else:
                    problems.append(f"line {number}: expected a JSON object")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"path: cannot be read ({type(error).__name__})")


def _read(
    read: Callable[[Mapping[str, Any]], T], line: Mapping[str, Any], where: str, problems: list[str]
) -> T | None:
    """What a line says, or None with its problems noted."""
    try:
        return read(line)
    except ReasonletValidationError as error:
        problems += [f"{where}: {problem}" for problem in error.problems]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        # A KeyError names the field, which is ours; the others might repeat a value.
        told = f"{error.args[0]} is missing" if isinstance(error, KeyError) else "malformed"
        problems.append(f"{where}: {told}")
    return None


def _entry(line: Mapping[str, Any]) -> Entry:
    graph = Graph.from_plain(line["graph"])
    provenance = _provenance(line["provenance"])
    scope: Any = read_scope(line["scope"])
    version = line["version"]
    problems = [
        *scope_problems("scope", scope),
        *question_problems("question", line["question"]),
        *text_problems("intent", line["intent"], limit=MAX_INTENT),
        *text_problems("name", line["name"], limit=MAX_NAME),
        *_id_problems(line, "id", "family"),
        *(_id_problems(line, "parent_id") if line.get("parent_id") is not None else ()),
        *(["version: expected 1.0, 1.1, …"] if not _is_version(version) else []),
        *(["status: unknown"] if line["status"] not in set(Status) else []),
    ]
    pruned = Counts(**line.get("pruned", {}))
    if not is_sound(pruned):
        problems.append("pruned: expected counts that can be")
    if problems:
        raise ReasonletValidationError(problems)
    created = _time("created", line["created"])
    made = Reasonlet(
        line["id"],
        scope,
        line["question"],
        graph,
        line["intent"],
        line["name"],
        version,
        line["family"],
        line.get("parent_id"),
        provenance,
        Status(line["status"]),
        created,
        Metrics(0, 0, 0, 0, created),
    )
    times = [
        None if line.get(name) is None else _time(name, line[name]).timestamp()
        for name in ("pruned_last_run", "pruned_last_success")
    ]
    return Entry(made, _vector(line["vector"]), pruned, times[0], times[1], ())


def _id_problems(line: Mapping[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        if not is_id(line[name]):
            yield f"{name}: expected a UUIDv7 in lower case"


def _is_version(value: object) -> bool:
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


def _lineage_problems(entry: Entry, entries: Mapping[str, Entry]) -> Iterator[str]:
    """Problems of a parent. One is always older than its versions, so that no cycle can be."""
    made = entry.reasonlet
    if made.parent_id is None:
        return
    if made.parent_id >= made.id:
        yield "parent_id: expected the id of an older one"
    elif made.parent_id in entries and entries[made.parent_id].reasonlet.family != made.family:
        yield "parent_id: of another family"


def _run(line: Mapping[str, Any]) -> StoredRun:
    seconds = line.get("seconds")
    duration = None if seconds is None else timedelta(seconds=seconds)
    outcome = Outcome(line["success"], duration, line.get("score"))
    feedback = None if line.get("feedback") is None else Feedback(**line["feedback"])
    evaluator = line.get("evaluator")
    problems = [
        *_id_problems(line, "id"),
        *outcome.validate(),
        *(feedback.validate() if feedback is not None else ()),
        *(["evaluator: expected true or false"] if evaluator not in (None, True, False) else []),
    ]
    if problems:
        raise ReasonletValidationError(problems)
    at = _time("at", line["at"]).timestamp()
    return StoredRun(
        line["id"], Run(at, outcome, _provenance(line["provenance"]), evaluator), feedback
    )


def _provenance(value: Mapping[str, Any]) -> Provenance:
    made = Provenance(**value)
    problems = made.validate()
    if problems:
        raise ReasonletValidationError(f"provenance.{problem}" for problem in problems)
    return made


def _time(name: str, value: str) -> datetime:
    time = datetime.fromisoformat(value)
    if time.tzinfo is None:
        raise ReasonletValidationError([f"{name}: expected a time with an offset"])
    return as_time(time.timestamp())


def _vector(text: str) -> NDArray[np.float32]:
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
        return as_unit(data, "vector", None)
    except (binascii.Error, ValueError, InvalidArrayError):
        problem = "vector: expected base64 of finite float32 numbers that are not all zero"
    raise ReasonletValidationError([problem])

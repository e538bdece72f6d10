"""Procedures as JSON lines: with their runs, readable anywhere, and back.

::

    {"type": "reasonlets", "schema_version": 1, "dimension": 256, "embedder": "wordllama/256"}
    {"type": "reasonlet", "id": …, "scope": "tenant:acme", "question": …, "graph": {…}, …}
    {"type": "run", "id": …, "reasonlet": …, "at": "2026-03-01T12:00:00+00:00", …}

Runs follow their procedure. Counters are not written, but counted from the runs and ``pruned``.
They may stand behind the memories of the same file.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import numpy as np
from attrs import asdict, evolve
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError, ReasonletValidationError
from rankblend.stores._unit_vectors import as_unit
from rankblend.stores.procedures._capture import Outcome, Provenance
from rankblend.stores.procedures._checks import MAX_INTENT, MAX_NAME, MAX_REFERENCE, Checks
from rankblend.stores.procedures._graph import Graph
from rankblend.stores.procedures._protocol import Counts, Entry, Run, StoredRun, is_sound
from rankblend.stores.procedures._reasonlet import Feedback, Metrics, Reasonlet, Status
from rankblend.times import as_utc, is_id

SCHEMA_VERSION = 1
KINDS = ("reasonlets", "reasonlet", "run")
_VERSION = re.compile(r"1\.(0|[1-9][0-9]{0,8})")
T = TypeVar("T")


class ProcedureLines:
    """Lines of procedures as they are read, one by one, in the order of their file.

    Attributes:
        problems: What is wrong with those read so far, each with its place.
        damaged: The header is missing or of another version; what follows cannot be read.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.damaged = False
        self._header: Mapping[str, Any] | None = None
        self._entries: dict[str, Entry] = {}
        self._runs: dict[str, list[StoredRun]] = {}

    def read(self, where: str, kind: object, line: Mapping[str, Any]) -> None:
        """Read one line.

        Args:
            where: Its place, for problems.
            kind: One of `KINDS`; anything else is a problem.
            line: The rest of it.
        """
        if self.damaged:
            return
        if kind == "reasonlets":
            self._read_header(where, line)
        elif self._header is None:
            self.damaged = True
            self.problems.append(f"{where}: expected a header of the type reasonlets first")
        elif kind == "reasonlet":
            self._read_procedure(where, line)
        elif kind == "run":
            self._read_run(where, line)
        else:
            self.problems.append(f"{where}: type: expected reasonlets, reasonlet or run")

    @property
    def entries(self) -> list[Entry]:
        """The procedures with their runs."""
        embedder = (self._header or {}).get("embedder")
        return [
            evolve(entry, runs=tuple(self._runs.get(identifier, ())), embedder=embedder)
            for identifier, entry in self._entries.items()
        ]

    def _read_header(self, where: str, line: Mapping[str, Any]) -> None:
        if line.get("schema_version") != SCHEMA_VERSION:
            self.damaged = True
            self.problems.append(f"{where}: schema_version: expected {SCHEMA_VERSION}")
            return
        checks = Checks()
        checks.text("embedder", line.get("embedder"), limit=MAX_REFERENCE, optional=True)
        self.problems += [f"{where}: {problem}" for problem in checks.lines]
        if self._header is not None and self._header.get("embedder") != line.get("embedder"):
            self.problems.append(f"{where}: embedder: another header of this file says otherwise")
        self._header = line

    def _read_procedure(self, where: str, line: Mapping[str, Any]) -> None:
        entry = self._made(_entry, line, where)
        if entry is None:
            return
        if entry.reasonlet.id in self._entries:
            self.problems.append(f"{where}: id: on an earlier line, too")
            return
        self._entries[entry.reasonlet.id] = entry
        self.problems += (f"{where}: {told}" for told in _lineage_problems(entry, self._entries))

    def _read_run(self, where: str, line: Mapping[str, Any]) -> None:
        stored = self._made(_run, line, where)
        owner = line.get("reasonlet")
        if not isinstance(owner, str) or owner not in self._entries:
            self.problems.append(f"{where}: reasonlet: expected the id of one before this line")
        elif stored is not None:
            self._runs.setdefault(owner, []).append(stored)

    def _made(
        self, read: Callable[[Mapping[str, Any]], T], line: Mapping[str, Any], where: str
    ) -> T | None:
        """What a line says, or None with its problems noted."""
        try:
            return read(line)
        except ReasonletValidationError as error:
            self.problems += [f"{where}: {problem}" for problem in error.problems]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            # A KeyError names the field, which is ours; the others might repeat a value.
            told = f"{error.args[0]} is missing" if isinstance(error, KeyError) else "malformed"
            self.problems.append(f"{where}: {told}")
        return None


def procedure_lines(entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """A header, then each procedure with its runs."""
    header: dict[str, Any] = {"type": "reasonlets", "schema_version": SCHEMA_VERSION}
    if entries:
        header["dimension"] = len(entries[0].vector)
    yield _present(**header, embedder=entries[0].embedder if entries else None)
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
    return None if seconds is None else as_utc(seconds).isoformat()


def _entry(line: Mapping[str, Any]) -> Entry:
    graph = Graph.from_plain(line["graph"])
    provenance = _provenance(line["provenance"])
    checks = Checks()
    scope = checks.scope("scope", line["scope"])
    checks.question("question", line["question"])
    checks.text("intent", line["intent"], limit=MAX_INTENT)
    checks.text("name", line["name"], limit=MAX_NAME)
    for name in ("id", "family", *(["parent_id"] if line.get("parent_id") is not None else [])):
        _check_id(checks, name, line[name])
    version = line["version"]
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        checks.add("version", "expected 1.0, 1.1, …")
    if line["status"] not in set(Status):
        checks.add("status", "unknown")
    pruned = Counts(**line.get("pruned", {}))
    if not is_sound(pruned):
        checks.add("pruned", "expected counts that can be")
    checks.raise_if_any()
    assert scope is not None
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


def _check_id(checks: Checks, name: str, value: object) -> None:
    if not is_id(value):
        checks.add(name, "expected a UUIDv7 in lower case")


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
    checks = Checks()
    _check_id(checks, "id", line["id"])
    checks.extend("", outcome.validate())
    checks.extend("", () if feedback is None else feedback.validate())
    if evaluator not in (None, True, False):
        checks.add("evaluator", "expected true or false")
    checks.raise_if_any()
    at = _time("at", line["at"]).timestamp()
    return StoredRun(
        line["id"], Run(at, outcome, _provenance(line["provenance"]), evaluator), feedback
    )


def _provenance(value: Mapping[str, Any]) -> Provenance:
    made = Provenance(**value)
    checks = Checks()
    checks.part("provenance", made, Provenance)
    checks.raise_if_any()
    return made


def _time(name: str, value: str) -> datetime:
    time = datetime.fromisoformat(value)
    if time.tzinfo is None:
        raise ReasonletValidationError([f"{name}: expected a time with an offset"])
    return as_utc(time.timestamp())


def _vector(text: str) -> NDArray[np.float32]:
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
        return as_unit(data, "vector", None)
    except (binascii.Error, ValueError, InvalidArrayError):
        problem = "vector: expected base64 of finite float32 numbers that are not all zero"
    raise ReasonletValidationError([problem])

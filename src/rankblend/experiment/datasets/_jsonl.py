"""A data set of one's own: a folder of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from rankblend.errors import InvalidArgumentError, InvalidScopeError
from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery, judged, wrong_format
from rankblend.files import text_lines
from rankblend.relevance import Scope
from rankblend.values import is_number

_SHOWN = 10
_REQUIRED = {"memories": {"id", "text", "scope"}, "queries": {"id", "text", "scope", "relevant"}}
_ALLOWED = {
    "queries": _REQUIRED["queries"] | {"family", "cluster", "now"},
    "links": {"scope", "source", "target", "kind", "weight", "verified"},
}


def load_jsonl(path: str | PathLike[str]) -> Dataset:
    """Read a folder with ``memories.jsonl``, ``queries.jsonl`` and, if there are links, ``links.jsonl``.

    A line of ``memories.jsonl`` holds the arguments of `Memory.remember` (``id``, ``text`` and
    ``scope`` at least). A line of ``queries.jsonl`` holds ``id``, ``text``, ``scope`` and
    ``relevant`` (ids, or id → gain ≥ 0), and optionally ``family``, ``cluster`` (its own id when
    left out) and ``now`` (ISO 8601; UTC when it names no zone). A line of ``links.jsonl`` holds
    ``scope``, ``source``, ``target`` and optionally the other arguments of `Memory.link`.

    Raises:
        InvalidArgumentError: A file is missing, or lines are malformed, repeat an id or judge a
            memory that is not there; all of them, by file and line number.
    """
    folder = Path(path)
    if not all((folder / f"{name}.jsonl").is_file() for name in _REQUIRED):
        raise wrong_format("a data set", path, "a folder with memories.jsonl and queries.jsonl")
    problems: list[str] = []
    memories = list(_lines(folder / "memories.jsonl", _REQUIRED["memories"], None, problems))
    questions = list(
        _lines(folder / "queries.jsonl", _REQUIRED["queries"], _ALLOWED["queries"], problems)
    )
    source = folder / "links.jsonl"
    needed = {"scope", "source", "target"}
    links: dict[Scope, list[Mapping[str, Any]]] = {}
    for where, line in _lines(source, needed, _ALLOWED["links"], problems):
        try:
            scope = Scope.of(line.pop("scope"))
        except InvalidScopeError as error:
            problems.append(f"{where}: {error}")
            continue
        links.setdefault(scope, []).append({k: v for k, v in line.items() if v is not None})
    known = _distinct(memories, problems)
    _distinct(questions, problems)
    queries = [
        query for where, line in questions if (query := _query(where, line, known, problems))
    ]
    for where, line in memories:
        line["at"] = _time(where, line.get("at"), problems)
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InvalidArgumentError("; ".join(problems[:_SHOWN]) + more)
    return judged(
        folder.resolve().name,
        "your own",
        ({k: v for k, v in line.items() if v is not None} for _, line in memories),
        queries,
        links=links,
        lacking="no relevant memory",
        reach="subtree",
    )


def _lines(
    path: Path, required: set[str], allowed: set[str] | None, problems: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each well-formed line with where it stands; the others go into ``problems``."""
    if not path.is_file():
        return
    try:
        lines = list(text_lines(path))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path.name}: cannot be read ({type(error).__name__})")
        return
    for number, content in lines:
        where = f"{path.name} line {number}"
        try:
            line = json.loads(content)
        except ValueError:
            problems.append(f"{where}: not JSON")
            continue
        if not isinstance(line, dict):
            problems.append(f"{where}: expected an object")
        elif missing := required - line.keys():
            problems.append(f"{where}: {', '.join(sorted(missing))} missing")
        elif allowed is not None and (unknown := line.keys() - allowed):
            problems.append(f"{where}: unknown {', '.join(sorted(unknown))}")
        else:
            yield where, line


def _distinct(lines: list[tuple[str, dict[str, Any]]], problems: list[str]) -> set[str]:
    seen: set[str] = set()
    for where, line in lines:
        if not isinstance(line["id"], str) or not line["id"]:
            problems.append(f"{where}: id: expected text")
        elif line["id"] in seen:
            problems.append(f"{where}: id: stands on an earlier line")
        else:
            seen.add(line["id"])
    return seen


def _query(
    where: str, line: Mapping[str, Any], known: set[str], problems: list[str]
) -> JudgedQuery | None:
    relevant = line["relevant"]
    if isinstance(relevant, list):
        relevant = dict.fromkeys(map(str, relevant), 1.0)
    found = [] if isinstance(relevant, dict) else ["relevant: expected ids or id → gain"]
    gains = relevant if isinstance(relevant, dict) else {}
    if not all(is_number(gain) and gain >= 0 for gain in gains.values()):
        found.append("relevant: expected finite gains ≥ 0")
    if unknown := gains.keys() - known:
        found.append(f"relevant: {len(unknown)} ids are in no memory, first {min(unknown)!r}")
    if not isinstance(line["text"], str):
        found.append("text: expected text")
    try:
        scope = Scope.of(line["scope"])
    except InvalidScopeError as error:
        found.append(str(error))
    now = _time(where, line.get("now"), problems)
    if found:
        problems += [f"{where}: {problem}" for problem in found]
        return None
    return JudgedQuery(
        line["id"],
        line["text"],
        scope,
        {identifier: float(gain) for identifier, gain in gains.items()},
        _label(line.get("family"), ""),
        _label(line.get("cluster"), line["id"]),
        now,
    )


def _label(value: object, otherwise: str) -> str:
    """A label; null is not given."""
    return otherwise if value is None else str(value)


def _time(where: str, value: object, problems: list[str]) -> datetime | None:
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        problems.append(f"{where}: expected a time such as 2024-05-01T12:00:00Z")
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)

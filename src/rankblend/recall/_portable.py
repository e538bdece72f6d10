"""Memories as JSON lines: every revision and link of a file, readable anywhere, written back whole."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from rankblend.checks import Problems
from rankblend.errors import InvalidArgumentError, StoreError
from rankblend.files import text_lines, whole
from rankblend.recall import _arguments as arguments
from rankblend.recall._embedding import EMBEDDER
from rankblend.recall._items import Item, read_edge, read_item
from rankblend.recall._write import Batch
from rankblend.relevance import Scope
from rankblend.stores import FIELDS, Edge, Record
from rankblend.stores.catalog import CatalogProtocol, locate_file
from rankblend.stores.procedures import KINDS, ProcedureLines, entries_of, procedure_lines
from rankblend.times import as_utc_text

FORMAT = 1
_SHOWN_PROBLEMS = 20
_HEADER = ("format", "embedder", "dimension")
_ANY = Scope.parse("any:any")  # stands in for a scope that is missing, to find further problems


def export_lines(catalog: CatalogProtocol) -> Iterator[dict[str, Any]]:
    """Everything in a file: memories, their links, procedures with their runs.

    A header, then every revision of every memory in the order of its valid time, then links; then,
    where there are any, the header of procedures and each of them with its runs.
    """
    header = {
        "type": "rankblend", "format": FORMAT, "embedder": catalog.get_meta(EMBEDDER),
        "dimension": catalog.dimension,
    }  # fmt: skip
    yield {name: value for name, value in header.items() if value is not None}
    for current in catalog.iter_records():
        for record in catalog.revisions(current.key):
            yield {"type": "memory", **_plain(record)}
    for edge in catalog.iter_edges():
        yield {"type": "link", "scope": str(edge.scope), "source": edge.source,
               "target": edge.target, "kind": edge.kind, "weight": edge.weight,
               "verified": edge.verified,
               **({} if edge.at is None else {"at": as_utc_text(edge.at)})}  # fmt: skip
    with catalog.database.read() as connection:
        procedures = entries_of(connection)
    if procedures:
        yield from procedure_lines(procedures)


def write_lines(path: str | os.PathLike[str], lines: Iterator[dict[str, Any]]) -> int:
    """Write lines to a file: all of them under its name, or, when interrupted, no new file.

    Raises:
        InvalidArgumentError: The path is none, names a folder or lies in none.
        StoreError: The file cannot be written; none appeared.
    """
    count = 0
    try:
        with whole(locate_file(path)) as file:
            for line in lines:
                file.write((json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode())
                count += 1
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StoreError(f"{path}: cannot be written ({why}); no file was made") from error
    return count


def read_lines(
    path: str | os.PathLike[str],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Read JSON lines of memories and links; a line without ``type`` is a memory.

    Procedures in the file are left out.

    Returns:
        Arguments of `Memory.remember_many` items, and of `Memory.link` with their scope.

    Raises:
        InvalidArgumentError: The file cannot be read; lines that are no JSON objects or of an
            unknown type, with their numbers, all at once.
    """
    memories: list[Mapping[str, Any]] = []
    links: list[Mapping[str, Any]] = []
    problems = Problems()
    for here, kind, item in _parsed(path, problems):
        if kind == "memory":
            memories.append(item)
        elif kind == "link":
            links.append(item)
        elif kind not in KINDS and item.get("format") != FORMAT:
            here.add("", _unknown_format(item))
    problems.raise_if_any(most=_SHOWN_PROBLEMS)
    return memories, links


def read_batch(path: str | os.PathLike[str], now: float, scope: object = None) -> Batch:
    """Read JSON lines, exported or written by hand, and check all of them.

    Args:
        path: The file.
        now: Seconds since the epoch: when a memory without ``at`` is valid from.
        scope: Of lines that name none; None refuses those.

    Raises:
        InvalidArgumentError: The file cannot be read; every problem of every line, with the number
            of the line, in the order of the file.
    """
    problems = Problems()
    default = None if scope is None else arguments.read_scope(problems, "scope", scope)
    items: list[Item] = []
    edges: list[Edge] = []
    header: dict[str, Any] = {}
    procedures = ProcedureLines()
    for here, kind, line in _parsed(path, problems):
        if kind in KINDS:
            told = len(procedures.problems)
            procedures.read(here.lead.removesuffix(": "), kind, line)
            problems.extend("", procedures.problems[told:])
            continue
        if kind == "rankblend":
            _read_header(here, line, header)
            continue
        if "scope" not in line and scope is None:
            here.add("", "names no scope; give it one, or pass one for all such lines (--scope)")
        line.setdefault("scope", default if default is not None else _ANY)
        if kind == "memory":
            item = read_item(here, line, now=now)
            if item is not None:
                items.append(item)
        else:
            place = arguments.read_scope(here, "scope", line.pop("scope"))
            edge = read_edge(here, line, place)
            if edge is not None:
                edges.append(edge)
    problems.raise_if_any()
    return Batch(items, edges, header.get("embedder"), header.get("dimension"), procedures.entries)


def _parsed(
    path: str | os.PathLike[str], problems: Problems
) -> Iterator[tuple[Problems, str, dict[str, Any]]]:
    """What each line holds, with the view of the problems for it, and its kind.

    Lines that are no object of a known kind are noted as problems and left out.
    """
    try:
        lines = list(text_lines(path))
    except TypeError:
        raise InvalidArgumentError(f"path: expected a path, got {type(path).__name__}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
        raise InvalidArgumentError(f"{path}: cannot be read ({_told(error)})") from None
    for number, line in lines:
        here = problems.line(path, number)
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            here.add("", "expected a JSON object")
            continue
        if not isinstance(item, dict):
            here.add("", f"expected a JSON object, got {type(item).__name__}")
            continue
        kind = item.pop("type", "memory")
        if kind not in ("memory", "link", "rankblend", *KINDS):
            here.add("", f"unknown type {kind!r:.40}; expected memory or link")
            continue
        yield here, kind, _decoded(item)


def _read_header(problems: Problems, line: Mapping[str, Any], header: dict[str, Any]) -> None:
    """Enter what a header says; several, as of files joined into one, must say the same."""
    if line.get("format") != FORMAT:
        problems.add("", _unknown_format(line))
        return
    for name in (each for each in line if each not in _HEADER):
        problems.add(f"{name!s:.40}", "not known in a header")
    if line.get("embedder") is not None:
        problems.text("embedder", line["embedder"], limit=arguments.MAX_ID)
    problems.whole("dimension", line.get("dimension"), least=1, optional=True)
    for name in ("embedder", "dimension"):
        if header.setdefault(name, line.get(name)) != line.get(name):
            problems.add(name, "another header of this file says something else")


def _unknown_format(line: Mapping[str, Any]) -> str:
    return f"format {line.get('format')!r:.20} is not known; this version reads format {FORMAT}"


def _plain(record: Record) -> dict[str, Any]:
    held = [(each, getattr(record, each.name)) for each in FIELDS]
    values: dict[str, Any] = {
        "scope": str(record.scope),
        "id": record.id,
        **{each.argument: each.told(each.shown(value)) for each, value in held if each.says(value)},
    }
    if record.vector is not None:
        raw = np.ascontiguousarray(record.vector, "<f4").tobytes()
        values["vector"] = {"f32": base64.b64encode(raw).decode("ascii")}
    return values


def _decoded(item: dict[str, Any]) -> dict[str, Any]:
    vector = item.get("vector")
    if isinstance(vector, dict) and isinstance(vector.get("f32"), str):
        with suppress(ValueError):
            item["vector"] = np.frombuffer(base64.b64decode(vector["f32"], validate=True), "<f4")
    return item


def _told(error: Exception) -> str:
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else type(error).__name__

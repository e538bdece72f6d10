"""Memories as JSON lines: every revision and link of a file, readable anywhere, written back whole."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rankblend.errors import InvalidArgumentError
from rankblend.recall.arguments import as_datetime
from rankblend.stores.catalog import Catalog
from rankblend.stores.protocol import Record

__all__ = ["export_lines", "read_lines", "write_lines"]

FORMAT = 1
_SHOWN_PROBLEMS = 20


def export_lines(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """A header, then every revision of every memory in the order of its valid time, then links."""
    yield {"type": "rankblend", "format": FORMAT}
    for current in catalog.iter_records():
        for record in catalog.revisions(current.key):
            yield {"type": "memory", **_plain(record)}
    for edge in catalog.iter_edges():
        yield {"type": "link", "scope": str(edge.scope), "source": edge.source,
               "target": edge.target, "kind": edge.kind, "weight": edge.weight,
               "verified": edge.verified}  # fmt: skip


def write_lines(path: str | os.PathLike[str], lines: Iterator[dict[str, Any]]) -> int:
    """Write lines to a file: all of them under its name, or, when interrupted, no new file."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    count = 0
    try:
        with partial.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return count


def read_lines(
    path: str | os.PathLike[str],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Read JSON lines of memories and links; a line without ``type`` is a memory.

    Returns:
        Arguments of `Memory.remember_many` items, and of `Memory.link` with their scope.

    Raises:
        InvalidArgumentError: The file cannot be read; lines that are no JSON objects or of an
            unknown type, with their numbers, all at once.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read ({_told(error)})") from None
    memories: list[Mapping[str, Any]] = []
    links: list[Mapping[str, Any]] = []
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            problems.append(f"{path}:{number}: expected a JSON object")
            continue
        if not isinstance(item, dict):
            problems.append(f"{path}:{number}: expected a JSON object, got {type(item).__name__}")
            continue
        kind = item.pop("type", "memory")
        if kind == "memory":
            memories.append(_decoded(item))
        elif kind == "link":
            links.append(item)
        elif kind == "rankblend":
            if item.get("format") != FORMAT:
                problems.append(f"{path}:{number}: format {item.get('format')!r:.20} is not known; "
                                f"this version reads format {FORMAT}")  # fmt: skip
        else:
            problems.append(f"{path}:{number}: unknown type {kind!r:.40}; expected memory or link")
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        raise InvalidArgumentError(
            problems[:_SHOWN_PROBLEMS] + ([f"… and {more} more"] if more > 0 else [])
        )
    return memories, links


def _plain(record: Record) -> dict[str, Any]:
    values: dict[str, Any] = {
        "scope": str(record.scope), "id": record.id, "text": record.text, "layer": record.layer,
        "key": record.slot, "salience": record.salience, "confidence": record.confidence,
        "review": record.review, "maturity": record.maturity, "certainty": record.certainty,
        "at": _when(record.at), "expires": _when(record.expires),
        "metadata": dict(record.metadata) or None,
        "uses": record.uses or None, "used": _when(record.used),
        "links": [
            {"target": link.target, "kind": link.kind, "weight": link.weight,
             "verified": link.verified}
            for link in record.links
        ] or None,
    }  # fmt: skip
    if record.vector is not None:
        raw = np.ascontiguousarray(record.vector, "<f4").tobytes()
        values["vector"] = {"f32": base64.b64encode(raw).decode("ascii")}
    return {name: value for name, value in values.items() if value is not None}


def _decoded(item: dict[str, Any]) -> dict[str, Any]:
    vector = item.get("vector")
    if isinstance(vector, dict) and isinstance(vector.get("f32"), str):
        with suppress(ValueError):
            item["vector"] = np.frombuffer(base64.b64decode(vector["f32"], validate=True), "<f4")
    return item


def _when(seconds: float | None) -> str | None:
    moment = as_datetime(seconds)
    return None if moment is None else moment.isoformat()


def _told(error: Exception) -> str:
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else type(error).__name__

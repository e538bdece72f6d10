"""Reading what is to be written: memories and links from plain mappings, all problems at once."""

from __future__ import annotations

import json
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.recall import _arguments as arguments
from rankblend.recall._arguments import Problems
from rankblend.relevance import (
    CERTAINTY_LEVELS,
    MATURITY_LEVELS,
    REVIEW_LEVELS,
    Scope,
    named,
    shown,
)
from rankblend.stores import Edge, Key, Link, Record

_Reader = Callable[[Problems, str, Any], object]
_MANY_USES = 2**31
_ANY_MAPPING = (dict, Mapping)  # dict first: asking an abstract class takes ten times as long
_LINK = ("source", "target", "kind", "weight", "verified", "at")


@frozen(eq=False)
class Item:
    """A memory to write.

    Attributes:
        record: It, with the vector it brings, float32 of unit length, or None.
        where: What problems with it start with: ``items[3].``, ``file.jsonl:4: `` or nothing.
        dated: Whether it says itself since when it is valid.
    """

    record: Record
    where: str = ""
    dated: bool = True

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """The vector it brings."""
        return self.record.vector


def read_items(items: object, *, now: float, named: bool) -> list[Item]:
    """Mappings with the arguments of `Memory.remember` as records.

    Args:
        items: The mappings; one id may occur several times at one scope, as its revisions.
        now: Seconds since the epoch: when a memory without ``at`` is valid from.
        named: Say in problems which item they are in.

    Raises:
        InvalidArgumentError: Everything that is wrong with any of them.
    """
    problems = Problems()
    found = []
    given = list(_several(problems, "items", items))
    units = arguments.ordinary_vectors(
        [item.get("vector") if isinstance(item, _ANY_MAPPING) else None for item in given]
    )
    for position, (item, unit) in enumerate(zip(given, units, strict=True)):
        if not isinstance(item, _ANY_MAPPING):
            problems.add(f"items[{position}]: expected a mapping of the arguments of remember")
            continue
        where = f"items[{position}]." if named else ""
        read = read_item(problems, where, item, now=now, unit=unit)
        if read is not None:
            found.append(read)
    problems.raise_if_any()
    return found


def read_item(
    problems: Problems,
    where: str,
    item: Mapping[Any, Any],
    *,
    now: float,
    unit: NDArray[np.float32] | None = None,
) -> Item | None:
    """One mapping of `read_items`; None when something is wrong with it.

    ``unit`` is its vector, where `arguments.ordinary_vectors` has read it already.
    """
    before = len(problems.found)
    if not _ARGUMENTS.issuperset(item):
        for name in (name for name in item if name not in _ARGUMENTS):
            problems.add(f"{where}{named(name)}: no such argument of remember")
    if unit is None:
        unit = arguments.read_vector(problems, f"{where}vector", item.get("vector"))
    record = _read_record(problems, where, item, now=now, vector=unit)
    if record is None or len(problems.found) > before:
        return None
    return Item(record, where, dated=item.get("at") is not None)


def read_edges(links: object, scope: object) -> list[Edge]:
    """Mappings with the arguments of `Memory.link` as edges written at one scope.

    Raises:
        InvalidArgumentError: Everything that is wrong with any of them.
    """
    problems = Problems()
    where = arguments.read_scope(problems, "scope", scope)
    edges = []
    for position, item in enumerate(_several(problems, "links", links)):
        if not isinstance(item, Mapping) or not {"source", "target"} <= item.keys():
            problems.add(f"links[{position}]: expected a mapping with source and target")
            continue
        edge = read_edge(problems, f"links[{position}].", item, where)
        if edge is not None:
            edges.append(edge)
    problems.raise_if_any()
    return edges


def read_edge(
    problems: Problems, where: str, item: Mapping[Any, Any], scope: Scope | None
) -> Edge | None:
    """One mapping of `read_edges`; None when something is wrong with it or there is no scope."""
    before = len(problems.found)
    for unknown in (each for each in item if each not in _LINK):
        problems.add(f"{where}{named(unknown)}: no such property of a link")
    source, target = (
        problems.text(f"{where}{end}", item.get(end), limit=arguments.MAX_ID)
        for end in ("source", "target")
    )
    kind = problems.text(f"{where}kind", item.get("kind", "related"), limit=arguments.MAX_LABEL)
    weight = problems.weight(f"{where}weight", item.get("weight", 1.0))
    verified = item.get("verified", False)
    if not isinstance(verified, bool):
        problems.add(f"{where}verified: expected True or False")
    since = arguments.read_time(problems, f"{where}at", item.get("at"))
    if scope is None or len(problems.found) > before:
        return None
    return Edge(scope, source, target, kind, weight, bool(verified), since)


def _several(problems: Problems, name: str, given: object) -> Iterable[object]:
    if isinstance(given, Iterable) and not isinstance(given, str):
        return given
    problems.add(f"{name}: expected a sequence of mappings, got {type(given).__name__}")
    return ()


def _read_record(
    problems: Problems,
    where: str,
    item: Mapping[Any, Any],
    *,
    now: float,
    vector: NDArray[np.float32] | None,
) -> Record | None:
    """The arguments of one `remember` as a record, or None when something is wrong with them."""
    before, given = len(problems.found), item.get
    said: dict[str, Any] = {}
    for name, column, unsaid, read in _READERS:
        value = given(name, unsaid)
        if value is unsaid:
            if unsaid is not _REQUIRED:
                continue
            value = None
        said[column] = read(problems, where + name, value)
    if len(problems.found) > before:
        return None
    started = said.setdefault("at", now)
    said.setdefault("created", started)
    identifier = said.pop("id", None) or uuid.uuid4().hex
    return Record(Key(said.pop("scope"), identifier), vector=vector, **said)


def _read_text(limit: int) -> _Reader:
    def read(problems: Problems, name: str, value: object) -> str:
        return problems.text(name, value, limit=limit)

    return read


def _read_uses(problems: Problems, name: str, value: object) -> object:
    problems.integer(name, value, least=0)
    if isinstance(value, int) and value >= _MANY_USES:
        problems.add(f"{name}: expected fewer than {_MANY_USES:,}")
    return value


def _read_id(problems: Problems, name: str, value: object) -> str:
    identifier = problems.text(name, value, limit=arguments.MAX_ID)
    if not identifier.isprintable() and any(map(_is_control, identifier)):
        problems.add(f"{name}: control characters are not allowed")
    return identifier


def _read_label(levels: Iterable[str]) -> _Reader:
    known = tuple(levels)

    def read(problems: Problems, name: str, value: object) -> object:
        if not isinstance(value, str) or value not in known:
            problems.add(f"{name}: expected one of {', '.join(known)}, got {shown(value)}")
        return value

    return read


def _is_control(char: str) -> bool:
    return unicodedata.category(char) == "Cc"


def _read_links(problems: Problems, name: str, value: object) -> tuple[Link, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        problems.add(f"{name}: expected a sequence of ids or Links")
        return ()
    links = []
    for position, item in enumerate(value):
        link = Link(item) if isinstance(item, str) else item
        if isinstance(item, Mapping):
            try:
                link = Link(**item)
            except TypeError:
                problems.add(f"{name}[{position}]: expected target, kind, weight, verified")
                continue
        if not isinstance(link, Link):
            problems.add(f"{name}[{position}]: expected an id or a Link")
            continue
        problems.text(f"{name}[{position}].target", link.target, limit=arguments.MAX_ID)
        problems.text(f"{name}[{position}].kind", link.kind, limit=arguments.MAX_LABEL)
        problems.weight(f"{name}[{position}].weight", link.weight)
        if not isinstance(link.verified, bool):
            problems.add(f"{name}[{position}].verified: expected True or False")
        links.append(link)
    return tuple(links)


def _read_metadata(problems: Problems, name: str, value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(field, str) for field in value):
        problems.add(f"{name}: expected a mapping from names to JSON values")
        return {}
    try:
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        problems.add(f"{name}: expected JSON values (finite numbers, text, booleans, null, lists, "
                     "objects)")  # fmt: skip
        return {}
    if not problems.encodable(name, text):
        return {}
    copied: Mapping[str, object] = json.loads(text)
    return copied


_REQUIRED = object()

# Argument of `remember`, field of the record, what says nothing, and what reads anything else. Of
# many arguments few are given, and those that are not are only looked up.
_READERS: tuple[tuple[str, str, object, _Reader], ...] = (
    ("uses", "uses", None, _read_uses),
    ("used", "used", None, arguments.read_time),
    ("created", "created", None, arguments.read_time),
    ("text", "text", _REQUIRED, _read_text(arguments.MAX_TEXT)),
    ("scope", "scope", _REQUIRED, arguments.read_scope),
    ("id", "id", None, _read_id),
    ("layer", "layer", "semantic", _read_text(arguments.MAX_LABEL)),
    ("key", "slot", None, _read_text(arguments.MAX_ID)),
    ("salience", "salience", None, Problems.fraction),
    ("confidence", "confidence", None, Problems.fraction),
    ("review", "review", None, _read_label(REVIEW_LEVELS)),
    ("maturity", "maturity", None, _read_label(MATURITY_LEVELS)),
    ("certainty", "certainty", None, _read_label(CERTAINTY_LEVELS)),
    ("at", "at", None, arguments.read_time),
    ("expires", "expires", None, arguments.read_time),
    ("links", "links", (), _read_links),
    ("metadata", "metadata", None, _read_metadata),
)
_ARGUMENTS = frozenset({"vector", *(name for name, *_ in _READERS)})

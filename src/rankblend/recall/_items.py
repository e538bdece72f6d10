"""Reading what is to be written: memories and links from plain mappings, all problems at once."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.checks import At, Problems, Rule
from rankblend.recall import _arguments as arguments
from rankblend.relevance import (
    CERTAINTY_LEVELS,
    MATURITY_LEVELS,
    REVIEW_LEVELS,
    Scope,
)
from rankblend.stores import Edge, Key, Link, Record
from rankblend.values import named

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
            problems.add(("items", position), "expected a mapping of the arguments of remember")
            continue
        here = problems.at("items", position) if named else problems.at()
        read = read_item(here, item, now=now, unit=unit)
        if read is not None:
            found.append(read)
    problems.raise_if_any()
    return found


def read_item(
    problems: Problems,
    item: Mapping[Any, Any],
    *,
    now: float,
    unit: NDArray[np.float32] | None = None,
) -> Item | None:
    """One mapping of `read_items`; None when something is wrong with it.

    ``problems`` are its own view of them, made for it; ``unit`` is its vector, where `arguments.ordinary_vectors` has read it already.
    """
    if not _ARGUMENTS.issuperset(item):
        for name in (name for name in item if name not in _ARGUMENTS):
            problems.add(named(name), "no such argument of remember")
    if unit is None:
        unit = arguments.read_vector(problems, "vector", item.get("vector"))
    said: dict[str, Any] = {}
    for name, column, unsaid, read in _READERS:
        value = item.get(name, unsaid)
        if value is not unsaid:
            said[column] = read(problems, name, value)
        elif unsaid is _REQUIRED:
            read(problems, name, None)
    if not problems.clean:
        return None
    started = said.setdefault("at", now)
    said.setdefault("created", started)
    key = Key(said.pop("scope"), said.pop("id", None) or uuid.uuid4().hex)
    record = Record(key, vector=unit, **said)
    return Item(record, problems.lead, dated=item.get("at") is not None)


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
            problems.add(("links", position), "expected a mapping with source and target")
            continue
        edge = read_edge(problems.at("links", position), item, where)
        if edge is not None:
            edges.append(edge)
    problems.raise_if_any()
    return edges


def read_edge(problems: Problems, item: Mapping[Any, Any], scope: Scope | None) -> Edge | None:
    """One mapping of `read_edges`; None when something is wrong with it or there is no scope."""
    for unknown in (each for each in item if each not in _LINK):
        problems.add(named(unknown), "no such property of a link")
    source, target = (
        problems.text(end, item.get(end), limit=arguments.MAX_ID) for end in ("source", "target")
    )
    kind = problems.text("kind", item.get("kind", "related"), limit=arguments.MAX_LABEL)
    weight = problems.number("weight", item.get("weight", 1.0), above=0.0, most=1.0)
    verified = problems.flag("verified", item.get("verified", False))
    since = problems.time("at", item.get("at"), optional=True)
    if scope is None or not problems.clean:
        return None
    return Edge(scope, source, target, kind, weight, verified, since)


def _several(problems: Problems, name: str, given: object) -> Iterable[object]:
    if isinstance(given, Iterable) and not isinstance(given, str):
        return given
    problems.add(name, f"expected a sequence of mappings, got {type(given).__name__}")
    return ()


def _read_uses(problems: Problems, at: At, value: object) -> int:
    return problems.whole(at, value, least=0, most=_MANY_USES - 1)


def _read_id(problems: Problems, at: At, value: object) -> str:
    identifier = problems.text(at, value, limit=arguments.MAX_ID)
    if not identifier.isprintable() and any(map(_is_control, identifier)):
        problems.add(at, "control characters are not allowed")
    return identifier


def _is_control(char: str) -> bool:
    return unicodedata.category(char) == "Cc"


def _read_links(problems: Problems, at: At, value: object) -> tuple[Link, ...]:
    links = []
    for position, item in enumerate(problems.sequence(at, value, "ids or Links")):
        here = problems.at(str(at), position)
        link = Link(item) if isinstance(item, str) else item
        if isinstance(item, Mapping):
            try:
                link = Link(**item)
            except TypeError:
                here.add("", "expected target, kind, weight, verified")
                continue
        if not isinstance(link, Link):
            here.add("", "expected an id or a Link")
            continue
        target = here.text("target", link.target, limit=arguments.MAX_ID)
        kind = here.text("kind", link.kind, limit=arguments.MAX_LABEL)
        weight = here.number("weight", link.weight, above=0.0, most=1.0)
        links.append(Link(target, kind, weight, here.flag("verified", link.verified)))
    return tuple(links)


_REQUIRED = object()

# Argument of `remember`, field of the record, what says nothing, and what reads anything else. Of
# many arguments few are given, and those that are not are only looked up.
_TIME = partial(Problems.time, optional=True)
_FRACTION = partial(Problems.unit, optional=True)
_LABEL = partial(Problems.text, limit=arguments.MAX_LABEL)
_READERS: tuple[tuple[str, str, object, Rule], ...] = (
    ("uses", "uses", None, _read_uses),
    ("used", "used", None, _TIME),
    ("created", "created", None, _TIME),
    ("text", "text", _REQUIRED, partial(Problems.text, limit=arguments.MAX_TEXT)),
    ("scope", "scope", _REQUIRED, arguments.read_scope),
    ("id", "id", None, _read_id),
    ("layer", "layer", "semantic", _LABEL),
    ("key", "slot", None, partial(Problems.text, limit=arguments.MAX_ID)),
    ("salience", "salience", None, _FRACTION),
    ("confidence", "confidence", None, _FRACTION),
    ("review", "review", None, partial(Problems.choice, choices=REVIEW_LEVELS)),
    ("maturity", "maturity", None, partial(Problems.choice, choices=MATURITY_LEVELS)),
    ("certainty", "certainty", None, partial(Problems.choice, choices=CERTAINTY_LEVELS)),
    ("at", "at", None, _TIME),
    ("expires", "expires", None, _TIME),
    ("links", "links", (), _read_links),
    ("metadata", "metadata", None, Problems.metadata),
)
_ARGUMENTS = frozenset({"vector", *(name for name, *_ in _READERS)})

"""Memories, links and edges as stores see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, overload

import numpy as np
from attrs import asdict, field, fields, frozen
from numpy.typing import NDArray

from rankblend.relevance import CERTAINTY_LEVELS, MATURITY_LEVELS, REVIEW_LEVELS, Scope
from rankblend.stores._fields import (
    COUNT,
    FRACTION,
    JSON,
    NAME,
    TEXT,
    TIME,
    Field,
    Json,
    Level,
    Text,
    declared,
    dump_json,
    fields_of,
    read_json,
)
from rankblend.values import is_number


@frozen(order=True)
class Key:
    """What identifies a memory: its id at its scope. The same id may exist at several scopes."""

    scope: Scope = field(order=attrgetter("path"))
    id: str


@frozen(eq=False)
class Keys(Sequence[Key]):
    """Keys, n of them, made when somebody looks at one.

    Args:
        scopes: Where they belong, each scope once.
        codes: Which of the scopes each one's is.
        ids: Their ids.
    """

    scopes: Sequence[Scope]
    codes: Sequence[int]
    ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[type[Keys], tuple[object, ...]]:
        """A copy has the scopes of its own keys only."""
        own = {code: at for at, code in enumerate(sorted(set(self.codes)))}
        scopes = tuple(self.scopes[code] for code in own)
        return Keys, (scopes, [own[code] for code in self.codes], self.ids)

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> Keys: ...
    def __getitem__(self, index: int | slice) -> Key | Keys:
        if isinstance(index, slice):
            return Keys(self.scopes, self.codes[index], self.ids[index])
        return Key(self.scopes[self.codes[index]], self.ids[index])


@frozen
class Link:
    """A link from a memory to another memory or to a named entity.

    Args:
        target: Id of a memory, or the name of an entity.
        kind: What the link means; ``equivalent`` links that are verified collapse duplicates.
        weight: Strength in (0, 1].
        verified: Somebody or something checked it.
    """

    target: str
    kind: str = "related"
    weight: float = 1.0
    verified: bool = False


def _as_scope(value: Scope | str) -> Scope:
    return Scope.of(value)


@frozen
class Edge:
    """A connection between two nodes, written at a scope and visible to whoever sees that scope.

    A node is the id of a memory or the name of an entity. Scope, source, target and kind identify
    an edge; kind and direction are kept, walks go both ways.

    Args:
        scope: Where it was written, or its text.
        source, target: Its ends.
        kind: What it means, e.g. ``born in``.
        weight: Strength in (0, 1].
        verified: Somebody or something checked it.
        at: Since when it holds, seconds since the epoch (UTC); None = always.
    """

    scope: Scope = field(converter=_as_scope)
    source: str
    target: str
    kind: str = "related"
    weight: float = 1.0
    verified: bool = False
    at: float | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Scope path, source, target and kind."""
        return self.scope.path, self.source, self.target, self.kind

    @property
    def digest(self) -> int:
        """64 bits of a digest of the identity, as a signed integer: who knows the edge knows it."""
        parts = "\0".join(self.identity).encode()
        return int.from_bytes(blake2b(parts, digest_size=8).digest(), "little", signed=True)


class Links(Json):
    """Links, kept as lists of their parts."""

    def sound(self, values: Sequence[Any]) -> bool:
        """`Kind.sound`."""
        return not any(values) and set(map(type, values)) == {tuple}

    def wrong(self, value: Any) -> list[str]:
        """`Kind.wrong`."""
        if not isinstance(value, tuple | list) or {type(link) for link in value} - {Link}:
            return [": expected a tuple of Link"]
        rest = "expected a target and kind that are not blank, and a weight in (0, 1]"
        return [f"[{place}]: {rest}" for place, link in enumerate(value) if not _is_sound(link)]

    def encode(self, value: Any) -> str | None:
        """`Kind.encode`."""
        if not value:
            return None
        return dump_json(
            [[link.target, link.kind, float(link.weight), link.verified] for link in value]
        )

    def decode(self, values: Sequence[Any]) -> list[Any]:
        """`Kind.decode`."""
        return [() if text is None else _links(text) for text in values]

    def told(self, shown: Any) -> Any:
        """`Kind.told`."""
        return [asdict(link) for link in shown]


LINKS = Links()


def is_weight(value: object) -> bool:
    """Whether it is a strength: a number in (0, 1]."""
    return is_number(value) and 0 < value <= 1


def _is_sound(link: Link) -> bool:
    return not (NAME.wrong(link.target) or NAME.wrong(link.kind)) and (
        is_weight(link.weight) and type(link.verified) is bool
    )


def _links(text: str) -> tuple[Link, ...]:
    links = tuple([Link(*link) for link in read_json(text)])
    if not all(map(_is_sound, links)):
        raise ValueError("a link that cannot have been written")
    return links


@frozen(eq=False)
class Record:
    """One memory as stores see it: the latest revision, with everything that may be indexed.

    Args:
        key: Scope and id.
        text: What is remembered.
        serial: Small non-negative integer, unique per key for the life of the catalog; indexes into
            ``StoreQuery.admitted``.
        layer: ``semantic``, ``episodic``, ``procedural``, ``working`` or the user's own.
        vector: float32, shape (d,), unit length; None when the memory has no embedding.
        links: Outgoing links.
        created, at, used: Seconds since the epoch (UTC): first written, valid from, last reinforced
            (None = never).
        uses: Times it was reinforced.
        salience, confidence: In [0, 1] or None.
        review, maturity, certainty: Labels of the evidence vocabulary, or None.
        slot: The memory's ``key`` argument: memories about the same thing share it (layer policy
            ``shadow``).
        expires: Seconds since the epoch, or None.
        metadata: JSON values.
    """

    key: Key
    text: str = field(metadata=declared(TEXT))
    serial: int = -1
    layer: str = field(default="semantic", metadata=declared(Text(dtype=np.int16)))
    slot: str | None = field(default=None, metadata=declared(Text(dtype=np.int32), argument="key"))
    salience: float | None = field(default=None, metadata=declared(FRACTION))
    confidence: float | None = field(default=None, metadata=declared(FRACTION))
    review: str | None = field(default=None, metadata=declared(Level(REVIEW_LEVELS)))
    maturity: str | None = field(default=None, metadata=declared(Level(MATURITY_LEVELS)))
    certainty: str | None = field(default=None, metadata=declared(Level(CERTAINTY_LEVELS)))
    created: float = field(default=0.0, metadata=declared(TIME, revised=False))
    at: float = field(default=0.0, metadata=declared(TIME))
    expires: float | None = field(default=None, metadata=declared(TIME))
    metadata: Mapping[str, object] = field(factory=dict, metadata=declared(JSON))
    uses: int = field(default=0, metadata=declared(COUNT, revised=False))
    used: float | None = field(default=None, metadata=declared(TIME, revised=False))
    links: tuple[Link, ...] = field(default=(), metadata=declared(LINKS))
    vector: NDArray[np.float32] | None = field(default=None)

    @property
    def id(self) -> str:
        """The id, unique at its scope."""
        return self.key.id

    @property
    def scope(self) -> Scope:
        """Where it is stored."""
        return self.key.scope


FIELDS: tuple[Field, ...] = fields_of(fields(Record))
"""The fields of a memory, in the order in which a line of JSON says them."""
LABELS: Mapping[str, Mapping[str, float]] = {
    each.name: each.kind.levels for each in FIELDS if isinstance(each.kind, Level)
}
"""The fields that hold one of a few labels, and the value in [0, 1] of each label."""

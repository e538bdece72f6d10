"""Memories, links and edges as stores see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import overload

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.relevance import Scope


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
    text: str
    serial: int = -1
    layer: str = "semantic"
    vector: NDArray[np.float32] | None = None
    links: tuple[Link, ...] = ()
    created: float = 0.0
    at: float = 0.0
    used: float | None = None
    uses: int = 0
    salience: float | None = None
    confidence: float | None = None
    review: str | None = None
    maturity: str | None = None
    certainty: str | None = None
    slot: str | None = None
    expires: float | None = None
    metadata: Mapping[str, object] = field(factory=dict)

    @property
    def id(self) -> str:
        """The id, unique at its scope."""
        return self.key.id

    @property
    def scope(self) -> Scope:
        """Where it is stored."""
        return self.key.scope

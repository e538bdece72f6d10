"""Scopes: who a memory belongs to, as a root-first path, and who may see it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property, lru_cache

from attrs import field, frozen

from rankblend.errors import InvalidScopeError

MAX_LEVELS = 64
_ESCAPES = {"%": "%25", "/": "%2F", ":": "%3A"}
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})?")


@frozen(order=True)
class ScopeLevel:
    """One level of a scope, e.g. kind ``tenant`` and id ``acme``; neither part may be blank."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{_escape(self.kind)}:{_escape(self.id)}"


def _as_levels(levels: Iterable[ScopeLevel | tuple[str, str]]) -> tuple[ScopeLevel, ...]:
    try:
        found = tuple(levels)
        if any(isinstance(level, str) for level in found):  # "ab" is no pair of "a" and "b"
            raise TypeError
        return tuple(
            level if isinstance(level, ScopeLevel) else ScopeLevel(*level) for level in found
        )
    except TypeError:
        raise InvalidScopeError(
            "scope: expected levels or (kind, id) pairs; for text use Scope.parse"
        ) from None


@frozen(slots=False, cache_hash=True)
class Scope:
    """A root-first path of levels: tenant, then user, then session.

    A query at scope Q sees a memory stored at scope M iff M's levels are a prefix of Q's, compared
    element by element: ``tenant:acme`` never sees ``tenant:acme-corp``. Whoever stands deeper sees
    what was written above; never the reverse, never a sibling.

    Args:
        levels: 1 to 64 levels (or ``(kind, id)`` pairs) with distinct kinds. Names are compared
            code point by code point and are not normalized: look-alikes are different scopes.

    Raises:
        InvalidScopeError: Empty, too deep, a kind twice, a blank part, a control character or a
            lone surrogate.

    Example:
        >>> scope = Scope.parse("tenant:acme/user:7/session:9")
        >>> scope.distance(Scope.parse("tenant:acme"))
        2
        >>> scope.parent.distance(scope)
        -1
    """

    levels: tuple[ScopeLevel, ...] = field(converter=_as_levels)

    def __attrs_post_init__(self) -> None:
        _check(self.levels)

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read ``kind:id/kind:id/…``; ``%``, ``/`` and ``:`` inside a part are percent-escaped.

        ``Scope.parse(str(scope)) == scope`` for every scope.

        Raises:
            InvalidScopeError: The text is not such a path.
        """
        if not isinstance(text, str):
            raise InvalidScopeError(
                f"scope: expected text such as 'tenant:acme/user:7', got {type(text).__name__}"
            )
        return _parsed(text)

    @classmethod
    def of(cls, value: Scope | str) -> Scope:
        """The scope itself, or the text parsed."""
        return value if isinstance(value, Scope) else cls.parse(value)

    def __str__(self) -> str:
        return "/".join(map(str, self.levels))

    def __len__(self) -> int:
        return len(self.levels)

    def __truediv__(self, level: str) -> Scope:
        """The scope one or more levels below: ``acme / "session:9"``."""
        return Scope(self.levels + Scope.parse(level).levels)

    @cached_property
    def path(self) -> str:
        """The storage key: ``str(self) + "/"``.

        The final separator makes every subtree one contiguous key range in code point order:
        exactly the paths that start with ``scope.path``. ``a:1/`` is not a prefix of ``a:10/``.
        """
        return f"{self}/"

    @property
    def root(self) -> Scope:
        """The scope of the first level alone, e.g. the tenant."""
        return self._upper(1)

    @property
    def parent(self) -> Scope | None:
        """The scope one level up, or None at the root."""
        return self._upper(len(self.levels) - 1) if len(self.levels) > 1 else None

    def ancestors(self) -> tuple[Scope, ...]:
        """Every scope visible from here, nearest first: the scope itself, its parent, …, the root."""
        return (self, *(self._upper(n) for n in range(len(self.levels) - 1, 0, -1)))

    def _upper(self, depth: int) -> Scope:
        """The scope of the first levels; they were checked, so they are not checked again."""
        scope = object.__new__(Scope)
        object.__setattr__(scope, "levels", self.levels[:depth])
        object.__setattr__(scope, "_attrs_cached_hash", None)
        return scope

    def distance(self, memory: Scope | str) -> int:
        """How many levels up the memory's scope lies: 0 at the same scope, −1 when not visible."""
        levels = Scope.of(memory).levels
        depth = len(levels)
        return len(self.levels) - depth if self.levels[:depth] == levels else -1

    def contains(self, other: Scope | str) -> bool:
        """Whether ``other`` is this scope or lies below it."""
        return Scope.of(other).levels[: len(self.levels)] == self.levels


@lru_cache(maxsize=1024)  # one text is parsed for every memory written at a scope
def _parsed(text: str) -> Scope:
    levels = []
    for position, part in enumerate(text.split("/"), start=1):
        kind, separator, identifier = part.partition(":")
        if not separator or ":" in identifier:
            raise InvalidScopeError(
                f"scope level {position}: expected kind:id with one colon, e.g. 'tenant:acme'; "
                "write % / : inside a name as %25 %2F %3A"
            )
        levels.append(ScopeLevel(_unescape(kind, position), _unescape(identifier, position)))
    return Scope(tuple(levels))


def _check(levels: tuple[ScopeLevel, ...]) -> None:
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise InvalidScopeError(f"scope: expected 1 to {MAX_LEVELS} levels, got {len(levels)}")
    seen: set[str] = set()
    for position, level in enumerate(levels, start=1):
        for name, part in (("kind", level.kind), ("id", level.id)):
            where = f"scope level {position}: {name}"
            if not isinstance(part, str):
                raise InvalidScopeError(f"{where}: expected text, got {type(part).__name__}")
            if not part.strip():
                raise InvalidScopeError(f"{where} is blank")
            if any(unicodedata.category(char) in ("Cc", "Cs") for char in part):
                raise InvalidScopeError(
                    f"{where}: control characters and lone surrogates are not allowed"
                )
        if level.kind in seen:
            raise InvalidScopeError(
                f"scope level {position}: kind {level.kind!r} occurs twice; kinds are unique"
            )
        seen.add(level.kind)


def _escape(part: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in part)


def _unescape(part: str, position: int) -> str:
    def decode(match: re.Match[str]) -> str:
        decoded = chr(int(match[1], 16)) if match[1] else ""
        if decoded not in _ESCAPES:
            raise InvalidScopeError(
                f"scope level {position}: only %25, %2F and %3A are escapes; write % as %25"
            )
        return decoded

    return _ESCAPED.sub(decode, part)

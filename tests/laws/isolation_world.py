"""Hundreds of scopes that are easily confused, and a dictionary that knows who sees what of them."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Sequence

from attrs import frozen

import rankblend as rb

__all__ = ["HOME", "IDS", "SCOPES", "STRANGERS", "Kept", "seen_from"]

IDS = ("x", "y", "X", "é", "e\u0301", "x/y", "tenant:acme/", "%", "ｘ", "x ", "\u200bx")

# Each is another tenant, because of one confusion: a shorter or longer name, separators and escapes
# inside a name, wild cards, case, spaces, look-alikes, forms of normalization, invisible characters.
_ROOT_NAMES = (
    "acme", "acm", "acme-corp", "acme2", "acme/user:7", "acme%2Fuser%3A7", "acme/", "acme:", "acme%",
    "acme*", "acme_", "acm_", "a%", "*", "_", "%", "ACME", "Acme", "acme ", " acme", "acme\u00a0",
    "аcme", "ａｃｍｅ", "acme\u0301", "acm\u00e9", "acme\u200b", "acme\u202e", "acme\ufeff", "acme.",
    "ácme", "a\u0301cme", "acme'", 'acme"', "acme\\", "acme--", "acme😀", "ﬁ", "fi", "ß", "ss", "İ", "i",
    "K", "\u212a", "Å", "\u212b", "ſ", "s", "acme/user:7/session:9", "acme/user:7/", "x" * 300,
)  # fmt: skip
_USERS = ("7", "70", "07", "7 ", "７", "7/session:9", "7%2Fsession%3A9", "seven")
_SESSIONS = ("9", "90", "９")


def _scope(*levels: tuple[str, str]) -> rb.Scope:
    return rb.Scope(levels)


def _all() -> Iterable[rb.Scope]:
    for name in _ROOT_NAMES:
        root = ("tenant", name)
        yield _scope(root)
        for user in _USERS if name == "acme" else _USERS[:3]:
            yield _scope(root, ("user", user))
            for session in _SESSIONS:
                yield _scope(root, ("user", user), ("session", session))
    yield _scope(("user", "7"))  # a level left out, changed, in another order, of another kind
    yield _scope(("user", "7"), ("tenant", "acme"))
    yield _scope(("tenant", "acme"), ("session", "9"))
    yield _scope(("tenant", "acme"), ("User", "7"))
    yield _scope(("Tenant", "acme"), ("user", "7"))
    yield _scope(("tenant", "acme"), ("user", "7"), ("session", "9"), ("task", "1"))


SCOPES: tuple[rb.Scope, ...] = tuple(_all())
HOME: tuple[rb.Scope, ...] = (
    _scope(("tenant", "acme")),
    _scope(("tenant", "acme"), ("user", "7")),
    _scope(("tenant", "acme"), ("user", "7"), ("session", "9")),
    _scope(("tenant", "acme"), ("user", "70")),
)
STRANGERS: tuple[rb.Scope, ...] = tuple(each for each in SCOPES if each.root != HOME[0])
assert len(set(SCOPES)) == len(SCOPES) > 500
assert any(unicodedata.normalize("NFKC", a) == b for a, b in itertools.permutations(_ROOT_NAMES, 2))


@frozen
class Kept:
    """What the dictionary knows of a memory; the token occurs in no other text."""

    text: str
    token: str
    layer: str = "semantic"
    key: str | None = None
    expired: bool = False


def seen_from(
    held: dict[tuple[rb.Scope, str], Kept], asked: Sequence[rb.Scope], *, below: bool = False
) -> dict[str, tuple[rb.Scope, int]]:
    """Id → where the memory that is seen is stored, and how far up.

    Level by level and without any index: expired ones are out; working memories are seen at their
    own scope only, and like procedural ones never from above; of one id the nearest is seen, then
    the first-named scope's; of procedural ones with one key the nearest.
    """
    best: dict[str, tuple[int, int, str, rb.Scope]] = {}
    for (where, identifier), kept in held.items():
        up = [(d, i) for i, own in enumerate(asked) if (d := own.distance(where)) >= 0]
        down = [i for i, own in enumerate(asked) if below and own.contains(where)]
        if kept.layer in ("working", "procedural"):
            down = [i for i in down if up]
            if kept.layer == "working" and where not in asked:
                continue
        if kept.expired or not (up or down):
            continue
        distance = 0 if down else min(d for d, _ in up)
        rank = (distance, min([i for _, i in up] + down), where.path, where)
        best[identifier] = min(best.get(identifier, rank), rank, key=lambda r: r[:3])
    nearest: dict[str, int] = {}
    away: dict[str, int] = {}
    for identifier, (*_, where) in best.items():
        kept = held[where, identifier]
        if kept.layer == "procedural" and kept.key is not None:
            away[identifier] = min(own.distance(where) for own in asked if own.distance(where) >= 0)
            nearest[kept.key] = min(nearest.get(kept.key, 99), away[identifier])
    return {
        identifier: (where, distance)
        for identifier, (distance, _, _, where) in best.items()
        if identifier not in away or away[identifier] == nearest[held[where, identifier].key or ""]
    }

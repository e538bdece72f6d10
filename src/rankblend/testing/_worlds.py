"""The memories the kit asks every store about: few, but at scopes that are easy to confuse."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores import Key, Link, Record, Seed, StoreQuery

NOW = 1_700_000_000.0
_DAY = 86_400.0

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"
HOME = USER / "session:1"
BELOW = HOME / "task:3"

# Not visible from HOME, each because of one confusion: a longer name, another case, a separator or
# an escape inside a name, a letter that only looks the same, another kind, a missing level.
LOOKALIKES: tuple[Scope, ...] = (
    TENANT / "user:70",
    TENANT / "user:8",
    USER / "session:10",
    USER / "session:01",
    USER / "room:1",
    TENANT / "session:1",
)
OTHER_ROOTS: tuple[Scope, ...] = (
    Scope.parse("tenant:acme-corp"),
    Scope.parse("tenant:acme-corp/user:7/session:1"),
    Scope.parse("tenant:acm"),
    Scope.parse("tenant:ACME"),
    Scope((("tenant", "acme/user:7"),)),
    Scope((("tenant", "acme%2Fuser%3A7"),)),
    Scope((("tenant", "acme/user:7/session:1"),)),
    Scope((("tenant", "acme "),)),
    Scope((("tenant", "аcme"),)),  # Cyrillic а
    Scope((("tenant", "ａｃｍｅ"),)),  # full width
    Scope.parse("user:7/session:1"),
)

CUE = ("refund", "transfer", "approval", "customer")
_FILLERS = ("garden", "violin", "harbor", "meadow", "lantern", "copper", "walnut", "glacier")

ODD_IDS: tuple[str, ...] = (
    "返金",
    "😀👩‍👩‍👧",
    "\u00e9t\u00e9",
    "e\u0301te\u0301",
    "שלום",
    "a'; DROP TABLE memories; --",
    "%",
    "_",
    "*",
    "tab\tand\nline",
    "nul\x00inside",
    " padded ",
    "tenant:acme/user:7/session:1/",
    "x" * 300,
)
ODD_TEXTS: tuple[str, ...] = (
    "返金は銀行振込でお願いします",
    "😀 refund 👩‍👩‍👧 transfer",
    "cafe\u0301 refund na\u0308ive",
    "החזר כספי refund",
    "धनवापसी की स्वीकृति",
    "nul\x00inside refund",
    "\u202erefund\u202c \ufeff transfer",
    "",
    "!!! ???",
    "refund " * 2000,
)


def unit_vector(values: Iterable[float]) -> NDArray[np.float32]:
    """float32, unit length, read-only."""
    array = np.fromiter(values, dtype=np.float64)
    length = np.sqrt(np.einsum("i,i->", array, array))
    vector: NDArray[np.float32] = (array / length).astype(np.float32)
    vector.flags.writeable = False
    return vector


def memory(
    scope: Scope,
    name: str,
    hits: int,
    *,
    number: int = 0,
    dimension: int = 8,
    links: tuple[str, ...] = (),
) -> Record:
    """A memory that matches the cue in ``hits`` of 4 words, and as much more in everything else.

    Memories with equal ``hits`` and ``number`` are equal in all but id and scope.
    """
    fillers = [_FILLERS[(number + step) % len(_FILLERS)] for step in range(5 - hits)]
    direction = np.zeros(dimension)
    direction[0] = hits
    direction[1 + number % (dimension - 1)] += 5 - hits
    return Record(
        Key(scope, name),
        " ".join((*CUE[:hits], *fillers)),
        vector=unit_vector(direction),
        links=tuple(Link(target) for target in links),
        created=NOW - 90 * _DAY,
        at=NOW - (40 - 8 * hits) * _DAY,
        used=NOW - (20 - 4 * hits) * _DAY if hits else None,
        uses=hits,
        salience=(1 + hits) / 8,
        confidence=(2 + hits) / 8,
        review=("flagged", "unreviewed", "confirmed")[hits // 2],
        maturity=("provisional", "settled")[hits % 2],
        certainty=("inferred", "stated")[hits % 2],
        metadata={"hits": hits, "nested": {"list": [1, 2]}},
    )


def standard_world(dimension: int = 8) -> list[Record]:
    """15 memories visible from HOME at three levels, two below it, one at each look-alike.

    Ids neither ascend with strength nor with the order of the list. The first memory of each scope
    links to the others there and to the first one a level up, so that a walk from ``home-m``
    reaches all of them.
    """
    chosen: list[Record] = []
    above: tuple[str, ...] = ()
    for scope, label, names, hits in (
        (TENANT, "tenant", "mdatgq", (1, 3, 0, 2, 4, 2)),
        (USER, "user", "mzbkf", (2, 1, 4, 0, 3)),
        (HOME, "home", "mxcu", (1, 3, 0, 2)),
        (BELOW, "below", "mb", (4, 2)),
    ):
        ids = tuple(f"{label}-{name}" for name in names)
        for number, (name, hit) in enumerate(zip(ids, hits, strict=True)):
            links = (*above, *ids[1:]) if number == 0 else ()
            chosen.append(memory(scope, name, hit, number=number, dimension=dimension, links=links))
        above = ids[:1]
    hidden = [
        memory(scope, f"hidden-{number:02}", 3, number=number, dimension=dimension)
        for number, scope in enumerate((*LOOKALIKES, *OTHER_ROOTS))
    ]
    # interleaved, so that no scope is one run of the input
    return [*chosen[::2], *hidden, *chosen[1::2]]


def crowd(scopes: Iterable[Scope], *, each: int, dimension: int = 8) -> list[Record]:
    """Memories that match better than any other, linked to what can be seen from HOME."""
    return [
        memory(
            scope,
            f"crowd-{number:02}-{place:02}",
            4,
            number=place,
            dimension=dimension,
            links=("home-m", "user-m", "tenant-m"),
        )
        for number, scope in enumerate(scopes)
        for place in range(each)
    ]


def home_query(dimension: int = 8) -> StoreQuery:
    """The question the world is made for, asked at HOME, with seeds for stores that need them."""
    return StoreQuery(
        " ".join(CUE),
        (HOME,),
        now=NOW,
        vector=unit_vector([1.0] + [0.0] * (dimension - 1)),
        seeds=(Seed("home-m"), Seed("tenant-m", 0.5)),
    )

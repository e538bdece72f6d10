"""Hypothesis strategies: scopes that are easy to confuse, memories, questions.

They draw from small pools on purpose: two draws often name the same memory, or two scopes that
differ in one letter, and that is where stores go wrong.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores import Key, Link, Reach, Record, Seed, Statistics, StoreQuery
from rankblend.testing._worlds import CUE, NOW, unit_vector

__all__ = ["ids", "keys", "names", "queries", "records", "scopes", "texts", "vectors"]

_KINDS = ("tenant", "user", "session", "task")
_NAMES = (
    ("acme", "acme-corp", "acme/user:7", "ACME", "аcme"),  # the last with a Cyrillic а
    ("7", "70", "7 "),
    ("1", "10", "1%2F"),
    ("a", "e\u0301", "\u00e9"),
)
_IDS = ("a", "b", "B", "ab", "é", "e\u0301", "返金", "😀", "%", "z", "a ", "m1", "m2", "m3")
_WORDS = (*CUE, *CUE, "garden", "the", "返金は銀行", "na\u0308ive", "עברית", "😀", "REFUND")
_LABELS = (
    (None, None, None),
    ("confirmed", "settled", "stated"),
    ("unreviewed", "provisional", "inferred"),
    ("flagged", None, "stated"),
    (None, "settled", None),
)
_DAY = 86_400.0


def names() -> st.SearchStrategy[str]:
    """Any text that may be part of a scope: no control characters, not blank."""
    alphabet = st.characters(exclude_categories=("Cc", "Cs"))
    return st.text(alphabet, min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


@st.composite
def scopes(draw: st.DrawFn, *, max_levels: int = 4) -> Scope:
    """Scopes of 1 to ``max_levels`` ≤ 4 levels whose names are prefixes or look-alikes."""
    depth = draw(st.integers(1, max_levels))
    return Scope(
        tuple((_KINDS[n], draw(st.sampled_from(_NAMES[n][: 5 - n]))) for n in range(depth))
    )


def ids() -> st.SearchStrategy[str]:
    """Ids of memories: few, so that they collide."""
    return st.sampled_from(_IDS)


def keys() -> st.SearchStrategy[Key]:
    """Keys of memories."""
    return st.builds(Key, scopes(), ids())


def texts(*, blank: bool = True) -> st.SearchStrategy[str]:
    """Up to 6 words of several scripts."""
    words = st.lists(st.sampled_from(_WORDS), min_size=0 if blank else 1, max_size=6)
    return words.map(" ".join)


def vectors(dimension: int) -> st.SearchStrategy[NDArray[np.float32]]:
    """Unit vectors with small integer directions, so that equal cosines are common; read-only."""
    # One number whose digits in base 5 are the components: one draw instead of d.
    codes = st.integers(0, 5**dimension - 1)

    def digits(code: int) -> list[int]:
        return [code // 5**place % 5 - 2 for place in range(dimension)]

    return codes.map(digits).filter(any).map(unit_vector)


@st.composite
def records(draw: st.DrawFn, dimension: int = 8, *, scope: Scope | None = None) -> Record:
    """Memories; any optional part may be missing."""
    part = st.one_of(st.none(), st.sampled_from((0.0, 0.25, 0.5, 1.0)))
    uses = draw(st.integers(0, 3))
    review, maturity, certainty = draw(st.sampled_from(_LABELS))
    targets = draw(st.lists(ids(), max_size=3, unique=True))
    return Record(
        Key(draw(scopes()) if scope is None else scope, draw(ids())),
        draw(texts()),
        vector=draw(st.one_of(st.none(), vectors(dimension))),
        links=tuple(Link(target, weight=draw(st.sampled_from((0.5, 1.0)))) for target in targets),
        created=NOW - 400 * _DAY,
        at=NOW - draw(st.integers(101, 300)) * _DAY,
        used=NOW - draw(st.integers(0, 50)) * _DAY if uses else None,
        uses=uses,
        salience=draw(part),
        confidence=draw(part),
        review=review,
        maturity=maturity,
        certainty=certainty,
    )


@st.composite
def queries(
    draw: st.DrawFn, dimension: int = 8, *, at: st.SearchStrategy[Scope] | None = None
) -> StoreQuery:
    """Questions from one or two scopes (of ``at`` where given), with either reach.

    Without ``admitted``: serials belong to a store.
    """
    places = scopes() if at is None else at
    return StoreQuery(
        draw(texts()),
        draw(st.lists(places, min_size=1, max_size=2, unique=True)),
        now=NOW,
        vector=draw(st.one_of(st.none(), vectors(dimension))),
        reach=draw(st.sampled_from((Reach.ANCESTORS, Reach.ANCESTORS, Reach.SUBTREE))),
        statistics=draw(st.sampled_from(list(Statistics))),
        seeds=tuple(Seed(id_) for id_ in draw(st.lists(ids(), max_size=2, unique=True))),
    )

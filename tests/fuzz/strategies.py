"""What callers hand over by mistake or on purpose: any text, any number, any object, any nesting."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import rankblend as rb
from rankblend.relevance import ScopeLevel

__all__ = [
    "anything",
    "mappings",
    "numbers",
    "refused",
    "scope_likes",
    "some",
    "texts",
    "times",
    "units",
    "vectors",
]

# Bits of integers above what 32 and 64 bits and a double hold, and what Python prints of one.
ABSURD = (31, 63, 64, 1400, 17_000)
ODD_TEXTS = (
    "", " ", "\x00", "a\x00b", "\ud800", "a\udfffb", "\ufeff", "\u202etxet", "\u2028", "\r\n", "\t",
    "%", "%2F", "%zz", "*", "_", "'; DROP TABLE memories; --", '"', "\\", "[bold]", "{0}", "%s",
    "e\u0301", "\u00e9", "ﬁ", "ß", "İ", "ı", "ſ", "Å", "\u1100\u1161\u11a8", "각", "返金", "हिन्दी",
    "😀", "👩‍👩‍👧", "\U0010ffff", "\u0301" * 200, "x" * 513, "y" * 5000, "nan", "inf", "1e999",
    "tenant:acme", "tenant:acme/", "a:1/a:2", "2026-13-01", "0001-01-01T00:00:00+23:59", "__class__",
)  # fmt: skip


class _Text(str):
    """A text of another type than ``str`` itself, such as an enum's."""


def texts(*, largest: int = 20) -> st.SearchStrategy[str]:
    """Any code points at all, surrogates and NUL among them."""
    every = st.text(st.characters(), max_size=largest)
    return st.one_of(every, st.sampled_from(ODD_TEXTS), every.map(_Text))


def numbers() -> st.SearchStrategy[Any]:
    """Numbers of every kind: not finite, absurdly large, exact, numpy's, and what only looks so."""
    return st.one_of(
        st.floats(),
        st.sampled_from((math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7e308, -1e-9, 1 + 1e-9)),
        st.integers(-3, 3),
        # Made, not chosen: hypothesis prints choices, and Python refuses to print the greatest.
        st.tuples(st.sampled_from((1, -1)), st.sampled_from(ABSURD)).map(lambda n: n[0] << n[1]),
        st.booleans(),
        st.sampled_from((
            np.float32(0.5), np.float64("nan"), np.int64(1), np.longdouble(1), np.float16(0.25),
            np.bool_(True), np.uint8(255), Decimal("0.5"), Decimal("NaN"), Fraction(1, 3), 1j,
        )),
    )  # fmt: skip


def units() -> st.SearchStrategy[float]:
    """What a signal may be."""
    return st.one_of(st.floats(0.0, 1.0), st.sampled_from((0.0, 1.0, 5e-324, 0.5)))


def times() -> st.SearchStrategy[Any]:
    """Moments, good and bad: at both ends of the calendar, naive, as text."""
    zones = st.sampled_from((
        None, dt.UTC, dt.timezone(dt.timedelta(hours=23, minutes=59)),
        dt.timezone(-dt.timedelta(hours=23, minutes=59)),
    ))  # fmt: skip
    moments = st.datetimes(timezones=zones)
    return st.one_of(
        moments,
        moments.map(dt.datetime.isoformat),
        st.sampled_from((
            dt.datetime.max.replace(tzinfo=dt.UTC), dt.datetime.min.replace(tzinfo=dt.UTC),
            dt.date(2026, 1, 1), dt.timedelta(days=1), "now", "2026-02-30T00:00:00Z", 0, math.nan,
        )),
    )  # fmt: skip


def scope_likes() -> st.SearchStrategy[Any]:
    """Scopes, texts that may be scopes, and what is none."""
    part = st.text(st.characters(), min_size=1, max_size=5)
    path = st.lists(st.tuples(part, part), min_size=1, max_size=3)
    return st.one_of(
        st.sampled_from((
            "tenant:acme", "tenant:acme/user:7", "tenant:acme-corp", rb.Scope.parse("tenant:acme"),
            "/".join(f"k{n}:{n}" for n in range(64)), "/".join(f"k{n}:{n}" for n in range(65)),
        )),
        path.map(lambda levels: "/".join(f"{kind}:{name}" for kind, name in levels)),
        st.lists(st.sampled_from(("tenant:acme", "tenant:b", "", 5)), max_size=3),
        texts(),
        anything(),
    )  # fmt: skip


def vectors() -> st.SearchStrategy[Any]:
    """Embeddings of 8 dimensions, and what is offered in their place."""
    good = st.lists(st.floats(-1.0, 1.0), min_size=8, max_size=8)
    return st.one_of(
        good,
        good.map(np.array),
        st.lists(numbers(), max_size=9),
        st.sampled_from((
            np.zeros(8), np.full(8, np.nan), np.full(8, np.inf), np.full(8, 1e308), np.full(8, 5e-324),
            np.ones((8, 1)), np.ones(7), np.ones(0), np.array(1.0), np.array(["1"] * 8),
            np.array([1] * 8, dtype=object), np.ones(8, complex), np.ones(8, bool), np.ones(8, np.int8),
            [[1.0], [2.0, 3.0]], "vector", b"\x00" * 32,
        )),
    )  # fmt: skip


def anything() -> st.SearchStrategy[Any]:
    """Objects of any type, nested a little."""
    loop: list[Any] = []
    loop.append(loop)
    plain = st.one_of(
        st.none(), numbers(), texts(largest=5), st.binary(max_size=3),
        st.sampled_from((
            object(), len, dict, loop, ..., dt.date(2026, 1, 1), range(3), np.array([np.nan, 1.0]),
            np.array([], dtype=object), rb.Scope.parse("tenant:acme"), ScopeLevel("a", "b"),
            rb.Link("a", weight=math.nan), rb.Link("\ud800"), rb.Link(None), rb.Seed("", math.inf),  # type: ignore[arg-type]
            rb.Seed(None, "x"), rb.RelevanceSignals(cue=0.5), Exception("no"),  # type: ignore[arg-type]
        )),
    )  # fmt: skip
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=2).map(tuple),
            mappings(inner),
        ),
        max_leaves=4,
    )


def mappings(values: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[dict[Any, Any]]:
    """Tables with keys of every kind; some are words that mean something."""
    words = st.sampled_from((
        "gte", "lt", "ne", "layer", "at", "uses", "salience", "id", "tag", "a.b", "similarity",
        "cue", "keyword", "words.keyword", "neutral", "shrink", "require", "prior", "days",
    ))  # fmt: skip
    keys = st.one_of(words, texts(largest=5), st.integers(), st.none(), st.floats())
    return st.dictionaries(keys, anything() if values is None else values, max_size=3)


def some(**good: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments by name: each left out, as it should be, or anything at all; mostly good ones."""
    return st.fixed_dictionaries(
        {}, optional={name: st.one_of(each, each, anything()) for name, each in good.items()}
    )


def refused(call: Callable[[], Any]) -> bool:
    """Whether the call was refused in words of ours; any other error ends the test."""
    try:
        call()
    except rb.RankblendError as error:
        message = str(error)
        assert message
        assert message.encode(), "a message cannot be printed"
        assert len(message) < 20_000, "a message repeats what was given"
        return True
    return False

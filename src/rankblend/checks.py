"""Checking what was given: every problem at once, each with where it stands.

::

    problems = Problems()                       # of a call: InvalidArgumentError in the end
    top = problems.whole("top", top, least=0, optional=True)
    for position, item in enumerate(items):
        here = problems.at("items", position)   # items[3].salience: expected …
        salience = here.number("salience", item["salience"], least=0, most=1)
        if here.clean: ...                      # nothing was wrong with this item
    problems.raise_if_any()

A check returns the value in the form that is worked with, or, where it notes a problem, a stand-in
of the same type (NaN, the least integer, no text), so that what follows can be read before
everything is raised together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar, overload

from rankblend.errors import InvalidArgumentError, ProblemsError, RankblendError, nearest_name
from rankblend.times import seconds_of
from rankblend.values import (
    dotted,
    is_identifier,
    is_text,
    kind_or_number,
    named,
    quoted,
    real_number,
    shown,
    type_name,
    whole_number,
)

__all__ = ["At", "Problems", "Rule", "suggestion"]

T = TypeVar("T")
At = str | tuple[str | int, ...]
"""Where a value stands below its `Problems`: an argument's name, or the way to it."""
Rule = Callable[["Problems", At, Any], Any]
"""A check with its limits, e.g. ``partial(Problems.number, least=0)``."""

_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: ``: did you mean "top"?``, or what is known."""
    known = sorted(known)
    nearest = nearest_name(name, known)
    if nearest is not None:
        return f': did you mean "{nearest}"?'
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"; known: {listed}" if known else ""


class Problems:
    """The problems found so far, in the order they were found.

    Args:
        error: Makes the error of all lines: `InvalidArgumentError`, another class of that form, or
            a ``partial`` of one.
        show: How refused values stand in a message: `kind_or_number`, `shown` or `type_name`.
        where: What every path begins with.
    """

    number_word: ClassVar[str] = "a finite number"
    whole_word: ClassVar[str] = "an integer"
    between: ClassVar[str] = " from {} to {}"
    flag_word: ClassVar[str] = "True or False"
    none_word: ClassVar[str] = "None or "

    def __init__(
        self,
        error: Callable[[Sequence[str]], Exception] = InvalidArgumentError,
        *,
        show: Callable[[object], str] = kind_or_number,
        where: str = "",
    ) -> None:
        self.lines: list[str] = []
        self._error = error
        self._show = show
        self._where = where
        self._before = 0

    def at(self, *path: str | int) -> Problems:
        """The same problems, for what stands at a path below: ``at("items", 3)``."""
        return self._below(self._joined(dotted(path)))

    def line(self, file: object, number: int) -> Problems:
        """The same problems, for what stands in a line of a file: ``memories.jsonl:3: …``."""
        return self._below(f"{file}:{number}: ")

    def _below(self, where: str) -> Problems:
        view = object.__new__(type(self))
        vars(view).update(vars(self), _where=where, _before=len(self.lines))
        return view

    @property
    def lead(self) -> str:
        """What the paths of this view begin with: ``items[3].``, ``memories.jsonl:4: `` or nothing."""
        where = self._where
        return f"{where}." if where and not where.endswith(" ") else where

    @property
    def clean(self) -> bool:
        """Whether nothing was found since this (or this view of it) was made."""
        return len(self.lines) == self._before

    def add(self, at: At, message: str) -> None:
        """Note ``path: message``; the message alone where there is no path."""
        where = self._joined(at if isinstance(at, str) else dotted(at))
        if where and not where.endswith(" "):
            where += ": "
        self.lines.append(f"{where}{message}")

    def expected(self, at: At, expected: str, got: object) -> None:
        """Note what should have stood there and what does."""
        self.add(at, f"expected {expected}, got {self._show(got)}")

    def extend(self, at: At, lines: Iterable[str]) -> None:
        """Note lines that somebody else found about what stands there, with paths of their own."""
        where = self._joined(at if isinstance(at, str) else dotted(at))
        glue = "" if not where or where.endswith(" ") else "."
        self.lines += [f"{where}{glue}{line}" for line in lines]

    def unknown(self, at: At, what: str, name: object, known: Iterable[str]) -> None:
        """Note a name that nothing has, with the nearest one that something has."""
        name = name if isinstance(name, str) else shown(name)
        self.add(at, f"unknown {what} {quoted(name)}{suggestion(name, known)}")

    def attempt(self, at: At, read: Callable[[], T]) -> T | None:
        """What ``read`` returns, or None when it refuses; its problems are noted, with their path.

        For values that check themselves: ``attempt("scope", lambda: Scope.of(scope))``.
        """
        try:
            return read()
        except ProblemsError as error:
            self.extend(at, error.problems)
        except RankblendError as error:
            self.add(at, str(error))
        return None

    def raise_if_any(self, *, most: int | None = None) -> None:
        """End here when something was found.

        Args:
            most: How many lines the error holds; of the others it says how many there are.

        Raises:
            Exception: That of ``error``, with every line noted.
        """
        if self.lines:
            rest = 0 if most is None else len(self.lines) - most
            raise self._error(
                [*self.lines[:most], f"… and {rest} more"] if rest > 0 else self.lines
            )

    # Checks

    @overload
    def number(
        self, at: At, value: object, *, least: float | None = ..., most: float | None = ...,
        above: float | None = ..., below: float | None = ...,
    ) -> float: ...  # fmt: skip
    @overload
    def number(
        self, at: At, value: object, *, least: float | None = ..., most: float | None = ...,
        above: float | None = ..., below: float | None = ..., optional: bool,
    ) -> float | None: ...  # fmt: skip
    def number(
        self,
        at: At,
        value: object,
        *,
        least: float | None = None,
        most: float | None = None,
        above: float | None = None,
        below: float | None = None,
        optional: bool = False,
    ) -> float | None:
        """The value as a finite float in a range; NaN when it is none.

        Args:
            at: Where it stands.
            value: What stands there.
            least: Least value allowed.
            most: Greatest value allowed.
            above: What it must be above.
            below: What it must be below.
            optional: None is fine.
        """
        if value is None and optional:
            return None
        number = real_number(value)
        if (
            number is not None
            and math.isfinite(number)
            and (least is None or number >= least)
            and (most is None or number <= most)
            and (above is None or number > above)
            and (below is None or number < below)
        ):
            return number
        word = self.number_word if most is None and below is None else "a number"
        expected = f"{word}{_range(least, most, above, below)}"
        got = number if number is not None and not math.isfinite(number) else value
        self.expected(at, self._or_none(expected, optional), got)
        return math.nan

    def unit(self, at: At, value: object, *, optional: bool = False) -> float | None:
        """The value as a float in [0, 1]."""
        return self.number(at, value, least=0.0, most=1.0, optional=optional)

    @overload
    def whole(self, at: At, value: object, *, least: int, most: int | None = ...) -> int: ...
    @overload
    def whole(
        self, at: At, value: object, *, least: int, most: int | None = ..., optional: bool
    ) -> int | None: ...
    def whole(
        self,
        at: At,
        value: object,
        *,
        least: int,
        most: int | None = None,
        optional: bool = False,
    ) -> int | None:
        """The value as an int in a range; ``least`` when it is none."""
        if value is None and optional:
            return None
        number = whole_number(value)
        if number is not None and number >= least and (most is None or number <= most):
            return number
        span = self.between.format(f"{least:,}", f"{most:,}") if most is not None else None
        expected = f"{self.whole_word}{span or f' ≥ {least:,}'}"
        self.expected(at, self._or_none(expected, optional), value)
        return least

    @overload
    def text(self, at: At, value: object, *, limit: int | None, blank: bool = ...) -> str: ...
    @overload
    def text(
        self, at: At, value: object, *, limit: int | None, blank: bool = ..., optional: bool
    ) -> str | None: ...
    def text(
        self,
        at: At,
        value: object,
        *,
        limit: int | None,
        blank: bool = False,
        optional: bool = False,
    ) -> str | None:
        """The value as text that can be stored; ``""`` when it is none.

        Args:
            at: Where it stands.
            value: What stands there.
            limit: Most code points, or None.
            blank: A blank is fine.
            optional: None is fine.
        """
        if value is None and optional:
            return None
        if not isinstance(value, str):
            self.add(at, f"expected text, got {type(value).__name__}")
            return ""
        if not blank and not value.strip():
            self.add(at, "expected some text, got a blank")
        if limit is not None and len(value) > limit:
            self.add(at, f"expected at most {limit:,} characters, got {len(value):,}")
        if not value.isascii() and not is_text(value):
            self.add(at, "contains a lone surrogate, which cannot be stored as UTF-8")
        return value

    def identifier(self, at: At, value: object, what: str = "") -> str:
        """The value as a name of ASCII letters, digits and _; ``""`` when it is none."""
        if is_identifier(value):
            return str(value)
        subject = f"{what} names are" if what else "expected"
        self.add(at, f"{subject} ASCII letters, digits and _, and start with no digit")
        return ""

    @overload
    def choice(self, at: At, value: object, choices: Collection[str]) -> str: ...
    @overload
    def choice(
        self, at: At, value: object, choices: Collection[str], *, optional: bool
    ) -> str | None: ...
    def choice(
        self, at: At, value: object, choices: Collection[str], *, optional: bool = False
    ) -> str | None:
        """The value when it is one of a few words; the first of them when it is not."""
        if value is None and optional:
            return None
        if isinstance(value, str) and value in choices:
            return value
        words = tuple(choices)
        near = nearest_name(value, words) if isinstance(value, str) else None
        hint = f': did you mean "{near}"?' if near else ""
        expected = self._or_none(self.one_of(words), optional)
        self.add(at, f"expected {expected}, got {shown(value)}{hint}")
        return words[0]

    def one_of(self, words: Sequence[str]) -> str:
        """What a choice of these words is called."""
        return f"one of {', '.join(words)}"

    def flag(self, at: At, value: object, *, optional: bool = False) -> bool:
        """A yes or no; False when it is none (or None, where that is fine)."""
        if not isinstance(value, bool) and not (optional and value is None):
            self.expected(at, self.flag_word, value)
        return value is True

    @overload
    def time(self, at: At, value: object) -> float: ...
    @overload
    def time(self, at: At, value: object, *, optional: bool) -> float | None: ...
    def time(self, at: At, value: object, *, optional: bool = False) -> float | None:
        """An aware datetime, or ISO 8601 text with an offset, as seconds since the epoch.

        NaN when it is none of them. It lies within the years 1 to 9999 of UTC.
        """
        if value is None and optional:
            return None
        try:
            return seconds_of(value)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            self.add(at, str(error))
            return math.nan

    def clock(self, clock: Callable[[], object]) -> float:
        """What an injected clock says, in seconds since the epoch; NaN when it is no aware time."""
        try:
            return seconds_of(clock())  # type: ignore[arg-type]
        except (TypeError, ValueError):
            self.add("clock", "expected it to return an aware datetime")
            return math.nan

    def duration(
        self,
        at: At,
        value: object,
        *,
        positive: bool = True,
        most: timedelta | None = None,
        optional: bool = False,
    ) -> timedelta | None:
        """A timedelta, or seconds, as a timedelta; one second when it is neither.

        Args:
            at: Where it stands.
            value: What stands there.
            positive: It must be above 0; else 0 is fine, too.
            most: The longest allowed.
            optional: None is fine.
        """
        if value is None and optional:
            return None
        seconds = value.total_seconds() if isinstance(value, timedelta) else real_number(value)
        if seconds is None or not abs(seconds) < timedelta.max.total_seconds():
            kinds = self._or_none("a timedelta or seconds", optional)
            self.add(at, f"expected {kinds}, got {type(value).__name__}")
        elif seconds < 0 or (positive and seconds == 0):
            least = "above 0" if positive else "that is not negative"
            self.add(at, f"expected a duration {least}")
        elif most is not None and seconds > most.total_seconds():
            days, rest = divmod(most, timedelta(days=1))
            longest = f"{days:,} days" if not rest else f"{most.total_seconds():,.0f} s"
            self.add(at, f"expected at most {longest}")
        else:
            return value if isinstance(value, timedelta) else timedelta(seconds=seconds)
        return timedelta(seconds=1)

    def metadata(self, at: At, value: object) -> dict[str, Any]:
        """A mapping from names to JSON values, as it reads back from JSON; None is an empty one.

        Keys are texts at every depth: ``{1: "a", "1": "b"}`` would lose a value.
        """
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.add(at, f"expected a mapping from names to JSON values, got {type_name(value)}")
            return {}
        try:
            if not _keys_are_texts(value):
                self.add(at, "expected a mapping from names to JSON values, with texts as names")
                return {}
            text = _dump(dict(value))
        except (TypeError, ValueError, RecursionError):
            self.add(
                at,
                "expected JSON values (finite numbers, text, booleans, null, lists, objects)",
            )
            return {}
        if not is_text(text):
            self.add(at, "contains a lone surrogate, which cannot be stored as UTF-8")
            return {}
        copied: dict[str, Any] = json.loads(text)
        return copied

    def instance(self, at: At, value: object, kind: type[T], *, like: str = "") -> T | None:
        """The value when it is of a class (or of a runtime protocol), else None."""
        if isinstance(value, kind):
            return value
        name = like or kind.__name__
        article = "an" if name[0] in "AEIOU" else "a"
        self.add(at, f"expected {article} {name}, got {type(value).__name__}")
        return None

    def callable(self, at: At, value: object) -> None:
        """Note what cannot be called."""
        if not callable(value):
            self.add(at, f"expected a callable, got {type(value).__name__}")

    def sequence(self, at: At, value: object, of: str) -> Sequence[Any]:
        """What can be gone through (no text, no mapping), as a sequence; an empty one if it cannot.

        Args:
            at: Where it stands.
            value: What stands there.
            of: What it holds, for the message: ``ids or entity names``.
        """
        if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
            return value if isinstance(value, list | tuple) else tuple(value)
        self.add(at, f"expected a sequence of {of}, got {type(value).__name__}")
        return ()

    def table(self, at: At, value: object) -> Mapping[str, Any]:
        """The value when it is a table, else an empty one (noted unless it is missing)."""
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self.expected(at, "a table", value)
        return {}

    def names(self, at: At, value: object) -> tuple[str, ...]:
        """The value as distinct names, or what of it can be used (the rest noted)."""
        if not isinstance(value, list | tuple):
            self.expected(at, "a list of names", value)
            return ()
        found: dict[str, None] = {}
        for position, name in enumerate(value):
            if not isinstance(name, str):
                self.expected(_deeper(at, str(position)), "a name", name)
            elif name in found:
                self.add(at, f"{self._show(name)} is listed twice")
            else:
                found[name] = None
        return tuple(found)

    def keys(
        self, at: At, table: Mapping[Any, object], known: Iterable[str], *, what: str = "key"
    ) -> None:
        """Refuse every key of ``table`` that has no meaning there."""
        known = tuple(known)
        for key in table:
            if key not in known:
                name = key if isinstance(key, str) and isinstance(at, tuple) else named(key)
                self.add(_deeper(at, name), f"unknown {what}{suggestion(named(key), known)}")

    def fields(
        self,
        at: At,
        table: Mapping[Any, object],
        rules: Mapping[str, Rule],
        *,
        required: Collection[str] = (),
        what: str = "key",
    ) -> dict[str, Any]:
        """The values of a table by their rules: unknown and missing keys and wrong values noted.

        Args:
            at: Where the table stands.
            table: Only its keys that have a rule are read.
            rules: By key the check of its value.
            required: Keys that must be there.
            what: What a key is called.
        """
        self.keys(at, table, rules, what=what)
        for name in required:
            if name not in table:
                self.add(_deeper(at, name), "expected a value, it is missing")
        return {
            name: rule(self, _deeper(at, name), table[name])
            for name, rule in rules.items()
            if name in table
        }

    def _or_none(self, expected: str, optional: bool) -> str:
        return f"{self.none_word}{expected}" if optional else expected

    def _joined(self, at: str) -> str:
        where = self._where
        if not where or not at:
            return where or at
        glue = "" if where.endswith(" ") or at.startswith("[") else "."
        return f"{where}{glue}{at}"


def _deeper(at: At, name: str) -> At:
    if isinstance(at, str):
        return f"{at}.{dotted((name,))}" if at else dotted((name,))
    return (*at, name)


def _range(
    least: float | None, most: float | None, above: float | None, below: float | None
) -> str:
    low = least if above is None else above
    high = most if below is None else below
    if low is None:
        return "" if high is None else f" {'≤' if below is None else '<'} {_plain(high)}"
    if high is None:
        return f" {'≥' if above is None else '>'} {_plain(low)}"
    left, right = "[("[above is not None], "])"[below is not None]
    return f" in {left}{_plain(low)}, {_plain(high)}{right}"


def _plain(bound: float) -> str:
    return f"{bound:,.0f}" if bound == int(bound) and abs(bound) < 1e15 else f"{bound:g}"


def _keys_are_texts(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value) and all(
            map(_keys_are_texts, value.values())
        )
    return all(map(_keys_are_texts, value)) if isinstance(value, list | tuple) else True

"""What a field of a memory may hold; `Record` says of each of its fields which kind it is.

That is the one declaration. From it follow which values are refused, the columns of the file and how
they are written and read back, the arrays in memory, the fields of filters, and the names and values
in lines of JSON. Values are looked at column by column: a quick look at all of them at once that
passes what is ordinary, on the way in and, as a check for damage, on the way out; only what it does
not pass is looked at one by one, to say what is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from attrs import frozen

from rankblend.times import as_utc
from rankblend.values import is_number, is_text

dump_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_read_json = json.JSONDecoder().raw_decode


class Kind:
    """A kind of field. Values are those of `Record`; absent ones (None) are left to `Field`.

    Attributes:
        dtype: Of its column in memory; None: it stays in the file.
    """

    dtype: type[np.generic] | None = None

    def sound(self, values: Sequence[Any]) -> bool:
        """Whether all of some values are plainly right, and need not be encoded."""
        return not any(map(self.wrong, values))

    def wrong(self, value: Any) -> list[str]:
        """What stands behind the name of the field in problems with a value: ``: expected …``."""
        problem = self.problem(value)
        return [f": {problem}"] if problem else []

    def problem(self, value: Any) -> str | None:
        """What is expected instead of a value; None when it is right."""
        raise NotImplementedError

    def encode(self, value: Any) -> Any:
        """A right value as the file keeps it."""
        return value

    def decode(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values from what the file keeps.

        Raises:
            ValueError, TypeError, LookupError: They were damaged.
        """
        if not self.sound(values) and any(map(self.wrong, values)):
            raise ValueError("a value that cannot have been written")
        return values

    def shown(self, value: Any) -> Any:
        """A value as who asked for the memory gets it."""
        return value

    def told(self, shown: Any) -> Any:
        """What `shown` gives as JSON."""
        return shown


@frozen
class Number(Kind):
    """A number within bounds, kept as a double."""

    low: float
    high: float
    expected: str
    dtype: type[np.generic] | None = np.float64

    def sound(self, values: Sequence[Any]) -> bool:
        """`Kind.sound`."""
        return set(map(type, values)) == {float} and (
            math.isfinite(sum(values)) and self.low <= min(values) and max(values) <= self.high
        )

    def problem(self, value: Any) -> str | None:
        """`Kind.problem`."""
        if is_number(value) and self.low <= value <= self.high:
            return None
        return self.expected.format(type(value).__name__)

    def encode(self, value: Any) -> float:
        """`Kind.encode`."""
        return float(value)


class Time(Number):
    """Seconds since the epoch, UTC."""

    def shown(self, value: Any) -> datetime:
        """An aware datetime."""
        moment: datetime = as_utc(value)
        return moment

    def told(self, shown: Any) -> str:
        """ISO 8601."""
        text: str = shown.isoformat()
        return text


class Count(Kind):
    """How often something happened."""

    dtype = np.int32

    def sound(self, values: Sequence[Any]) -> bool:
        """`Kind.sound`."""
        return set(map(type, values)) == {int} and min(values) >= 0 and max(values) < 2**31

    def problem(self, value: Any) -> str | None:
        """`Kind.problem`."""
        return None if type(value) is int and 0 <= value < 2**31 else "expected a count ≥ 0"


@frozen
class Text(Kind):
    """Text of valid code points; ``blank`` or not, and ``coded`` where many memories share it."""

    blank: bool = False
    dtype: type[np.generic] | None = None

    def sound(self, values: Sequence[Any]) -> bool:
        """`Kind.sound`."""
        return (
            set(map(type, values)) == {str}
            and all(map(str.isascii, values))
            and (self.blank or all(map(str.strip, values)))
        )

    def problem(self, value: Any) -> str | None:
        """`Kind.problem`."""
        if self.blank:
            return None if is_text(value) else "expected text of valid code points"
        return None if is_text(value) and value.strip() else "expected text that is not blank"


@frozen
class Level(Kind):
    """One of a few labels, each with a value in [0, 1]."""

    levels: Mapping[str, float]
    dtype: type[np.generic] | None = np.int8

    def sound(self, values: Sequence[Any]) -> bool:
        """`Kind.sound`."""
        return set(map(type, values)) == {str} and self.levels.keys() >= set(values)

    def problem(self, value: Any) -> str | None:
        """`Kind.problem`."""
        if isinstance(value, str) and value in self.levels:
            return None
        return f"expected None or one of {', '.join(self.levels)}"


@frozen
class Json(Kind):
    """A mapping from names to JSON values; an empty one is kept as nothing."""

    def sound(self, values: Sequence[Any]) -> bool:
        """`Kind.sound`; what the values are is seen when they are encoded."""
        return all(type(each) is dict and all(type(n) is str for n in each) for each in values)

    def problem(self, value: Any) -> str | None:
        """`Kind.problem`."""
        if not isinstance(value, Mapping):
            return f"expected a mapping, got {type(value).__name__}"
        if not all(isinstance(name, str) for name in value):
            return "expected texts as names"
        try:
            dump_json(dict(value)).encode()
        except (TypeError, ValueError, RecursionError) as error:
            return f"expected JSON values ({type(error).__name__})"
        return None

    def encode(self, value: Any) -> str | None:
        """`Kind.encode`."""
        if not value:
            return None
        text = dump_json(dict(value))
        if not text.isascii():
            text.encode()
        return text

    def decode(self, values: Sequence[Any]) -> list[Any]:
        """New mappings each time."""
        return [{} if text is None else _checked(read_json(text), dict) for text in values]

    def told(self, shown: Any) -> Any:
        """`Kind.told`."""
        return dict(shown)


def read_json(text: str) -> Any:
    """JSON as it was written, without a blank before or behind it.

    Raises:
        ValueError, TypeError: It is none.
    """
    value, end = _read_json(text)
    if end < len(text):
        raise ValueError("something follows the JSON")
    return value


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError("JSON of another kind")
    return value


@frozen
class Field:
    """One declared field.

    Attributes:
        name: Of the attribute of a record, and of the column.
        kind: What it may hold.
        optional: Whether None is a value.
        argument: What it is called in arguments, filters and lines of JSON.
        revised: Whether it belongs to a revision, and not to the memory.
    """

    name: str
    kind: Kind
    optional: bool
    argument: str
    revised: bool

    def problems(self, values: Sequence[Any], *, closely: bool) -> list[tuple[int, str]]:
        """Position and ``field: problem`` of the values that are wrong; or a quick look only."""
        if not closely and self.kind.sound(self._present(values)):
            return []
        return [
            (position, f"{self.name}{problem}")
            for position, value in enumerate(values)
            if not (self.optional and value is None)
            for problem in self.kind.wrong(value)
        ]

    def encoded(self, values: Sequence[Any]) -> Sequence[Any]:
        """Right values as the file keeps them.

        Raises:
            ValueError, TypeError, RecursionError: Something in one of them is no JSON.
        """
        if not isinstance(self.kind, Json) and self.kind.sound(self._present(values)):
            return values
        encode = self.kind.encode
        return [None if value is None else encode(value) for value in values]

    def decoded(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values as the file kept them.

        Raises:
            ValueError, TypeError, LookupError: They were damaged.
        """
        if not self.optional or isinstance(self.kind, Json):
            return self.kind.decode(values)
        self.kind.decode(self._present(values))
        return values

    def shown(self, value: Any) -> Any:
        """A value as who asked for the memory gets it."""
        return None if value is None else self.kind.shown(value)

    def told(self, shown: Any) -> Any:
        """What `shown` gives as JSON."""
        return None if shown is None else self.kind.told(shown)

    def says(self, value: Any) -> bool:
        """Whether a value is worth a word: no use, link or metadata is not."""
        return bool(value) if isinstance(self.kind, Count | Json) else value is not None

    def _present(self, values: Sequence[Any]) -> Sequence[Any]:
        return [value for value in values if value is not None] if self.optional else values


def declared(kind: Kind, *, argument: str = "", revised: bool = True) -> dict[str, Any]:
    """The metadata of an attribute that is a field of a memory."""
    return {"kind": kind, "argument": argument, "revised": revised}


def fields_of(attributes: Sequence[Any]) -> tuple[Field, ...]:
    """The declared ones among the attributes of a class, in their order."""
    return tuple(
        Field(
            each.name,
            each.metadata["kind"],
            each.default is None,
            each.metadata["argument"] or each.name,
            each.metadata["revised"],
        )
        for each in attributes
        if "kind" in each.metadata
    )


_YEAR_1 = -62_135_596_800.0  # before it there is no datetime; behind year 9999 it is the last one
TIME = Time(_YEAR_1, math.inf, "expected finite seconds since year 1, got {}")
FRACTION = Number(0.0, 1.0, "expected None or a number in [0, 1]")
COUNT = Count()
TEXT = Text(blank=True)
NAME = Text()
JSON = Json()

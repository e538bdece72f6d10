"""Filters over labels, times, numbers, names and metadata: parsed once, used hard and soft.

::

    {"lang": "en", "year": {"gte": 2020, "lt": 2024}, "tags": ["a", "b"], "layer": "semantic"}

A mapping is parsed into `Filters` before anything is read, and all its problems are reported at
once. The same parsed form decides what is shown (`Filters.matches`) and how large a share of the
preferences a memory satisfies (`Filters.share`).

Conditions are evaluated in Python, once per *distinct* value of a field, and never become SQL:
SQLite's comparisons would hold 1, ``true`` and, in a text column, ``"1"`` to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.stores._fields import Count, Level, Number, Text, Time
from rankblend.stores._record import FIELDS, LABELS
from rankblend.values import is_number, named

TIME_FIELDS = tuple(each.argument for each in FIELDS if isinstance(each.kind, Time))
NUMBER_FIELDS = tuple(
    each.argument
    for each in FIELDS
    if isinstance(each.kind, Number | Count) and each.argument not in TIME_FIELDS
)
TEXT_FIELDS = (
    "id",
    *(f.argument for f in FIELDS if f.kind.dtype and isinstance(f.kind, Text | Level)),
)
_UNORDERED = ("layer", *LABELS)
_RANGES: Mapping[str, Callable[[object, object], bool]] = {
    "gte": lambda have, want: have >= want,  # type: ignore[operator]
    "lte": lambda have, want: have <= want,  # type: ignore[operator]
    "gt": lambda have, want: have > want,  # type: ignore[operator]
    "lt": lambda have, want: have < want,  # type: ignore[operator]
}
_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "number",
    float: "number",
    str: "text",
}
_OPERATORS = ("gte", "lte", "gt", "lt", "ne")


class FieldReader(Protocol):
    """Where the values of fields come from, for some rows of a catalog."""

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A time or number field, shape (rows,); NaN = absent."""
        ...

    def coded(self, name: str) -> tuple[NDArray[np.int32], Sequence[object]]:
        """Any other field: code per row, shape (rows,), and the value of each code."""
        ...


@frozen
class Condition:
    """What one field must satisfy: every test of it.

    Args:
        field: A text, time or number field of every memory, or a metadata field (``a.b`` for
            nested ones).
        tests: (operator, value) pairs; the operators are ``any`` (equal to one of a tuple), ``ne``,
            ``gte``, ``lte``, ``gt`` and ``lt``. Times are seconds since the epoch.
    """

    field: str
    tests: tuple[tuple[str, object], ...]

    def accepts(self, value: object) -> bool:
        """Whether one value (JSON; None = null or absent) satisfies every test.

        Numbers equal numbers, text equals text, a bool only a bool. A list satisfies a test when
        one of its elements does. ``ne`` is the negation of "equal", so that an absent field passes
        it. Ranges compare number with number or text with text; anything else fails them.
        """
        return self.predicate()(value)

    def predicate(self) -> Callable[[object], bool]:
        """`accepts` prepared for many values: about .2 µs each."""
        tests = [_test(operator, wanted) for operator, wanted in self.tests]
        return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)

    def accepts_numbers(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """`accepts` for a float64 column in which NaN is absent; the same answers."""
        passed = np.ones(len(values), dtype=np.bool_)
        for operator, wanted in self.tests:
            if operator == "any":
                passed &= _equals_any(values, wanted)
            elif operator == "ne":
                passed &= ~_equals_any(values, (wanted,))
            else:
                passed &= np.asarray(_RANGES[operator](values, wanted), dtype=np.bool_)
        return passed


@frozen
class Filters:
    """A parsed mapping of conditions; all of them, or a share of them, may be satisfied.

    Args:
        conditions: One per field, in the order given.

    Example:
        >>> filters = Filters.parse({"lang": ["en", "de"], "stars": {"gte": 4}})
        >>> [condition.field for condition in filters.conditions]
        ['lang', 'stars']
    """

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, mapping: Filters | Mapping[str, object] | None) -> Filters:
        """Read ``{field: value | [values] | {"gte" | "lte" | "gt" | "lt" | "ne": value}}``.

        Args:
            mapping: The conditions. Reserved fields: ``id``, ``key``, ``layer``, ``review``,
                ``maturity`` and ``certainty`` (text), ``created``, ``at``, ``used`` and ``expires``
                (aware datetimes or ISO text with an offset), ``salience``, ``confidence`` and
                ``uses`` (numbers); every other name is a metadata field. ``None`` as a value means
                null or absent, an empty list is satisfied by nothing.

        Raises:
            InvalidArgumentError: Unknown operators, values of the wrong type, naive times; every
                problem at once.
        """
        if isinstance(mapping, Filters):
            return mapping
        if mapping is None:
            return cls()
        if not isinstance(mapping, Mapping):
            raise InvalidArgumentError(
                f"filters: expected a mapping of fields, got {type(mapping).__name__}"
            )
        problems: list[str] = []
        conditions = tuple(_condition(name, given, problems) for name, given in mapping.items())
        if problems:
            raise InvalidArgumentError(problems)
        return cls(conditions)

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def matches(self, reader: FieldReader, rows: int) -> NDArray[np.bool_]:
        """Which of the rows satisfy every condition; shape (rows,). No conditions: all."""
        passed = np.ones(rows, dtype=np.bool_)
        for condition in self.conditions:
            passed &= _evaluate(condition, reader)
        return passed

    def share(self, reader: FieldReader, rows: int) -> NDArray[np.float64]:
        """Satisfied conditions / all conditions; float64 in [0, 1], shape (rows,).

        NaN without conditions: there is nothing to satisfy.
        """
        if not self.conditions:
            return np.full(rows, np.nan)
        satisfied = np.zeros(rows)
        for condition in self.conditions:
            satisfied += _evaluate(condition, reader)
        return satisfied / len(self.conditions)


def metadata_value(metadata: Mapping[str, object], field: str) -> object:
    """The value of a field: the key itself if there is one, else the path its dots describe.

    None when the path leads nowhere.
    """
    if field in metadata:
        return metadata[field]
    value: object = metadata
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _evaluate(condition: Condition, reader: FieldReader) -> NDArray[np.bool_]:
    if condition.field in TIME_FIELDS or condition.field in NUMBER_FIELDS:
        return condition.accepts_numbers(reader.numbers(condition.field))
    codes, values = reader.coded(condition.field)
    predicate = condition.predicate()
    if len(values) <= len(codes):
        return np.fromiter(map(predicate, values), np.bool_, len(values))[codes]
    asked, inverse = np.unique(codes, return_inverse=True)
    held = (values[code] for code in asked.tolist())
    return np.fromiter(map(predicate, held), np.bool_, len(asked))[inverse]


def _equals_any(values: NDArray[np.float64], wanted: object) -> NDArray[np.bool_]:
    passed = np.zeros(len(values), dtype=np.bool_)
    for value in wanted if isinstance(wanted, tuple) else ():
        passed |= np.isnan(values) if value is None else values == value
    return passed


def _test(operator: str, wanted: object) -> Callable[[object], bool]:
    """One test as a function of the value."""
    if operator in _RANGES:
        compare, kind = _RANGES[operator], _kind(wanted)

        def holds(value: object) -> bool:
            return _KINDS.get(type(value)) == kind and compare(value, wanted)
    else:
        choices = wanted if operator == "any" and isinstance(wanted, tuple) else (wanted,)
        # By kind, because in Python 1, 1.0 and True are one element of a set.
        equal: dict[str, set[object]] = {kind: set() for kind in _KINDS.values()}
        for choice in choices:
            equal[_kind(choice)].add(choice)

        def holds(value: object) -> bool:
            kind = _KINDS.get(type(value))
            return kind is not None and value in equal[kind]

    def of_any(value: object) -> bool:
        return any(map(holds, value)) if isinstance(value, list) else holds(value)

    return (lambda value: not of_any(value)) if operator == "ne" else of_any


def _kind(value: object) -> str:
    """What sort of value it is; ``other`` is equal to nothing and before nothing."""
    for kind in type(value).__mro__:
        if kind in _KINDS:
            return _KINDS[kind]
    return "other"


def _condition(name: object, given: object, problems: list[str]) -> Condition:
    where = f"filters: {named(name)!r}"
    if not isinstance(name, str) or not name:
        problems.append(f"{where}: expected the name of a field")
        return Condition("", ())
    if isinstance(given, Mapping):
        if not given:
            problems.append(f"{where}: expected at least one operator of {', '.join(_OPERATORS)}")
        tests = tuple(
            (named(operator), _operand(name, operator, value, where, problems))
            for operator, value in given.items()
        )
        return Condition(name, tests)
    values = given if isinstance(given, list | tuple | set | frozenset) else (given,)
    choices = tuple(_value(name, value, where, problems) for value in values)
    return Condition(name, (("any", choices),))


def _operand(name: str, operator: object, value: object, where: str, problems: list[str]) -> object:
    if operator not in _OPERATORS:
        problems.append(
            f"{where}: unknown operator {named(operator)!r}; known: {', '.join(_OPERATORS)}; "
            "for a nested field write its path with dots"
        )
        return None
    where = f"{where}: {operator}"
    parsed = _value(name, value, where, problems)
    if operator in _RANGES:
        if name in _UNORDERED:
            problems.append(f"{where}: the values of {name} have no order")
        elif value is None or isinstance(parsed, bool):
            problems.append(f"{where}: expected a number, text or time, got {_type(value)}")
    return parsed


def _value(name: str, value: object, where: str, problems: list[str]) -> object:
    """The value in comparable form; a problem is noted and None returned when it has none."""
    if name in TIME_FIELDS:
        return None if value is None else _seconds(value, where, problems)
    if isinstance(value, np.generic):
        value = value.item()
    kind = _kind(value)
    if kind == "number" and not is_number(value):
        problems.append(f"{where}: expected a finite number that a double can hold")
        return None
    fitting, expected = _fitting(name)
    if kind not in fitting:
        problems.append(f"{where}: expected {expected}, got {_type(value)}")
        return None
    if name in LABELS and value is not None and value not in LABELS[name]:
        problems.append(f"{where}: expected one of {', '.join(LABELS[name])}, got {value!r:.40}")
        return None
    return value


def _fitting(name: str) -> tuple[tuple[str, ...], str]:
    """The kinds of value a field is compared with, and their name."""
    if name in NUMBER_FIELDS:
        return ("number", "null"), "a number"
    if name in ("layer", "id"):
        return ("text",), "text"
    if name in TEXT_FIELDS:
        return ("text", "null"), "text or None"
    return ("number", "text", "bool", "null"), "text, a number, a bool or None"


def _seconds(value: object, where: str, problems: list[str]) -> float | None:
    moment: datetime | None = None
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if moment is None:
        problems.append(f"{where}: expected a datetime or ISO text, got {_type(value)}")
        return None
    if moment.utcoffset() is None:
        problems.append(f"{where}: expected a time with an offset (UTC), got a naive one")
        return None
    try:
        return moment.astimezone(UTC).timestamp()
    except OverflowError:
        problems.append(f"{where}: expected a time within the years 1 to 9999 of UTC")
        return None


def _type(value: object) -> str:
    return "None" if value is None else type(value).__name__

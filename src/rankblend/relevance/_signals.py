"""Signals: named values in [0, 1], higher is better, or absent.

`RelevanceSignals` is what one memory has; `SignalTable` is what many have, as a matrix in which NaN
means absent. They convert into one another without loss. The numeric core works on tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

import numpy as np
from attrs import cmp_using, field, frozen
from numpy.typing import ArrayLike, NDArray

from rankblend.errors import InvalidArgumentError, InvalidArrayError, InvalidSignalError
from rankblend.values import is_identifier, real_number, shown

FloatArray = NDArray[np.float64]

STANDARD_SIGNALS: tuple[str, ...] = ("cue", "salience", "recency", "frequency", "proximity")


@cache
def _standard_first(names: tuple[str, ...]) -> tuple[str, ...]:
    """Standard names, then the others as given."""
    standard = tuple(name for name in STANDARD_SIGNALS if name in names)
    return standard + tuple(name for name in names if name not in STANDARD_SIGNALS)


@frozen(init=False, eq=False, repr=False)
class RelevanceSignals:
    """The signals of one memory: values in [0, 1], or absent.

    ``0.0`` is an observation ("does not match"); ``None``, or not naming a signal at all, means
    "cannot answer". The vocabulary is open: any identifier (ASCII letters, digits, _) may be a
    signal. ``signals.cue`` reads one: None where a standard signal or one given as None is absent,
    AttributeError for a name never given. Two objects are equal when the same signals are present
    with the same values; the order of the names and the absent ones play no part.

    Args:
        cue: How well the words of the query are met.
        salience: How important the memory was said to be.
        recency: How fresh it is.
        frequency: How often it was used.
        proximity: How near it is to what the query speaks of.
        others: Any further signals. One called ``present`` or ``names`` is read by `present`, its
            attribute being the method.

    Raises:
        InvalidSignalError: A value is neither None nor a finite real number in [0, 1]; NaN, bools
            and strings are refused too.
        InvalidArgumentError: A name is no identifier.

    Example:
        >>> signals = RelevanceSignals(success_rate=0.5, cue=0.9)
        >>> signals.cue, signals.salience, dict(signals.present())
        (0.9, None, {'cue': 0.9, 'success_rate': 0.5})
    """

    _values: dict[str, float]
    _names: tuple[str, ...]

    def __init__(
        self,
        /,
        *,
        cue: float | None = None,
        salience: float | None = None,
        recency: float | None = None,
        frequency: float | None = None,
        proximity: float | None = None,
        **others: float | None,
    ) -> None:
        wrong = [name for name in others if not is_identifier(name)]
        if wrong:
            raise InvalidArgumentError(
                f"signal {shown(name)}: expected an identifier of ASCII letters, digits and _"
                for name in wrong
            )
        standard = dict(
            zip(STANDARD_SIGNALS, (cue, salience, recency, frequency, proximity), strict=True)
        )
        given = {name: value for name, value in standard.items() if value is not None} | others
        present = {
            name: checked_signal(name, value) for name, value in given.items() if value is not None
        }
        self.__attrs_init__(present, tuple(given))

    @classmethod
    def _of_row(cls, names: tuple[str, ...], row: Iterable[float]) -> RelevanceSignals:
        """From values already checked, standard names first, NaN for absent."""
        made = object.__new__(cls)
        made.__attrs_init__({n: v for n, v in zip(names, row, strict=True) if v == v}, names)
        return made

    def present(self) -> Mapping[str, float]:
        """The present signals, read-only: standard ones first, then the others as given."""
        return MappingProxyType(self._values)

    def names(self) -> tuple[str, ...]:
        """The present signals and those given as None, in the order of `present`."""
        return self._names

    def __getattr__(self, name: str) -> float | None:
        # Asked only for what is no method or field; while unpickling the fields may be missing.
        if not name.startswith("__") and name not in ("_values", "_names"):
            value = self._values.get(name)
            if value is not None or name in STANDARD_SIGNALS or name in self._names:
                return value
        raise AttributeError(f"no signal {name!r} was given", name=name, obj=self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RelevanceSignals):
            return NotImplemented
        return self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"RelevanceSignals({inside})"


def checked_signal(name: str, value: object) -> float:
    """``value`` as a float.

    Raises:
        InvalidSignalError: It is not a finite real number in [0, 1].
    """
    number = real_number(value)
    if number is None or not 0.0 <= number <= 1.0:
        raise InvalidSignalError(name, value if number is None else number)
    return number


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names of the columns of a table.

    Raises:
        InvalidArrayError: A name is no identifier, or occurs twice.
    """
    found: dict[str, None] = {}
    for at, name in enumerate(names):
        if not is_identifier(name):
            raise InvalidArrayError(
                f"names[{at}]", "an identifier of ASCII letters, digits and _", shown(name)
            )
        if name in found:
            raise InvalidArrayError(f"names[{at}]", "distinct names", f"{name!r} once more")
        found[name] = None
    return tuple(found)


def checked_values(
    names: Sequence[str], values: ArrayLike, *, rows: int | None = None
) -> FloatArray:
    """A read-only float64 copy of a signal matrix, NaN for absent.

    Args:
        names: The s column names.
        values: Shape (n, s), real numbers in [0, 1] or NaN.
        rows: n, when known.

    Raises:
        InvalidArrayError: It is no matrix of real numbers of that shape.
        InvalidSignalError: A value is infinite or outside [0, 1]; names the first such signal.
    """
    matrix = np.array(real_matrix(names, values, rows=rows), order="C")
    refuse_outside(names, matrix)
    matrix += 0.0  # no −0.0, which would sort and print apart from 0.0
    matrix.setflags(write=False)
    return matrix


def real_matrix(names: Sequence[str], values: ArrayLike, *, rows: int | None = None) -> FloatArray:
    """A signal matrix as float64, whatever its values: the given array itself where it is that.

    Raises:
        InvalidArrayError: It is no matrix of real numbers of shape (``rows``, names).
    """
    expected = f"real numbers of shape ({'n' if rows is None else rows}, {len(names)})"
    try:
        given = np.asarray(values)
    except (TypeError, ValueError) as error:  # ragged rows
        raise InvalidArrayError("values", expected, shown(values)) from error
    if given.dtype.kind not in "fiu":
        raise InvalidArrayError("values", f"{expected}, NaN for absent", f"dtype {given.dtype}")
    if given.ndim != 2 or given.shape[1] != len(names) or rows not in (None, given.shape[0]):
        raise InvalidArrayError("values", expected, f"shape {given.shape}")
    # A wider float may be above 1 by less than a double can tell: judged as the double it becomes.
    return np.asarray(given, dtype=np.float64)


def refuse_outside(names: Sequence[str], matrix: FloatArray, rows: slice = slice(None)) -> None:
    """See that every value of some rows is in [0, 1] or NaN.

    Raises:
        InvalidSignalError: One is not; names the signal of the first.
    """
    matrix = matrix[rows]
    # Two reductions that pass over NaN: a quarter of the time of comparing each value.
    least = np.fmin.reduce(matrix, axis=None, initial=0.0)
    greatest = np.fmax.reduce(matrix, axis=None, initial=1.0)
    if least < 0.0 or greatest > 1.0:
        row, column = (int(at[0]) for at in np.nonzero((matrix < 0.0) | (matrix > 1.0)))
        raise InvalidSignalError(names[column], float(matrix[row, column]))


def _same_matrix(left: FloatArray, right: FloatArray) -> bool:
    return np.array_equal(left, right, equal_nan=True)


@frozen(init=False, repr=False)
class SignalTable:
    """The signals of n memories: ids, s names and a matrix in which NaN means absent.

    A name that no memory has a value for stays a column. Iterating gives ``(id, RelevanceSignals)``
    pairs, from which `from_signals` builds an equal table. Tables are equal when ids, names (both
    in order) and values are, NaN equal to NaN.

    Args:
        ids: n distinct strings.
        names: s distinct identifiers.
        values: Shape (n, s), real numbers in [0, 1] or NaN; kept as a read-only float64 copy.

    Raises:
        InvalidArrayError: Wrong shape or dtype, or ids or names that are not distinct or not valid.
        InvalidSignalError: A value is infinite or outside [0, 1].

    Example:
        >>> table = SignalTable(["a", "b"], ["cue", "salience"], [[0.5, float("nan")], [1, 0]])
        >>> table.signals(0)
        RelevanceSignals(cue=0.5)
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    values: FloatArray = field(eq=cmp_using(eq=_same_matrix), hash=False)

    def __init__(self, ids: Iterable[str], names: Iterable[str], values: ArrayLike) -> None:
        keys, columns = tuple(ids), checked_names(names)
        if set(map(type, keys)) - {str}:  # else there is nothing to look for
            for at, key in enumerate(keys):
                if not isinstance(key, str):
                    raise InvalidArrayError(f"ids[{at}]", "a string", type(key).__name__)
        if len(set(keys)) < len(keys):
            raise InvalidArrayError("ids", "distinct ids", "one more than once")
        self.__attrs_init__(keys, columns, checked_values(columns, values, rows=len(keys)))

    @classmethod
    def of_checked(
        cls, ids: tuple[str, ...], names: tuple[str, ...], values: FloatArray
    ) -> SignalTable:
        """A table of what is known to be valid; the matrix is kept as it is, now read-only."""
        values.setflags(write=False)
        made = object.__new__(cls)
        made.__attrs_init__(ids, names, values)
        return made

    @classmethod
    def from_signals(
        cls,
        signals: Mapping[str, RelevanceSignals] | Iterable[tuple[str, RelevanceSignals]],
        *,
        names: Iterable[str] | None = None,
    ) -> SignalTable:
        """A table of the signals of several memories.

        Args:
            signals: Id → signals, or pairs.
            names: The columns and their order. By default the standard names that occur, then the
                others in the order in which they first occur, those given as None too.

        Raises:
            InvalidArgumentError: A present signal is not among ``names``, or a value is no
                `RelevanceSignals`.
        """
        pairs = list(signals.items() if isinstance(signals, Mapping) else signals)
        problems = [
            f"signals[{at}]: expected RelevanceSignals, got {type(one).__name__}"
            for at, (_, one) in enumerate(pairs)
            if not isinstance(one, RelevanceSignals)
        ]
        if problems:
            raise InvalidArgumentError(problems)
        seen = dict.fromkeys(name for _, one in pairs for name in one.names())
        if names is None:
            columns = tuple(name for name in STANDARD_SIGNALS if name in seen)
            columns += tuple(name for name in seen if name not in STANDARD_SIGNALS)
        else:
            columns = checked_names(names)
            found = dict.fromkeys(name for _, one in pairs for name in one.present())
            lost = [name for name in found if name not in columns]
            if lost:
                raise InvalidArgumentError(
                    f"names: {name!r} is present in the signals but not named" for name in lost
                )
        values = np.full((len(pairs), len(columns)), np.nan)
        position = {name: at for at, name in enumerate(columns)}
        for row, (_, one) in enumerate(pairs):
            for name, value in one.present().items():
                values[row, position[name]] = value
        return cls([key for key, _ in pairs], columns, values)

    def take(self, rows: NDArray[np.int64]) -> SignalTable:
        """The table of some of the memories, by distinct positions."""
        ids = tuple([self.ids[at] for at in rows.tolist()])
        return SignalTable.of_checked(ids, self.names, self.values[rows])

    def column(self, name: str) -> FloatArray:
        """One signal of all memories, shape (n,), read-only; all NaN for a name not in the table."""
        if name in self.names:
            return self.values[:, self.names.index(name)]
        absent = np.full(len(self.ids), np.nan)
        absent.setflags(write=False)
        return absent

    def signals(self, row: int) -> RelevanceSignals:
        """The signals of the memory in this row, names without a value given as None."""
        return self.rows(np.array([row]))[0]

    def rows(self, rows: NDArray[np.int64]) -> list[RelevanceSignals]:
        """`signals` of several rows."""
        order = _standard_first(self.names)
        columns = [self.names.index(name) for name in order]
        make = RelevanceSignals._of_row  # noqa: SLF001
        return [make(order, values) for values in self.values[rows][:, columns].tolist()]

    def __iter__(self) -> Iterator[tuple[str, RelevanceSignals]]:
        for row, key in enumerate(self.ids):
            yield key, self.signals(row)

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[type[SignalTable], tuple[object, ...]]:
        # An array that is unpickled or copied deeply could be written to; a new table's cannot.
        return SignalTable, (self.ids, self.names, self.values)

    def __repr__(self) -> str:
        return f"SignalTable({len(self.ids)} × {', '.join(self.names) or 'no signals'})"


def names_and_values(
    table: SignalTable | tuple[Iterable[str], ArrayLike],
) -> tuple[tuple[str, ...], FloatArray]:
    """Column names and matrix (n, s) of a table; a pair of both is checked as a table would be."""
    if isinstance(table, SignalTable):
        return table.names, table.values
    names = checked_names(table[0])
    return names, checked_values(names, table[1])

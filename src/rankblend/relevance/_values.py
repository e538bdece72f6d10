"""Single values and matrices of signals as they are given, checked on their way in."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankblend.errors import InvalidArrayError, InvalidSignalError
from rankblend.relevance._evidence import is_identifier

FloatArray = NDArray[np.float64]


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite Python number, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int no float can hold
        return False


def real_number(value: object) -> float | None:
    """``value`` as a float when it is a real number (numpy's too) and no bool, else None.

    An integer beyond the range of a float becomes an infinity of its sign; −0.0 becomes 0.0.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value) + 0.0
    except OverflowError:
        return math.copysign(math.inf, -1.0 if value < 0.0 else 1.0)


def shown(value: object) -> str:
    """A refused value for a message: numbers and short texts as they are, else only the type."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f"a text of {len(value)} characters"
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int) and value.bit_length() < 64:
        return str(value)
    return type(value).__name__


def named(key: object) -> str:
    """A key that was given, for a message: a text as it is, cut short, anything else as `shown`."""
    return key[:40] if isinstance(key, str) else shown(key)


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

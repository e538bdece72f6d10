"""Vectors as they are stored: float32, of unit length; and what is refused on the way there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError

# A length this near to 1 is rounding: such a vector is kept as it is, so that normalizing twice
# changes no bit, and an index rebuilt from stored vectors equals the one that was written.
_ROUNDING = 2.0**-23
# numpy sums rows of more than 8,192 numbers in pieces that depend on how many rows there are.
_COLUMNS = 4096
# Vectors checked at a time; bounds what is held in float64.
_CHUNK = 1024
_IN_CACHE = 256


def as_vector(value: object, name: str, dimension: int | None) -> NDArray[np.float32]:
    """A vector as float32, shape (d,); its length is not looked at.

    Raises:
        InvalidArrayError: Not numbers, not one row, or another dimension than ``dimension``.
    """
    if isinstance(value, np.ndarray) and value.dtype == np.float32 and value.shape == (dimension,):
        return value
    expected = "one row of numbers" if dimension is None else f"{dimension} numbers"
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidArrayError(name, expected, "rows of different lengths") from None
    if array.dtype.kind not in "fiu":
        raise InvalidArrayError(name, expected, f"dtype {array.dtype}")
    if array.ndim != 1 or not len(array) or (dimension is not None and len(array) != dimension):
        raise InvalidArrayError(name, expected, f"shape {array.shape}")
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)


def lengths(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64, shape (n,): Euclidean length of each row, by itself; not finite where a value is not."""
    squares = np.zeros(len(rows))
    for start in range(0, rows.shape[1], _COLUMNS):
        part = rows[:, start : start + _COLUMNS].astype(np.float64)
        squares += np.einsum("ij,ij->i", part, part)
    return np.sqrt(squares)


def _refuse_length(length: float, name: str) -> None:
    """Raise for a vector that points nowhere.

    Raises:
        InvalidArrayError: The length is 0, NaN or infinite.
    """
    if not math.isfinite(length):
        raise InvalidArrayError(name, "finite float32 numbers", "NaN or infinity")
    if length == 0.0:
        raise InvalidArrayError(name, "a vector of a length above 0", "only zeros")


def _unusable(length: NDArray[np.float64]) -> list[int]:
    """Positions of the lengths that `_refuse_length` refuses."""
    usable = np.isfinite(length) & (length > 0.0)
    return [] if usable.all() else np.flatnonzero(~usable).tolist()


def to_unit(rows: NDArray[np.float32], length: NDArray[np.float64]) -> NDArray[np.float32]:
    """float32, shape (n, d): the rows divided by their lengths (finite, > 0)."""
    off = np.abs(length - 1.0) > _ROUNDING
    if not off.any():
        return rows
    rows = rows.copy()
    rows[off] = rows[off] / length[off, None]
    return rows


def make_units(rows: NDArray[np.float32], place: Callable[[int], str]) -> None:
    """Divide many vectors by their lengths where they are.

    Raises:
        InvalidArrayError: The first one that `as_unit` would refuse.
    """
    for start in range(0, len(rows), _IN_CACHE):
        part = rows[start : start + _IN_CACHE]
        length = lengths(part)
        for bad in _unusable(length):
            _refuse_length(float(length[bad]), place(start + bad))
        unit = to_unit(part, length)
        if unit is not part:
            part[:] = unit


def as_unit(value: object, name: str, dimension: int | None) -> NDArray[np.float32]:
    """A vector as it would be stored: float32, shape (d,), unit length.

    Raises:
        InvalidArrayError: Not numbers, another dimension, NaN, infinity, or only zeros.
    """
    row = as_vector(value, name, dimension)[None]
    length = lengths(row)
    _refuse_length(float(length[0]), name)
    unit: NDArray[np.float32] = to_unit(row, length)[0]
    return unit


def checked_lengths(
    vectors: Sequence[object], dimension: int | None, place: Callable[[int], str]
) -> tuple[int | None, NDArray[np.float64]]:
    """The lengths of many vectors, all of which can be stored.

    Args:
        vectors: None where there is none.
        dimension: What theirs must be; None: that of the first.
        place: Names the vector at a position in an error.

    Returns:
        The dimension (None when it is still unknown), and float64, shape (n,), NaN where there is
        no vector.

    Raises:
        InvalidArrayError: The first one that `as_unit` would refuse.
    """
    found = np.full(len(vectors), np.nan)
    given = [at for at, vector in enumerate(vectors) if vector is not None]
    for start in range(0, len(given), _CHUNK):
        chunk = given[start : start + _CHUNK]
        rows = []
        try:
            for at in chunk:
                rows.append(as_vector(vectors[at], "", dimension))
                dimension = len(rows[0])
            found[chunk] = length = lengths(np.concatenate(rows).reshape(len(rows), -1))
            for position in _unusable(length):
                at = chunk[position]
                _refuse_length(found[at], "")
        except InvalidArrayError as error:
            raise InvalidArrayError(place(at), error.expected, error.got) from None
    return dimension, found


def stacked(vectors: Sequence[object], length: NDArray[np.float64]) -> NDArray[np.float32]:
    """float32, shape (n, d): vectors that were checked, divided by their lengths."""
    rows = np.concatenate([np.asarray(one, dtype=np.float32) for one in vectors])
    return to_unit(rows.reshape(len(vectors), -1), length)

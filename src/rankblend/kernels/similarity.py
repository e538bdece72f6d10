"""Dot products and unit vectors whose rows do not depend on one another, to the last bit.

A similarity is evidence, so it may not change with which other memories were asked for, or with how
many. Products by BLAS do; here every row is summed by one loop over its own float64 values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankblend.errors import InvalidArrayError

__all__ = ["dot_rows", "faulty_row", "pairwise_cosines", "unit_rows"]

_BLOCK = 4096  # rows converted at a time: 12 MB of float64 at 384 dimensions
_SPAN = 4096  # values summed by one einsum: beyond its buffer of 8192 the bits depend on n
_GREATEST_SQUARE = float(np.finfo(np.float32).max)


def dot_rows(rows: NDArray[np.floating], query: NDArray[np.floating]) -> NDArray[np.float64]:
    """The dot product of each row with the query, in float64.

    For unit vectors it is the cosine, within about 1e-7 (rounding of float32), so it can lie that
    far outside [−1, 1].

    Args:
        rows: Shape (n, d), float32 or wider, any memory layout.
        query: Shape (d,).

    Returns:
        float64, shape (n,). A row's value has the same bits whichever other rows are given, in
        whatever order, number and layout. NaN in a row gives NaN for that row alone.

    Raises:
        InvalidArrayError: The shapes do not fit.

    Example:
        >>> dot_rows(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.0, 1.0])).tolist()
        [0.0, 0.8]
    """
    # Contiguous copies make every sum run over the d values of one row, in order; otherwise einsum
    # picks its loops by the strides.
    vector = np.ascontiguousarray(query, dtype=np.float64)
    matrix = np.asarray(rows)
    if matrix.ndim != 2 or vector.shape != matrix.shape[1:]:
        raise InvalidArrayError(
            "rows and query", "shapes (n, d) and (d,)", f"{matrix.shape} and {vector.shape}"
        )
    products = np.empty(len(matrix), dtype=np.float64)
    for start in range(0, len(matrix), _BLOCK):
        block = np.ascontiguousarray(matrix[start : start + _BLOCK], dtype=np.float64)
        products[start : start + _BLOCK] = _sums("nd,d->n", block, vector)
    return products


def pairwise_cosines(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """The cosine of every row with every row, float64, shape (n, n), symmetric.

    Args:
        rows: Unit vectors, shape (n, d); a row with NaN is absent.

    Returns:
        Within [−1, 1]; NaN where either is absent. A pair's value does not depend on other rows.
    """
    vectors = np.ascontiguousarray(rows, dtype=np.float64)
    cosines = np.empty((len(vectors), len(vectors)), dtype=np.float64)
    for place, vector in enumerate(vectors):
        cosines[place] = dot_rows(vectors, vector)
    return np.clip(cosines, -1.0, 1.0)


def faulty_row(matrix: NDArray[np.floating]) -> tuple[int, str] | None:
    """The first row that cannot be made a unit vector, with ``non-finite`` or ``norm``; or None.

    The norm is at fault when it is zero or its square is beyond float32, the precision vectors are
    kept in.
    """
    squares = _squares(np.asarray(matrix))
    faulty = ~((squares > 0.0) & (squares <= _GREATEST_SQUARE))
    if not faulty.any():
        return None
    row = int(np.argmax(faulty))
    return row, "norm" if np.isfinite(matrix[row]).all() else "non-finite"


def unit_rows(matrix: ArrayLike) -> NDArray[np.float32]:
    """Each row divided by its Euclidean norm, as float32; a row does not depend on the others.

    Args:
        matrix: Numbers, shape (n, d), d ≥ 1.

    Returns:
        float32, C-contiguous, shape (n, d), a new array; norms are 1 within about 1e-7.

    Raises:
        InvalidArrayError: Wrong shape, or a row with NaN, infinity, norm 0 or a norm whose square
            is beyond float32; it names the first such row.

    Example:
        >>> unit_rows([[3.0, 4.0]]).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    try:
        given = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArrayError("matrix", "numbers of shape (n, d)", "something else") from None
    if given.ndim != 2 or given.shape[1] == 0:
        raise InvalidArrayError("matrix", "shape (n, d) with d ≥ 1", f"shape {given.shape}")
    fault = faulty_row(given)
    if fault is not None:
        row, reason = fault
        got = "NaN or infinity" if reason == "non-finite" else "a norm of 0 or out of range"
        raise InvalidArrayError(f"row {row}", "finite numbers with a norm above 0", got)
    units = given / np.sqrt(_squares(given))[:, None]
    return np.ascontiguousarray(units, dtype=np.float32)


def _squares(matrix: NDArray[np.floating]) -> NDArray[np.float64]:
    """The squared norm of each row; infinity or NaN where it cannot be had."""
    values = np.ascontiguousarray(matrix, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return _sums("nd,nd->n", values, values)


def _sums(how: str, rows: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = np.zeros(len(rows), dtype=np.float64)
    for start in range(0, rows.shape[1], _SPAN):
        part = slice(start, start + _SPAN)
        sums += np.einsum(how, rows[:, part], other[..., part])
    return sums

"""Holm's correction, for p values that do not come with their joint distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankblend.errors import InvalidArrayError

__all__ = ["holm"]


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p values for all of them, family-wise, whatever their dependence.

    The i-th smallest of m (from 0) is multiplied by m − i; none falls below a smaller one's, none
    exceeds 1.

    Args:
        p: float64, shape (m,), in [0, 1]; NaN for what was not tested: it stays NaN and does not
            count.

    Returns:
        float64, shape (m,).

    Raises:
        InvalidArrayError: A value outside [0, 1], or another shape.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, np.float64)
    if values.ndim != 1 or bool(((values < 0.0) | (values > 1.0)).any()):
        raise InvalidArrayError("p", "values in [0, 1], shape (m,)", f"shape {values.shape}")
    adjusted = np.full(values.size, np.nan)
    order = np.argsort(values, kind="stable")[: int(np.count_nonzero(~np.isnan(values)))]
    steps = values[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted

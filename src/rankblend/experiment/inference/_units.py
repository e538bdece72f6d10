"""The independent units of an experiment: clusters of queries, or single queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError


@frozen(eq=False)
class Units:
    """What is resampled, permuted and counted as independent.

    Queries about one conversation share its difficulty; counting each as independent makes
    intervals too narrow and p too small.

    Attributes:
        kind: ``cluster``, or ``query`` where every query is its own cluster.
        names: The G labels, sorted; of queries without clusters the positions.
        index: int64, shape (q,): the unit of each query.
        sizes: float64, shape (G,): queries per unit, ≥ 1.
    """

    kind: str
    names: tuple[str, ...]
    index: NDArray[np.int64]
    sizes: NDArray[np.float64]

    def __len__(self) -> int:
        return self.sizes.size

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64, shape (…, q), summed within units: shape (…, G)."""
        flat = values.reshape(-1, values.shape[-1])
        table = np.zeros((flat.shape[0], len(self)))
        for row, line in zip(table, flat, strict=True):
            row += np.bincount(self.index, weights=line, minlength=len(self))
        return table.reshape(*values.shape[:-1], len(self))


def group_units(queries: int, clusters: Sequence[str] | None = None) -> Units:
    """The units of q queries.

    Args:
        queries: q ≥ 1.
        clusters: The cluster of each query; None, or a label of its own for each: queries are
            units. An empty label is a cluster like any other.

    Raises:
        InvalidArrayError: Another number of clusters than queries.
    """
    if clusters is not None and len(clusters) != queries:
        raise InvalidArrayError("clusters", f"{queries} labels", f"{len(clusters)}")
    if clusters is None:
        index = np.arange(queries)
        return Units("query", tuple(map(str, range(queries))), index, np.ones(queries))
    names, found = np.unique(np.asarray(clusters, np.str_), return_inverse=True)
    sizes = np.bincount(found, minlength=names.size).astype(np.float64)
    kind = "query" if names.size == queries else "cluster"
    return Units(kind, tuple(map(str, names)), found.astype(np.int64), sizes)


def check_differences(differences: object) -> NDArray[np.float64]:
    """Finite paired differences as float64, shape (rows, q); one row may come as shape (q,).

    Raises:
        InvalidArrayError: Another shape, no queries, or a NaN: exclude queries before comparing.
    """
    table = np.asarray(differences, np.float64)
    rows = table[None] if table.ndim == 1 else table
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise InvalidArrayError("differences", "finite, shape (q,), q ≥ 1", f"{table.shape}")
    return rows

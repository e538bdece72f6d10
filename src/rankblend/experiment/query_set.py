"""Which queries an experiment used: their identity, and how to hold some of them out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import Units, group_units
from rankblend.experiment.results import Results
from rankblend.profiles import canonical_hash

__all__ = ["QuerySet", "split_clusters"]

# What values of one profile on the same queries depend on; sums over other answers are no match.
_ASKED_OF = (
    "dataset", "dataset_hash", "embedder", "statistics", "reach", "depth", "arguments", "top",
    "scoring_version",
)  # fmt: skip


@frozen(eq=False)
class QuerySet:
    """The judged queries of an experiment, in the order of their ids.

    Attributes:
        dataset: What the manifest calls the data set; empty without one.
        ids: q ids, sorted.
        units: Of these queries.
        positions: int64, shape (q,): where each is among the queries of the results.
        hash: SHA-256 of ids, clusters and of what they were asked of (data set with its judgments,
            embedder, depth, …): equal for the same queries in any order.
    """

    dataset: str
    ids: tuple[str, ...]
    units: Units
    positions: NDArray[np.int64]
    hash: str

    @classmethod
    def of(cls, results: Results) -> QuerySet:
        """The query set of some results.

        Raises:
            InvalidArgumentError: No query has judgments.
        """
        judged = np.flatnonzero(results.judged).tolist()
        if not judged:
            raise InvalidArgumentError("results: no query has judgments")
        # Sorted, so that sums over units have the same bits in whatever order queries come.
        positions = np.array(sorted(judged, key=lambda i: results.queries[i]), np.int64)
        ids = tuple(results.queries[i] for i in positions)
        clusters = [results.clusters[i] for i in positions]
        dataset = str(results.manifest.get("dataset", ""))
        asked = {name: results.manifest.get(name) for name in _ASKED_OF}
        key = canonical_hash([asked, [list(pair) for pair in zip(ids, clusters, strict=True)]])
        return cls(dataset, ids, group_units(len(ids), clusters), positions, key)


def split_clusters(
    clusters: Sequence[str], *, held_out: float = 0.5, seed: int = 0
) -> NDArray[np.bool_]:
    """Divide queries into those to explore and those held out, whole clusters at a time.

    Args:
        clusters: The cluster of each of q queries.
        held_out: Share of the clusters held out, in (0, 1); at least one on either side.
        seed: Another seed divides differently.

    Returns:
        bool, shape (q,): True where held out.

    Raises:
        InvalidArgumentError: Fewer than two clusters, or a share out of range.
    """
    names = sorted(set(clusters))
    if len(names) < 2 or not 0.0 < held_out < 1.0:
        raise InvalidArgumentError("split: expected two clusters or more and a share in (0, 1)")
    count = min(max(round(len(names) * held_out), 1), len(names) - 1)
    order = np.random.default_rng(seed).permutation(len(names))[:count]
    held = {names[i] for i in order}
    return np.array([cluster in held for cluster in clusters], np.bool_)

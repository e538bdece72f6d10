"""Several draws of a random regime as one experiment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from rankblend.experiment.results import Results

__all__ = ["stacked"]


def stacked(draws: Sequence[Results]) -> Results:
    """The same arms on the queries of every draw, one after the other.

    A query stands there once a draw and keeps its cluster, so that means are over draws and
    intervals still resample whole clusters, never draws.
    """
    if len(draws) == 1:
        return draws[0]
    first = draws[0]
    return evolve(
        first,
        queries=tuple(f"{name} (draw {n})" for n, one in enumerate(draws) for name in one.queries),
        clusters=tuple(cluster for one in draws for cluster in one.clusters),
        families=tuple(family for one in draws for family in one.families),
        values={
            name: np.concatenate([one.values[name] for one in draws], axis=1)
            for name in first.values
        },
        judged=np.concatenate([one.judged for one in draws]),
        empty=np.concatenate([one.empty for one in draws], axis=1),
        coverage=(
            None
            if first.coverage is None
            else np.concatenate([one.coverage for one in draws], axis=1)
        ),
    )

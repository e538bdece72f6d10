"""Asking a memory every query of a data set and measuring what comes back, query by query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend import limits
from rankblend.experiment.datasets import Dataset
from rankblend.experiment.measures import Judgments, measure_rankings, parse_measures
from rankblend.profiles import RankingProfile
from rankblend.recall import Memory

__all__ = ["Evaluation", "evaluate", "remember_dataset"]

_BATCH = 500


@frozen(eq=False)
class Evaluation:
    """Measures of one profile on one data set.

    Attributes:
        profile: Name of the profile.
        queries: Ids of the q queries, in the data set's order.
        clusters: The cluster of each.
        measures: Measure → float64, shape (q,).
        empty: How many queries returned nothing; they score 0.
    """

    profile: str
    queries: tuple[str, ...]
    clusters: tuple[str, ...]
    measures: Mapping[str, NDArray[np.float64]] = field(repr=False)
    empty: int = 0


def remember_dataset(
    memory: Memory, dataset: Dataset, *, progress: Callable[[int], object] | None = None
) -> None:
    """Write a data set's memories and links; ``progress`` is told how many were written."""
    items: Sequence[Mapping[str, Any]] = dataset.memories
    for start in range(0, len(items), _BATCH):
        batch = items[start : start + _BATCH]
        memory.remember_many(batch)
        if progress is not None:
            progress(len(batch))
    for scope, links in dataset.links.items():
        memory.link_many(links, scope=scope)


def evaluate(
    memory: Memory,
    dataset: Dataset,
    profile: RankingProfile | str | PathLike[str],
    *,
    measures: Sequence[str] = ("nDCG@10", "R@10"),
    top: int = 100,
    progress: Callable[[int], object] | None = None,
    **arguments: Any,
) -> Evaluation:
    """Recall every query and measure the results.

    Measures are named by ir-measures (nDCG with linear gains and log₂ discounts, as trec_eval).
    Queries without judgments are excluded: NaN. Reads never reinforce.

    Args:
        memory: Holds the data set.
        dataset: Its queries are asked at their scope with the data set's reach.
        profile: What to measure.
        measures: Names such as ``nDCG@10``, ``R@20``, ``RR``.
        top: Depth of each result.
        progress: Told 1 after every query.
        **arguments: Further arguments of `Memory.recall`.

    Raises:
        MissingDependencyError: ir-measures is not installed (extra ``eval``).
        InvalidArgumentError: An unknown measure.
    """
    limits.check(top=top)
    parsed = parse_measures(measures)
    rankings = []
    for query in dataset.queries:
        result = memory.recall(
            query.text, scope=query.scope, reach=dataset.reach, profile=profile, top=top,
            now=query.now, **arguments,
        )  # fmt: skip
        rankings.append(result.ids)
        if progress is not None:
            progress(1)
    judgments = Judgments.of({query.id: query.relevant for query in dataset.queries})
    values = measure_rankings(parsed, rankings, judgments)
    name = profile.name if isinstance(profile, RankingProfile) else str(profile)
    return Evaluation(
        name,
        judgments.queries,
        tuple(query.cluster for query in dataset.queries),
        {asked: values[m.name] for asked, m in zip(measures, parsed, strict=True)},
        sum(not ranking for ranking in rankings),
    )

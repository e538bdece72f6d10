"""Asking a memory every query of a data set and measuring what comes back, query by query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, MissingDependencyError
from rankblend.experiment.datasets import Dataset
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

    Measures are parsed and computed by ir-measures (nDCG with linear gains and log₂ discounts, as
    trec_eval). It compares scores in single precision and breaks ties by id, so it is handed
    ``n − rank``: our order stands. Reads never reinforce.

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
    try:
        import ir_measures
    except ImportError:
        raise MissingDependencyError("ir-measures", "eval", "measuring") from None
    try:
        parsed = {ir_measures.parse_measure(name): name for name in measures}
    except (ValueError, NameError) as error:
        raise InvalidArgumentError("measures: expected names such as nDCG@10, R@20, RR") from error
    run: dict[str, dict[str, float]] = {}
    for query in dataset.queries:
        result = memory.recall(
            query.text, scope=query.scope, reach=dataset.reach, profile=profile, top=top,
            now=query.now, **arguments,
        )  # fmt: skip
        run[query.id] = {i: float(len(result) - rank) for rank, i in enumerate(result.ids)}
        if progress is not None:
            progress(1)
    qrels = {query.id: {i: int(g) for i, g in query.relevant.items()} for query in dataset.queries}
    position = {query.id: number for number, query in enumerate(dataset.queries)}
    values = {name: np.zeros(len(position)) for name in measures}
    for metric in _calculate(ir_measures, parsed, qrels, run):
        values[parsed[metric.measure]][position[metric.query_id]] = metric.value
    name = profile.name if isinstance(profile, RankingProfile) else str(profile)
    return Evaluation(
        name,
        tuple(position),
        tuple(query.cluster for query in dataset.queries),
        values,
        sum(not scores for scores in run.values()),
    )


def _calculate(
    ir_measures: Any,
    parsed: Mapping[Any, str],
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
) -> Iterable[Any]:
    found: Iterable[Any] = ir_measures.iter_calc(list(parsed), qrels, run)
    return found

"""What the studies of procedures compare: one memory's store, ranked in several ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.measures import Judgments, measure_rankings
from rankblend.experiment.results import Results
from rankblend.reasonlets import (
    InMemoryReasonletStore,
    ReasonletMatch,
    ReasonletMemory,
    ReasonletOptions,
)

__all__ = ["DEPTH", "FLOORLESS", "MEASURES", "SIMILARITY_ONLY", "Asked", "measured", "ranked"]

MEASURES = ("nDCG@10", "R@10", "Success@1")
DEPTH = 10
FLOORLESS = ReasonletOptions(min_similarity=0.0)
SIMILARITY_ONLY = ReasonletOptions(
    similarity_weight=1.0, success_rate_weight=0.0, freshness_weight=0.0, min_similarity=0.0
)


@frozen(eq=False)
class Asked:
    """One query with what every arm returned for it.

    Attributes:
        id: Unique.
        cluster: What it shares with others.
        relevant: Id → gain.
        rankings: Arm → ids, best first.
    """

    id: str
    cluster: str
    relevant: Mapping[str, float] = field(repr=False)
    rankings: Mapping[str, Sequence[str]] = field(repr=False)


async def ranked(
    store: InMemoryReasonletStore,
    embedder: Embedder,
    question: str,
    scope: str,
    options: ReasonletOptions,
    **settings: object,
) -> list[ReasonletMatch]:
    """What a memory over the store recalls with these options."""
    memory = ReasonletMemory(embedder, store, options=options, **settings)
    return await memory.recall(question, scope=scope, top=DEPTH)


def measured(asked: Iterable[Asked]) -> Results:
    """All arms on all queries, by `MEASURES`.

    Raises:
        InvalidArgumentError: There is no query.
    """
    queries = list(asked)
    if not queries:
        raise InvalidArgumentError("tasks: too few, none of them can be answered")
    arms = tuple(queries[0].rankings)
    judgments = Judgments.of({query.id: query.relevant for query in queries})
    by_arm = [
        measure_rankings(MEASURES, [query.rankings[arm] for query in queries], judgments)
        for arm in arms
    ]
    return Results(
        arms,
        arms,
        judgments.queries,
        tuple(query.cluster for query in queries),
        ("",) * len(queries),
        {name: np.stack([values[name] for values in by_arm]) for name in MEASURES},
        judgments.judged,
        np.array([[not query.rankings[arm] for query in queries] for arm in arms]),
    )

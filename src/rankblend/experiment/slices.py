"""Comparisons on parts of the queries: by family, and by which signals the answers lacked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from attrs import frozen

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import (
    Contrast,
    Differences,
    contrasts_not_run,
    describe,
    sign_flip_test,
    with_p,
)
from rankblend.experiment.plans import scored_signals
from rankblend.experiment.results import Results
from rankblend.profiles import RankingProfile
from rankblend.recall import Candidates, derive

__all__ = ["Slice", "compare_slices", "presence_pattern", "presence_patterns"]

COMPLETE = "lacks nothing"
NOT_IN_POOL = "not in the pool"


@frozen
class Slice:
    """One part of the queries.

    Attributes:
        name: Its label.
        units: How many clusters (or queries) it touches.
        contrasts: Arms against the baseline on its queries; ``p`` is corrected for all slices and
            arms together.
    """

    name: str
    units: int
    contrasts: tuple[Contrast, ...]


def compare_slices(
    results: Results,
    labels: Sequence[str] | None = None,
    *,
    measure: str,
    baseline: str | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Slice, ...]:
    """Compare every arm with a baseline on every slice, one family of tests over all of them.

    Args:
        results: Of an experiment.
        labels: The slice of each query, q of them; None for the families of the results.
        measure: Which.
        baseline: Compared with; None for the first arm.
        confidence: Of the intervals, in (0, 1).
        resamples: Of intervals and flips.
        seed: Of both.

    Returns:
        Slices by label; those without a judged query are left out.

    Raises:
        UnknownNameError: No such measure or baseline.
        InvalidArgumentError: Another number of labels; a baseline that did not run; no judged
            query; no other arm that ran.
    """
    chosen = results.families if labels is None else tuple(labels)
    if len(chosen) != len(results.queries):
        raise InvalidArgumentError(f"labels: expected {len(results.queries)}, got {len(chosen)}")
    base = results.arms[0] if baseline is None else baseline

    whole = Differences.of(results, [measure], [base])
    column = np.array(chosen)
    judged = column[results.judged]
    names = sorted(set(judged.tolist()))
    # On all queries a slice is a row that is 0 elsewhere, so that one flip flips all slices.
    rows = np.concatenate([np.where(judged == name, whole.rows, 0.0) for name in names])
    test = sign_flip_test(rows, whole.units, resamples=resamples, seed=seed)
    units, not_run = [], []
    contrasts: list[Contrast] = []
    for name in names:
        part = results.only(column == name)
        found = Differences.of(part, [measure], [base])
        units.append(len(found.units))
        contrasts += describe(part, found, confidence=confidence, resamples=resamples, seed=seed)
        not_run.append(contrasts_not_run(part, [measure], [base]))
    tested, arms = with_p(contrasts, test), len(whole.keys)
    return tuple(
        Slice(name, units[at], (*tested[at * arms : (at + 1) * arms], *not_run[at]))
        for at, name in enumerate(names)
    )


def presence_pattern(
    profile: RankingProfile, candidates: Candidates, relevant: Collection[str]
) -> str:
    """Which of the signals a profile scores by the relevant memories of one query lacked.

    Args:
        profile: Its score says which signals count.
        candidates: The query's pool.
        relevant: Ids of the relevant memories.

    Returns:
        ``lacks keyword, similarity``: the signals that at least one relevant memory of the pool was
        without, in the profile's order; ``lacks nothing``; ``not in the pool`` where no relevant
        memory was a candidate.
    """
    wanted = set(relevant)
    rows = [row for row, identifier in enumerate(candidates.ids) if identifier in wanted]
    if not rows:
        return NOT_IN_POOL
    table = derive(profile, candidates).table
    lacking = [name for name in scored_signals(profile) if np.isnan(table.column(name)[rows]).any()]
    return f"lacks {', '.join(lacking)}" if lacking else COMPLETE


def presence_patterns(
    profile: RankingProfile,
    pools: Iterable[Candidates],
    relevant: Iterable[Mapping[str, float]],
    *,
    rel: float = 1.0,
) -> tuple[str, ...]:
    """`presence_pattern` of each query, as labels for `compare_slices`.

    Args:
        profile: As there.
        pools: Of each query.
        relevant: Grades of each query; from ``rel`` on a memory is relevant.
        rel: The least grade that counts.
    """
    return tuple(
        presence_pattern(profile, pool, [i for i, grade in grades.items() if grade >= rel])
        for pool, grades in zip(pools, relevant, strict=True)
    )

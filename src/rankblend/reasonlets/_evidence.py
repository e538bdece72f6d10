"""From what a store found to an order: evidence for the ranking pipeline, matches from its answer.

There is no scorer here. A profile (`mnemosyne` with the options of the memory) derives, weighs,
cuts and orders, as it does for any other recall.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import ReasonletAdapterError
from rankblend.profiles import RankingProfile
from rankblend.recall import RANGE_SLACK, Candidates, EvidenceColumn, Ranking, rank_candidates
from rankblend.relevance import Scope
from rankblend.stores import Key, Reason
from rankblend.stores.procedures import (
    LAYER,
    Candidate,
    ReasonletEvidence,
    ReasonletScore,
    Search,
    is_sound,
)
from rankblend.values import is_number

STORE = "procedures"
_COUNTS = ("runs", "successes", "judged_runs", "judged_successes")
EVIDENCE = (*_COUNTS, *(f"parent_{name}" for name in _COUNTS), "age_last_run")
"""What is known about a procedure whatever the question; the cosine comes with the question."""
_SIGNALS = ("similarity", "success_rate", "freshness")
_NO_PARENT = (math.nan,) * len(_COUNTS)
_UNKNOWN = (math.nan,) * len(EVIDENCE)


def select(
    profile: RankingProfile,
    search: Search,
    found: Sequence[Candidate],
    *,
    now: float,
    top: int,
) -> Ranking:
    """Rank what a store found.

    Args:
        profile: Reads ``cosine`` and the evidence in `EVIDENCE`.
        search: What the store was asked.
        found: What it answered.
        now: Seconds since the epoch.
        top: How many are shown.

    Raises:
        ReasonletAdapterError: The store answered something that cannot be a candidate.
    """
    problem = next(_problems(search, found), None)
    if problem is not None:
        raise ReasonletAdapterError("store", problem)
    cosines = np.array([each.similarity for each in found], np.float64)
    values = np.vstack([counts_evidence(found, now), cosines])
    reasons = np.where(np.isnan(values), np.int8(Reason.NOT_APPLICABLE), np.int8(Reason.PRESENT))
    pool = Candidates(
        tuple(Key(each.scope, each.id) for each in found),
        _distances(search, found),
        (LAYER,) * len(found),
        {
            name: (EvidenceColumn(STORE, values[at], reasons[at]),)
            for at, name in enumerate((*EVIDENCE, "cosine"))
        },
        np.arange(len(found)),
    )
    return rank_candidates(profile, pool, top=top)


def _distances(search: Search, found: Sequence[Candidate]) -> NDArray[np.int64]:
    """Levels up to the scope of each; all 0 when only the own scope was asked."""
    if not search.ancestors:
        return np.zeros(len(found), np.int64)
    return np.array([search.scope.distance(each.scope) for each in found], np.int64)


def counts_evidence(found: Sequence[Candidate | None], now: float) -> NDArray[np.float64]:
    """What is known about candidates whatever the question.

    Returns:
        float64, shape (`EVIDENCE`, n): NaN for None, and the parent's counts where there is none.
    """
    rows = [
        _UNKNOWN
        if each is None
        else (
            *each.counts.row,
            *(_NO_PARENT if each.parent is None else each.parent.row),
            now - each.last_run,
        )
        for each in found
    ]
    return np.array(rows, np.float64).reshape(len(rows), len(EVIDENCE)).T


def told_of(
    ranking: Ranking, row: int, candidate: Candidate
) -> tuple[ReasonletScore, ReasonletEvidence]:
    """What a match says about its score and what that rests on.

    Args:
        ranking: As made by `select`.
        row: One of its shown rows.
        candidate: The candidate it stands for.
    """
    position = int(ranking.rows[row])
    table = ranking.derived.table
    similarity, success_rate, freshness = (float(table.column(name)[position]) for name in _SIGNALS)
    score = ReasonletScore(similarity, success_rate, freshness, float(ranking.scores[row]))
    told = ranking.derived.told.get(("success_rate", "uses_parent_prior"))
    uses_parent = told is not None and bool(told[position])
    counts = candidate.counts
    return score, ReasonletEvidence(counts.runs, counts.judged_runs, uses_parent)


def _problems(search: Search, found: object) -> Iterator[str]:
    """Why a store's answer cannot be: its place and the field, never the value."""
    if not isinstance(found, Sequence) or isinstance(found, str):
        yield f"expected a sequence of Candidate, got {type(found).__name__}"
        return
    if len(found) > search.limit:
        yield f"expected at most {search.limit} candidates, got {len(found)}"
    seen: set[str] = set()
    distances: dict[Scope, int] = {search.scope: 0}
    for at, each in enumerate(found):
        if type(each) is not Candidate:
            yield f"candidates[{at}]: expected a Candidate, got {type(each).__name__}"
            continue
        identifier: object = each.id
        if not isinstance(identifier, str) or not identifier or identifier in seen:
            yield f"candidates[{at}].id: expected text that names each once"
            continue
        seen.add(identifier)
        scope: object = each.scope
        if scope is not search.scope:
            distance = distances.get(scope) if isinstance(scope, Scope) else -1
            if distance is None:
                distance = distances[each.scope] = search.scope.distance(each.scope)
            if distance < 0 or (distance > 0 and not search.ancestors):
                yield f"candidates[{at}].scope: not a scope that was asked"
        if not is_number(each.similarity) or abs(each.similarity) > 1.0 + RANGE_SLACK:
            yield f"candidates[{at}].similarity: expected a cosine in [-1, 1]"
        if not is_sound(each.counts):
            yield f"candidates[{at}].counts: expected counts that can be"
        if each.parent is not None and not is_sound(each.parent):
            yield f"candidates[{at}].parent: expected counts that can be"
        if not is_number(each.last_run):
            yield f"candidates[{at}].last_run: expected finite seconds"

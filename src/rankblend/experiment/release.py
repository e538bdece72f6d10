"""Releasing a reranker: the experiment whose outcome lets it serve, or says why not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from time import process_time

import numpy as np
from attrs import evolve, frozen

from rankblend import limits
from rankblend.errors import InvalidArgumentError, RecordingError
from rankblend.experiment.inference import Comparison, Contrast, Tried, compare
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.experiment.results import Results
from rankblend.experiment.slices import Slice, compare_slices
from rankblend.profiles import RankingProfile
from rankblend.recall import Memory, Reranker
from rankblend.rerank import (
    EvidencePolicy,
    FamilyEffect,
    ReleaseEvidence,
    RelevanceReranker,
    StaticAdmission,
    admission_request,
)

__all__ = ["Release", "measure_overhead", "measure_release"]

BASELINE, RERANKED = "baseline", "relevance"


@frozen(eq=False)
class Release:
    """What was measured, and whether it is enough.

    Attributes:
        evidence: The measurement, whatever it says.
        refusals: Everything that speaks against serving; empty: it may.
        results: Both arms on every query.
        comparison: The reranked arm against the baseline.
        families: The same by family of queries.
    """

    evidence: ReleaseEvidence
    refusals: tuple[str, ...]
    results: Results
    comparison: Comparison
    families: tuple[Slice, ...]

    @property
    def admitted(self) -> bool:
        """Whether the evidence is enough by the policy."""
        return not self.refusals


def measure_release(
    recording: Recording,
    profile: RankingProfile,
    *,
    measure: str = "nDCG@10",
    policy: EvidencePolicy | None = None,
    valid: timedelta = timedelta(days=180),
    tried: Callable[[Results], Tried | None] | None = None,
    overhead: float | None = None,
    now: datetime | None = None,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Release:
    """Measure a profile with its rerank score against the same profile without.

    Args:
        recording: Judged queries, with the evidence the profile reads.
        profile: With ``reranking = "relevance"``.
        measure: Which decides.
        policy: When it is enough; None for the default.
        valid: For how long the evidence holds.
        tried: What else was measured on these queries, such as ``ledger.tried``; p is corrected
            for it.
        overhead: Added time as a share of a recall; None to measure it here.
        now: When it was measured; None for the present.
        seed: Of intervals and tests.
        progress: Told how many queries are done.

    Raises:
        InvalidArgumentError: The profile does not rerank.
        RecordingError: The recording lacks what the profile reads.
    """
    limits.check(seed=seed)
    if profile.reranking != "relevance" or profile.rerank is None:
        raise InvalidArgumentError(
            f'profile {profile.name!r}: expected reranking = "relevance" with a [rerank] score'
        )
    results = replay(
        recording,
        {BASELINE: evolve(profile, reranking="baseline"), RERANKED: profile},
        [measure],
        reranker=RelevanceReranker(StaticAdmission(True)),
        progress=progress,
    )
    if results.not_run:
        raise RecordingError(f"{arm}: {why}" for arm, why in results.not_run.items())
    comparison = compare(results, tried=None if tried is None else tried(results), seed=seed)
    families = compare_slices(results, measure=measure, seed=seed)
    whole = comparison.contrasts[0]
    low, high = _ends(whole)
    request = admission_request(profile)
    measured = now or datetime.now(UTC)
    evidence = ReleaseEvidence(
        feature=request.feature,
        name=request.name,
        profile_hash=request.profile_hash,
        signal_schema_hash=request.signal_schema_hash,
        scoring_version=request.scoring_version,
        dataset=recording.manifest.dataset,
        dataset_hash=recording.manifest.dataset_hash,
        metric=measure,
        queries=whole.queries,
        clusters=comparison.units,
        effect=whole.difference,
        low=low,
        high=high,
        p=whole.p,
        families=tuple(_family(part) for part in families),
        overhead=measure_overhead(profile) if overhead is None else overhead,
        measured=measured,
        expires=measured + valid,
    )
    refusals = (policy or EvidencePolicy()).refusals(evidence)
    return Release(evidence, refusals, results, comparison, families)


def measure_overhead(
    profile: RankingProfile, *, memories: int = 2_000, pool: int = 200, rounds: int = 40
) -> float:
    """Added time of reranking, as a share of the recall it belongs to.

    Recalls of two memories with the same made-up content, one with the reranker admitted, one
    without, in turn; medians of processor time, so that what else the machine does matters little.

    Args:
        profile: With ``reranking = "relevance"``.
        memories: How many each memory holds.
        pool: Candidates asked of each store.
        rounds: Recalls of each.

    Returns:
        ≥ 0: a reranker that saves time adds nothing.
    """
    limits.check(memories=memories, pool=pool, rounds=rounds)
    wide = evolve(profile, pool=evolve(profile.pool, size=pool, max=max(pool, profile.pool.max)))
    rng = np.random.default_rng(0)
    words = [f"word{n}" for n in range(200)]
    items = [
        {
            "id": f"m{n}",
            "scope": "overhead:made-up",
            "text": " ".join(rng.choice(words, 12)),
            "vector": rng.normal(size=64).astype(np.float32),
            "confidence": float(rng.random()),
        }
        for n in range(memories)
    ]
    questions = [" ".join(rng.choice(words, 6)) for _ in range(rounds)]

    def opened(reranker: Reranker | None) -> Memory:
        memory = Memory.open(
            ":memory:", embedder=lambda texts: np.ones((len(texts), 64), np.float32),
            reranker=reranker,
        )  # fmt: skip
        memory.remember_many(items)
        return memory

    with opened(None) as plain, opened(RelevanceReranker(StaticAdmission(True))) as reranked:
        times: tuple[list[float], list[float]] = ([], [])
        for question in [questions[0], *questions]:  # the first is warm-up
            for memory, taken in zip((plain, reranked), times, strict=True):
                start = process_time()
                memory.recall(question, scope="overhead:made-up", profile=wide)
                taken.append(process_time() - start)
    without, with_it = (median(taken[1:]) for taken in times)
    return max(0.0, with_it / without - 1.0)


def _family(part: Slice) -> FamilyEffect:
    contrast = part.contrasts[0]
    low, high = _ends(contrast)
    return FamilyEffect(
        family=part.name, queries=contrast.queries, effect=contrast.difference, low=low, high=high
    )


def _ends(contrast: Contrast) -> tuple[float, float]:
    """The interval; a single cluster tells no more than that measures lie in [0, 1]."""
    if contrast.interval is None:
        return -1.0, 1.0
    return max(contrast.interval.low, -1.0), min(contrast.interval.high, 1.0)

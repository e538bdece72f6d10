"""The options of a procedural memory, and the ranking profile they make."""

from __future__ import annotations

import math
from datetime import timedelta
from functools import cached_property

from attrs import evolve, field, frozen

from rankblend.limits import LIMITS
from rankblend.profiles import Floor, RankingProfile, SignalRecipe, load_profile
from rankblend.relevance import ScopeBlend
from rankblend.stores.procedures import (
    Checks,
    read_duration,
)
from rankblend.values import is_number

MAX_CANDIDATES = LIMITS["candidate_pool"].most
_LONGEST_TIMEOUT = timedelta(milliseconds=2**32 - 2)  # about 49.7 days
_SUM_TOLERANCE = 1e-9
_WEIGHTS = ("similarity_weight", "success_rate_weight", "freshness_weight")
_FLOORS_KEPT = 32


@frozen(slots=False)
class ReasonletOptions:
    """How a procedural memory ranks, waits and reviews.

    Args:
        similarity_weight, success_rate_weight, freshness_weight: Each in [0, 1], with the sum 1.
        min_similarity: In [0, 1]; below it a candidate is dropped before it is scored.
        prior_weight: How many runs the prior of a success rate is worth, finite and > 0.
        agent_verdict_weight: What a run that nobody judged counts for, in [0, 1].
        freshness_half_life: A duration > 0 (or seconds).
        candidate_pool: 1 to 200: how many are looked at, or ``top`` where that is more.
        top: 1 to 50: how many a recall returns.
        min_intent_confidence: In [0, 1]: from where on an extracted intent filters a recall.
        evaluation_timeout: How long an evaluator is waited for (a duration, or seconds), above 0
            and at most about 49.7 days; None: no limit.
        guard_timeout: How long a guard is waited for, above 0; None: no limit.
        require_review: New procedures and versions wait for `ReasonletMemory.approve`.
        scope_blend: With a mode other than ``off`` a recall sees the procedures of the scopes
            above, too, and distance counts. Off: exactly the scope asked.

    Raises:
        ReasonletValidationError: All invalid options at once.

    Example:
        >>> ReasonletOptions().profile().hash == load_profile("mnemosyne").hash
        True
    """

    similarity_weight: float = 0.5
    success_rate_weight: float = 0.3
    freshness_weight: float = 0.2
    min_similarity: float = 0.5
    prior_weight: float = 5.0
    agent_verdict_weight: float = 0.5
    freshness_half_life: timedelta = field(default=timedelta(days=30), converter=read_duration)
    candidate_pool: int = 20
    top: int = 3
    min_intent_confidence: float = 0.7
    evaluation_timeout: timedelta | None = field(
        default=timedelta(seconds=30), converter=read_duration
    )
    guard_timeout: timedelta | None = field(default=timedelta(seconds=10), converter=read_duration)
    require_review: bool = False
    scope_blend: ScopeBlend = field(factory=ScopeBlend)

    def __attrs_post_init__(self) -> None:
        checks = Checks()
        self._check(checks)
        checks.raise_if_any()

    def profile(self, min_similarity: float | None = None) -> RankingProfile:
        """The profile ``mnemosyne`` with these options.

        Args:
            min_similarity: The floor of one query, in [0, 1]; None: the options' own.
        """
        if min_similarity is None or min_similarity == self.min_similarity:
            return self._profile
        made = self._floored.get(min_similarity)
        if made is None:
            if len(self._floored) >= _FLOORS_KEPT:
                self._floored.clear()
            made = self._floored[min_similarity] = _with_floor(self._profile, min_similarity)
        return made

    @cached_property
    def _profile(self) -> RankingProfile:
        preset = load_profile("mnemosyne")
        signals = dict(preset.signals)
        rate = {
            "prior_weight": float(self.prior_weight),
            "agent_verdict_weight": float(self.agent_verdict_weight),
        }
        days = self.freshness_half_life / timedelta(days=1)
        for name, curve in (("success_rate", {"smoothed_rate": rate}),
                            ("freshness", {"half_life": {"days": days}})):  # fmt: skip
            signals[name] = SignalRecipe(signals[name].evidence, curve=curve)
        weights = {name.removesuffix("_weight"): float(getattr(self, name)) for name in _WEIGHTS}
        made = evolve(
            preset,
            signals=signals,
            score=evolve(preset.score, weights=weights),
            pool=evolve(preset.pool, size=self.candidate_pool, max=MAX_CANDIDATES),
            select=evolve(preset.select, top=self.top),
            scope=self.scope_blend,
        )
        return _with_floor(made, self.min_similarity)

    @cached_property
    def _floored(self) -> dict[float, RankingProfile]:
        return {}

    def _check(self, checks: Checks) -> None:
        for name in (*_WEIGHTS, "min_similarity", "agent_verdict_weight", "min_intent_confidence"):
            checks.unit(name, getattr(self, name))
        weights = [getattr(self, name) for name in _WEIGHTS]
        if all(map(is_number, weights)) and abs(math.fsum(weights) - 1.0) > _SUM_TOLERANCE:
            expected = f"expected a sum of 1 within {_SUM_TOLERANCE:g}"
            checks.add(", ".join(_WEIGHTS), f"{expected}, got {math.fsum(weights):.12g}")
        checks.number("prior_weight", self.prior_weight, above=0)
        LIMITS["candidate_pool"].hold(checks, "candidate_pool", self.candidate_pool)
        LIMITS["procedures"].hold(checks, "top", self.top)
        checks.duration("freshness_half_life", self.freshness_half_life)
        checks.duration("guard_timeout", self.guard_timeout, optional=True)
        checks.duration(
            "evaluation_timeout", self.evaluation_timeout, most=_LONGEST_TIMEOUT, optional=True
        )
        checks.flag("require_review", self.require_review)
        checks.instance("scope_blend", self.scope_blend, ScopeBlend)


def _with_floor(profile: RankingProfile, least: float) -> RankingProfile:
    floor = Floor(float(least), "drop")
    return evolve(profile, floors=evolve(profile.floors, signals={"similarity": floor}))

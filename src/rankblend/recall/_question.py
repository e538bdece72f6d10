"""What a recall asks, after all its arguments have been read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.checks import Problems
from rankblend.kernels.text import tokens
from rankblend.limits import LIMITS
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import _arguments as arguments
from rankblend.relevance import Scope
from rankblend.stores import Reach, Seed, Statistics
from rankblend.stores.catalog import Filters

ProfileLike = RankingProfile | str | os.PathLike[str]


@frozen
class Serving:
    """What a reranker decided.

    Args:
        node: Which part of the profile scores: ``score`` or ``rerank``.
        trace: What the trace says of it.
        evidence: Id of the evidence it was admitted by; empty if there is none.
        shadow: Whether the order by ``rerank`` is put into the trace beside what is served.
    """

    node: str
    trace: str
    evidence: str = ""
    shadow: bool = False


class Reranker(Protocol):
    """Decides whether a profile's ``rerank`` score may serve; asked once a recall."""

    def __call__(self, profile: RankingProfile) -> Serving:
        """``Serving("score", reason)`` for the baseline, ``Serving("rerank", name)`` otherwise."""
        ...


@frozen(eq=False)
class Question:
    """A validated recall.

    Args:
        text: The query.
        scopes: Whose memories.
        profile: The recipe, per-call weights included.
        reach, statistics, as_of, seeds: See `Memory.recall`; times in seconds.
        now: What ages are measured to: ``as_of`` where that is given, else the present.
        present: When the question is asked; a use is counted then.
        top: Result size, or None for the profile's.
        filters: Hard conditions.
        prefer: Soft ones, as they were given.
        include_expired: Show expired memories too.
        embed: Text → unit vector, or None without an embedder.
        reranker: See `Reranker`.
        count_tokens: Text → length, for token caps.
    """

    text: str
    scopes: tuple[Scope, ...]
    profile: RankingProfile
    reach: Reach = Reach.ANCESTORS
    statistics: Statistics = Statistics.ROOT
    now: float = 0.0
    present: float = 0.0
    as_of: float | None = None
    top: int | None = None
    filters: Filters = field(factory=Filters)
    prefer: Mapping[str, object] = field(factory=dict)
    seeds: tuple[Seed, ...] = ()
    include_expired: bool = False
    embed: Callable[[str], NDArray[np.float32] | None] | None = None
    reranker: Reranker | None = None
    count_tokens: Callable[[str], int] = len

    @property
    def blank(self) -> bool:
        """A cold start: there is no word to look for."""
        return not tokens(self.text)

    def serving(self) -> Serving:
        """Which part of the profile scores."""
        if self.profile.reranking != "relevance":
            return Serving("score", "baseline")
        if self.reranker is None:
            return Serving("score", "baseline: no reranker was given")
        if self.blank:  # candidates come from the catalog alone, by time, and keep that order
            return Serving("score", "baseline: nothing was asked")
        return self.reranker(self.profile)


def read_question(
    given: Mapping[str, Any],
    *,
    allow_subtree: bool,
    profile: RankingProfile,
    statistics: Statistics,
    present: Callable[[float | None], float],
    embed: Callable[[str], NDArray[np.float32] | None] | None,
    reranker: Reranker | None,
    count_tokens: Callable[[str], int],
) -> Question:
    """The arguments of `Memory.recall` as a question.

    Args:
        given: All of them, by name.
        allow_subtree: Whether ``reach`` may be ``subtree``.
        profile: The recipe where none is named.
        statistics: See `Question`.
        present: Seconds since the epoch: what it is given, else what the clock says.
        embed: See `Question`.
        reranker: See `Question`.
        count_tokens: See `Question`.

    Raises:
        InvalidArgumentError: Every problem at once.
        UnknownNameError, ProfileError: The profile, or weights that it refuses.
    """
    problems = Problems()
    text = arguments.read_query(problems, given["query"])
    scopes = arguments.read_scopes(problems, given["scope"])
    reach = arguments.read_reach(problems, given["reach"], allowed=allow_subtree)
    LIMITS["shown"].hold(problems, "top", given["top"], optional=True)
    filters = arguments.read_filters(problems, "filters", given["filters"])
    arguments.read_filters(problems, "prefer", given["prefer"])
    seeds = arguments.read_seeds(problems, given["seeds"])
    valid_at = problems.time("as_of", given["as_of"], optional=True)
    now = problems.time("now", given["now"], optional=True)
    weights = given["weights"]
    if weights is not None and not isinstance(weights, Mapping):
        problems.add("weights", "expected a mapping from signals to numbers")
    problems.raise_if_any()
    recipe = profile if given["profile"] is None else load_profile(given["profile"])
    now = present(now)
    return Question(
        text,
        scopes,
        recipe.with_weights(weights) if weights else recipe,
        reach=reach,
        statistics=statistics,
        now=now if valid_at is None else valid_at,
        present=now,
        as_of=valid_at,
        top=given["top"],
        filters=filters,
        prefer=dict(given["prefer"] or {}),
        seeds=seeds,
        include_expired=bool(given["include_expired"]),
        embed=embed,
        reranker=reranker,
        count_tokens=count_tokens,
    )

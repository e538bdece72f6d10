"""Learning the weights of a score from judgments, reported on clusters they were not learned on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rankblend import limits
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import Comparison, compare
from rankblend.experiment.results import Results
from rankblend.profiles import RankingProfile, canonical_hash


def grouped_folds(clusters: Sequence[str], *, folds: int = 5, seed: int = 0) -> NDArray[np.int64]:
    """The fold of each query; no cluster is in two of them.

    Clusters go one by one, greatest first, to the fold with the fewest queries, equals in an order
    drawn by the seed. With no more clusters than folds each cluster is a fold.

    Args:
        clusters: The cluster of each of q queries.
        folds: How many, ≥ 2.
        seed: Of the order among clusters of equal size.

    Returns:
        int64, shape (q,), in [0, min(folds, clusters)).

    Raises:
        InvalidArgumentError: Fewer than two folds or clusters.
    """
    names, index = np.unique(np.asarray(clusters, np.str_), return_inverse=True)
    problems = limits.beyond(folds=folds, seed=seed)
    if names.size < 2:
        problems.append(f"clusters: expected at least 2 to hold some out, got {names.size}")
    if problems:
        raise InvalidArgumentError(problems)
    sizes = np.bincount(index)
    shuffled = np.random.default_rng(seed).permutation(names.size)
    filled = np.zeros(min(folds, names.size), np.int64)
    fold_of = np.zeros(names.size, np.int64)
    for cluster in sorted(shuffled.tolist(), key=lambda c: -sizes[c]):
        fold_of[cluster] = filled.argmin()
        filled[fold_of[cluster]] += sizes[cluster]
    return fold_of[index]


Evaluator = Callable[[Sequence[RankingProfile]], NDArray[np.float64]]
"""Profiles → the measure of each on every query: float64, shape (profiles, q), NaN unjudged."""

FITTED, GIVEN, UNIFORM = "fitted", "given", "uniform"
# A weight is tried at these multiples of itself; the second list is for the last refinement.
_STEPS = ((0.0, 0.5, 2.0), (0.0, 0.8, 1.25), (0.9, 1.1))
_SEED_SHARE = 0.1  # what a weight of 0 is tried at, as share of the whole
_GAIN = 1e-6  # smaller gains of the mean are not worth another round
_MOST_ROUNDS = 50


@frozen(eq=False)
class WeightFit:
    """Fitted weights with what they are worth.

    Attributes:
        profile: With the weights fitted on all judged queries; its source tells where they come
            from.
        weights: By input of the score, ≥ 0; they sum to 1, or to what the profile promised.
        folds: The weights fitted without each fold; how much they vary tells how sure they are.
        held_out: Arms ``fitted``, ``given`` (the profile as it was) and ``uniform`` on every
            judged query. ``fitted`` is there what the weights learned without the query's fold
            give.
        comparison: Of ``fitted`` with ``given`` and with ``uniform``.
        seen: Mean of the final weights on the queries they were fitted on; compare it with the
            held-out mean, not with another profile.
        tried: How many weightings were evaluated.
    """

    profile: RankingProfile
    weights: Mapping[str, float]
    folds: tuple[Mapping[str, float], ...]
    held_out: Results = field(repr=False)
    comparison: Comparison
    seen: float
    tried: int


def fit_weights(
    profile: RankingProfile,
    evaluate: Evaluator,
    *,
    queries: Sequence[str],
    clusters: Sequence[str],
    measure: str,
    dataset: str = "",
    inputs: Sequence[str] | None = None,
    folds: int = 5,
    starts: int = 32,
    seed: int = 0,
) -> WeightFit:
    """Find the weights of a score that give the greatest mean of a measure.

    Coordinate ascent on the simplex from the best of: uniform weights, those of the profile and
    some drawn at random. It works on the measure itself, which is a step function of the weights:
    there are no gradients to follow, but also no other loss that could disagree. Every fold is
    fitted anew without its queries; all of them share the evaluations already made.

    Args:
        profile: Whose score is fitted; everything else stays.
        evaluate: Runs profiles, such as a replay of a recording.
        queries: Ids of the q queries.
        clusters: The cluster of each; none is learned on and judged on.
        measure: What ``evaluate`` returns, for the report.
        dataset: Where the queries come from, for the provenance.
        inputs: Which weights are fitted; the others keep theirs. None for all.
        folds: How many, ≥ 2; with fewer clusters each is one.
        starts: Random starting points, ≥ 0.
        seed: Of folds and starts.

    Raises:
        InvalidArgumentError: Unknown inputs, fewer than two of them, fewer than two clusters, no
            judged query.

    Source: coordinate ascent on retrieval measures: Metzler and Croft, Linear feature-based models
    for information retrieval, Information Retrieval 10, 2007.
    """
    limits.check(folds=folds, starts=starts, seed=seed)
    simplex = _Simplex.of(profile, inputs)
    search = _Search(profile, evaluate, simplex)
    start = [simplex.uniform(), simplex.current()]
    generator = np.random.default_rng(seed)
    start += list(generator.dirichlet(np.ones(len(simplex.names)), size=starts) * simplex.total)
    judged = np.asarray(~np.isnan(search.rows(start)).any(axis=0), np.bool_)
    if not judged.any():
        raise InvalidArgumentError("evaluate: no query has judgments, so there is nothing to learn")
    kept = np.flatnonzero(judged)
    fold = grouped_folds([clusters[i] for i in kept.tolist()], folds=folds, seed=seed)

    fitted = np.full(len(queries), np.nan)
    without: list[NDArray[np.float64]] = []
    for number in range(int(fold.max()) + 1):
        without.append(search.ascend(start, kept[fold != number]))
        here = kept[fold == number]
        fitted[here] = search.rows([without[-1]])[0, here]
    final = search.ascend(start, kept)
    uniform, current = search.rows(start[:2])
    held_out = Results(
        (FITTED, GIVEN, UNIFORM),
        (
            canonical_hash([search.profile(weights).hash for weights in without]),
            profile.hash,
            search.profile(start[0]).hash,
        ),
        tuple(queries), tuple(clusters), ("",) * len(queries),
        {measure: np.stack([fitted, np.where(judged, current, np.nan),
                            np.where(judged, uniform, np.nan)])},
        judged, np.zeros((3, len(queries)), np.bool_), manifest={"dataset": dataset},
    )  # fmt: skip
    comparison = compare(held_out, measures=measure, baselines=(GIVEN, UNIFORM), seed=seed)
    seen = float(search.rows([final])[0, kept].mean())
    told = (
        f"Weights of {profile.name!r} fitted on {dataset or 'judged queries'}: {kept.size} queries "
        f"in {len(set(clusters))} clusters, {measure}, coordinate ascent over "
        f"{search.tried} weightings, {len(without)} folds by cluster, seed {seed}. Held out: "
        f"{held_out.mean(measure)[0]:.4f}, the profile before {held_out.mean(measure)[1]:.4f}, "
        f"uniform {held_out.mean(measure)[2]:.4f}. Before: {profile.hash}."
    )
    made = evolve(search.profile(final), name=f"{profile.name[:90]}-fitted", source=told)
    return WeightFit(
        made, simplex.named(final), tuple(simplex.named(weights) for weights in without),
        held_out, comparison, seen, search.tried,
    )  # fmt: skip


@frozen(eq=False)
class _Simplex:
    """The weights that are fitted: non-negative, with a fixed sum."""

    names: tuple[str, ...]
    before: tuple[float, ...]
    total: float

    @classmethod
    def of(cls, profile: RankingProfile, inputs: Sequence[str] | None) -> _Simplex:
        held = dict(profile.score.weights)
        names = tuple(held) if inputs is None else tuple(dict.fromkeys(inputs))
        problems = [
            f"inputs: the score has no {name!r}, only {', '.join(held)}"
            for name in names
            if name not in held
        ]
        if not problems and len(names) < 2:
            problems.append(f"inputs: expected at least two to weigh, got {len(names)}")
        if problems:
            raise InvalidArgumentError(problems)
        before = tuple(held[name] for name in names)
        if inputs is None:
            return cls(names, before, profile.must_sum_to.get("score", 1.0))
        # Beside weights that stay, the sum says how much the fitted ones count together.
        return cls(names, before, sum(before) or 1.0)

    def uniform(self) -> NDArray[np.float64]:
        return np.full(len(self.names), self.total / len(self.names))

    def current(self) -> NDArray[np.float64]:
        held = np.array(self.before)
        return held * (self.total / held.sum()) if held.sum() > 0.0 else self.uniform()

    def scaled(self, weights: NDArray[np.float64]) -> NDArray[np.float64] | None:
        whole = float(weights.sum())
        return weights * (self.total / whole) if whole > 0.0 else None

    def named(self, weights: NDArray[np.float64]) -> dict[str, float]:
        return dict(zip(self.names, map(float, weights), strict=True))


class _Search:
    """Evaluates weightings in batches, each once."""

    def __init__(self, profile: RankingProfile, evaluate: Evaluator, simplex: _Simplex) -> None:
        self._profile, self._evaluate, self._simplex = profile, evaluate, simplex
        self._known: dict[tuple[float, ...], NDArray[np.float64]] = {}

    @property
    def tried(self) -> int:
        return len(self._known)

    def profile(self, weights: NDArray[np.float64]) -> RankingProfile:
        return self._profile.with_weights(self._simplex.named(weights))

    def rows(self, many: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """float64, shape (weightings, q)."""
        keys = [tuple(np.round(weights, 12).tolist()) for weights in many]
        fresh = {
            key: weights for key, weights in zip(keys, many, strict=True) if key not in self._known
        }
        if fresh:
            values = self._evaluate([self.profile(weights) for weights in fresh.values()])
            self._known |= dict(zip(fresh, np.asarray(values, np.float64), strict=True))
        return np.stack([self._known[key] for key in keys])

    def ascend(
        self, start: Sequence[NDArray[np.float64]], on: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The best weights by the mean over the queries ``on``; of equals the first found."""

        def best(many: Sequence[NDArray[np.float64]]) -> tuple[float, NDArray[np.float64]]:
            means = self.rows(many)[:, on].mean(axis=1)
            return float(means.max()), many[int(means.argmax())]

        value, weights = best(start)
        for multiples in _STEPS:
            for _ in range(_MOST_ROUNDS):
                around = self._around(weights, multiples)
                if not around:
                    break
                reached, there = best(around)
                if reached <= value + _GAIN:
                    break
                value, weights = reached, there
        return weights

    def _around(
        self, weights: NDArray[np.float64], multiples: Sequence[float]
    ) -> list[NDArray[np.float64]]:
        found = []
        for at, weight in enumerate(weights):
            if weight == 0.0:
                changed = [_SEED_SHARE * self._simplex.total]
            else:
                changed = [weight * multiple for multiple in multiples]
            for new in changed:
                other = weights.copy()
                other[at] = new
                scaled = self._simplex.scaled(other)
                if scaled is not None:
                    found.append(scaled)
        return found

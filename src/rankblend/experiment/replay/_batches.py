"""Arms that differ in nothing but the weights of their score: they are run together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.experiment.replay._arms import Run
from rankblend.kernels.compose import scaled_weights, total_weight
from rankblend.profiles import reachable
from rankblend.relevance import Neutral, Require, Shrink, Zero, node_inputs

PATTERN_BITS = 8
_EVEN = 2.0**-60  # weights less even than that are left to the exact scores

_COMPOSERS = ("weighted_mean", "weighted_sum")


@frozen(eq=False)
class WeightBatch:
    """K arms with one recipe but for the weights of the s inputs of their score.

    Attributes:
        run: One of them, for everything that they share.
        numbers: int64, shape (K,): their rows in the results.
        weights: float64, shape (s, K), scaled as the composers scale them.
        whole: float64, shape (K,): the sum of each one's weights.
        pull: float64, shape (K,): weight of the prior.
        prior: What a missing policy pulls toward; None without a pull.
        standing: What the policy says where nothing is present; None for no score.
        by_all: All weight divides, not only what is present.
        pattern_weights: float64, shape (K, 2^s): the present weight of each presence pattern,
            summed in the order of the inputs; None beyond 8 inputs.
        terms: float32, shape (K, t): the weights, that of the prior if there is one, and 1; those
            of each arm but the last scaled so that the greatest is in [1/2, 1]. None where a score
            is more than a quotient of sums, or a weight below 2⁻⁶⁰ of the greatest.
        recipe: What the arms share; equal ones have equal tables.
    """

    run: Run
    numbers: NDArray[np.int64]
    weights: NDArray[np.float64]
    whole: NDArray[np.float64]
    pull: NDArray[np.float64]
    prior: float | None
    standing: float | None
    by_all: bool
    pattern_weights: NDArray[np.float64] | None
    terms: NDArray[np.float32] | None
    recipe: Hashable

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs of the score."""
        return tuple(name for name, _ in self.run.root.weights)


def batches(runs: Iterable[Run]) -> tuple[list[WeightBatch], list[Run]]:
    """Sort arms into batches; and those whose score is no weighted mean or sum.

    A duplicate penalty, diversity or a token cap make an arm's results depend on more than scores
    and an order of ties, and a rerank score serves only queries with words; such arms are among the
    others.
    """
    grouped: dict[object, list[Run]] = {}
    others: list[Run] = []
    for run in runs:
        select = run.profile.select
        if (
            run.node == "score"
            and run.root.compose in _COMPOSERS
            and select.duplicate_penalty == 0
            and select.diversity == 0
            and select.max_tokens is None
        ):
            grouped.setdefault(_recipe(run), []).append(run)
        else:
            others.append(run)
    return [_batch(recipe, group) for recipe, group in grouped.items()], others


def _recipe(run: Run) -> object:
    """Everything that two arms of one batch share."""
    profile, root = run.profile, run.root
    used = reachable(node_inputs(root), nodes=profile.nodes, signals=profile.signals)[0]
    return (
        run.demand, run.arm.observe, run.arm.regime.name,
        root.compose, tuple(name for name, _ in root.weights), root.missing, root.absent,
        tuple((name, profile.signals[name]) for name in profile.signals_needed),
        tuple((name, profile.nodes[name]) for name in sorted(used)),
        tuple(sorted(profile.evidence.items(), key=lambda item: item[0])),
        profile.floors.min_score, tuple(sorted(profile.floors.signals.items())),
        profile.scope, profile.ties,
    )  # fmt: skip


def _batch(recipe: object, group: Sequence[Run]) -> WeightBatch:
    root = group[0].root
    missing = root.missing
    shrink = missing if isinstance(missing, Shrink) else None
    strength = shrink.strength if shrink else 0.0
    scaled = [
        scaled_weights(np.array([weight for _, weight in run.root.weights]), strength=strength)
        for run in group
    ]
    whole = np.array([total_weight(weights) for weights in scaled])
    standing = missing.value if isinstance(missing, Neutral) else shrink.prior if shrink else None
    weights = np.ascontiguousarray(np.array(scaled).T)
    pull = strength * whole
    return WeightBatch(
        group[0],
        np.array([run.number for run in group], np.int64),
        weights,
        whole,
        pull,
        shrink.prior if shrink else None,
        standing,
        root.compose == "weighted_sum" or isinstance(missing, (Neutral, Zero)),
        _pattern_weights(weights) if len(weights) <= PATTERN_BITS else None,
        _terms(group[0], np.vstack([weights, pull]) if shrink else weights),
        recipe,
    )


def _terms(run: Run, weights: NDArray[np.float64]) -> NDArray[np.float32] | None:
    policy = run.root.missing
    if isinstance(policy, Require) or run.profile.floors.min_score is not None:
        return None
    if isinstance(policy, Shrink) and (run.root.compose == "weighted_sum" or not weights[-1].all()):
        # Its prior stands where nothing is present, even without a pull, or beside a whole weight.
        return None
    greatest = weights.max(axis=0)
    least = np.where(weights > 0.0, weights, np.inf).min(axis=0)
    if (least < greatest * _EVEN).any():
        return None
    terms = np.ones((weights.shape[1], len(weights) + 1), np.float32)
    terms[:, :-1] = np.ldexp(weights, -np.frexp(greatest)[1]).T
    return terms


def _pattern_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    patterns = np.arange(1 << len(weights))
    sums = np.zeros((weights.shape[1], len(patterns)))
    for bit, weight in enumerate(weights):
        sums[:, (patterns >> bit) & 1 == 1] += weight[:, None]
    return sums

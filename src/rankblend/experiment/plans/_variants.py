"""Plans that change one thing of a profile: policies, curves, scopes, depths, numbers on a grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from attrs import frozen

from rankblend import limits
from rankblend.errors import InvalidArgumentError, ProfileError
from rankblend.experiment.plans._edit import nodes_in_use, revise, told_at
from rankblend.experiment.plans._plan import Arm, Plan
from rankblend.profiles import RankingProfile
from rankblend.relevance import MissingPolicy, ScopeBlendMode, plain_missing


@frozen
class Range:
    """Numbers from ``low`` to ``high``, drawn evenly, or evenly in their logarithm."""

    low: float
    high: float
    log: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0.0):
            raise InvalidArgumentError("range: expected low < high, and low > 0 with log")

    def at(self, share: float) -> float:
        """The number this share of the way from low to high."""
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share


def missing_policies(profile: RankingProfile, policies: Iterable[MissingPolicy]) -> Plan:
    """The profile against itself with another missing policy in its score and every node below.

    Overrides of single inputs stay. A policy that a composer cannot take, such as shrink where
    nothing adds up, is skipped and says why; one that is the profile's own makes no arm.
    """
    paths = [f"{node}.missing" for node in nodes_in_use(profile)]
    changes = {_named(policy): dict.fromkeys(paths, plain_missing(policy)) for policy in policies}
    return _plan(profile, changes, paths)


def curve_swaps(profile: RankingProfile, signal: str, curves: Iterable[object]) -> Plan:
    """The profile against itself with other curves for one signal, given as in a profile file."""
    path = f"signals.{signal}.curve"
    if signal not in profile.signals:
        raise InvalidArgumentError(f"signals: profile {profile.name!r} has no {signal!r}")
    return _plan(profile, {f"{signal}: {curve}": {path: curve} for curve in curves}, [path])


def scope_modes(profile: RankingProfile) -> Plan:
    """The profile against itself with the other modes of folding in the scope."""
    modes = {f"scope {mode.value}": {"scope.mode": mode.value} for mode in ScopeBlendMode}
    return _plan(profile, modes, ["scope.mode"])


def pool_depths(profile: RankingProfile, sizes: Iterable[int]) -> Plan:
    """The profile against itself with other numbers of proposals asked of each store.

    The pool's greatest size grows with it where it would be too small.
    """
    changes: dict[str, dict[str, object]] = {
        f"pool {size}": {"pool.size": size, "pool.max": max(size, profile.pool.max)}
        for size in sizes
    }
    return _plan(profile, changes, ["pool"])


def grid(profile: RankingProfile, values: Mapping[str, Sequence[object]]) -> Plan:
    """The profile against itself at every point of a grid of values by path.

    Raises:
        InvalidArgumentError: No paths, or more points than `rankblend.limits` allows.
    """
    limits.check(points=math.prod(map(len, values.values())) if values else 0)
    changes = {
        _at(dict(zip(values, point, strict=True))): dict(zip(values, point, strict=True))
        for point in product(*values.values())
    }
    return _plan(profile, changes, list(values))


def random_search(
    profile: RankingProfile,
    space: Mapping[str, Range | Sequence[object]],
    *,
    count: int,
    seed: int = 0,
) -> Plan:
    """The profile against itself at random points: a number in each range, one of each list."""
    problems = limits.beyond(count=count, seed=seed)
    if not space:
        problems.append("space: expected at least one path")
    if problems:
        raise InvalidArgumentError(problems)
    generator = np.random.default_rng(seed)
    changes = {}
    for _ in range(count):
        point = {path: draw(values, generator) for path, values in space.items()}
        changes[_at(point)] = point
    return _plan(profile, changes, list(space))


def random_weights(profile: RankingProfile, *, count: int, seed: int = 0) -> Plan:
    """The profile against itself with random weights of its score, uniform over their shares."""
    limits.check(count=count, seed=seed)
    names = [name for name, _ in profile.score.weights]
    total = profile.must_sum_to.get("score", 1.0)
    drawn = np.random.default_rng(seed).dirichlet(np.ones(len(names)), size=count) * total
    arms = [
        Arm(
            f"weights {number}",
            profile.with_weights(dict(zip(names, map(float, row), strict=True))),
        )
        for number, row in enumerate(drawn, start=1)
    ]
    return Plan(Arm(profile.name, profile), arms, ("score.weights",))


def draw(values: Range | Sequence[object], generator: np.random.Generator) -> object:
    """One value of a dimension of a search."""
    if isinstance(values, Range):
        return values.at(float(generator.random()))
    return values[int(generator.integers(len(values)))]


def _plan(
    profile: RankingProfile,
    changes: Mapping[str, Mapping[str, object]],
    studied: Sequence[str],
) -> Plan:
    """One arm a change; what ranks as the baseline or an earlier arm does is left out."""
    arms, skipped, known = [], {}, {profile.hash}
    for name, values in changes.items():
        try:
            made = revise(profile, values, name=name[:100])
        except ProfileError as error:
            skipped[name] = "; ".join(error.problems)
            continue
        if made.hash not in known:
            known.add(made.hash)
            arms.append(Arm(name, made))
    return Plan(Arm(profile.name, profile), arms, map(told_at, studied), skipped=skipped)


def _named(policy: MissingPolicy) -> str:
    plain = plain_missing(policy)
    if isinstance(plain, str):
        return plain
    ((name, value),) = plain.items()
    numbers = value.values() if isinstance(value, Mapping) else [value]
    return f"{name}({', '.join(f'{number:g}' for number in numbers)})"


def _at(values: Mapping[str, object]) -> str:
    shown = (
        f"{path}={value:g}" if isinstance(value, float) else f"{path}={value}"
        for path, value in values.items()
    )
    return ", ".join(shown)

"""A plan: a baseline and the arms that are compared with it, differing only in what is studied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from rankblend.errors import ConfoundedPlanError, InvalidArgumentError
from rankblend.experiment.plans._edit import covers, profile_differences
from rankblend.experiment.plans._regime import AllObserved, Regime
from rankblend.profiles import RankingProfile, canonical_hash


def _sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _as_arms(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    return tuple(arms)


@frozen
class Arm:
    """One way of ranking that an experiment runs.

    Args:
        name: Unique in its plan.
        profile: The recipe.
        changed: Where the arm differs from the baseline; a plan fills it in.
        without_stores: Stores that neither propose nor observe.
        observe: True: every store observes every candidate. False: a store's evidence counts only
            on the candidates that it proposed itself and is absent elsewhere, as where result lists
            are fused; stores that propose nothing observe as ever.
        regime: What the stores hold.
    """

    name: str
    profile: RankingProfile
    changed: tuple[str, ...] = field(default=(), kw_only=True)
    without_stores: tuple[str, ...] = field(default=(), kw_only=True, converter=_sorted_names)
    observe: bool = field(default=True, kw_only=True)
    regime: Regime = field(factory=AllObserved, kw_only=True)

    @property
    def hash(self) -> str:
        """SHA-256 of everything that decides its rankings; the profile's own where it is as live."""
        conditions = self._conditions
        if not conditions:
            return self.profile.hash
        return canonical_hash([self.profile.hash, conditions])

    def differences(self, other: Arm) -> tuple[str, ...]:
        """The paths at which two arms differ: those of profiles and ``replay.…``, sorted."""
        mine, theirs = self._conditions, other._conditions
        paths = [path for path in mine.keys() | theirs.keys() if mine.get(path) != theirs.get(path)]
        return tuple(sorted([*profile_differences(self.profile, other.profile), *paths]))

    @property
    def _conditions(self) -> dict[str, object]:
        """What differs from a live recall, by path."""
        found: dict[str, object] = {}
        if self.without_stores:
            found["replay.without_stores"] = list(self.without_stores)
        if not self.observe:
            found["replay.observe"] = False
        if self.regime.name != AllObserved().name:
            found["replay.regime"] = self.regime.name
        return found


@frozen
class Plan:
    """A baseline with the arms to be compared with it.

    Args:
        baseline: What the arms are compared with.
        arms: The others, with distinct names; ``changed`` of each is filled in.
        studied: The paths in which arms may differ from the baseline, and everything below them:
            ``score.weights``, ``signals.*.curve``, ``replay.without_stores``. A ``*`` stands for
            any one name. A plan with further differences is refused, unless they are stated here.
        skipped: Arm that could not be made → why, to be reported as not run.

    Raises:
        ConfoundedPlanError: Arms differ in more than what is studied; all of them are listed.
        InvalidArgumentError: No arms, or names that are not distinct.
    """

    baseline: Arm
    arms: tuple[Arm, ...] = field(converter=_as_arms)
    studied: tuple[str, ...] = field(converter=_sorted_names)
    skipped: Mapping[str, str] = field(factory=dict, kw_only=True, hash=False)

    def __attrs_post_init__(self) -> None:
        names = [arm.name for arm in self.all_arms] + list(self.skipped)
        twice = sorted({name for name in names if names.count(name) > 1})
        problems = [f"arms: {name!r} is the name of more than one" for name in twice]
        if not self.arms and not self.skipped:
            problems.append("arms: expected at least one beside the baseline")
        if problems:
            raise InvalidArgumentError(problems)
        arms = tuple(evolve(arm, changed=arm.differences(self.baseline)) for arm in self.arms)
        confounded = [
            f"{arm.name}: differs from the baseline {self.baseline.name!r} in {path}"
            for arm in arms
            for path in arm.changed
            if not covers(self.studied, path)
        ]
        if confounded:
            raise ConfoundedPlanError(confounded, self.studied)
        object.__setattr__(self, "arms", arms)

    @property
    def all_arms(self) -> tuple[Arm, ...]:
        """The baseline, then the arms."""
        return (self.baseline, *self.arms)

    def under(self, regime: Regime) -> Plan:
        """The same plan with every arm, the baseline included, under a regime of absence."""
        return evolve(
            self,
            baseline=evolve(self.baseline, regime=regime),
            arms=tuple(evolve(arm, regime=regime) for arm in self.arms),
        )

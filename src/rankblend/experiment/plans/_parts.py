"""Plans that leave parts out: signals one by one, one more at a time, all subsets, whole stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from attrs import frozen

from rankblend import limits
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.plans._edit import scored_signals, without_signals
from rankblend.experiment.plans._plan import Arm, Plan
from rankblend.profiles import RankingProfile

MOST_SUBSET_SIGNALS = 12  # 4,096 arms

# Wherever a signal can stand; no other path may differ between arms that lack signals.
_WHERE_SIGNALS_STAND = (
    *(f"{node}.{part}" for node in ("score", "rerank", "nodes.*")
      for part in ("weights", "absent", "options")),
    "signals.*.of", "floors", "order.ties",
)  # fmt: skip


@frozen
class SubsetPlan:
    """A plan with one arm for every subset of some signals but the empty one.

    Attributes:
        plan: Its baseline has all of them.
        signals: The s signals, in the order of the bits of a subset's number.
        arms: Names of the 2^s − 1 arms; that of subset number k at position k − 1.
    """

    plan: Plan
    signals: tuple[str, ...]
    arms: tuple[str, ...]


def leave_one_out(profile: RankingProfile, signals: Iterable[str] | None = None) -> Plan:
    """The profile against itself without each signal in turn.

    Args:
        profile: The baseline.
        signals: Which are left out; None for all that its score reads.

    Raises:
        InvalidArgumentError: Signals the profile does not have, or none.

    A signal that cannot be left out, such as the base of a boost, is skipped and says why.
    """
    chosen = _chosen(profile, signals)
    return _plan(
        Arm(profile.name, profile), ((f"without {name}", profile, [name]) for name in chosen)
    )


def add_one_in(
    profile: RankingProfile, start: Sequence[str], signals: Iterable[str] | None = None
) -> Plan:
    """The profile with only some signals against the same with one more.

    Args:
        profile: Has all signals.
        start: What the baseline scores by, at least one signal.
        signals: Which are added; None for all others that the score of the profile reads.

    Raises:
        InvalidArgumentError: As for `leave_one_out`, or nothing to start from.
    """
    everything = scored_signals(profile)
    if not start:
        raise InvalidArgumentError("start: expected at least one signal")
    chosen = [name for name in _chosen(profile, signals) if name not in start]
    others = [name for name in everything if name not in start]
    baseline = without_signals(profile, others, name=f"only {', '.join(start)}")
    return _plan(
        Arm(baseline.name, baseline),
        ((f"with {name}", profile, [one for one in others if one != name]) for name in chosen),
    )


def subsets(profile: RankingProfile, signals: Iterable[str] | None = None) -> SubsetPlan:
    """The profile with every non-empty subset of its signals, for exact Shapley values.

    Signals that are not among those studied stay in every arm.

    Args:
        profile: The baseline: the one with all signals.
        signals: Which are studied; None for all its score reads. At most 12.

    Raises:
        InvalidArgumentError: More than 12 signals, or a subset that is no valid profile; then name
            the signals that can be left out.
    """
    chosen = _chosen(profile, signals)
    if len(chosen) > MOST_SUBSET_SIGNALS:
        raise InvalidArgumentError(
            f"signals: expected at most {MOST_SUBSET_SIGNALS}, since every subset is run, "
            f"got {len(chosen)}"
        )
    whole = 2 ** len(chosen) - 1
    names, wanted = [], []
    for number in range(1, whole):
        inside = [name for bit, name in enumerate(chosen) if number >> bit & 1]
        names.append(" + ".join(inside))
        wanted.append((names[-1], profile, [name for name in chosen if name not in inside]))
    baseline = Arm(profile.name, profile)
    if not wanted:
        raise InvalidArgumentError("signals: expected at least two to take subsets of")
    plan = _plan(baseline, wanted)
    if plan.skipped:
        raise InvalidArgumentError([f"{arm}: {why}" for arm, why in plan.skipped.items()])
    return SubsetPlan(plan, chosen, (*names, baseline.name))


def store_dropout(profile: RankingProfile, stores: Sequence[str], *, most: int = 1) -> Plan:
    """The profile against itself without some stores: they neither propose nor observe.

    What other stores observed starting from a dropped store's proposals stays as recorded.

    Args:
        profile: The baseline.
        stores: Which are dropped.
        most: How many at a time, ≥ 1.
    """
    limits.check(most=most)
    arms = [
        Arm(f"without {', '.join(some)}", profile, without_stores=some)
        for size in range(1, most + 1)
        for some in combinations(stores, size)
    ]
    return Plan(Arm(profile.name, profile), arms, ("replay.without_stores",))


def proposing(profile: RankingProfile) -> Plan:
    """Every store observes every candidate, against: only what it proposed itself.

    The second is what fusing result lists does: evidence beyond a list's cut is absent.
    """
    return Plan(
        Arm(profile.name, profile),
        (Arm(f"{profile.name} (proposed only)", profile, observe=False),),
        ("replay.observe",),
    )


def _chosen(profile: RankingProfile, signals: Iterable[str] | None) -> tuple[str, ...]:
    chosen = scored_signals(profile) if signals is None else tuple(dict.fromkeys(signals))
    known = scored_signals(profile)
    problems = [
        f"signals: the score of {profile.name!r} does not read {name!r}, only {', '.join(known)}"
        for name in chosen
        if name not in known
    ]
    if problems or not chosen:
        raise InvalidArgumentError(problems or ["signals: expected at least one"])
    return chosen


def _plan(baseline: Arm, wanted: Iterable[tuple[str, RankingProfile, Sequence[str]]]) -> Plan:
    arms, skipped = [], {}
    for name, profile, dropped in wanted:
        try:
            arms.append(Arm(name, without_signals(profile, dropped, name=_short(name))))
        except InvalidArgumentError as error:
            skipped[name] = "; ".join(error.problems)
    return Plan(baseline, arms, _WHERE_SIGNALS_STAND, skipped=skipped)


def _short(name: str) -> str:
    """A profile's name has at most 100 characters, an arm's any number."""
    return name if len(name) <= 100 else f"{name[:99]}…"

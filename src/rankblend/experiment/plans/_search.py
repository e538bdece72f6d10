"""Guided search over profiles with optuna, in batches that a replay evaluates at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankblend import limits
from rankblend.errors import InvalidArgumentError, MissingDependencyError, ProfileError
from rankblend.experiment.plans._edit import revise, told_at
from rankblend.experiment.plans._plan import Arm, Plan
from rankblend.experiment.plans._variants import Range
from rankblend.profiles import RankingProfile


def guided_search(
    profile: RankingProfile,
    space: Mapping[str, Range | Sequence[object]],
    score: Callable[[Sequence[RankingProfile]], Sequence[float]],
    *,
    trials: int,
    batch: int = 16,
    seed: int = 0,
) -> Plan:
    """Look for good points of a space and return every one that was tried as a plan.

    The best of many tries is too good on the queries that chose it: compare the plan on held-out
    clusters, and keep it in a ledger.

    Args:
        profile: The baseline.
        space: Path of a value → a range, or a list to choose from.
        score: The mean of the measure for each of several profiles; greater is better.
        trials: Points in all, ≥ 1.
        batch: Points proposed at once, ≥ 1.
        seed: Of the sampler.

    Raises:
        MissingDependencyError: optuna is not installed (extra ``search``).
        InvalidArgumentError: No space, trials or batch.
    """
    problems = limits.beyond(trials=trials, batch=batch, seed=seed)
    if not space:
        problems.append("space: expected at least one path")
    if problems:
        raise InvalidArgumentError(problems)
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError("optuna", "search", "guided search") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    made: dict[str, tuple[str, RankingProfile]] = {}
    skipped: dict[str, str] = {}
    for start in range(0, trials, batch):
        asked = []
        for number in range(start, min(start + batch, trials)):
            trial = study.ask()
            point = {path: _suggest(trial, path, values) for path, values in space.items()}
            try:
                asked.append((trial, revise(profile, point, name=f"trial {number + 1}")))
            except ProfileError as error:
                skipped[f"trial {number + 1}"] = "; ".join(error.problems)
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        if not asked:
            continue
        values = score([candidate for _, candidate in asked])
        for (trial, candidate), value in zip(asked, values, strict=True):
            study.tell(trial, float(value))
            made.setdefault(candidate.hash, (candidate.name, candidate))
    made.pop(profile.hash, None)
    arms = [Arm(name, candidate) for name, candidate in made.values()]
    return Plan(Arm(profile.name, profile), arms, map(told_at, space), skipped=skipped)


def _suggest(trial: Any, path: str, values: Range | Sequence[object]) -> object:
    if isinstance(values, Range):
        return float(trial.suggest_float(path, values.low, values.high, log=values.log))
    # Choices by position: optuna stores only numbers, text and truth values.
    return values[trial.suggest_int(path, 0, len(values) - 1)]

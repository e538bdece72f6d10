"""The usual ablation of a profile, whole: plans, replay, inference and a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from attrs import evolve, frozen

from rankblend import limits
from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.experiment.inference import Comparison, Tried, compare
from rankblend.experiment.plans import (
    Arm,
    Plan,
    leave_one_out,
    missing_policies,
    proposing,
    scope_modes,
    store_dropout,
    subsets,
)
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.experiment.report import (
    Report,
    Section,
    comparison_section,
    judged_measures,
    manifest_section,
    reading_section,
    shapley_section,
    slices_section,
)
from rankblend.experiment.results import Results
from rankblend.experiment.shapley import Shapley, shapley_values
from rankblend.experiment.slices import compare_slices
from rankblend.profiles import RankingProfile
from rankblend.recall import Reranker
from rankblend.relevance import Neutral, Renormalize, Require, Shrink, Zero

__all__ = ["PLANS", "Ablation", "ablate"]

_SHAPLEY = "shapley"
_Maker = Callable[[RankingProfile, Recording], Plan]


def _stores(profile: RankingProfile, recording: Recording) -> Plan:
    """Without each store that emits something the profile reads."""
    read = {name.rpartition(".")[2] for name in profile.evidence_needed}
    stores = [s.name for s in recording.manifest.stores if read.intersection(s.emits)]
    return store_dropout(profile, stores)


PLANS: Mapping[str, tuple[str, str, _Maker]] = MappingProxyType(
    {
        "signals": (
            "Leave one signal out",
            "Each arm is the profile without one signal. A difference below zero: the signal "
            "helps.",
            lambda profile, _: leave_one_out(profile),
        ),
        "missing": (
            "What an absent signal counts as",
            "Each arm treats absent signals otherwise: as zero, as a neutral .5, drawn towards a "
            "prior, left out of the mean (renormalize), or too much of it (require).",
            lambda profile, _: missing_policies(
                profile, [Renormalize(), Zero(), Neutral(0.5), Shrink(0.2, 0.5), Require(0.5)]
            ),
        ),
        "stores": (
            "Leave one store out",
            "Each arm neither hears a store's proposals nor its observations. What a graph saw "
            "starting from its proposals stays as recorded.",
            _stores,
        ),
        "observing": (
            "Proposals alone",
            "The arm knows of a memory only what the stores that proposed it said, as result "
            "lists that are cut and fused do.",
            lambda profile, _: proposing(profile),
        ),
        "scopes": (
            "How the scope is folded in",
            "Each arm uses another mode.",
            lambda profile, _: scope_modes(profile),
        ),
    }
)


@frozen(eq=False)
class Ablation:
    """An ablation's outcome.

    Attributes:
        title: Of its report.
        results: Every arm on every query.
        comparison: All arms against the profile, one family of tests.
        arms: Plan → the names of its arms.
        shapley: What each signal earns, if it was asked for.
    """

    title: str
    results: Results
    comparison: Comparison
    arms: Mapping[str, Sequence[str]]
    shapley: Shapley | None = None

    @cached_property
    def report(self) -> Report:
        """The same for people; its figures and slices are made when it is first wanted."""
        results, comparison = self.results, self.comparison
        sections = [manifest_section(results)]
        for name, arms in self.arms.items():
            title, text, _ = PLANS[name]
            sections.append(
                comparison_section(
                    comparison, title=title, text=(text,), arms=arms, results=results
                )
            )
        if "signals" in self.arms and len(set(results.families)) > 1:
            sections.append(self._by_family())
        if self.shapley is not None:
            sections.append(shapley_section(self.shapley))
        sections.append(reading_section(comparison, results))
        return Report(self.title, sections, self.plain())

    def plain(self) -> dict[str, Any]:
        """As JSON values: the comparison with the manifest."""
        return {**self.comparison.plain(), "manifest": dict(self.results.manifest)}

    def _by_family(self) -> Section:
        results, measure = self.results, next(iter(self.results.values))
        ran = [arm for arm in self.arms["signals"] if results.ran(arm)]
        signals = results.pick((results.arms[0], *ran), [measure])
        slices = compare_slices(signals, measure=measure, seed=self.comparison.seed)
        return slices_section(slices, measure=measure, title="Leave one signal out, by family")


def ablate(
    recording: Recording,
    profile: RankingProfile,
    *,
    plans: Sequence[str] = ("signals", "missing", "stores", "observing"),
    measures: Sequence[str] = ("nDCG@10", "R@10"),
    top: int = 100,
    n_jobs: int = 1,
    seed: int = 0,
    reranker: Reranker | None = None,
    tried: Callable[[Results], Tried | None] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Ablation:
    """Take a profile apart on a recording.

    Args:
        recording: What was recorded.
        profile: The baseline.
        plans: Which of `PLANS`, and ``shapley`` for what each signal earns of the first measure.
        measures: Names such as ``nDCG@10``.
        top: Depth of every result.
        n_jobs: Processes, see `replay`.
        seed: Of intervals and tests.
        reranker: See `replay`.
        tried: What else was measured on these queries, such as ``ledger.tried``; p is corrected
            for it.
        progress: Told how many queries are done.

    Raises:
        UnknownNameError: No such plan.
        InvalidArgumentError: No plan has an arm for this profile.
        RecordingError: The profile itself cannot be replayed on this recording.
    """
    limits.check(top=top, seed=seed)
    for name in plans:
        if name not in (*PLANS, _SHAPLEY):
            raise UnknownNameError("plan", name, (*PLANS, _SHAPLEY))
    made: dict[str, Plan] = {}
    problems = []
    for name in [one for one in PLANS if one in plans]:
        try:
            made[name] = PLANS[name][2](profile, recording)
        except InvalidArgumentError as error:
            problems += [f"{name}: {problem}" for problem in error.problems]
    if not made:
        raise InvalidArgumentError(problems or ["plans: expected at least one"])
    plan, section_of = _merged(made)
    results = replay(
        recording, plan, [*measures, *judged_measures(measures)], top=top, n_jobs=n_jobs,
        reranker=reranker, progress=progress,
    )  # fmt: skip
    comparison = compare(
        results, measures=measures, tried=None if tried is None else tried(results), seed=seed
    )
    shapley = None
    if _SHAPLEY in plans:
        every = subsets(profile)
        parts = replay(
            recording, every.plan, measures[:1], top=top, n_jobs=n_jobs, reranker=reranker
        )
        shapley = shapley_values(every, parts, measure=measures[0], seed=seed)
    title = f"Ablation of {profile.name} on {recording.manifest.dataset}"
    return Ablation(title, results, comparison, section_of, shapley)


def _merged(made: Mapping[str, Plan]) -> tuple[Plan, dict[str, list[str]]]:
    """All plans as one, so that their arms are one family; plan → the names of its arms.

    Plans have the profile itself as their baseline; each was checked for confounding by itself.
    """
    arms: list[Arm] = []
    skipped: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for name, plan in made.items():
        suffix = " (store)" if name == "stores" else ""
        own = [evolve(arm, name=f"{arm.name}{suffix}") for arm in plan.arms]
        names[name] = [arm.name for arm in own] + list(plan.skipped)
        arms += own
        skipped.update(plan.skipped)
    baseline = next(iter(made.values())).baseline
    studied = {path for plan in made.values() for path in plan.studied}
    return Plan(baseline, arms, studied, skipped=skipped), names

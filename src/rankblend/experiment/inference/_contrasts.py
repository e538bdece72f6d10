"""Arms against baselines with honest statistics: what a table of results should have said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import asdict, evolve, field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference._intervals import (
    Interval,
    bootstrap_intervals,
    effect_sizes,
    minimum_detectable,
    wins_ties_losses,
)
from rankblend.experiment.inference._permutation import SignFlipTest, holm, sign_flip_test
from rankblend.experiment.inference._units import Units, group_units
from rankblend.experiment.results import Results


@frozen(eq=False)
class Tried:
    """What was measured on the same queries at other times; a ledger tells it.

    Attributes:
        hashes: Of p profiles.
        sums: Measure → float64, shape (p, G): values summed over the units, in the order of
            `Units.names`; NaN rows where a profile was not measured by it.
    """

    hashes: tuple[str, ...]
    sums: Mapping[str, NDArray[np.float64]] = field(repr=False)


@frozen
class Contrast:
    """One arm against one baseline by one measure.

    Attributes:
        arm, baseline, measure: Which.
        value, baseline_value: Means over the judged queries.
        difference: Mean paired difference; > 0: the arm is better.
        interval: Cluster bootstrap of the difference.
        p: Two-sided, corrected for every row of the comparison and everything tried before.
        p_single: Of this row alone; misleading when it is one of many.
        p_holm: ``p_single`` after Holm's correction over the rows.
        effect: Cohen's d over queries.
        wins, ties, losses: Queries on which the arm does better, as well, worse.
        minimum_detectable: The least true difference this many units would find in four of five
            experiments, by a single test.
        queries: Judged queries, which all of this is about.
        excluded: Queries without judgments.
        empty: Judged queries for which the arm returned nothing; they count as 0.
        coverage: Mean share of the weight that was present, if it was recorded.
        not_run: Why the arm did not run; nothing above but counts is then given.
    """

    arm: str
    baseline: str
    measure: str
    value: float = math.nan
    baseline_value: float = math.nan
    difference: float = math.nan
    interval: Interval | None = None
    p: float = math.nan
    p_single: float = math.nan
    p_holm: float = math.nan
    effect: float = math.nan
    wins: int = 0
    ties: int = 0
    losses: int = 0
    minimum_detectable: float = math.nan
    queries: int = 0
    excluded: int = 0
    empty: int = 0
    coverage: float = math.nan
    not_run: str | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON values; numbers that do not exist are None, the interval is [low, high]."""
        told = asdict(self, recurse=False)
        if self.interval is not None:
            ends = (self.interval.low, self.interval.high)
            told["interval"] = [end if math.isfinite(end) else None for end in ends]
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in told.items()
        }


@frozen
class Comparison:
    """All contrasts of one experiment; one family of tests.

    Attributes:
        contrasts: Rows, by measure, then baseline, then arm.
        unit: ``cluster`` or ``query``: what was resampled and flipped as a whole.
        units: How many of them.
        family: How many rows p is corrected for, those tried at other times included.
        tried: How many profiles have ever been measured on these queries, if a ledger told it.
        smallest_p: The least p this many units allow.
        exact: Every sign vector was enumerated.
        flips: How many sign vectors.
        confidence: Of the intervals.
        resamples, seed: Of intervals and flips.
    """

    contrasts: tuple[Contrast, ...]
    unit: str
    units: int
    family: int
    tried: int | None
    smallest_p: float
    exact: bool
    flips: int
    confidence: float
    resamples: int
    seed: int

    def __iter__(self) -> Iterator[Contrast]:
        return iter(self.contrasts)

    def plain(self) -> dict[str, Any]:
        """As JSON values: ``{"arms": [rows], …}``."""
        told = asdict(self, recurse=False)
        del told["contrasts"]
        return {"arms": [contrast.plain() for contrast in self.contrasts], **told}


@frozen(eq=False)
class Differences:
    """Paired differences of arms that ran, r of them, over the q judged queries.

    Attributes:
        keys: (measure, arm, baseline) of each.
        rows: float64, shape (r, q).
        units: Of these queries.
    """

    keys: tuple[tuple[str, str, str], ...]
    rows: NDArray[np.float64] = field(repr=False)
    units: Units

    @classmethod
    def of(cls, results: Results, measures: Sequence[str], baselines: Sequence[str]) -> Differences:
        """All pairs by each measure.

        Raises:
            UnknownNameError, InvalidArgumentError: As `compare`.
        """
        _check(results, measures, baselines)
        judged = np.flatnonzero(results.judged)
        pairs = _pairs(results, baselines)
        keys = tuple((name, arm, other) for name in measures for arm, other in pairs)
        rows = [_row(results, name, arm) - _row(results, name, other) for name, arm, other in keys]
        return cls(
            keys,
            np.array(rows).reshape(len(keys), judged.size),
            group_units(judged.size, [results.clusters[i] for i in judged]),
        )


def compare(
    results: Results,
    *,
    measures: str | Sequence[str] | None = None,
    baselines: str | Sequence[str] | None = None,
    tried: Tried | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare every arm with every baseline.

    Args:
        results: Of an experiment.
        measures: Which; None for all that were measured. They are one family: asking for more
            costs power.
        baselines: Arms to compare with; None for the first. Baselines are compared with each other
            too, once.
        tried: What else has been tried on these queries; p is corrected for it as well.
        confidence: Of the intervals, in (0, 1).
        resamples: Bootstrap samples, and sign flips where they are not enumerated; ≥ 1.
        seed: Of both.

    Raises:
        UnknownNameError: A measure or baseline that the results do not have.
        InvalidArgumentError: A baseline that did not run; no query with judgments; a value that
            is not a number for a judged query.
    """
    chosen = _listed(measures) or tuple(results.values)
    against = _listed(baselines) or results.arms[:1]
    found = Differences.of(results, chosen, against)
    others = _others(results, tried, chosen, against, found.units)
    test = sign_flip_test(found.rows, found.units, others=others, resamples=resamples, seed=seed)
    contrasts = describe(results, found, confidence=confidence, resamples=resamples, seed=seed)
    known = None if tried is None else len({*tried.hashes, *results.hashes})
    return Comparison(
        (*with_p(contrasts, test), *contrasts_not_run(results, chosen, against)),
        found.units.kind, len(found.units), len(contrasts) + len(others), known,
        test.smallest, test.exact, test.flips, confidence, resamples, seed,
    )  # fmt: skip


def describe(
    results: Results, found: Differences, *, confidence: float, resamples: int, seed: int
) -> tuple[Contrast, ...]:
    """The contrast of each difference, with its interval and effect but without p."""
    intervals = bootstrap_intervals(
        found.rows, found.units, confidence=confidence, resamples=resamples, seed=seed
    )
    columns = zip(
        found.keys, intervals, effect_sizes(found.rows), wins_ties_losses(found.rows),
        minimum_detectable(found.rows, found.units), strict=True,
    )  # fmt: skip
    return tuple(
        Contrast(
            arm, other, name,
            value=float(_row(results, name, arm).mean()),
            baseline_value=float(_row(results, name, other).mean()),
            difference=interval.mean, interval=interval, effect=float(effect),
            wins=int(wtl[0]), ties=int(wtl[1]), losses=int(wtl[2]),
            minimum_detectable=float(least), **_counts(results, arm),
        )
        for (name, arm, other), interval, effect, wtl, least in columns
    )  # fmt: skip


def contrasts_not_run(
    results: Results, measures: Sequence[str], baselines: Sequence[str]
) -> tuple[Contrast, ...]:
    """A contrast with the reason for each arm that did not run."""
    return tuple(
        Contrast(arm, other, name, not_run=why, **_counts(results, None))
        for name in measures
        for other in baselines
        for arm, why in results.not_run.items()
    )


def with_p(contrasts: Iterable[Contrast], test: SignFlipTest) -> tuple[Contrast, ...]:
    """Contrasts with the p-values of the rows of a test, in the same order."""
    columns = zip(contrasts, test.p_family, test.p, holm(test.p), strict=True)
    return tuple(
        evolve(contrast, p=float(p), p_single=float(single), p_holm=float(stepped))
        for contrast, p, single, stepped in columns
    )


def _listed(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _check(results: Results, measures: Sequence[str], baselines: Sequence[str]) -> None:
    tables = [results.measure(name) for name in measures]
    for name in baselines:
        results.arm(name)
    problems = [
        f"baselines: {name!r} did not run: {results.not_run[name]}"
        for name in baselines
        if name in results.not_run
    ]
    if not results.judged.any():
        problems.append("results: no query has judgments, so there is nothing to compare")
    ran = [i for i, arm in enumerate(results.arms) if results.ran(arm)]
    problems += [
        f"values of {name}: expected a number for every judged query of every arm that ran"
        for name, table in zip(measures, tables, strict=True)
        if not np.isfinite(table[ran][:, results.judged]).all()
    ]
    if not problems and not _pairs(results, baselines):
        problems.append("results: expected an arm that ran beside the baseline")
    if problems:
        raise InvalidArgumentError(problems)


def _pairs(results: Results, baselines: Sequence[str]) -> list[tuple[str, str]]:
    """(arm, baseline), each pair once whichever way round."""
    seen: set[frozenset[str]] = set()
    found = []
    for baseline in baselines:
        for arm in results.arms:
            pair = frozenset((arm, baseline))
            if results.ran(arm) and len(pair) == 2 and pair not in seen:
                seen.add(pair)
                found.append((arm, baseline))
    return found


def _row(results: Results, measure: str, arm: str) -> NDArray[np.float64]:
    row: NDArray[np.float64] = results.measure(measure)[results.arm(arm), results.judged]
    return row


def _others(
    results: Results,
    tried: Tried | None,
    measures: Sequence[str],
    baselines: Sequence[str],
    units: Units,
) -> NDArray[np.float64]:
    """Unit sums of the differences between what was tried before and the baselines."""
    blocks = [np.empty((0, len(units)))]
    for name in measures:
        if tried is None or name not in tried.sums:
            continue
        fresh = [h not in results.hashes for h in tried.hashes]
        sums = tried.sums[name][np.array(fresh, np.bool_)]
        sums = sums[~np.isnan(sums).any(axis=1)]
        blocks += [sums - units.sums(_row(results, name, baseline)) for baseline in baselines]
    return np.concatenate(blocks)


def _counts(results: Results, arm: str | None) -> dict[str, Any]:
    judged = int(np.count_nonzero(results.judged))
    counts: dict[str, Any] = {"queries": judged, "excluded": results.judged.size - judged}
    if arm is not None:
        row = results.arm(arm)
        counts["empty"] = int(np.count_nonzero(results.empty[row] & results.judged))
        if results.coverage is not None:
            shares = results.coverage[row, results.judged]
            shares = shares[~np.isnan(shares)]
            counts["coverage"] = float(shares.mean()) if shares.size else math.nan
    return counts

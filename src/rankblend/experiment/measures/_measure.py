"""Measures: named and read by ir-measures, computed by kernels where there are any, else by it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from rankblend import limits
from rankblend.errors import InvalidArgumentError, MissingDependencyError
from rankblend.experiment.measures import _kernels as kernels
from rankblend.experiment.measures._judgments import Judgments

# Family → what our kernel computes; with other parameters than these the measure goes through
# ir-measures.
_DEFINITIONS = {
    "nDCG": "gain = grade, discount 1/log2(1 + rank), over the ideal of all judged (trec_eval)",
    "R": "relevant returned / relevant judged",
    "P": "relevant returned / cutoff",
    "RR": "1 / rank of the first relevant",
    "AP": "mean over the relevant judged of the precision at each one returned",
    "Success": "1 where something relevant is returned",
    "Judged": "share of the returned that is judged",
}
_EXPONENTIAL = "gain = 2^grade - 1, discount 1/log2(1 + rank), over the ideal of all judged"
_EXAMPLES = "nDCG@10, R@20, RR, AP, P(rel=2)@5, Judged@10"


@frozen
class Measure:
    """One measure.

    Attributes:
        name: As ir-measures writes it: ``nDCG@10``, ``P(rel=2)@5``; aliases are resolved, ``MRR``
            is ``RR``.
        family: Without parameters: ``nDCG``.
        cutoff: Ranks that count, or None for all.
        rel: The least grade of a relevant memory.
        exponential: nDCG with gains 2^grade − 1.
        fast: Computed by our kernels; otherwise every query goes through ir-measures.
        definition: What is computed, for reports.
    """

    name: str
    family: str
    cutoff: int | None
    rel: float
    exponential: bool
    fast: bool
    definition: str

    def of_grades(
        self,
        grades: NDArray[np.float64],
        judgments: Judgments,
        *,
        returned: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """The measure of many rankings.

        Args:
            grades: float64, shape (…, q, k), in rank order; NaN where a result is not judged and
                behind the last one. k must reach the cutoff or the end of each ranking.
            judgments: Of the q queries.
            returned: int, shape (…, q): how many results each ranking has; only ``Judged`` needs
                it. None: k.

        Returns:
            float64, shape (…, q); NaN for queries without judgments.

        Raises:
            InvalidArgumentError: The measure has no kernel (``fast`` is False).
        """
        options = {"cutoff": self.cutoff}
        wanted = self.family if self.fast else None
        match wanted:
            case "nDCG":
                ideal = judgments.ideal(cutoff=self.cutoff, exponential=self.exponential)
                values = kernels.ndcg(grades, ideal, exponential=self.exponential, **options)
            case "R":
                values = kernels.recall(
                    grades, judgments.relevant(self.rel), rel=self.rel, **options
                )
            case "AP":
                values = kernels.average_precision(
                    grades, judgments.relevant(self.rel), rel=self.rel, **options
                )
            case "RR":
                values = kernels.reciprocal_rank(grades, rel=self.rel, **options)
            case "P":
                values = kernels.precision(grades, cutoff=self._depth, rel=self.rel)
            case "Success":
                values = kernels.success(grades, cutoff=self._depth, rel=self.rel)
            case "Judged":
                count = grades.shape[-1] if returned is None else returned
                values = kernels.judged_share(grades, count, **options)
            case _:
                raise InvalidArgumentError(
                    f"measure {self.name}: has no kernel; use measure_rankings"
                )
        return np.where(judgments.judged, values, np.nan)

    @property
    def _depth(self) -> int:
        if self.cutoff is None:  # parse_measure has refused it
            raise InvalidArgumentError(f"measure {self.name}: needs a cutoff, as in {_EXAMPLES}")
        return self.cutoff


def import_ir_measures() -> ModuleType:
    """ir-measures.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        import ir_measures
    except ImportError:
        raise MissingDependencyError("ir-measures", "eval", "measuring") from None
    module: ModuleType = ir_measures
    return module


def parse_measure(name: str | Measure) -> Measure:
    """Read one name.

    Raises:
        InvalidArgumentError: ir-measures knows no such measure, or not with these parameters.
        MissingDependencyError: ir-measures is not installed (extra ``eval``).

    Example:
        >>> parse_measure("P(rel=2)@5").cutoff
        5
    """
    return parse_measures([name])[0]


def parse_measures(names: Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Read several names, all problems at once.

    Raises:
        InvalidArgumentError: As for `parse_measure`, and when two names mean one measure.
        MissingDependencyError: ir-measures is not installed (extra ``eval``).
    """
    given = (names,) if isinstance(names, str) else tuple(names)
    found: list[Measure] = []
    problems = [] if given else [f"measures: expected at least one, such as {_EXAMPLES}"]
    for name in given:
        try:
            found.append(name if isinstance(name, Measure) else _parse(name))
        except (ValueError, NameError, AssertionError, SyntaxError, TypeError):
            problems.append(f"measures: expected names such as {_EXAMPLES}, got {name!r:.40}")
    twice = sorted({one.name for one in found if sum(one.name == it.name for it in found) > 1})
    problems += [f"measures: {name} is asked for twice" for name in twice]
    if problems:
        raise InvalidArgumentError(problems)
    return tuple(found)


def _parse(name: str) -> Measure:
    parsed = import_ir_measures().parse_measure(name)
    parsed.validate_params()
    family = str(parsed.NAME)
    params = dict(parsed.params)
    cutoff, rel = params.pop("cutoff", None), params.pop("rel", 1)
    exponential = params.pop("dcg", "log2") == "exp-log2"
    if params.get("judged_only") is False:
        del params["judged_only"]
    if cutoff is not None and limits.beyond(cutoff=cutoff):
        raise ValueError
    fast = family in _DEFINITIONS and not params and rel >= 1
    definition = _DEFINITIONS[family] if fast else f"{family} as ir-measures computes it"
    return Measure(
        str(parsed), family, cutoff, float(rel), exponential, fast,
        _EXPONENTIAL if fast and exponential else definition,
    )  # fmt: skip


def measure_rankings(
    measures: Iterable[str | Measure], rankings: Sequence[Sequence[str]], judgments: Judgments
) -> dict[str, NDArray[np.float64]]:
    """Measure one ranking a query.

    Args:
        measures: Names such as ``nDCG@10``, or measures already parsed.
        rankings: q rankings in the order of ``judgments.queries``, each of distinct ids, best
            first; empty where nothing was returned: that scores 0.
        judgments: Of the q queries.

    Returns:
        ``Measure.name`` → float64, shape (q,); NaN for queries without judgments.

    Raises:
        InvalidArgumentError: Unknown measures; another number of rankings; an id twice in one
            ranking; a measure without a kernel over grades that are no whole numbers ≥ 0.
        MissingDependencyError: ir-measures is not installed (extra ``eval``).
    """
    parsed = parse_measures(measures)
    problems = []
    if len(rankings) != len(judgments.queries):
        problems.append(
            f"rankings: expected {len(judgments.queries)}, one a query, got {len(rankings)}"
        )
    problems += [
        f"ranking of query {query!r}: expected distinct ids"
        for query, ranking in zip(judgments.queries, rankings, strict=False)
        if len(set(ranking)) != len(ranking)
    ]
    if problems:
        raise InvalidArgumentError(problems)
    fast = [measure for measure in parsed if measure.fast]
    others = [measure for measure in parsed if not measure.fast]
    values: dict[str, NDArray[np.float64]] = {}
    if fast:
        deepest = None if any(m.cutoff is None for m in fast) else max(m.cutoff or 0 for m in fast)
        graded = judgments.look_up(rankings, depth=deepest)
        for measure in fast:
            values[measure.name] = measure.of_grades(
                graded.grades, judgments, returned=graded.returned
            )
    if others:
        values |= _by_ir_measures(others, rankings, judgments)
    return {measure.name: values[measure.name] for measure in parsed}


def _by_ir_measures(
    measures: Sequence[Measure], rankings: Sequence[Sequence[str]], judgments: Judgments
) -> Mapping[str, NDArray[np.float64]]:
    """It compares scores in single precision and breaks ties by id, so it is handed n − rank.

    Empty rankings stay out of the run: a measure's own value for nothing returned then applies.
    """
    module = import_ir_measures()
    broken = [
        f"grades of query {query!r}: expected whole numbers ≥ 0, which {measures[0].name} needs"
        for query, grades in zip(judgments.queries, judgments.grades, strict=True)
        if any(grade < 0 or grade != int(grade) for grade in grades.values())
    ]
    if broken:
        raise InvalidArgumentError(broken)
    # Numbered, because identifiers with spaces or tabs are no problem of ours.
    qrels = {
        str(number): {identifier: int(grade) for identifier, grade in grades.items()}
        for number, grades in enumerate(judgments.grades)
        if grades
    }
    run = {
        str(number): {identifier: float(len(ids) - rank) for rank, identifier in enumerate(ids)}
        for number, ids in enumerate(rankings)
        if len(ids) and judgments.grades[number]
    }
    by_parsed = {module.parse_measure(measure.name): measure.name for measure in measures}
    values = {measure.name: np.full(len(rankings), np.nan) for measure in measures}
    try:
        found = list(module.iter_calc(list(by_parsed), qrels, run)) if qrels else []
    except (ValueError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        names = ", ".join(measure.name for measure in measures)
        raise InvalidArgumentError(
            f"measures: no installed provider of ir-measures computes {names}"
        ) from error
    for metric in found:
        values[by_parsed[metric.measure]][int(metric.query_id)] = metric.value
    return values

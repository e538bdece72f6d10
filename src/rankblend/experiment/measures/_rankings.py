"""Measuring rankings given as ids: by kernels where there are any, else by ir-measures."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.measures._judgments import Judgments
from rankblend.experiment.measures._measure import Measure, import_ir_measures, parse_measures


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

"""Our kernels against ir-measures, query by query."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest

from rankblend.experiment.measures import Judgments, measure_rankings, parse_measure

# Whatever has a kernel, each with and without a cutoff where both exist.
NAMES = [
    "nDCG@10", "nDCG@3", "nDCG", "R@5", "R@20", "R(rel=2)@5", "P@5", "P(rel=2)@5", "P@50", "RR",
    "RR(rel=2)", "RR@3", "AP", "AP@5", "AP(rel=2)", "Success@1", "Success(rel=2)@5", "Judged@10",
    "Judged",
]  # fmt: skip


def _world(rng: np.random.Generator, queries: int = 120) -> tuple[Judgments, list[list[str]]]:
    """Graded, binary and empty judgments; results longer and shorter than cutoffs, and empty."""
    grades, rankings = [], []
    for number in range(queries):
        pool = [f"d{i}" for i in range(int(rng.integers(1, 40)))]
        judged = rng.choice(pool, size=int(rng.integers(0, len(pool) + 1)), replace=False)
        most = int(rng.integers(1, 4))
        of_query = {str(i): float(rng.integers(0, most + 1)) for i in judged}
        # Judged but never returned: the ideal has to count them.
        of_query |= {f"unseen{i}": 2.0 for i in range(int(rng.integers(0, 3)))} if of_query else {}
        returned = rng.permutation(pool)[: int(rng.integers(0, len(pool) + 1))]
        if number % 10 == 0:
            returned = returned[:0]
        grades.append(of_query)
        rankings.append([str(i) for i in returned])
    return Judgments(tuple(f"q{i}" for i in range(queries)), tuple(grades)), rankings


def _theirs(name: str, rankings: list[list[str]], judgments: Judgments) -> np.ndarray:
    qrels = {
        query: {i: int(g) for i, g in grades.items()}
        for query, grades in zip(judgments.queries, judgments.grades, strict=True)
        if grades
    }
    run = {
        query: {i: float(len(ids) - rank) for rank, i in enumerate(ids)}
        for query, ids in zip(judgments.queries, rankings, strict=True)
        if ids
    }
    values = np.full(len(judgments.queries), np.nan)
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run):
        values[judgments.queries.index(metric.query_id)] = metric.value
    return values


@pytest.mark.parametrize("name", NAMES)
def test_measure_when_it_has_a_kernel_then_it_equals_ir_measures_query_by_query(name, rng):
    assert parse_measure(name).fast
    judgments, rankings = _world(rng)
    ours = measure_rankings([name], rankings, judgments)[parse_measure(name).name]
    theirs = _theirs(name, rankings, judgments)
    # Ties in ir-measures' single precision cannot occur: it is handed n − rank.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert np.isnan(ours).sum() == sum(not grades for grades in judgments.grades) > 0


@pytest.mark.parametrize("name", ["Bpref", "Rprec", "infAP", "nDCG(judged_only=True)@10"])
def test_measure_when_it_has_no_kernel_then_ir_measures_computes_it(name, rng):
    assert not parse_measure(name).fast
    judgments, rankings = _world(rng)
    ours = measure_rankings([name], rankings, judgments)[parse_measure(name).name]
    np.testing.assert_array_equal(ours, _theirs(name, rankings, judgments))


def test_kernels_when_many_rankings_come_at_once_then_as_one_by_one(rng):
    judgments, rankings = _world(rng)
    others = [list(reversed(ranking)) for ranking in rankings]
    measure = parse_measure("nDCG@10")
    graded = [judgments.look_up(each) for each in (rankings, others)]
    width = max(one.grades.shape[1] for one in graded)
    batch = np.full((2, len(rankings), width), np.nan)
    for row, one in zip(batch, graded, strict=True):
        row[:, : one.grades.shape[1]] = one.grades
    together = measure.of_grades(batch, judgments)
    for row, each in zip(together, (rankings, others), strict=True):
        np.testing.assert_array_equal(row, measure_rankings([measure], each, judgments)["nDCG@10"])

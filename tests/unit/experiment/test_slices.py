"""Slices: the numbers of their own queries, one family of tests over all of them."""

from __future__ import annotations

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import compare
from rankblend.experiment.results import Results
from rankblend.experiment.slices import compare_slices, presence_pattern, presence_patterns
from rankblend.recall import Candidates, EvidenceColumn
from rankblend.relevance import Scope
from rankblend.stores import Key, Reason


def make_results(rng, *, queries=60, not_run=None):
    base = rng.random(queries)
    better = base + np.where(np.arange(queries) % 3 == 0, 0.3, 0.0) + rng.normal(0, 0.05, queries)
    judged = np.arange(queries) % 10 != 9
    table = np.stack([base, better, base + rng.normal(0, 0.05, queries)])
    table[:, ~judged] = np.nan
    return Results(
        ("base", "better", "same"), ("a", "b", "c"), tuple(f"q{i}" for i in range(queries)),
        tuple(f"c{i // 4}" for i in range(queries)),
        tuple(("dates", "names", "reasons")[i % 3] for i in range(queries)),
        {"nDCG@10": table}, judged, np.zeros(table.shape, np.bool_), not_run or {},
    )  # fmt: skip


def test_slices_when_by_family_then_each_has_the_numbers_of_its_own_queries(rng):
    results = make_results(rng)
    found = compare_slices(results, measure="nDCG@10")
    assert [part.name for part in found] == ["dates", "names", "reasons"]
    for part in found:
        inside = np.array(results.families) == part.name
        alone = compare(results.only(inside), measures="nDCG@10")
        for contrast, other in zip(part.contrasts, alone, strict=True):
            assert contrast.difference == other.difference
            assert contrast.interval == other.interval
            assert contrast.queries == int((inside & results.judged).sum())
            assert contrast.excluded == int((inside & ~results.judged).sum())


def test_slices_when_tested_then_p_is_corrected_for_all_slices_and_arms(rng):
    found = compare_slices(make_results(rng), measure="nDCG@10")
    rows = [contrast for part in found for contrast in part.contrasts]
    assert len(rows) == 6
    assert all(row.p >= row.p_single for row in rows)
    significant = [(row.arm, row.p <= 0.05) for row in rows]
    assert significant == [("better", True), ("same", False)] + [
        ("better", False), ("same", False)
    ] * 2  # fmt: skip


def test_slices_when_an_arm_did_not_run_then_said_in_each(rng):
    found = compare_slices(make_results(rng, not_run={"same": "failed"}), measure="nDCG@10")
    assert all(part.contrasts[-1].not_run == "failed" for part in found)


def test_slices_when_labels_do_not_fit_then_refused(rng):
    with pytest.raises(InvalidArgumentError, match="labels"):
        compare_slices(make_results(rng), ["x"], measure="nDCG@10")


def make_pool(cosine, bm25) -> Candidates:
    def column(store, values):
        values = np.array(values, np.float64)
        absent = np.where(np.isnan(values), Reason.NOT_APPLICABLE, Reason.PRESENT)
        return (EvidenceColumn(store, values, absent.astype(np.int8)),)

    n = len(cosine)
    return Candidates(
        tuple(Key(Scope.parse("user:1"), f"m{i}") for i in range(n)),
        np.zeros(n, np.int64), ("semantic",) * n,
        {"cosine": column("vectors", cosine), "bm25": column("keywords", bm25)}, np.arange(n),
    )  # fmt: skip


def test_pattern_when_a_relevant_memory_lacks_signals_then_named():
    profile = rb.load_profile("convex")
    pool = make_pool([0.1, np.nan, 0.3], [2.0, 1.0, np.nan])
    assert presence_pattern(profile, pool, ["m0"]) == "lacks nothing"
    assert presence_pattern(profile, pool, ["m0", "m1"]) == "lacks similarity"
    assert presence_pattern(profile, pool, ["m1", "m2"]) == "lacks keyword, similarity"
    assert presence_pattern(profile, pool, ["elsewhere"]) == "not in the pool"


def test_patterns_when_grades_are_given_then_only_relevant_ones_count():
    pool = make_pool([0.1, np.nan], [2.0, 1.0])
    found = presence_patterns(
        rb.load_profile("convex"), [pool, pool], [{"m0": 1.0, "m1": 0.0}, {"m1": 2.0}]
    )
    assert found == ("lacks nothing", "lacks similarity")

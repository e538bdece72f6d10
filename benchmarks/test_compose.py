"""Composing a million memories, beside one read of the matrix (P2 of the performance targets)."""

from __future__ import annotations

import numpy as np
import pytest

from rankblend.relevance import RelevanceSignals, RelevanceWeights

N, SIGNALS = 1_000_000, 8


@pytest.fixture(scope="module")
def matrix() -> np.ndarray:
    rng = np.random.default_rng(0)
    values = rng.random((N, SIGNALS))
    values[rng.random(values.shape) < 0.3] = np.nan
    return values


@pytest.mark.benchmark(group="compose 1,000,000 × 8, 30 % absent")
def test_reference_one_read_of_the_matrix(benchmark, matrix):
    benchmark.extra_info["reference"] = True
    benchmark(matrix.sum)


@pytest.mark.benchmark(group="compose 1,000,000 × 8, 30 % absent")
def test_weighted_mean_over_the_present(benchmark, matrix):
    benchmark.extra_info["target"] = "<= 15 x"
    names = [f"s{i}" for i in range(SIGNALS)]
    weights = RelevanceWeights.only({name: 1.0 + i for i, name in enumerate(names)})
    scores = benchmark.pedantic(
        weights.compose_table, args=((names, matrix),), rounds=15, warmup_rounds=1
    )
    for row in range(0, N, N // 1_000):
        present = {name: v for name, v in zip(names, matrix[row].tolist(), strict=True) if v == v}
        assert scores[row] == weights.compose(RelevanceSignals(**present)), "not the scalar's bits"

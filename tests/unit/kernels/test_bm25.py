"""BM25 against sums written out by hand, and its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankblend.kernels.bm25 import (
    inverse_document_frequency,
    length_norms,
    sum_in_order,
    term_scores,
)


def test_idf_of_a_term_in_one_of_three_is_ln_of_eight_thirds() -> None:
    # ln(1 + (3 − 1 + .5)/(1 + .5)) = ln(1 + 2.5/1.5) = ln(8/3)
    assert inverse_document_frequency(3, [1])[0] == pytest.approx(math.log(8 / 3), abs=1e-15)


def test_idf_when_everybody_holds_the_term_stays_positive() -> None:
    # ln(1 + .5/3.5) = ln(8/7); the classic form ln(.5/3.5) would be negative
    assert inverse_document_frequency(3, [3])[0] == pytest.approx(math.log(8 / 7), abs=1e-15)


def test_idf_when_nobody_holds_the_term_is_greatest() -> None:
    values = inverse_document_frequency(10, range(11))
    assert np.all(np.diff(values) < 0)


def test_idf_of_no_terms_is_empty() -> None:
    assert inverse_document_frequency(5, []).shape == (0,)


def test_norm_at_the_mean_length_is_k1() -> None:
    assert length_norms([4.0], 4.0, k1=1.2, b=0.75).tolist() == [1.2]


def test_norm_with_b_zero_ignores_length() -> None:
    assert length_norms([1, 1000], 4.0, k1=1.5, b=0.0).tolist() == [1.5, 1.5]


def test_norm_of_twice_the_mean_length() -> None:
    # 1.2 · (1 − .75 + .75·2) = 1.2 · 1.75 = 2.1
    assert length_norms([8], 4.0, k1=1.2, b=0.75)[0] == pytest.approx(2.1, abs=1e-15)


def test_norm_when_all_memories_are_empty_is_finite() -> None:
    assert length_norms([0], 0.0, k1=1.2, b=0.75)[0] == pytest.approx(0.3, abs=1e-15)


def test_term_score_of_one_occurrence_at_the_mean_length() -> None:
    # 2 · 1/(1 + 1.2)
    assert term_scores([1], [1.2], [2.0])[0] == pytest.approx(2 / 2.2, abs=1e-15)


def test_term_score_with_k1_zero_is_the_weight_however_often_it_occurs() -> None:
    assert term_scores([1, 7], [0.0, 0.0], [0.5, 0.5]).tolist() == [0.5, 0.5]


def test_term_score_grows_with_the_count_and_stays_below_the_weight() -> None:
    values = term_scores(np.arange(1, 200), 1.2, 3.0)
    assert np.all(np.diff(values) > 0)
    assert values[-1] < 3.0


def test_sums_run_in_input_order_per_slot() -> None:
    # 1e16 + 1 + 1 loses both ones when added from the left; 1 + 1 + 1e16 keeps them
    slots = np.array([0, 1, 0, 1, 0, 1])
    values = np.array([1e16, 1.0, 1.0, 1.0, 1.0, 1e16])
    assert sum_in_order(slots, values, 3).tolist() == [1e16, 1e16 + 2, 0.0]


def test_sums_of_nothing_are_zero() -> None:
    empty = np.array([], dtype=np.int64)
    assert sum_in_order(empty, empty.astype(np.float64), 2).tolist() == [0.0, 0.0]


def test_score_of_a_memory_does_not_depend_on_the_others(rng: np.random.Generator) -> None:
    lengths, counts = rng.integers(1, 60, 257), rng.integers(1, 9, 257)
    together = term_scores(counts, length_norms(lengths, 17.3, k1=1.2, b=0.75), 1.7)
    alone = [
        term_scores(counts[i : i + 1], length_norms(lengths[i : i + 1], 17.3, k1=1.2, b=0.75), 1.7)[
            0
        ]
        for i in range(257)
    ]
    assert together.tolist() == alone

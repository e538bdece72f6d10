from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankblend.errors import InvalidArrayError
from rankblend.kernels import similarity
from rankblend.kernels.similarity import dot_rows, faulty_row, pairwise_cosines, unit_rows


@pytest.fixture(params=[(1, 384), (7, 1), (50, 3), (40, 384), (9, 4097), (9, 8200)], ids=str)
def rows(request: pytest.FixtureRequest, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return unit_rows(rng.standard_normal(request.param))


@pytest.fixture
def query(rows: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return unit_rows(rng.standard_normal((1, rows.shape[1])))[0]


def same_bits(one: Any, other: Any) -> None:
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_dot_rows_when_computed_then_the_sum_of_products(rows: Any, query: Any) -> None:
    expected = [math.fsum(float(a) * float(b) for a, b in zip(row, query, strict=True))
                for row in rows]  # fmt: skip
    result = dot_rows(rows, query)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-14)


def test_dot_rows_when_asked_one_by_one_then_the_same_bits(rows: Any, query: Any) -> None:
    singles = np.concatenate([dot_rows(rows[i : i + 1], query) for i in range(len(rows))])
    same_bits(singles, dot_rows(rows, query))


def test_dot_rows_when_asked_for_a_subset_then_the_same_bits(
    rows: Any, query: Any, rng: np.random.Generator
) -> None:
    everything = dot_rows(rows, query)
    for size in range(1, len(rows) + 1, 3):
        some = rng.choice(len(rows), size=size, replace=True)
        same_bits(dot_rows(rows[some], query), everything[some])


def test_dot_rows_when_permuted_then_the_same_bits(
    rows: Any, query: Any, rng: np.random.Generator
) -> None:
    order = rng.permutation(len(rows))
    same_bits(dot_rows(rows[order], query), dot_rows(rows, query)[order])


def test_dot_rows_when_laid_out_otherwise_then_the_same_bits(rows: Any, query: Any) -> None:
    expected = dot_rows(rows, query)
    n, d = rows.shape
    wide = np.zeros((2 * n, 2 * d + 1), dtype=np.float32)
    wide[::2, 1::2] = rows
    shifted = np.zeros(n * d + 1, dtype=np.float32)
    shifted[1:] = rows.ravel()
    repeated = np.repeat(query, 2)
    same_bits(dot_rows(np.asfortranarray(rows), query), expected)
    same_bits(dot_rows(wide[::2, 1::2], repeated[::2]), expected)
    same_bits(dot_rows(rows[::-1], query), expected[::-1])
    same_bits(dot_rows(shifted[1:].reshape(n, d), query), expected)
    same_bits(dot_rows(rows.astype(np.float64), query.astype(np.float64)), expected)


@pytest.mark.parametrize("block", [1, 2, 7])
def test_dot_rows_when_cut_into_blocks_then_the_same_bits(
    rows: Any, query: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dot_rows(rows, query)
    monkeypatch.setattr(similarity, "_BLOCK", block)
    same_bits(dot_rows(rows, query), expected)


def test_dot_rows_when_one_row_is_absent_then_only_its_value_is() -> None:
    rows = np.array([[1.0, 0.0], [np.nan, 0.0]], dtype=np.float32)
    result = dot_rows(rows, np.array([1.0, 0.0], dtype=np.float32))
    assert result[0] == 1.0
    assert np.isnan(result[1])


def test_dot_rows_when_empty_then_empty() -> None:
    assert dot_rows(np.zeros((0, 3), np.float32), np.zeros(3, np.float32)).shape == (0,)


@pytest.mark.parametrize(
    ("rows", "query"), [((2, 3), (2,)), ((3,), (3,)), ((2, 3), (1, 3)), ((2, 3), ())]
)
def test_dot_rows_when_the_shapes_do_not_fit_then_refused(rows: Any, query: Any) -> None:
    with pytest.raises(InvalidArrayError):
        dot_rows(np.zeros(rows, np.float32), np.zeros(query, np.float32))


def test_pairwise_cosines_when_computed_then_symmetric_bounded_and_as_dot_rows(rows: Any) -> None:
    result = pairwise_cosines(rows)
    same_bits(result, result.T.copy())
    assert np.abs(result).max() <= 1.0
    same_bits(result[:, 0], np.clip(dot_rows(rows, rows[0]), -1.0, 1.0))


def test_pairwise_cosines_when_a_row_is_absent_then_all_of_its_pairs_are() -> None:
    result = pairwise_cosines(np.array([[1.0, 0.0], [np.nan, np.nan]], dtype=np.float32))
    assert result[0, 0] == 1.0
    assert np.isnan(result).sum() == 3


def test_pairwise_cosines_when_empty_then_empty() -> None:
    assert pairwise_cosines(np.zeros((0, 4), np.float32)).shape == (0, 0)


def test_unit_rows_when_normalised_then_float32_of_norm_one(rng: np.random.Generator) -> None:
    result = unit_rows(rng.standard_normal((20, 384)) * 10.0 ** rng.integers(-18, 18, (20, 1)))
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(result.astype(np.float64), axis=1), 1.0, atol=2e-7)


@pytest.mark.parametrize("d", [1, 384, 4097, 8200])
def test_unit_rows_when_asked_one_by_one_then_the_same_bits(
    d: int, rng: np.random.Generator
) -> None:
    matrix = rng.standard_normal((20, d)).astype(np.float32)
    singles = [unit_rows(matrix[i : i + 1])[0] for i in range(20)]
    same_bits(singles, unit_rows(matrix))
    same_bits(unit_rows(np.asfortranarray(matrix)), unit_rows(matrix))


def test_unit_rows_when_given_then_the_input_is_left_alone() -> None:
    matrix = np.array([[3.0, 4.0]], dtype=np.float32)
    matrix.flags.writeable = False
    assert unit_rows(matrix) is not matrix


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([math.nan, 1.0], "non-finite"),
        ([math.inf, 1.0], "non-finite"),
        ([-math.inf, math.inf], "non-finite"),
        ([0.0, 0.0], "norm"),
        ([1e-200, 0.0], "norm"),
        ([3e19, 0.0], "norm"),
        ([1e200, 0.0], "norm"),
        ([-1e308, 1e308], "norm"),
    ],
)
def test_unit_rows_when_a_row_has_no_direction_then_refused_by_its_number(
    row: list[float], reason: str
) -> None:
    matrix = np.array([[1.0, 0.0], row, [0.0, 0.0]])
    assert faulty_row(matrix) == (1, reason)
    with pytest.raises(InvalidArrayError) as caught:
        unit_rows(matrix)
    assert caught.value.name == "row 1"


def test_faulty_row_when_all_is_well_then_none() -> None:
    assert faulty_row(np.eye(3)) is None
    assert faulty_row(np.zeros((0, 3))) is None


@pytest.mark.parametrize("matrix", [[1.0, 2.0], [[]], [[[1.0]]], [["a"]], [[1.0], [1.0, 2.0]]])
def test_unit_rows_when_it_is_no_matrix_then_refused(matrix: Any) -> None:
    with pytest.raises(InvalidArrayError):
        unit_rows(matrix)


def test_unit_rows_when_there_are_none_then_none() -> None:
    assert unit_rows(np.zeros((0, 5))).shape == (0, 5)

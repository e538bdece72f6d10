"""What a store observed, read as one column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankblend.errors import MemoryContractError
from rankblend.recall._ask import Outcome
from rankblend.recall._observe import read_column
from rankblend.stores import Observation, SignalStore

STORE = SignalStore("votes", lambda _: {}, emits=("liked_test",))


def read(values: Any, reasons: Any = None) -> Any:
    given = {} if reasons is None else {"liked_test": reasons}
    outcome = Outcome(Observation({"liked_test": values}, given))
    return read_column(STORE, "liked_test", outcome, np.array([2, 0]), 3)


@pytest.mark.parametrize(
    "values",
    [
        ["0.5", "1"],
        np.array(["0.5", "1"]),
        np.array([b"0.5", b"1"]),
        np.array(["0.5", "1"], object),
        np.array([0.5, None], object),
        np.array([True, False]),
        np.array([0.5, 1j]),
        np.array([0, 1], "datetime64[s]"),
    ],
    ids=repr,
)
def test_column_when_it_is_not_of_numbers_then_refused_though_it_could_be_read_as_such(
    values: Any,
) -> None:
    with pytest.raises(MemoryContractError, match=r"store 'votes'.*numbers for 'liked_test'"):
        read(values, np.zeros(2, np.int8))
    with pytest.raises(MemoryContractError, match=r"store 'votes'.*numbers for 'liked_test'"):
        read(np.zeros(2), values)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_column_when_it_is_of_numbers_then_each_is_where_its_candidate_is(dtype: Any) -> None:
    column = read(np.array([1, 0], dtype))
    assert np.array_equal(column.values, [0.0, np.nan, 1.0], equal_nan=True)
    assert column.values.dtype == np.float64


def test_column_when_a_reason_would_wrap_around_then_refused() -> None:
    with pytest.raises(MemoryContractError, match=r"'votes': unknown reasons for 'liked_test'"):
        read(np.zeros(2), np.array([256, 0]))

import decimal
import fractions
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.values import (
    dotted,
    is_identifier,
    is_number,
    is_text,
    kind_or_number,
    real_number,
    shown,
    type_name,
    whole_number,
)

NUMBERS: list[tuple[Any, float]] = [
    (1, 1.0),
    (0.5, 0.5),
    (np.float32(0.5), 0.5),
    (np.float64(0.5), 0.5),
    (np.int64(3), 3.0),
    (np.uint8(3), 3.0),
    (np.array(0.25), 0.25),
    (np.array(7), 7.0),
    (decimal.Decimal("0.5"), 0.5),
    (fractions.Fraction(1, 2), 0.5),
    (10**400, math.inf),
    (-(10**400), -math.inf),
]
NONE_OF_THEM: list[Any] = [
    None, True, np.True_, "0.5", b"1", 1j, np.complex128(1), [1], np.array([1]), np.array("1"),
    np.array(True), np.array([[1.0]]), np.timedelta64(5, "s"), np.datetime64("2026-01-01"),
    np.array(3, dtype=object), decimal.Decimal("sNaN"), object(), float,
]  # fmt: skip


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_real_number_when_float_takes_it_then_is_one(value: object, number: float) -> None:
    assert real_number(value) == number
    assert type(real_number(value)) is float


@pytest.mark.parametrize("value", NONE_OF_THEM)
def test_numbers_when_bools_texts_or_containers_then_are_none(value: object) -> None:
    assert real_number(value) is None
    assert whole_number(value) is None
    assert not is_number(value)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_whole_number_when_operator_index_takes_it_then_is_an_int(value: object) -> None:
    assert whole_number(value) == 3
    assert type(whole_number(value)) is int


@pytest.mark.parametrize("value", [3.0, np.float64(3.0), decimal.Decimal(3), np.array(3.0)])
def test_whole_number_when_a_float_then_is_none(value: object) -> None:
    assert whole_number(value) is None


def test_real_number_when_negative_zero_then_zero() -> None:
    assert math.copysign(1.0, real_number(-0.0) or 0.0) == 1.0


def test_is_number_when_not_finite_then_no() -> None:
    assert not any(map(is_number, (math.nan, math.inf, 10**400, np.float32("nan"))))


@given(st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1))
def test_real_number_when_numpy_wraps_it_then_is_the_same(value: float) -> None:
    wrapped = np.array(value)
    assert real_number(value) == real_number(wrapped) == real_number(wrapped[()])
    assert whole_number(value) == whole_number(wrapped) == whole_number(wrapped[()])


def test_refused_values_when_shown_then_long_texts_and_huge_numbers_are_not() -> None:
    assert [shown(value) for value in ("high", "x" * 41, 3, None, 10**5000, [1], True)] == [
        '"high"', "a text of 41 characters", "3", "None", "int", "list", "True",
    ]  # fmt: skip
    assert [kind_or_number(value) for value in ("high", None, 3, 1.5, True)] == [
        "str", "NoneType", "3", "1.5", "bool",
    ]  # fmt: skip
    assert type_name("secret") == "str"


def test_dotted_when_names_are_odd_then_quotes_them() -> None:
    assert dotted(("signals", "odd name", "curve", 1, "half-life")) == (
        'signals."odd name".curve[1].half-life'
    )


def test_texts_and_identifiers() -> None:
    assert is_text("ä")
    assert not is_text("\ud800")
    assert is_identifier("a_1")
    assert not any(map(is_identifier, ("1a", "a b", "ä", "", None, "a\n")))

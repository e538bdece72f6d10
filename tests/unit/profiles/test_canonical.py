"""Canonical JSON, against the examples and rules of RFC 8785."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.errors import InvalidArgumentError
from rankblend.profiles import canonical_hash, canonical_json

# RFC 8785, appendix B: IEEE doubles as hex and their text.
RFC_NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS)
def test_canonical_json_when_given_the_numbers_of_the_rfc_then_writes_its_text(
    bits: str, text: str
) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == text


def test_canonical_json_when_keys_need_utf_16_order_then_sorts_by_code_units() -> None:
    # The example of RFC 8785, 3.2.3: the emoji's surrogates sort before U+FB33.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    order = list(json.loads(canonical_json(dict.fromkeys(keys, 0))))
    assert order == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_canonical_json_when_given_text_then_escapes_only_what_must_be() -> None:
    text = "\u20ac$\u000f\nA'B\"\\/\x7f\u2028"
    assert canonical_json(text) == '"\u20ac$\\u000f\\nA\'B\\"\\\\/\x7f\u2028"'


def test_canonical_json_when_ints_and_floats_are_equal_then_they_are_one_text() -> None:
    assert canonical_json([1, 1.0, -0.0, 10**20]) == "[1,1,0,100000000000000000000]"
    assert canonical_json([True, None, (), {}]) == "[true,null,[],{}]"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_canonical_json_when_a_number_is_read_back_then_it_is_the_same(number: float) -> None:
    assert float(canonical_json(number)) == number


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, 10**400, "\ud800", {1: 2}, {"a": object()}, b"x", {"\udc00": 1}]
)
def test_canonical_json_when_there_is_no_json_form_then_refuses(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="canonical JSON"):
        canonical_json(value)


def test_canonical_hash_when_order_of_keys_differs_then_is_the_same_sha_256() -> None:
    expected = hashlib.sha256('{"a":1,"b":"é"}'.encode()).hexdigest()
    assert canonical_hash({"b": "é", "a": 1.0}) == canonical_hash({"a": 1, "b": "é"}) == expected

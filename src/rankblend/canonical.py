"""Canonical JSON: one text for one value, so that equal content has an equal hash.

Follows RFC 8785 (JSON Canonicalization Scheme): no white space, keys sorted by their UTF-16 code
units, strings as ECMAScript writes them, numbers as IEEE doubles in the shortest form that reads
back the same. 1 and 1.0 are one number. Own implementation of the published rules.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

from rankblend.errors import InvalidArgumentError

__all__ = ["canonical_hash", "canonical_json"]


def canonical_json(value: object) -> str:
    """The canonical text of a JSON value.

    Args:
        value: None, bool, int, float, str, or a list, tuple or string-keyed mapping of such.
            An int counts as the double nearest to it, as RFC 8785 asks.

    Raises:
        InvalidArgumentError: NaN, an infinity, an int beyond the doubles, a lone surrogate, a key
            that is no string, or another type.

    Example:
        >>> canonical_json({"b": 1.0, "a": [1e21, 1e-7, "é"]})
        '{"a":[1e+21,1e-7,"é"],"b":1}'
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(canonical_json, value))}]"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidArgumentError("canonical JSON: expected text as key of an object")
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return f"{{{','.join(f'{_text(key)}:{canonical_json(value[key])}' for key in keys)}}}"
    raise InvalidArgumentError(f"canonical JSON: {type(value).__name__} has no JSON form")


def canonical_hash(value: object) -> str:
    """SHA-256 of the canonical text in UTF-8, as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def _text(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError("canonical JSON: text holds a lone surrogate") from None
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidArgumentError("canonical JSON: expected a finite number")
    if number == 0.0:
        return "0"  # -0 too
    # repr gives the shortest digits that read back the same, which ECMAScript asks for as well;
    # only the place where the exponent begins differs.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """0.d₁d₂… × 10^point as ECMAScript's Number::toString writes it."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"

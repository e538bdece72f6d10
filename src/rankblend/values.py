"""Single values: what counts as a number, a name or a text, and how a refused one stands in a message."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Sequence
from typing import TypeGuard

__all__ = [
    "dotted",
    "is_identifier",
    "is_number",
    "is_text",
    "kind_or_number",
    "named",
    "quoted",
    "real_number",
    "shown",
    "type_name",
    "whole_number",
]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_UNFIT = (bool, str, bytes, bytearray, memoryview)


def real_number(value: object) -> float | None:
    """``value`` as a float when it is a number: what `float` takes, bools and texts apart.

    NumPy's scalars and arrays without axes are numbers, too. An integer beyond the range of a float
    becomes an infinity of its sign; −0.0 becomes 0.0. None for everything else.
    """
    if type(value) is float:
        return value + 0.0
    if isinstance(value, _UNFIT) or not _is_scalar(value, "fiu"):
        return None
    try:
        return float(value) + 0.0  # type: ignore[arg-type]
    except OverflowError:
        return math.copysign(math.inf, -1.0 if value < 0 else 1.0)  # type: ignore[operator]
    except (TypeError, ValueError):
        return None


def whole_number(value: object) -> int | None:
    """``value`` as an int when it is one: what `operator.index` takes, bools apart; else None."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not _is_scalar(value, "iu"):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _is_scalar(value: object, kinds: str) -> bool:
    """Whether a value that says that it is of NumPy's kind is one number of these kinds."""
    dtype = getattr(value, "dtype", None)
    return dtype is None or (getattr(dtype, "kind", "") in kinds and not getattr(value, "ndim", 0))


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number (see `real_number`)."""
    number = real_number(value)
    return number is not None and math.isfinite(number)


def is_identifier(name: object) -> bool:
    """Whether ``name`` can name evidence, a signal, a node or a store: ASCII letters, digits, _."""
    return isinstance(name, str) and _IDENTIFIER.match(name) is not None


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is text that can be stored: without lone surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: object) -> str:
    """A refused value for a message: numbers and short texts as they are, else only the type."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f"a text of {len(value)} characters"
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int) and value.bit_length() < 64:
        return str(value)
    return type(value).__name__


def kind_or_number(value: object) -> str:
    """A refused value where it may be somebody's words: numbers as they are, else the type."""
    return shown(value) if isinstance(value, int | float) and type(value) is not bool else (
        type(value).__name__)  # fmt: skip


def type_name(value: object) -> str:
    """A refused value where nothing of it may be repeated: its type."""
    return type(value).__name__


def named(key: object) -> str:
    """A key that was given, for a message: a text as it is, cut short, anything else as `shown`."""
    return key[:40] if isinstance(key, str) else shown(key)


def quoted(text: str) -> str:
    """A text in quotes, as TOML and JSON write it, cut short."""
    text = json.dumps(text, ensure_ascii=False)
    return text if len(text) <= 40 else f'{text[:36]}…"'


def dotted(path: Sequence[str | int]) -> str:
    """A path as it would be written: ``signals."odd name".curve[1]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        if not (part.replace("-", "_").isidentifier() or part.isdigit()):
            part = quoted(part)
        text += f".{part}" if text else part
    return text

"""What the parts of a capture must be like; every check names the field, none repeats its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from rankblend.canonical import canonical_json
from rankblend.errors import InvalidArgumentError, InvalidScopeError
from rankblend.relevance import Scope, is_number

# In code points.
MAX_SCOPE_PART = 200
MAX_QUESTION = 32_000
MAX_ANSWER = 32_000
MAX_INTENT = 100
MAX_NAME = 200
MAX_REFERENCE = 200
"""Longest source, run id and subject id."""
MAX_DURATION = timedelta(days=3_653)
"""Of a run: ten years."""


def text_problems(
    name: str, value: object, *, limit: int | None, optional: bool = False, blank: bool = False
) -> Iterable[str]:
    """Problems of a text: its type, blankness, length in code points, lone surrogates.

    Args:
        name: The field.
        value: What stands there.
        limit: Most code points, or None.
        optional: None is fine.
        blank: A blank is fine.
    """
    if optional and value is None:
        return
    if not isinstance(value, str):
        yield f"{name}: expected text, got {type(value).__name__}"
        return
    if not blank and not value.strip():
        yield f"{name}: expected some text, got a blank"
    if limit is not None and len(value) > limit:
        yield f"{name}: expected at most {limit:,} code points, got {len(value):,}"
    try:
        value.encode()
    except UnicodeEncodeError:
        yield f"{name}: contains a lone surrogate, which cannot be stored as UTF-8"


def unit_problems(name: str, value: object, *, optional: bool = False) -> Iterable[str]:
    """Problems of a number that must lie in [0, 1]."""
    if optional and value is None:
        return
    if not is_number(value):
        yield f"{name}: expected a number in [0, 1], got {_kind(value)}"
    elif not 0 <= value <= 1:
        yield f"{name}: expected a number in [0, 1], got one outside"


def bool_problems(name: str, value: object, *, optional: bool = False) -> Iterable[str]:
    """Problems of a yes or no."""
    if not isinstance(value, bool) and not (optional and value is None):
        yield f"{name}: expected True or False, got {type(value).__name__}"


def read_duration(value: Any) -> Any:
    """Seconds as a duration; what is neither stays, to be reported with everything else."""
    if is_number(value) and abs(value) < timedelta.max.total_seconds():
        return timedelta(seconds=value)
    return value


def duration_problems(name: str, value: object) -> Iterable[str]:
    """Problems of the duration of a run after `read_duration`; it may be None."""
    if value is None:
        return
    if not isinstance(value, timedelta):
        yield f"{name}: expected a timedelta, seconds or None, got {type(value).__name__}"
    elif value < timedelta(0):
        yield f"{name}: expected a duration that is not negative"
    elif value > MAX_DURATION:
        yield f"{name}: expected at most {MAX_DURATION.days:,} days"


def read_scope(value: object) -> object:
    """A scope from its text; what cannot be read stays, for `scope_problems` to report."""
    try:
        return Scope.parse(value) if isinstance(value, str) else value
    except InvalidScopeError:
        return value


def scope_problems(name: str, value: object) -> Iterable[str]:
    """Problems of a scope after `read_scope`."""
    if isinstance(value, str):
        yield f"{name}: expected a root-first path of kind:id levels, such as tenant:acme"
    elif not isinstance(value, Scope):
        yield f"{name}: expected a Scope or its text, got {type(value).__name__}"
    else:
        for position, level in enumerate(value.levels, start=1):
            longest = max(len(level.kind), len(level.id))
            if longest > MAX_SCOPE_PART:
                yield (
                    f"{name}: level {position}: expected at most {MAX_SCOPE_PART} code points in "
                    f"a part, got {longest:,}"
                )


def json_problem(value: object) -> str | None:
    """Why a value cannot be written as JSON, or None."""
    if not isinstance(value, Mapping):
        return f"expected a mapping, got {type(value).__name__}"
    try:
        canonical_json(value)
    except InvalidArgumentError as error:
        return str(error).removeprefix("canonical JSON: ")
    except RecursionError:
        return "nested too deep"
    return None


def _kind(value: object) -> str:
    return "NaN or infinity" if isinstance(value, float) else type(value).__name__

"""What the parts of procedures must be like; every problem names the field, none repeats its value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rankblend.canonical import canonical_json
from rankblend.checks import At, Problems
from rankblend.errors import InvalidArgumentError, InvalidScopeError, ReasonletValidationError
from rankblend.kernels.text import is_blank
from rankblend.relevance import Scope
from rankblend.values import is_number, real_number, type_name

# In characters.
MAX_SCOPE_PART = 200
MAX_QUESTION = 32_000
MAX_ANSWER = 32_000
MAX_INTENT = 100
MAX_NAME = 200
MAX_REFERENCE = 200
"""Longest source, run id and subject id."""
MAX_DURATION = timedelta(days=3_653)
"""Of a run: ten years."""
_LONGEST_ID = 64


class Checks(Problems):
    """The problems of procedures; what they raise is a `ReasonletValidationError`."""

    def __init__(self) -> None:
        super().__init__(ReasonletValidationError, show=_outside)

    def scope(self, at: At, value: object) -> Scope | None:
        """A scope whose parts are not too long, or its text; None when it is neither."""
        read = read_scope(value)
        if isinstance(read, str):
            self.add(at, "expected a root-first path of kind:id levels, such as tenant:acme")
        elif not isinstance(read, Scope):
            self.add(at, f"expected a Scope or its text, got {type(read).__name__}")
        else:
            for position, level in enumerate(read.levels, start=1):
                longest = max(len(level.kind), len(level.id))
                if longest > MAX_SCOPE_PART:
                    expected = f"expected at most {MAX_SCOPE_PART} characters in a part"
                    self.add(at, f"level {position}: {expected}, got {longest:,}")
            return read
        return None

    def question(
        self, at: At, value: object, *, limit: int | None = MAX_QUESTION, optional: bool = False
    ) -> None:
        """A text that shows something: one of invisible characters only is blank, too."""
        here = self.at()
        here.text(at, value, limit=limit, optional=optional)
        if here.clean and isinstance(value, str) and is_blank(value):
            self.add(at, "expected some text, got a blank")

    def id(self, at: At, value: object, *, optional: bool = False) -> None:
        """An id that something is looked up by."""
        self.text(at, value, limit=_LONGEST_ID, optional=optional)

    def part(self, at: At, value: object, kind: type[Checked]) -> None:
        """A value that checks itself."""
        if self.instance(at, value, kind) is not None:
            self.extend(at, value.validate())  # type: ignore[attr-defined]

    def json(self, at: At, value: object) -> None:
        """A mapping that can be written as JSON."""
        if not isinstance(value, Mapping):
            self.add(at, f"expected a mapping, got {type(value).__name__}")
            return
        try:
            canonical_json(value)
        except InvalidArgumentError as error:
            self.add(at, str(error).removeprefix("canonical JSON: "))
        except RecursionError:
            self.add(at, "nested too deep")


def _outside(value: object) -> str:
    """A refused value, of which nothing may be repeated."""
    if is_number(value):
        return "one outside"
    return "NaN or infinity" if isinstance(value, float) else type_name(value)


class Checked:
    """A value that is made without a check, so that everything wrong can be told at once."""

    __slots__ = ()

    def validate(self) -> tuple[str, ...]:
        """Everything that is wrong, one line each with the path of the field."""
        checks = Checks()
        self.check(checks)
        return tuple(checks.lines)

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        raise NotImplementedError


def read_duration(value: Any) -> Any:
    """Seconds as a duration; what is neither stays, to be reported with everything else."""
    seconds = real_number(value)
    if seconds is not None and abs(seconds) < timedelta.max.total_seconds():
        return timedelta(seconds=seconds)
    return value


def read_scope(value: object) -> object:
    """A scope from its text; what cannot be read stays, for `Checks.scope` to report."""
    try:
        return Scope.parse(value) if isinstance(value, str) else value
    except InvalidScopeError:
        return value

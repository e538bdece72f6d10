"""Collecting everything that is wrong with a profile, each problem with its path."""

from __future__ import annotations

import datetime
import json
import math
import numbers
from collections.abc import Iterable, Mapping

from rankblend.errors import ProfileError, nearest_name
from rankblend.relevance import is_identifier

Path = tuple[str, ...]
"""Where a value stands, e.g. ``("score", "weights", "cue")``."""


class Problems:
    """The problems found so far in one profile, in the order they were found.

    Args:
        profile: Name or path of the profile, for the error.
        origins: Where inherited values were written; a problem with one of them says so, because
            the file to correct is then another one.
    """

    def __init__(
        self,
        profile: str,
        *,
        origins: Mapping[Path, str] | None = None,
        lines: Iterable[str] = (),
        incomplete: bool = False,
    ) -> None:
        self.profile = profile
        self.lines: list[str] = list(lines)
        self.incomplete = incomplete
        self._origins = origins or {}

    def add(self, path: Path, message: str) -> None:
        """Note ``path: message``; the same line twice is one problem."""
        self._note(f"{dotted(path)}: {message}" if path else message, self._origins.get(path))

    def expected(self, path: Path, expected: str, got: object) -> None:
        """Note what should have stood at ``path`` and what does."""
        self.add(path, f"expected {expected}, got {shown(got)}")

    def written(self, path: Path) -> bool:
        """Whether some document wrote an element at this path."""
        return path in self._origins

    def lacking(self, path: Path, message: str) -> None:
        """As ``add``, for what a parent may have brought."""
        if not self.incomplete:
            self.add(path, message)

    def undefined(self, path: Path, what: str, name: str, known: Iterable[str]) -> None:
        """As ``unknown``, for a name that this profile should have defined."""
        if not self.incomplete:
            self.unknown(path, what, name, known)

    def take(self, path: Path, lines: Iterable[str]) -> None:
        """Note lines that somebody else found about the element at ``path``, with their paths."""
        for line in lines:
            self._note(line, self._origins.get(path))

    def unknown(self, path: Path, what: str, name: str, known: Iterable[str]) -> None:
        """Note a name that nothing has, with the nearest one that something has."""
        self.add(path, f"unknown {what} {shown(name)}{_hint(name, known)}")

    def keys(self, path: Path, table: Mapping[str, object], known: Iterable[str]) -> None:
        """Refuse every key of ``table`` that has no meaning there."""
        known = tuple(known)
        for key in table:
            if key not in known:
                self.add((*path, key), f"unknown key{_hint(key, known)}")

    def number(
        self,
        path: Path,
        value: object,
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> float | None:
        """The value as a float, or None when it is no finite number in the range (noted).

        Args:
            path: Where it stands.
            value: What stands there; a bool is not a number.
            low: Least value allowed, infinite for none.
            high: Greatest value allowed, infinite for none.
        """
        number = _as_float(value)
        if number is not None and low <= number <= high:
            return number
        self.expected(path, f"a number{_range(low, high)}", value)
        return None

    def whole(self, path: Path, value: object, *, low: int, high: int | None = None) -> int | None:
        """The value as an int, or None when it is no whole number in the range (noted)."""
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            number = int(value)
            if low <= number and (high is None or number <= high):
                return number
        self.expected(
            path, f"a whole number{_range(low, math.inf if high is None else high)}", value
        )
        return None

    def choice(self, path: Path, value: object, choices: Iterable[str]) -> str | None:
        """The value when it is one of a few words, else None (noted)."""
        choices = tuple(choices)
        if isinstance(value, str) and value in choices:
            return value
        options = " or ".join(f'"{choice}"' for choice in choices)
        self.expected(path, options, value)
        return None

    def table(self, path: Path, value: object) -> Mapping[str, object]:
        """The value when it is a table, else an empty one (noted unless it is missing)."""
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self.expected(path, "a table", value)
        return {}

    def names(self, path: Path, value: object) -> tuple[str, ...]:
        """The value as distinct names, or what of it can be used (the rest noted)."""
        if not isinstance(value, (list, tuple)):
            self.expected(path, "a list of names", value)
            return ()
        found: dict[str, None] = {}
        for position, name in enumerate(value):
            if not isinstance(name, str):
                self.expected((*path, str(position)), "a name", name)
            elif name in found:
                self.add(path, f"{shown(name)} is listed twice")
            else:
                found[name] = None
        return tuple(found)

    def identifier(self, path: Path, what: str, name: str) -> bool:
        """Whether ``name`` may be given to something (noted when not)."""
        if is_identifier(name):
            return True
        self.add(path, f"{what} names are ASCII letters, digits and _, and start with no digit")
        return False

    def _note(self, line: str, origin: str | None) -> None:
        line = line if origin in (None, self.profile) else f"{line} (from {origin})"
        if line not in self.lines:
            self.lines.append(line)

    def raise_if_any(self) -> None:
        """End here when something was found.

        Raises:
            ProfileError: With every line noted.
        """
        if self.lines:
            raise ProfileError(self.profile, self.lines)


def dotted(path: Path) -> str:
    """The path as it would be written in the file: ``signals."odd name".curve``."""
    return ".".join(
        part if part.replace("-", "_").isidentifier() or part.isdigit() else shown(part)
        for part in path
    )


def shown(value: object) -> str:
    """A short rendering of a refused value, as TOML would write it."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 40 else f'{text[:36]}…"'
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, (datetime.date, datetime.time)):
        return "a date or time"
    if isinstance(value, int):
        # The decimal digits of a huge integer take quadratic time, and Python refuses beyond 4,300.
        return repr(value) if value.bit_length() <= 64 else "an integer beyond 64 bits"
    if isinstance(value, float):
        return repr(float(value))
    return type(value).__name__


def _hint(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    nearest = nearest_name(name, known)
    if nearest is not None:
        return f': did you mean "{nearest}"?'
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"; known: {listed}" if known else ""


def _range(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f" in [{_plain(low)}, {_plain(high)}]"
    if math.isfinite(low):
        return f" ≥ {_plain(low)}"
    return ""


def _plain(bound: float) -> str:
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"


def _as_float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None

"""What is wrong with a profile: the checks of all input, in the words of a TOML file."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import fields

from rankblend.checks import At, Problems, Rule
from rankblend.errors import ProfileError
from rankblend.values import dotted, quoted, shown

Path = tuple[str, ...]
"""Where a value stands, e.g. ``("score", "weights", "cue")``."""
T = TypeVar("T")


class ProfileProblems(Problems):
    """The problems found so far in one profile; the same line twice is one problem.

    Args:
        profile: Name or path of the profile, for the error.
        origins: Where inherited values were written; a problem with one of them says so, because
            the file to correct is then another one.
        lines: What was found before.
        incomplete: A parent could not be read, so that what is lacking may have been there.
    """

    number_word = "a number"
    whole_word = "a whole number"
    between = " in [{}, {}]"
    flag_word = "true or false"
    none_word = ""  # TOML has no null

    def __init__(
        self,
        profile: str,
        *,
        origins: Mapping[Path, str] | None = None,
        lines: Iterable[str] = (),
        incomplete: bool = False,
    ) -> None:
        super().__init__(partial(ProfileError, profile), show=toml_shown)
        self.profile = profile
        self.lines += lines
        self._origins = origins or {}
        self._incomplete = incomplete

    def add(self, at: At, message: str) -> None:
        path = (at,) if isinstance(at, str) else at
        self._note(f"{dotted(path)}: {message}" if path else message, path)

    def extend(self, at: At, lines: Iterable[str]) -> None:
        path = (at,) if isinstance(at, str) else at
        for line in lines:
            way = line.partition(":")[0].partition("[")[0].split(".")
            self._note(f"{dotted(path)}.{line}", (*path, *way), least=len(path))

    def one_of(self, words: Sequence[str]) -> str:
        return " or ".join(f'"{word}"' for word in words)

    def lacking(self, path: Path, message: str) -> None:
        """As `add`, for what a parent may have brought."""
        if not self._incomplete:
            self.add(path, message)

    def undefined(self, path: Path, what: str, name: str, known: Iterable[str]) -> None:
        """As `unknown`, for a name that this profile should have defined."""
        if not self._incomplete:
            self.unknown(path, what, name, known)

    def written(self, path: Path) -> bool:
        """Whether some document wrote an element at this path."""
        return path in self._origins

    def _note(self, line: str, path: tuple[str | int, ...], least: int | None = None) -> None:
        """Note a line about what was written at a path, or at the nearest above it."""
        origins: Mapping[Any, str] = self._origins
        lengths = range(len(path), (len(path) if least is None else least) - 1, -1)
        found = (origins.get(path[:length]) for length in lengths)
        origin = next((each for each in found if each is not None), self.profile)
        line = line if origin == self.profile else f"{line} (from {origin})"
        if line not in self.lines:
            self.lines.append(line)


def toml_shown(value: object) -> str:
    """A short rendering of a refused value, as TOML would write it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        return "an integer beyond 64 bits"  # whose digits take quadratic time
    kinds: tuple[tuple[Any, str], ...] = (
        (type(None), "nothing"),
        (Mapping, "a table"),
        ((list, tuple), "a list"),
        ((datetime.date, datetime.time), "a date or time"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), shown(value))


def must(check: Callable[..., Any], **limits: Any) -> dict[str, Any]:
    """The metadata of an attribute with the check that its value must pass."""
    return {"rule": partial(check, **limits)}


def rules_of(kind: type[Any]) -> dict[str, Rule]:
    """By name the checks of the attributes that were declared with one."""
    return {each.name: each.metadata["rule"] for each in fields(kind) if "rule" in each.metadata}


def check_rules(problems: Problems, path: Path, value: object) -> None:
    """Note every attribute of a value that breaks its rule; NumPy's numbers become Python's."""
    for name, rule in rules_of(type(value)).items():
        given, here = getattr(value, name), problems.at()
        read = rule(here, (*path, name), given)
        if here.clean and not (given is None or isinstance(given, int | float | str)):
            object.__setattr__(value, name, read)  # an equal value in the form that is worked with


def section(problems: Problems, path: Path, table: object, kind: type[T]) -> T:
    """A value of a class from the table of its attributes; only what they are called is checked."""
    found, names = problems.table(path, table), rules_of(kind)
    problems.keys(path, found, names)
    return kind(**{name: found[name] for name in names if name in found})

"""What a caller gave cannot be used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rankblend.errors.tree import ProblemsError, RankblendError, shown_value

__all__ = [
    "InvalidArgumentError",
    "InvalidArrayError",
    "InvalidScopeError",
    "InvalidSignalError",
    "InvalidWeightError",
    "ProfileError",
    "UnknownNameError",
    "nearest_name",
]


class InvalidSignalError(RankblendError, ValueError):
    """A signal value is neither absent nor a finite real number in [0, 1].

    Attributes:
        signal: The name of the signal.
        value: The refused value.
    """

    def __init__(self, signal: str, value: object) -> None:
        self.signal = signal
        self.value = value
        super().__init__(
            f"signal {signal!r}: expected None or a finite number in [0, 1], "
            f"got {shown_value(value)}; a raw measurement is evidence and needs a curve first"
        )


class InvalidWeightError(RankblendError, ValueError):
    """A weight is not a finite number ≥ 0, or the weights have no finite sum.

    Attributes:
        name: The signal the weight belongs to, or None when the sum is at fault.
        value: The refused value.
    """

    def __init__(self, name: str | None, value: object) -> None:
        self.name = name
        self.value = value
        what = f"weight {name!r}" if name is not None else "the sum of the weights"
        super().__init__(f"{what}: expected a finite number ≥ 0, got {shown_value(value)}")


class InvalidScopeError(RankblendError, ValueError):
    """A scope is not a root-first path of 1 to 64 ``kind:id`` levels."""


class InvalidArgumentError(ProblemsError, ValueError):
    """One or more arguments of a call are invalid; nothing was done."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(found, heading=f"{len(found)} invalid arguments:")


class InvalidArrayError(RankblendError, ValueError):
    """An array has the wrong shape, dtype or range.

    Attributes:
        name: The parameter.
        expected: What it should have been.
        got: What it was.
    """

    def __init__(self, name: str, expected: str, got: str) -> None:
        self.name = name
        self.expected = expected
        self.got = got
        super().__init__(f"{name}: expected {expected}, got {got}")


class ProfileError(ProblemsError, ValueError):
    """A ranking profile is invalid; every problem is listed with its path.

    Attributes:
        profile: The name or path of the profile.
    """

    def __init__(self, profile: str, problems: Iterable[str]) -> None:
        self.profile = profile
        found = tuple(problems)
        super().__init__(found, heading=f"profile {profile!r} has {len(found)} problems:")


class UnknownNameError(RankblendError, LookupError):
    """A name is not registered.

    Attributes:
        kind: What the name should have named, e.g. ``"profile"``.
        name: The unknown name.
        known: All known names, sorted.
        nearest: The most similar known name, or None.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known: tuple[str, ...] = tuple(sorted(known))
        self.nearest = nearest_name(name, self.known)
        hint = (
            f'did you mean "{self.nearest}"?'
            if self.nearest
            else f"known: {', '.join(self.known) or 'none'}"
        )
        super().__init__(f'unknown {kind} "{name}": {hint}')


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None when nothing is similar."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None

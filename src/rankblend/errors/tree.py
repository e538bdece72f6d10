"""The roots of all errors and warnings, and an error that tells every problem at once."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ProblemsError", "RankblendError", "RankblendWarning", "shown_value"]


class RankblendError(Exception):
    """Base of every error raised on purpose by rankblend."""

    def __str__(self) -> str:
        """The message; it can always be printed and written to a log."""
        return _printable(super().__str__())


class ProblemsError(RankblendError):
    """An error that reports every problem found, not only the first.

    Attributes:
        problems: One line each, ``path: what was expected, what was got``.
    """

    def __init__(self, problems: Iterable[str], *, heading: str) -> None:
        self.problems: tuple[str, ...] = tuple(map(_printable, problems))
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(self.problems[0] if len(self.problems) == 1 else f"{heading}\n{lines}")


class RankblendWarning(UserWarning):
    """Base of every warning rankblend issues."""


def _printable(text: str) -> str:
    """A text with its lone surrogates, which UTF-8 cannot hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shown_value(value: object) -> str:
    """A short, safe rendering of a refused value: numbers and names, never long text."""
    try:
        text = repr(value)
    except ValueError:  # an int, or one inside, of more digits than Python prints
        return type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}... ({type(value).__name__})"

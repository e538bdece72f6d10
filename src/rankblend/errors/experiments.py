"""Recordings, plans, ledgers and evidence."""

from __future__ import annotations

from collections.abc import Iterable

from rankblend.errors.tree import ProblemsError, RankblendError

__all__ = [
    "ConfoundedPlanError",
    "EvidenceError",
    "HeldOutSpentError",
    "LedgerError",
    "RecordingError",
]


class EvidenceError(ProblemsError, ValueError):
    """Release evidence cannot be read, found or written; every problem at once."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(found, heading=f"{len(found)} problems with release evidence:")


class RecordingError(ProblemsError, ValueError):
    """A recording cannot be read, or does not hold what a profile needs; all that is missing."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(found, heading=f"{len(found)} problems with the recording:")


class ConfoundedPlanError(ProblemsError, ValueError):
    """Arms of a plan differ from its baseline in more than what is studied.

    Attributes:
        studied: The paths in which they were meant to differ.
    """

    def __init__(self, problems: Iterable[str], studied: Iterable[str]) -> None:
        self.studied: tuple[str, ...] = tuple(studied)
        found = tuple(problems)
        remedy = f"studied: {', '.join(self.studied) or 'nothing'}; state what else is studied"
        super().__init__(found, heading=f"{len(found)} confounding differences ({remedy}):")


class LedgerError(RankblendError, RuntimeError):
    """A ledger that is none, was written by a newer rankblend, or cannot be written."""


class HeldOutSpentError(LedgerError):
    """Held-out queries can confirm once, and only what was chosen without them.

    Attributes:
        profiles: How many profiles have been measured on these queries before.
    """

    def __init__(self, profiles: int, detail: str) -> None:
        self.profiles = profiles
        super().__init__(f"held-out queries: {detail}; hold out others to confirm again")

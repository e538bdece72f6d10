"""Times as stores keep them: seconds since the epoch, or None."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["as_time", "latest"]


def as_time(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def latest(*times: float | None) -> float | None:
    """The greatest of several times, None when there is none."""
    return max((time for time in times if time is not None), default=None)

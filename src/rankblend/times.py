"""Moments as rankblend keeps them: seconds since the epoch in UTC, and ids in the order of creation.

Callers give and get aware datetimes; stores and kernels know seconds only. Ids are UUIDv7 (RFC 9562,
5.7), each after the one before.
"""

from __future__ import annotations

import math
import secrets
from datetime import UTC, datetime
from typing import overload
from uuid import UUID

__all__ = ["as_utc", "as_utc_text", "is_id", "latest", "next_id", "seconds_of"]

# A double has no room for the last microseconds of year 9999: `datetime.max` rounds into year 10000.
_LAST = math.nextafter(datetime.max.replace(tzinfo=UTC).timestamp(), 0.0)
_RANDOM_BITS = 74
_LOW = 62  # of them after the variant
_MOST_MILLISECONDS = 2**48 - 1


def seconds_of(moment: datetime | str) -> float:
    """Seconds since the epoch of an aware datetime, or of ISO 8601 text with an offset.

    Raises:
        TypeError: It is neither.
        ValueError: The text is no ISO 8601, the moment has no time zone or lies outside of the
            years 1 to 9999 of UTC; the message says what was expected.

    Example:
        >>> seconds_of("1970-01-01T02:00:00+01:00")
        3600.0
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise ValueError("expected ISO 8601, e.g. '2026-03-01T12:00:00+00:00'") from None
    if not isinstance(moment, datetime):
        raise TypeError(f"expected an aware datetime, got {type(moment).__name__}")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise ValueError(
            "expected a datetime with a time zone, got a naive one; use datetime.now(UTC)"
        )
    try:
        return moment.astimezone(UTC).timestamp()
    except OverflowError:
        raise ValueError("expected a time within the years 1 to 9999 of UTC") from None


@overload
def as_utc(seconds: float) -> datetime: ...
@overload
def as_utc(seconds: None) -> None: ...
@overload
def as_utc(seconds: float | None) -> datetime | None: ...
def as_utc(seconds: float | None) -> datetime | None:
    """Seconds since the epoch as an aware UTC datetime, the last of year 9999 at the latest."""
    return None if seconds is None else datetime.fromtimestamp(min(seconds, _LAST), UTC)


@overload
def as_utc_text(seconds: float) -> str: ...
@overload
def as_utc_text(seconds: None) -> None: ...
@overload
def as_utc_text(seconds: float | None) -> str | None: ...
def as_utc_text(seconds: float | None) -> str | None:
    """As `as_utc`, in ISO 8601."""
    moment = as_utc(seconds)
    return None if moment is None else moment.isoformat()


def latest(*times: float | None) -> float | None:
    """The greatest of several times, None when there is none."""
    return max((time for time in times if time is not None), default=None)


def next_id(now: float, after: str | None = None) -> str:
    """A new id that sorts after another one, as text.

    48 bits of milliseconds, then 74 random ones; where the clock stands still or has gone back, the
    id after ``after`` is taken instead, a random step of up to 2^32 further.

    Args:
        now: Seconds since the epoch.
        after: The greatest id so far, or None.

    Example:
        >>> first = next_id(1.0)
        >>> first < next_id(1.0, first) < next_id(2.0)
        True
    """
    milliseconds = min(max(int(now * 1000), 0), _MOST_MILLISECONDS)
    number = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    if after is not None:
        last = _number(UUID(after))
        if number <= last:
            number = last + 1 + secrets.randbits(32)
    return str(_uuid(number))


def is_id(value: object) -> bool:
    """Whether a value is the text of such an id, as `next_id` writes it and can go on after it.

    That is a lower-case UUIDv7 with hyphens, of any millisecond but the last there is.

    Example:
        >>> is_id(next_id(1.0)), is_id("zzz")
        (True, False)
    """
    if not isinstance(value, str):
        return False
    try:
        read = UUID(value)
    except ValueError:
        return False
    room = _number(read) >> _RANDOM_BITS < _MOST_MILLISECONDS
    return str(read) == value and read.version == 7 and room


def _uuid(number: int) -> UUID:
    high, low = number >> _LOW, number & (2**_LOW - 1)
    time, middle = high >> 12, high & 0xFFF
    return UUID(int=(time << 80) | (0x7 << 76) | (middle << 64) | (0b10 << 62) | low)


def _number(identifier: UUID) -> int:
    """The 122 bits that are neither version nor variant."""
    value: int = identifier.int
    high = ((value >> 80) << 12) | ((value >> 64) & 0xFFF)
    return (high << _LOW) | (value & ((1 << _LOW) - 1))

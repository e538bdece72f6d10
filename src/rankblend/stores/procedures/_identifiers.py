"""Ids in the order of creation: UUIDv7 (RFC 9562, 5.7), each after the one before."""

from __future__ import annotations

import secrets
from uuid import UUID

_RANDOM_BITS = 74
_LOW = 62  # of them after the variant
_MOST_MILLISECONDS = 2**48 - 1


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

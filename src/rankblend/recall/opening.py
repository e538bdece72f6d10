"""What a memory is opened with: options checked, all problems at once, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from rankblend.recall.arguments import Problems
from rankblend.relevance.values import shown
from rankblend.stores.protocol import Statistics

__all__ = ["check_options", "quarter_of_the_characters", "system_clock"]

_LONGEST_WAIT = 2_000_000  # SQLite counts milliseconds in 31 bits


def check_options(
    problems: Problems,
    *,
    busy_timeout: object,
    store_timeout: object,
    statistics: object,
    functions: Mapping[str, object],
) -> None:
    """Note what is wrong with the simple options of `Memory.open`.

    Args:
        problems: Where to note it.
        busy_timeout: Seconds above 0.
        store_timeout: Seconds above 0, or None.
        statistics: One of `Statistics`.
        functions: By name, None for the default.
    """
    number = isinstance(busy_timeout, int | float) and not isinstance(busy_timeout, bool)
    if not number or not 0 < busy_timeout <= _LONGEST_WAIT:  # type: ignore[operator]
        problems.add(
            f"busy_timeout: expected seconds in (0, {_LONGEST_WAIT:,}], got {shown(busy_timeout)}"
        )
    problems.seconds("store_timeout", store_timeout)
    if not isinstance(statistics, str) or statistics not in set(Statistics):
        problems.add(f"statistics: expected root, visible or store, got {shown(statistics)}")
    for name, value in functions.items():
        if value is not None and not callable(value):
            problems.add(f"{name}: expected a callable, got {type(value).__name__}")


def system_clock() -> datetime:
    """The present."""
    return datetime.now(UTC)


def quarter_of_the_characters(text: str) -> int:
    """A common rule of thumb for English; pass ``token_counter`` for a model's own count."""
    return -(-len(text) // 4)

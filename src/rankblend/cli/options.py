"""Options that commands share."""

from __future__ import annotations

from typing import Any

import typer

from rankblend.checks import Problems
from rankblend.limits import LIMITS

__all__ = ["number"]


def number(limit: str, flag: str, told: str) -> Any:
    """An option for a whole number that costs time or memory.

    Its help says the bounds, and they are held before the command begins.

    Args:
        limit: Its name in `LIMITS`.
        flag: Its name on the command line.
        told: Its help.
    """
    bounds = LIMITS[limit]

    def held(value: int | None) -> int | None:
        problems = Problems()
        bounds.hold(problems, flag, value, optional=True)
        problems.raise_if_any()
        return value

    return typer.Option(flag, callback=held, help=f"{told} ({bounds}).")

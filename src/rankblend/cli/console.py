"""Where the command line prints: results to standard output, everything else to standard error."""

from __future__ import annotations

import json

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["counted", "errors", "output", "print_json", "progress"]

# emoji=False: a scope such as tenant:100:x must not be drawn.
output = Console(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)


def counted(count: int, noun: str, plural: str) -> str:
    """``1 memory``, ``2,000 memories``."""
    return f"{count:,} {noun if count == 1 else plural}"


def print_json(value: object) -> None:
    """One JSON document on standard output, the same on a terminal and in a pipe."""
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))  # noqa: T201


def progress() -> Progress:
    """A progress bar on standard error; silent when that is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )

"""Where the command line prints: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from rankblend.cli.visible import escaped, visible, visible_text

__all__ = ["counted", "errors", "output", "print_json", "progress"]


class _SafeConsole(Console):
    """A console whose only control sequences are its own, whatever the texts hold."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        if isinstance(renderable, Text):  # before it is laid out, so that widths are right
            renderable = visible_text(renderable)
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else visible(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)


# emoji=False: a scope such as tenant:100:x must not be drawn.
output = _SafeConsole(highlight=False, emoji=False)
errors = _SafeConsole(stderr=True, highlight=False, emoji=False)


def counted(count: int, noun: str, plural: str) -> str:
    """``1 memory``, ``2,000 memories``."""
    return f"{count:,} {noun if count == 1 else plural}"


def print_json(value: object) -> None:
    """One JSON document on standard output, the same on a terminal and in a pipe."""
    print(escaped(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)))  # noqa: T201


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

"""Where the command line prints, and what a terminal must not be told."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

__all__ = [
    "counted",
    "errors",
    "escaped",
    "output",
    "plain_table",
    "print_json",
    "progress",
    "say",
    "speak_plainly",
    "visible",
    "visible_text",
]


# C0 (but line feed and tab, which lay out), DEL, C1, line and paragraph separators, and what embeds,
# overrides or isolates the direction of text.
_C0 = [code for code in range(0x20) if chr(code) not in "\n\t"]
_OTHERS = [*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_PICTURES = {
    **{code: chr(0x2400 + code) for code in _C0},
    0x7F: "\N{SYMBOL FOR DELETE}",
    **dict.fromkeys(_OTHERS, "\N{REPLACEMENT CHARACTER}"),
}
_ESCAPES = {code: f"\\u{code:04x}" for code in (0x7F, *_OTHERS)}


def visible(text: str) -> str:
    """The text with a picture of each steering character, e.g. ``␛``; as long as before."""
    return text.translate(_PICTURES)


def visible_text(text: Text) -> Text:
    """`visible` for a styled text."""
    shown = visible(text.plain)
    if shown == text.plain:
        return text
    text = text.copy()
    text.plain = shown
    return text


def escaped(document: str) -> str:
    """A JSON document with the steering characters escaped that JSON itself leaves alone."""
    return document.translate(_ESCAPES)


class _SafeConsole(Console):
    """A console whose only control sequences are its own, whatever the texts hold."""

    def on_broken_pipe(self) -> None:
        """Leave it to the program, which knows the exit code."""
        raise

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        if isinstance(renderable, Text):  # before it is laid out, so that widths are right
            renderable = visible_text(renderable)
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else visible(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)


_HANDLER = "rankblend.drawn"
_DRAWN = {**dict.fromkeys("▌▋▊▉█", "#"), **dict.fromkeys("▏▎▍", "|"), **dict.fromkeys("·─━", "-"),
          "↑": "^", "“": '"', "”": '"', "…": "...", "–": "-", "≥": ">=", "≤": "<="}  # fmt: skip

# emoji=False: a scope such as tenant:100:x must not be drawn.
output = _SafeConsole(highlight=False, emoji=False)
errors = _SafeConsole(stderr=True, highlight=False, emoji=False)


def speak_plainly() -> None:
    """Let standard output and error take every character, whatever their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)


def _drawn(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks: bars and lines drawn with what it has, all else escaped."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_DRAWN.get(c) or ascii(c)[1:-1] for c in lacking), error.end


codecs.register_error(_HANDLER, _drawn)


def say(text: str, style: str = "", *, to: Console = output) -> None:
    """A line taken as it is: no markup in it, never broken."""
    to.print(Text(text, style), soft_wrap=True)


def plain_table(*columns: str, right: Sequence[str] = (), expand: bool = False) -> Table:
    """A table without lines; the columns that are ``right``, numbers, come after the others."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=expand)
    for column in columns:
        table.add_column(column)
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def counted(count: int, noun: str, plural: str) -> str:
    """``1 memory``, ``2,000 memories``."""
    return f"{count:,} {noun if count == 1 else plural}"


def print_json(value: object) -> None:
    """One JSON document on standard output, the same on a terminal and in a pipe."""
    text = escaped(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # escaped as JSON has it
        text = escaped(json.dumps(value, indent=2, allow_nan=False))
    print(text)  # noqa: T201


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

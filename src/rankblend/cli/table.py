"""The table of a recall: a small bar for every signal, a gap where it is absent."""

from __future__ import annotations

from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from rankblend.cli.console import plain_table, visible
from rankblend.recall import Match, Recall
from rankblend.relevance import node_inputs

__all__ = ["recall_table", "scored_signals", "signal_bar"]


class _Layout(NamedTuple):
    """Widths of a bar, of the longest name of a signal, of a layer, and what memories need."""

    bar: int
    name: int
    layer: int
    memory: int


_LAYOUTS = (_Layout(6, 12, 12, 30), _Layout(4, 6, 4, 24), _Layout(4, 5, 4, 20))

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def signal_bar(value: float | None, *, width: int = _LAYOUTS[0].bar) -> Text:
    """A bar for a value in [0, 1]: a track with its filled part; blank space when absent.

    Whatever is above 0 shows at least the thinnest bar, so that only an observed 0 is all track.
    """
    if value is None:
        return Text(" " * width)
    eighths = max(round(value * width * 8), int(value > 0))
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (_EIGHTHS[rest] if rest else "")
    return Text.assemble((bar, "cyan"), ("·" * (width - len(bar)), "dim"))


def recall_table(result: Recall, *, columns: int = 120) -> RenderableType:
    """Ranked memories with score, signals, layer and distance.

    Args:
        result: What to show.
        columns: Width of the terminal. Where room is short names and bars are shortened, and
            signals that still do not fit are named below the table.
    """
    names = scored_signals(result)
    blended = result.profile.scope.mode != "off"
    beside = columns - (12 if blended else 0)
    for layout in _LAYOUTS:
        shown = names[: _fitting(names, layout, beside)]
        if len(shown) == len(names):
            break
    hidden = names[len(shown) :]

    table = plain_table(expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    if blended:
        table.add_column("rank score", justify="right", no_wrap=True)
    for name in shown:
        table.add_column(Text(_cut(name, layout.name)), no_wrap=True, min_width=layout.bar)
    table.add_column("layer", no_wrap=True)
    table.add_column("up", justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
    for match in result:
        present = match.signals.present()
        table.add_row(
            str(match.rank),
            f"{match.score:.3f}",
            *([f"{match.rank_score:.3f}"] if blended else []),
            *(signal_bar(present.get(name), width=layout.bar) for name in shown),
            Text(visible(match.memory.layer[: layout.layer])),
            str(match.distance),
            Text(_one_line(match)),
        )
    if not hidden:
        return table
    return Group(table, Text(f"no room for {', '.join(hidden)}; see --explain or --json", "dim"))


def scored_signals(result: Recall) -> list[str]:
    """Signals that the score in effect reads itself, in the order in which it reads them.

    Not those that another signal is the first present of, and not those of a reranking that did
    not serve.
    """
    profile = result.profile
    root = profile.rerank if result.ranking.node == "rerank" and profile.rerank else profile.score
    found: dict[str, None] = {}
    waiting = [*node_inputs(root)]
    seen = set(waiting)
    while waiting:
        name = waiting.pop(0)
        if name in profile.nodes:
            below = [one for one in node_inputs(profile.nodes[name]) if one not in seen]
            seen.update(below)
            waiting[:0] = below
        else:
            found[name] = None
    return list(found)


def _fitting(names: list[str], layout: _Layout, columns: int) -> int:
    """How many of the signals fit beside the rest; always one."""
    # Rank, score, layer and distance, each with the two blanks behind it.
    room = columns - layout.memory - (4 + 7 + max(layout.layer, len("layer")) + 2 + 4)
    fitting = 0
    for name in names:
        room -= max(layout.bar, min(len(name), layout.name)) + 2
        if room < 0 and fitting:
            break
        fitting += 1
    return fitting


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _one_line(match: Match) -> str:
    # The class Text drops some control characters; these are to be seen.
    return visible(" ".join(match.memory.text.split()))

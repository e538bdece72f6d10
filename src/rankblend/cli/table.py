"""The table of a recall: a small bar for every signal, a gap where it is absent."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankblend.recall import Match, Recall
from rankblend.relevance.composers import node_inputs

__all__ = ["recall_table", "scored_signals", "signal_bar"]

_WIDE = 100  # columns of a terminal that has room for long names and bars
_BAR, _SHORT_BAR = 6, 4
_NAME, _SHORT_NAME = 12, 6
_LAYER, _SHORT_LAYER = 12, 4
_MEMORY, _SHORT_MEMORY = 30, 24  # columns kept for the memories, however many signals there are
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def signal_bar(value: float | None, *, width: int = _BAR) -> Text:
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
        columns: Width of the terminal. In a narrow one names and bars are shortened, and signals
            that do not fit are named below the table, so that room is left for the memories.
    """
    wide = columns >= _WIDE
    bar = _BAR if wide else _SHORT_BAR
    longest = _NAME if wide else _SHORT_NAME
    layers = _LAYER if wide else _SHORT_LAYER
    names = scored_signals(result)
    blended = result.profile.scope.mode != "off"
    # Beside the memories: rank, score, layer and distance with two blanks behind each.
    taken = (_MEMORY if wide else _SHORT_MEMORY) + 4 + 7 + max(layers, 5) + 2 + 4
    room = columns - taken - (12 if blended else 0)
    fitting = _fitting([max(bar, min(len(name), longest)) + 2 for name in names], room)
    shown, hidden = names[:fitting], names[fitting:]

    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    if blended:
        table.add_column("rank score", justify="right", no_wrap=True)
    for name in shown:
        table.add_column(Text(_cut(name, longest)), no_wrap=True, min_width=bar)
    table.add_column("layer", no_wrap=True)
    table.add_column("up", justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
    for match in result:
        present = match.signals.present()
        table.add_row(
            str(match.rank),
            f"{match.score:.3f}",
            *([f"{match.rank_score:.3f}"] if blended else []),
            *(signal_bar(present.get(name), width=bar) for name in shown),
            Text(_cut(match.memory.layer, layers) if wide else match.memory.layer[:layers]),
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


def _fitting(widths: list[int], room: int) -> int:
    """How many of the columns fit; always one."""
    fitting = 0
    for width in widths:
        room -= width
        if room < 0 and fitting:
            break
        fitting += 1
    return fitting


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _one_line(match: Match) -> str:
    return " ".join(match.memory.text.split())

"""The table of a recall: a small bar for every signal, a gap where it is absent."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from rankblend.recall import Match, Recall

__all__ = ["recall_table", "signal_bar"]

_WIDTH = 6
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def signal_bar(value: float | None, *, width: int = _WIDTH) -> Text:
    """A bar for a value in [0, 1]: a track with its filled part; blank space when absent."""
    if value is None:
        return Text(" " * width)
    eighths = round(value * width * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (_EIGHTHS[rest] if rest else "")
    return Text.assemble((bar, "cyan"), ("·" * (width - len(bar)), "dim"))


def recall_table(result: Recall) -> Table:
    """Ranked memories with score, signals, layer and distance."""
    names = [name for name, _ in _weights(result)]
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for name in names:
        table.add_column(name[: _WIDTH + 3], no_wrap=True, min_width=_WIDTH)
    table.add_column("layer", no_wrap=True)
    table.add_column("up", justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
    for match in result:
        table.add_row(
            str(match.rank),
            f"{match.rank_score:.3f}",
            *(signal_bar(match.signals.present().get(name)) for name in names),
            match.memory.layer,
            str(match.distance),
            Text(_one_line(match)),
        )
    return table


def _weights(result: Recall) -> list[tuple[str, float]]:
    """Signals that some weight above 0 reaches, in the order of the recipe."""
    table = result.ranking.derived.table
    scored = result.profile.signals_scored
    return [(name, 1.0) for name in table.names if name in scored]


def _one_line(match: Match) -> str:
    return " ".join(match.memory.text.split())

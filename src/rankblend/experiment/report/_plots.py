"""Figures of experiments, drawn with matplotlib; each function returns a figure of its own.

Colours are from the palette of Okabe and Ito ("Color Universal Design", 2008), which people with
any common colour vision can tell apart; sign is shown by place as well as by colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rankblend.errors import InvalidArgumentError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BETTER, _WORSE, _UNSURE = "#0072B2", "#D55E00", "#767676"
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def interval_plot(
    names: Sequence[str],
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    label: str,
    zero: str = "",
) -> Figure:
    """Estimates with their intervals, one line a name, first on top, and a line at zero.

    An infinite interval, which says nothing, is not drawn.

    Args:
        names: k names.
        values: Shape (k,).
        low: Shape (k,).
        high: Shape (k,); an interval that does not touch zero is coloured.
        label: What the axis measures, with its unit.
        zero: What zero stands for, e.g. the baseline's name.
    """
    middle, left, right = (np.asarray(x, np.float64) for x in (values, low, high))
    if not len(names) == middle.size == left.size == right.size:
        raise InvalidArgumentError("values, low, high: expected one number a name each")
    figure, axes = _figure(width=7.0, height=0.9 + 0.32 * max(len(names), 1))
    places = np.arange(len(names))
    for place, value, least, most in zip(places, middle, left, right, strict=True):
        colour = _BETTER if least > 0 else _WORSE if most < 0 else _UNSURE
        if np.isfinite([least, most]).all():
            axes.plot([least, most], [place, place], color=colour, linewidth=2)
        axes.plot([value], [place], "o", color=colour, markersize=5)
    axes.axvline(0.0, color="#333333", linewidth=0.8)
    axes.set_yticks(places, _readable(names))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(label if not zero else f"{label} (0 = {zero})")
    axes.grid(axis="x", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure


def line_plot(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
) -> Figure:
    """Lines over a common axis, e.g. a measure over the pool's depth.

    Args:
        x: Shape (k,).
        lines: Name → shape (k,), NaN for gaps.
        x_label: What the axis measures, with its unit.
        y_label: The same.
        logarithmic: Both axes.
    """
    figure, axes = _figure(width=6.5, height=4.0)
    for position, (name, y) in enumerate(lines.items()):
        colour = _LINES[position % len(_LINES)]
        axes.plot(np.asarray(x), np.asarray(y), "o-", color=colour, label=name, markersize=4)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    if len(lines) > 1:
        axes.legend(frameon=False)
    return figure


def heat_map(
    x: Sequence[object],
    y: Sequence[object],
    values: ArrayLike,
    *,
    x_label: str,
    y_label: str,
    label: str,
) -> Figure:
    """A measure over two parameters, its greatest value framed.

    Args:
        x: Values of one parameter.
        y: Values of the other.
        values: Shape (len(y), len(x)); NaN for combinations that did not run, left blank.
        x_label: Name of the one parameter.
        y_label: Name of the other.
        label: Name of the measure.
    """
    table = np.asarray(values, np.float64)
    if table.shape != (len(y), len(x)):
        raise InvalidArgumentError(f"values: expected shape {(len(y), len(x))}, got {table.shape}")
    figure, axes = _figure(width=1.6 + 0.75 * len(x), height=1.2 + 0.5 * len(y))
    image = axes.imshow(table, cmap="cividis", aspect="auto", origin="lower")
    axes.set_xticks(range(len(x)), [f"{v}" for v in x])
    axes.set_yticks(range(len(y)), [f"{v}" for v in y])
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    figure.colorbar(image, ax=axes, label=label)
    middle = np.nanmean(table) if np.isfinite(table).any() else math.nan
    for row, column in np.argwhere(np.isfinite(table)):
        value = table[row, column]
        axes.text(column, row, f"{value:.3f}", ha="center", va="center", fontsize=8,
                  color="black" if value > middle else "white")  # fmt: skip
    if np.isfinite(table).any():
        row, column = np.unravel_index(np.nanargmax(table), table.shape)
        from matplotlib.patches import Rectangle

        frame = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=_WORSE, lw=2.5)
        axes.add_patch(frame)
    return figure


def rank_moves(
    before: Sequence[str],
    after: Sequence[str],
    *,
    relevant: Sequence[str] = (),
    labels: tuple[str, str] = ("before", "after"),
) -> Figure:
    """How two rankings of one query differ: a line a memory, from its rank to its rank.

    Memories in one of the two only end at the lower edge. Relevant ones are coloured, by whether
    they rose or fell.
    """
    last = max(len(before), len(after)) + 1
    figure, axes = _figure(width=6.0, height=1.0 + 0.26 * last)
    here = {name: rank for rank, name in enumerate(before, 1)}
    there = {name: rank for rank, name in enumerate(after, 1)}
    for name in dict.fromkeys([*before, *after]):
        start, end = here.get(name, last), there.get(name, last)
        marked = name in set(relevant)
        colour = _UNSURE if not marked or start == end else _BETTER if end < start else _WORSE
        axes.plot([0, 1], [start, end], "o-", color=colour, linewidth=2.2 if marked else 0.9,
                  markersize=4, alpha=1.0 if marked else 0.6)  # fmt: skip
        shown = _readable([name])[0]
        if name in here:
            axes.text(-0.03, start, shown, ha="right", va="center", fontsize=8)
        if name in there:
            axes.text(1.03, end, shown, ha="left", va="center", fontsize=8)
    axes.set_xticks([0, 1], labels)
    axes.set_yticks([*range(1, last, max(1, last // 10)), last])
    axes.set_yticklabels([*map(str, range(1, last, max(1, last // 10))), "not shown"])
    axes.tick_params(axis="y", pad=60, length=0)
    axes.set_ylim(last + 0.5, 0.5)
    axes.set_xlim(-0.05, 1.05)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


def _figure(*, width: float, height: float) -> tuple[Figure, Axes]:
    """A figure that belongs to no window and to nobody's global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "experiments", "drawing figures") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _readable(names: Sequence[str]) -> list[str]:
    """Names as they are: no mathematical text, and none longer than fits."""
    return [
        (name if len(name) <= 40 else f"{name[:18]}…{name[-20:]}").replace("$", r"\$")
        for name in names
    ]

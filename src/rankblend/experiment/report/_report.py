"""A report: sections of text, tables and figures that every format shows alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | None


def _as_texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(texts)


def _as_tables(tables: Iterable[Table]) -> tuple[Table, ...]:
    return tuple(tables)


def _as_figures(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    return tuple(figures)


def _as_sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    return tuple(sections)


def _as_rows(rows: Iterable[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(tuple(row) for row in rows)


@frozen
class Table:
    """Rows under headings.

    Args:
        columns: The headings.
        rows: One cell a column: text, a whole number, a float (shown to four decimals) or None
            (shown as a dash: there is no such number).

    Raises:
        InvalidArgumentError: A row of another length.
    """

    columns: tuple[str, ...] = field(converter=_as_texts)
    rows: tuple[tuple[Cell, ...], ...] = field(converter=_as_rows)

    def __attrs_post_init__(self) -> None:
        wrong = [i for i, row in enumerate(self.rows) if len(row) != len(self.columns)]
        if wrong:
            raise InvalidArgumentError(
                f"rows: expected {len(self.columns)} cells a row, row {wrong[0]} has "
                f"{len(self.rows[wrong[0]])}"
            )

    @property
    def shown(self) -> list[list[str]]:
        """The cells as text."""
        return [[number(cell) for cell in row] for row in self.rows]

    @property
    def alignment(self) -> list[str]:
        """``right`` for columns of numbers, else ``left``."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return [
            "right"
            if all(not isinstance(cell, str) for cell in column) and len(tuple(column))
            else "left"
            for column in columns
        ]


@frozen(eq=False)
class Section:
    """One part of a report.

    Args:
        title: Its heading.
        text: Paragraphs, plain text.
        tables: Shown in order.
        figures: Shown in order, by formats that can.
    """

    title: str
    text: tuple[str, ...] = field(default=(), converter=_as_texts)
    tables: tuple[Table, ...] = field(default=(), converter=_as_tables)
    figures: tuple[Figure, ...] = field(default=(), converter=_as_figures, repr=False)


@frozen(eq=False)
class Report:
    """What an experiment found.

    Args:
        title: Of the whole.
        sections: In order.
        plain: The same as JSON values, for programs.
    """

    title: str
    sections: tuple[Section, ...] = field(converter=_as_sections)
    plain: dict[str, Any] = field(factory=dict, repr=False)

    def write(self, path: str | PathLike[str], *, figures: str = "") -> None:
        """Write it whole or not at all, in the format the name ends with.

        ``.html`` (one file, figures within), ``.md`` (figures beside it as ``<name>-1.svg``, …),
        ``.tex`` (tables to include), ``.csv`` (one line an arm and measure) or ``.json``.

        Args:
            path: The file.
            figures: The folder for the figures of a ``.md``, relative to it; it must be there.

        Raises:
            InvalidArgumentError: Another ending.
            OSError: It cannot be written.
        """
        from rankblend.experiment.report._formats import FORMATS

        target = Path(path)
        render = FORMATS.get(target.suffix.lower())
        if render is None:
            raise InvalidArgumentError(
                f"{target.name}: expected a name that ends with {', '.join(FORMATS)}"
            )
        files = render(self, target, figures)
        for file, content in files.items():
            write_whole(file, content)


def number(value: Cell) -> str:
    """A cell as text: four decimals, no minus zero, a dash for what does not exist."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        shown = f"{value:.4f}"
        return "0.0000" if shown == "-0.0000" else shown
    return str(value)


def p_value(p: float | None, *, smallest: float | None = None) -> str:
    """A p-value as text; never 0, and marked where no smaller one was possible."""
    if p is None or math.isnan(p):
        return "–"
    shown = f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"
    return f"{shown} (the least possible)" if smallest is not None and p <= smallest else shown

"""A report: sections of text, tables and figures, as HTML, Markdown, LaTeX, CSV or JSON text."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from rankblend.errors import InvalidArgumentError, MissingDependencyError
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


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid #888; }
.right { text-align: right; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
"""


def as_html(report: Report) -> str:
    """One file that needs no other: style and figures (SVG) are within."""
    parts = [f"<h1>{escape(report.title)}</h1>"]
    for section in report.sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.text]
        parts += [_html_table(table) for table in section.tables]
        parts += [f"<figure>{_svg(figure)}</figure>" for figure in section.figures]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def as_markdown(report: Report, figures: Mapping[int, str] = MappingProxyType({})) -> str:
    """GitHub's Markdown.

    Args:
        report: What to show.
        figures: Position of a figure among all of the report's → the file it is in.
    """
    lines = [f"# {report.title}", ""]
    position = 0
    for section in report.sections:
        lines += [f"## {section.title}", ""]
        for paragraph in section.text:
            lines += [paragraph, ""]
        for table in section.tables:
            lines += [_markdown_table(table), ""]
        for _ in section.figures:
            if position in figures:
                lines += [f"![{section.title}]({figures[position]})", ""]
            position += 1
    return "\n".join(lines).rstrip() + "\n"


def as_latex(report: Report) -> str:
    """Tables for a paper to include, each after a comment with its section (needs booktabs)."""
    parts = []
    for section in report.sections:
        parts += [f"% {section.title}\n{_latex_table(table)}\n" for table in section.tables]
    return "\n".join(parts)


def _html(report: Report, path: Path, figures: str) -> dict[Path, str]:  # noqa: ARG001
    return {path: as_html(report)}


def _markdown(report: Report, path: Path, figures: str) -> dict[Path, str]:
    drawn = [figure for section in report.sections for figure in section.figures]
    folder = f"{figures}/" if figures else ""
    names = {n: f"{folder}{path.stem}-{n + 1}.svg" for n in range(len(drawn))}
    files = {path.parent / names[n]: _svg(figure) for n, figure in enumerate(drawn)}
    return {**files, path: as_markdown(report, names)}


def _latex(report: Report, path: Path, figures: str) -> dict[Path, str]:  # noqa: ARG001
    return {path: as_latex(report)}


def _csv(report: Report, path: Path, figures: str) -> dict[Path, str]:  # noqa: ARG001
    """The rows a program would want: one an arm and measure, or the tables one below the other."""
    text = io.StringIO()
    arms = report.plain.get("arms")
    if arms:
        columns = [key for key in arms[0] if key != "interval"]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*columns, "interval_low", "interval_high"])
        for row in arms:
            low, high = row["interval"] or (None, None)
            writer.writerow([*(row[column] for column in columns), low, high])
    else:
        writer = csv.writer(text, lineterminator="\n")
        for section in report.sections:
            for table in section.tables:
                writer.writerow(["section", *table.columns])
                writer.writerows([section.title, *row] for row in table.rows)
    return {path: text.getvalue()}


def _json(report: Report, path: Path, figures: str) -> dict[Path, str]:  # noqa: ARG001
    plain = report.plain or {
        "sections": [_plain(section) for section in report.sections], "title": report.title,
    }  # fmt: skip
    return {path: json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"}


def _plain(section: Section) -> dict[str, object]:
    return {
        "title": section.title,
        "text": list(section.text),
        "tables": [
            [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in section.tables
        ],
    }


FORMATS: Mapping[str, Callable[[Report, Path, str], dict[Path, str]]] = MappingProxyType(
    {".html": _html, ".md": _markdown, ".tex": _latex, ".csv": _csv, ".json": _json}
)


def _svg(figure: Figure) -> str:
    from matplotlib import rc_context

    text = io.StringIO()
    # Text stays text, and the same figure gives the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "rankblend"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]


def _html_table(table: Table) -> str:
    classes = [f' class="{side}"' if side == "right" else "" for side in table.alignment]
    head = "".join(
        f"<th{c}>{escape(name)}</th>" for c, name in zip(classes, table.columns, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{c}>{escape(cell)}</td>" for c, cell in zip(classes, row, strict=True))
        + "</tr>"
        for row in table.shown
    )
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n'
        "</table></div>"
    )


def _markdown_table(table: Table) -> str:
    rows = [[cell.replace("|", "\\|") for cell in row] for row in table.shown]
    return _tabulated(table, rows, "github")


def _latex_table(table: Table) -> str:
    return _tabulated(table, table.shown, "latex_booktabs").replace("–", "--")


def _tabulated(table: Table, rows: list[list[str]], style: str) -> str:
    try:
        from tabulate import tabulate
    except ImportError:
        raise MissingDependencyError("tabulate", "experiments", "writing tables") from None
    shown = tabulate(
        rows,
        headers=table.columns,
        tablefmt=style,
        colalign=table.alignment or None,
        disable_numparse=True,
    )
    return str(shown)

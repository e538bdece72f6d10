"""The results of a benchmark run as one table, on the terminal and in the documentation.

    python benchmarks/report.py RESULTS.json [--page docs/benchmarks.md]

Every row is compared with its group's reference, minimum with minimum: noise only ever adds time. A
target is text, several joined by ``;``:

======================  ==================================================================
``<= 1.5 x + 1 ms``     at most 1.5 times the reference and a millisecond
``>= 100 x faster``     the reference takes at least 100 times as long
``recall@20 >= 0.99``   the benchmark's own note of that name
======================  ==================================================================
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from rich.console import Console
from rich.table import Table

from rankblend.files import write_whole

__all__ = ["Row", "read_rows", "to_markdown", "verdict"]

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
PEAK = "peak MiB"
_WIDE = 180
HEAD = ("work", "min", "median", "ratio", "target", "", "peak", "notes")
_RATIO = re.compile(r"(<=|>=) ([\d.]+) x( faster)?(?: \+ ([\d.]+) ms)?")
_NOTE = re.compile(r"(.+?) (<=|>=) ([\d.]+)")


@frozen
class Row:
    """One benchmark; times in seconds."""

    group: str
    work: str
    least: float
    median: float
    reference: float | None
    is_reference: bool
    target: str
    peak: float | None
    notes: Mapping[str, Any]

    @property
    def ratio(self) -> float | None:
        """Of its least time to the reference's."""
        return self.least / self.reference if self.reference else None


def read_rows(results: Mapping[str, Any]) -> list[Row]:
    """The rows of pytest-benchmark's JSON, group by group, the reference first.

    Raises:
        ValueError: A group with two references.
    """
    found = []
    for group, members in _grouped(results["benchmarks"]).items():
        marked = [one for one in members if one["extra_info"].get("reference")]
        if len(marked) > 1:
            raise ValueError(f"{group}: {len(marked)} references")
        reference = marked[0]["stats"]["min"] if marked else None
        members.sort(key=lambda one: not one["extra_info"].get("reference"))
        for one in members:
            extra = dict(one["extra_info"])
            found.append(
                Row(
                    group=group,
                    work=_work(one),
                    least=one["stats"]["min"],
                    median=one["stats"]["median"],
                    reference=reference,
                    is_reference=bool(extra.pop("reference", False)),
                    target=str(extra.pop("target", "")),
                    peak=extra.pop(PEAK, None),
                    notes=extra,
                )
            )
    return found


def verdict(row: Row) -> str:
    """``reference``, ``met``, ``missed``, or nothing for a row without a target.

    Raises:
        ValueError: The target cannot be read, or speaks of a note that is not there.
    """
    if row.is_reference and not row.target:
        return "reference"
    parts = [part.strip() for part in row.target.split(";") if part.strip()]
    if not parts:
        return ""
    return "met" if all(_holds(part, row) for part in parts) else "missed"


def _holds(part: str, row: Row) -> bool:
    part = part.replace("≤", "<=").replace("≥", ">=").replace("×", "x")
    ratio = _RATIO.fullmatch(part)
    if ratio is not None:
        if row.reference is None:
            raise ValueError(f"{row.group}: {part!r} needs a reference in the group")
        sign, limit, faster, extra = ratio.groups()
        mine, other = row.least, row.reference
        if faster:
            return other / mine >= float(limit)
        allowed = float(limit) * other + float(extra or 0.0) / 1e3
        return mine <= allowed if sign == "<=" else mine >= allowed
    note = _NOTE.fullmatch(part)
    if note is None or note[1] not in row.notes:
        raise ValueError(f"{row.group}, {row.work}: cannot judge the target {part!r}")
    value, limit = float(row.notes[note[1]]), float(note[3])
    return value <= limit if note[2] == "<=" else value >= limit


def _grouped(benchmarks: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in benchmarks:
        groups.setdefault(one["group"] or one["name"], []).append(one)
    return groups


def _work(one: Mapping[str, Any]) -> str:
    """``test_reference_one_read[10]`` → ``one read (10)``."""
    name, _, parameter = one["name"].partition("[")
    words = name.removeprefix("test_").removeprefix("reference_").replace("_", " ")
    return f"{words} ({parameter.removesuffix(']')})" if parameter else words


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _cells(row: Row) -> tuple[str, ...]:
    ratio = ""
    if row.ratio is not None and not row.is_reference:
        ratio = f"{row.ratio:.2f} ×" if row.ratio >= 0.1 else f"1 / {1 / row.ratio:.0f}"
    target = row.target.replace("<=", "≤").replace(">=", "≥").replace(" x", " ×")
    peak = "" if row.peak is None else f"{row.peak:.0f} MiB"
    notes = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.notes.items()
    )
    return row.work, _time(row.least), _time(row.median), ratio, target, verdict(row), peak, notes


def to_markdown(rows: list[Row], machine: Mapping[str, str]) -> str:
    """A table of all groups and a line about the machine."""
    lines = [", ".join(f"{name} {value}" for name, value in machine.items()) + ".", ""]
    lines += [f"| {' | '.join(HEAD)} |", "|---|--:|--:|--:|---|---|--:|---|"]
    for group, members in _by_group(rows):
        lines.append(f"| **{group}** |{' |' * (len(HEAD) - 1)}")
        lines += [f"| {' | '.join(_cells(row))} |".replace("  ", " ") for row in members]
    return "\n".join(lines) + "\n"


def to_terminal(rows: list[Row], console: Console) -> None:
    """The same for the eye, and what was missed."""
    table = Table(*HEAD, title="Benchmarks")
    colors = {"met": "green", "missed": "red"}
    for group, members in _by_group(rows):
        table.add_section()
        table.add_row(f"[bold]{group}")
        for row in members:
            table.add_row(*_cells(row), style=colors.get(verdict(row), ""))
    console.print(table)
    judged = [row for row in rows if verdict(row) in colors]
    missed = [f"{row.group}: {row.work}" for row in judged if verdict(row) == "missed"]
    console.print(f"{len(judged) - len(missed)} of {len(judged)} targets met", highlight=False)
    for one in missed:
        console.print(f"  missed: {one}", highlight=False)


def _by_group(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    for group in dict.fromkeys(row.group for row in rows):
        yield group, [row for row in rows if row.group == group]


def into_page(page: Path, text: str) -> None:
    """Replace what stands between the two markers of a page.

    Raises:
        ValueError: The page has not both.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page}: expected {BEGIN} and {END}")
    write_whole(page, f"{before}{BEGIN}\n{text}{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The table of a benchmark run.")
    parser.add_argument("results", type=Path, help="what --benchmark-json wrote")
    parser.add_argument("--page", type=Path, help="a Markdown page to put the table into")
    given = parser.parse_args()
    results = json.loads(given.results.read_text(encoding="utf-8"))
    rows = read_rows(results)
    to_terminal(rows, Console(width=None if sys.stdout.isatty() else _WIDE))
    if given.page is not None:
        into_page(given.page, to_markdown(rows, results["machine_info"]["measured on"]))


if __name__ == "__main__":
    main()

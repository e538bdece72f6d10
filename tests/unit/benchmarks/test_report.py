"""The table of a benchmark run: what is compared with what, and when a target counts as met."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
import report


def made(name: str, least: float, group: str = "g", **extra: Any) -> dict[str, Any]:
    stats = {"min": least, "median": 2 * least}
    return {"name": f"test_{name}", "group": group, "stats": stats, "extra_info": extra}


def rows(*benchmarks: dict[str, Any]) -> list[report.Row]:
    return report.read_rows({"benchmarks": list(benchmarks)})


def judged(target: str, least: float, **notes: Any) -> str:
    reference = made("reference_one", 0.010, reference=True)
    return report.verdict(rows(reference, made("two", least, target=target, **notes))[1])


@pytest.mark.parametrize(
    ("target", "least", "expected"),
    [
        ("<= 1.5 x", 0.015, "met"),
        ("<= 1.5 x", 0.0151, "missed"),
        ("<= 1.5 x + 1 ms", 0.016, "met"),
        ("<= 1.5 x + 1 ms", 0.0161, "missed"),
        ("≤ 1.5 × + 0.5 ms", 0.0155, "met"),
        (">= 100 x faster", 0.0001, "met"),
        (">= 100 x faster", 0.00011, "missed"),
        ("", 1.0, ""),
    ],
)
def test_verdict_when_compared_with_the_reference_then_up_to_the_limit_is_met(
    target: str, least: float, expected: str
) -> None:
    assert judged(target, least) == expected


def test_verdict_when_a_note_has_a_target_then_all_parts_must_hold() -> None:
    target = "<= 2 x; recall@20 >= 0.99"
    assert judged(target, 0.02, **{"recall@20": 0.99}) == "met"
    assert judged(target, 0.02, **{"recall@20": 0.98}) == "missed"
    assert judged(target, 0.03, **{"recall@20": 1.0}) == "missed"


@pytest.mark.parametrize("target", ["fast", "<= 2", "recall@20 >= 0.99", "<= 2 x + 1 s"])
def test_verdict_when_a_target_cannot_be_judged_then_refused(target: str) -> None:
    with pytest.raises(ValueError, match="cannot judge"):
        judged(target, 0.01)


def test_verdict_when_the_group_has_no_reference_then_refused() -> None:
    with pytest.raises(ValueError, match="needs a reference"):
        report.verdict(rows(made("alone", 0.01, target="<= 2 x"))[0])


def test_rows_when_a_group_has_two_references_then_refused() -> None:
    with pytest.raises(ValueError, match="2 references"):
        rows(made("a", 1.0, reference=True), made("b", 1.0, reference=True))


def test_rows_when_read_then_each_group_has_its_own_reference_and_it_comes_first() -> None:
    found = rows(
        made("mine[100]", 0.03, "g"), made("other", 0.5, "h"),
        made("reference_of_numpy", 0.01, "g", reference=True),
    )  # fmt: skip
    assert [row.work for row in found] == ["of numpy", "mine (100)", "other"]
    assert [row.ratio for row in found] == [1.0, pytest.approx(3.0), None]


def test_markdown_when_written_into_a_page_then_only_the_part_between_the_markers_changes(
    tmp_path: Path,
) -> None:
    table = report.to_markdown(
        rows(
            made("reference_x", 0.01, reference=True, **{report.PEAK: 3.2}),
            made("y", 0.0001, target=">= 100 x faster", exact=0.25),
        ),
        {"cores": "2"},
    )
    assert "cores 2." in table
    assert "| x | 10 ms | 20 ms |" in table
    assert "| y | 100 µs | 200 µs | 1 / 100 | ≥ 100 × faster | met | | exact 0.25 |" in table
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    report.into_page(page, table)
    report.into_page(page, table)
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n{report.BEGIN}\n{table}{report.END}\nafter\n"
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="expected"):
        report.into_page(page, table)


def test_terminal_when_something_was_missed_then_it_is_named_at_the_end() -> None:
    said = io.StringIO()
    reference, met = made("reference_x", 0.01, reference=True), made("y", 0.01, target="<= 1 x")
    report.to_terminal(
        rows(reference, met, made("z", 0.09, target="<= 1 x")), Console(file=said, width=120)
    )
    assert said.getvalue().splitlines()[-2:] == ["1 of 2 targets met", "  missed: g: z"]

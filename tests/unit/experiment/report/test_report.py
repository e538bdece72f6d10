"""Reports: every format shows every number, escapes what it must, and is written whole or not."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.inference import compare
from rankblend.experiment.report import (
    Report,
    Section,
    Table,
    comparison_section,
    heat_map,
    interval_plot,
    line_plot,
    manifest_section,
    rank_moves,
    reading_section,
)
from rankblend.experiment.results import Results

NASTY = "a|b <script>$x_1$ & %"


@pytest.fixture(scope="module")
def results() -> Results:
    rng = np.random.default_rng(0)
    q = 24
    base = rng.random(q) * 0.5
    values = np.stack([base, np.clip(base + 0.2, 0, 1), base])
    values[:, 3] = np.nan
    judged = np.arange(q) != 3
    return Results(
        arms=("default", "better", NASTY),
        hashes=("0" * 64, "1" * 64, "2" * 64),
        queries=tuple(f"q{i}" for i in range(q)),
        clusters=tuple(f"c{i % 6}" for i in range(q)),
        families=("x",) * q,
        values={"nDCG@10": values},
        judged=judged,
        empty=np.zeros((3, q), np.bool_),
        not_run={"without graph": "no recorded store emits ppr"},
        manifest={"dataset": "toy", "excluded": {"adversarial": 3}},
    )


@pytest.fixture(scope="module")
def report(results) -> Report:
    comparison = compare(results)
    return Report(
        "Ablation <of> default",
        [
            manifest_section(results),
            comparison_section(comparison, title="Leave one out", text=("Each arm drops one.",)),
            reading_section(comparison, results),
        ],
        comparison.plain(),
    )


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data):
        self.text.append(data)


def test_html_is_one_file_with_its_figures_and_no_script(report, tmp_path):
    report.write(tmp_path / "out.html")
    page = _Page()
    page.feed((tmp_path / "out.html").read_text())
    assert "svg" in page.tags
    assert "script" not in page.tags
    assert not [link for link in page.links if not link.startswith("#")]
    shown = " ".join(page.text)
    assert NASTY in shown
    assert "Ablation <of> default" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".json"])
def test_every_format_shows_the_difference_and_what_did_not_run(suffix, report, tmp_path):
    path = tmp_path / f"out{suffix}"
    report.write(path)
    text = path.read_text()
    assert "0.2" in text
    assert "no recorded store emits ppr" in text


def test_markdown_escapes_bars_and_names_its_figures(report, tmp_path):
    report.write(tmp_path / "out.md")
    text = (tmp_path / "out.md").read_text()
    row = next(line for line in text.splitlines() if "script" in line and "nDCG" in line)
    assert "a\\|b" in row
    assert "![Leave one out](out-1.svg)" in text
    assert (tmp_path / "out-1.svg").read_text().startswith("<svg")


def test_latex_escapes_what_latex_reads(report, tmp_path):
    report.write(tmp_path / "out.tex")
    text = (tmp_path / "out.tex").read_text()
    assert "\\toprule" in text
    assert "\\$x\\_1\\$" in text
    assert "\\& \\%" in text


def test_csv_has_a_line_an_arm_with_both_ends_of_its_interval(report, tmp_path):
    report.write(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["arm"] for row in rows] == ["better", NASTY, "without graph"]
    assert float(rows[0]["interval_low"]) <= float(rows[0]["difference"])
    assert rows[2]["difference"] == ""
    assert rows[2]["not_run"]


def test_json_is_what_the_comparison_says(report, tmp_path):
    report.write(tmp_path / "out.json")
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["arms"][0]["queries"] == 23
    assert told["arms"][0]["excluded"] == 1
    assert told["arms"][2]["difference"] is None


def test_same_report_gives_the_same_bytes(report, tmp_path):
    report.write(tmp_path / "a.html")
    report.write(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_unknown_format_is_refused_with_the_known_ones(report, tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"\.html, \.md, \.tex, \.csv, \.json"):
        report.write(tmp_path / "out.pdf")


def test_report_that_cannot_be_written_leaves_what_was_there(report, tmp_path, monkeypatch):
    target = tmp_path / "out.html"
    target.write_text("before")
    broken = Report("x", [Section("y", (), (), ["no figure"])])  # type: ignore[list-item]
    with pytest.raises(AttributeError):
        broken.write(target)
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_table_with_a_row_of_another_length_is_refused():
    with pytest.raises(InvalidArgumentError, match="2 cells a row, row 1 has 1"):
        Table(("a", "b"), [(1, 2), (1,)])


def test_numbers_are_shown_to_four_decimals_and_absent_ones_as_a_dash():
    table = Table(("a",), [(0.123456,), (-0.00001,), (None,), (float("nan"),), (7,), ("t",)])
    assert [row[0] for row in table.shown] == ["0.1235", "0.0000", "–", "–", "7", "t"]


def test_reading_says_how_many_were_judged_and_what_p_can_be(results):
    text = " ".join(reading_section(compare(results), results).text)
    assert "23 queries with judgments" in text
    assert "6 independent units (cluster)" in text
    assert "no p can be below 0.0312" in text


def test_interval_plot_draws_every_estimate_with_its_interval():
    figure = interval_plot(
        ["up", "down", "level"], [1, -1, 0], [0.5, -2, -1], [2, -0.5, 1], label="x"
    )
    axes = figure.axes[0]
    drawn = [tuple(line.get_xdata()) for line in axes.lines]
    assert (0.5, 2.0) in drawn
    assert (-2.0, -0.5) in drawn
    colours = [axes.lines[2 * n].get_color() for n in range(3)]
    assert len(set(colours)) == 3
    assert [label.get_text() for label in axes.get_yticklabels()] == ["up", "down", "level"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_interval_plot_with_uneven_numbers_is_refused():
    with pytest.raises(InvalidArgumentError):
        interval_plot(["a"], [1, 2], [0], [1], label="x")


def test_heat_map_frames_the_best_and_leaves_what_did_not_run_blank():
    figure = heat_map(
        [1, 2], ["a", "b"], [[0.1, np.nan], [0.3, 0.2]], x_label="k", y_label="m", label="nDCG"
    )
    axes = figure.axes[0]
    assert sorted(text.get_text() for text in axes.texts) == ["0.100", "0.200", "0.300"]
    assert axes.patches[0].get_xy() == (-0.5, 0.5)
    with pytest.raises(InvalidArgumentError, match="shape"):
        heat_map([1], [1, 2], [[1.0]], x_label="", y_label="", label="")


def test_line_plot_names_its_lines():
    figure = line_plot([1, 2], {"a": [1, 2], "b": [2, 1]}, x_label="x", y_label="y")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_rank_moves_draws_what_left_and_what_came(tmp_path):
    figure = rank_moves(["a", "b"], ["c", "a"], relevant=["c", "b"])
    ends = {tuple(line.get_ydata()) for line in figure.axes[0].lines}
    assert ends == {(1, 2), (2, 3), (3, 1)}

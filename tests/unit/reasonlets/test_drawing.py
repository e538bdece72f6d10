"""Procedures as Mermaid text and as pictures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import (
    Edge,
    Graph,
    Node,
    ReasonletValidationError,
    draw_graph,
    mermaid_text,
)

REFUND = Graph(
    [
        Node("look", "tool", tool="orders.get"),
        Node("late", "decision", name="Older than 30 days?"),
        Node("pay", "tool", tool="payments.refund"),
        Node("ask", "agent", name="Ask a supervisor"),
        Node("done", "answer"),
        Node("law", "retrieve", name="Terms"),
    ],
    [
        Edge("look", "late"), Edge("law", "late"), Edge("late", "pay", "no"),
        Edge("late", "ask", "yes"), Edge("ask", "pay"), Edge("pay", "pay", "try again"),
        Edge("pay", "done"),
    ],
)  # fmt: skip


def test_mermaid_when_types_differ_then_so_do_shapes_and_conditions_stand_on_edges() -> None:
    assert mermaid_text(REFUND).splitlines() == [
        "flowchart TD",
        '    n1["orders.get"]',
        '    n2{"Older than 30 days?"}',
        '    n3["payments.refund"]',
        '    n4(["Ask a supervisor"])',
        '    n5>"answer"]',
        '    n6[("Terms")]',
        "    n1 --> n2",
        "    n6 --> n2",
        '    n2 -->|"no"| n3',
        '    n2 -->|"yes"| n4',
        "    n4 --> n3",
        '    n3 -->|"try again"| n3',
        "    n3 --> n5",
    ]


def test_mermaid_when_labels_hold_markup_then_they_stay_labels() -> None:
    hostile = 'a"] --> x\n%% <b>`#quot;\u2028\x1b[31m'
    drawn = mermaid_text(Graph([Node(hostile, "tool", name=hostile)], [Edge(hostile, hostile)]))
    assert drawn.splitlines() == [
        "flowchart TD",
        '    n1["a#quot;] --#gt; x %% #lt;b#gt;#96;#35;quot; [31m"]',
        "    n1 --> n1",
    ]


def test_mermaid_when_a_label_is_long_then_it_is_cut() -> None:
    label = mermaid_text(Graph([Node("a", "tool", name="x" * 500)])).split('"')[1]
    assert len(label) == 60
    assert label.endswith("…")


def test_mermaid_when_a_name_shows_nothing_then_the_tool_or_type_does() -> None:
    blank = Graph([Node("a", "tool", name=" ", tool="t"), Node("b", "\u200b", name="\x00")])
    assert re.findall(r'"(.*)"', mermaid_text(blank)) == ["t", "step"]


@pytest.mark.parametrize("draw", [mermaid_text, lambda graph: draw_graph(graph, "x.svg")])
def test_drawing_when_the_graph_is_invalid_then_every_problem_is_raised(draw) -> None:
    with pytest.raises(ReasonletValidationError) as raised:
        draw(Graph([Node("a", "tool")], [Edge("a", "b"), Edge("c", "a")]))
    assert len(raised.value.problems) == 2


def test_picture_when_drawn_twice_then_same_bytes_with_labels_as_text(tmp_path: Path) -> None:
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    draw_graph(REFUND, one)
    draw_graph(REFUND, two)
    assert one.read_bytes() == two.read_bytes()
    texts = {
        "".join(each.itertext()).strip()
        for each in ET.parse(one).iter()
        if each.tag.endswith("text")
    }
    assert {
        "orders.get",
        "Older than 30 days?",
        "payments.refund ↻",
        "no",
        "yes",
        "answer",
    } <= texts
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.parametrize(("name", "begin"), [("x.png", b"\x89PNG"), ("x.PDF", b"%PDF")])
def test_picture_when_another_format_is_named_then_it_is_that(
    tmp_path: Path, name: str, begin: bytes
) -> None:
    draw_graph(REFUND, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_picture_when_labels_look_like_formulas_or_steps_form_a_cycle_then_it_is_drawn(
    tmp_path: Path,
) -> None:
    graph = Graph(
        [Node("a", "tool", name="costs $5 or $\\bad{"), Node("b", "tool"), Node("c", "own type")],
        [Edge("a", "b", "$x"), Edge("b", "a"), Edge("b", "a", "again"), Edge("c", "c")],
    )
    draw_graph(graph, tmp_path / "x.svg")
    assert "costs $5 or $" in (tmp_path / "x.svg").read_text(encoding="utf-8")


def test_picture_when_the_graph_has_no_step_then_it_is_empty(tmp_path: Path) -> None:
    draw_graph(Graph([]), tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 0


def test_picture_when_the_ending_is_unknown_then_one_line_names_those_there_are(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"x\.gif: .*\.pdf, \.png, \.svg"):
        draw_graph(REFUND, tmp_path / "x.gif")
    assert list(tmp_path.iterdir()) == []

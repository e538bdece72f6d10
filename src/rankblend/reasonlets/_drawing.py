"""The graph of a procedure for people: as Mermaid text, and as a picture in a file."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rankblend.errors import InvalidArgumentError, MissingDependencyError, raise_invalid
from rankblend.files import whole
from rankblend.stores.procedures import (
    Graph,
    Node,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHAPES = {
    "agent": ("([", "])"),
    "answer": (">", "]"),
    "decision": ("{", "}"),
    "retrieve": ("[(", ")]"),
}
_OTHERWISE = ("[", "]")  # a tool, or a type of one's own
# What would end a quoted label, open an entity or be read as markup.
_ENTITIES = str.maketrans({"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"})
# One of the palette of Okabe and Ito for each well-known type, light enough to be written on.
_COLOURS = {
    "agent": "#f4dcea",
    "answer": "#cfe8df",
    "decision": "#fbe9c3",
    "retrieve": "#d6ecf9",
    "tool": "#ffffff",
}
_LONGEST = 60
_UNDATED: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None},
    ".png": {},
    ".svg": {"Date": None},
}
# In inches: from line to line, from step to step, how far an arc lies aside of what it passes, and of
# its counterpart, and the longest side of a picture.
_PER_LAYER, _PER_NODE, _PASSING, _PAIR, _LONGEST_SIDE = 0.75, 2.6, 0.95, 0.2, 200.0


def mermaid_text(graph: Graph) -> str:
    """The graph as a Mermaid flowchart, which GitHub and many editors show as a picture.

    Steps are numbered in the order written, whatever their ids hold; a label is the step's name,
    else its tool, else its type, on one line. Properties are not shown.

    Args:
        graph: A valid one.

    Raises:
        ReasonletValidationError: Everything that is wrong with the graph.

    Example:
        >>> from rankblend.reasonlets import Edge, Graph, Node
        >>> ask = Node("ask", "decision", name="Paid by card?")
        >>> graph = Graph([ask, Node("pay", "tool", tool="refund")], [Edge("ask", "pay", "yes")])
        >>> print(mermaid_text(graph))
        flowchart TD
            n1{"Paid by card?"}
            n2["refund"]
            n1 -->|"yes"| n2
        <BLANKLINE>
    """
    raise_invalid(graph.validate())
    names = {node.id: f"n{number}" for number, node in enumerate(graph.nodes, start=1)}
    lines = ["flowchart TD"]
    for node in graph.nodes:
        left, right = _SHAPES.get(node.type, _OTHERWISE)
        lines.append(f'    {names[node.id]}{left}"{_quoted(_label(node))}"{right}')
    for edge in graph.edges:
        condition = _line(edge.condition or "")
        told = f'|"{_quoted(condition)}"|' if condition else ""
        lines.append(f"    {names[edge.source]} -->{told} {names[edge.target]}")
    return "".join(f"{line}\n" for line in lines)


def draw_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Draw the graph into a file, from the first steps at the top to the last ones below.

    Steps on a cycle share a line; a step that leads to itself is marked ``↻``; of several edges
    between the same two steps each condition is told. The same graph gives the same SVG.

    Args:
        graph: A valid one.
        path: Ends with ``.svg``, ``.pdf`` or ``.png``; appears only when it is complete.

    Raises:
        ReasonletValidationError: Everything that is wrong with the graph.
        InvalidArgumentError: Another ending, or a file that is being read.
        MissingDependencyError: matplotlib is not installed (extra ``experiments``).
        OSError: It cannot be written.
    """
    raise_invalid(graph.validate())
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _UNDATED:
        known = ", ".join(_UNDATED)
        raise InvalidArgumentError(f"{target.name}: expected a name that ends with {known}")
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingDependencyError("matplotlib", "experiments", "a picture") from None
    # Text stays text, and nothing in the file tells when it was made.
    with (
        rc_context({"svg.fonttype": "none", "svg.hashsalt": "rankblend"}),
        whole(target) as file,
    ):
        metadata = _UNDATED[kind]
        _figure(graph).savefig(file, format=kind[1:], metadata=metadata, bbox_inches="tight")


def _figure(graph: Graph) -> Figure:
    from matplotlib.figure import Figure

    places = _places(graph)
    widest = 1 + 2 * max((x for x, _ in places.values()), default=0.0)
    lowest = min((y for _, y in places.values()), default=0.0) - 0.5
    ends = [(places[edge.source], places[edge.target]) for edge in graph.edges]
    if any(top == bottom and abs(left - right) > 1 for (left, top), (right, bottom) in ends):
        lowest -= _PASSING / _PER_LAYER  # where the arcs of a cycle hang down
    size = widest * _PER_NODE, (0.5 - lowest) * _PER_LAYER
    figure = Figure(figsize=(min(size[0], _LONGEST_SIDE), min(size[1], _LONGEST_SIDE)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(-widest / 2, widest / 2)
    axes.set_ylim(lowest, 0.5)
    _draw(graph, places, axes)
    return figure


def _draw(graph: Graph, places: dict[str, tuple[float, float]], axes: Axes) -> None:
    conditions: dict[tuple[str, str], list[str]] = {}
    for edge in graph.edges:
        told = conditions.setdefault((edge.source, edge.target), [])
        if edge.condition:
            told.append(_line(edge.condition))
    boxes = {}
    for node in graph.nodes:
        label = _label(node) + (" ↻" if (node.id, node.id) in conditions else "")
        box = {"boxstyle": "round,pad=0.4", "facecolor": _COLOURS.get(node.type, "#eeeeee")}
        text = axes.text(*places[node.id], label, ha="center", va="center", fontsize=9,
                         zorder=2, parse_math=False, bbox=box)  # fmt: skip
        boxes[node.id] = text.get_bbox_patch()
    for (source, target), told in conditions.items():
        if source == target:
            continue
        (left, top), (right, bottom) = places[source], places[target]
        across, down = (right - left) * _PER_NODE, (bottom - top) * _PER_LAYER
        beside = math.hypot(across, down) > math.hypot(_PER_NODE, _PER_LAYER) or down < -_PER_LAYER
        aside = _PASSING if beside else _PAIR if (target, source) in conditions else 0.0
        bend = 2 * aside / math.hypot(across, down)
        arrow = {
            "arrowstyle": "-|>", "color": "#444444", "patchA": boxes[source],
            "patchB": boxes[target], "shrinkA": 0, "shrinkB": 0,
            "connectionstyle": f"arc3,rad={bend}",
        }  # fmt: skip
        # Above the boxes, whose sizes are known once they are drawn.
        axes.annotate("", places[target], places[source], arrowprops=arrow, zorder=3)
        if told:
            # In the middle of the arc.
            x = (left + right) / 2 + bend / 2 * down / _PER_NODE
            y = (top + bottom) / 2 - bend / 2 * across / _PER_LAYER
            axes.text(x, y, " / ".join(told), fontsize=7, ha="center", va="center", zorder=4,
                      parse_math=False,
                      bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none",
                            "alpha": 0.8})  # fmt: skip


def _places(graph: Graph) -> dict[str, tuple[float, float]]:
    """Node → (x, y): the longest way from a first step is how far down it is, 0 to −layers."""
    import networkx as nx

    steps = nx.DiGraph()
    steps.add_nodes_from(node.id for node in graph.nodes)
    steps.add_edges_from((edge.source, edge.target) for edge in graph.edges)
    cycles = nx.condensation(steps)  # what lies on a cycle is one node, so that there are layers
    order = {node.id: at for at, node in enumerate(graph.nodes)}
    places = {}
    for depth, layer in enumerate(nx.topological_generations(cycles)):
        members = [name for part in layer for name in cycles.nodes[part]["members"]]
        for at, name in enumerate(sorted(members, key=order.__getitem__)):
            places[name] = (at - (len(members) - 1) / 2, -float(depth))
    return places


def _label(node: Node) -> str:
    """What stands on a step; never empty."""
    texts = (_line(text or "") for text in (node.name, node.tool, node.type))
    return next((text for text in texts if text), "step")


def _line(text: str) -> str:
    """One line of printable text, not too long."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _quoted(text: str) -> str:
    return text.translate(_ENTITIES)

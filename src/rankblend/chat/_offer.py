"""A recalled procedure in words for a model: its track record and its steps, and no more.

A name or a tool's name may come from what a model once wrote, so each is put on one line and cut.
Argument values, the question that the procedure answered, the names of
steps and free properties are never shown: people write them, and they may hold anything.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence

from attrs import frozen

from rankblend.chat._transcript import ARGUMENTS
from rankblend.reasonlets import MAX_NAME, Graph, Node, ReasonletMatch


@frozen
class Step:
    """A step as it is shown.

    Attributes:
        tool: What it calls; its type, when it calls nothing.
        arguments: The names of the arguments.
    """

    tool: str
    arguments: tuple[str, ...]


def steps_of(graph: Graph) -> tuple[Step, ...]:
    """The steps in an order that follows the edges; steps on a cycle come last, as written."""
    waiting = {node.id: 0 for node in graph.nodes}
    for edge in graph.edges:
        waiting[edge.target] += 1
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(edge.target)
    nodes = {node.id: node for node in graph.nodes}
    ready = [identifier for identifier, count in waiting.items() if not count]
    order = dict.fromkeys(ready)
    for identifier in ready:  # grows while it is read
        for target in targets.get(identifier, ()):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
                order[target] = None
    order.update(dict.fromkeys(nodes))
    return tuple(_step(nodes[identifier]) for identifier in order)


def describe_match(match: ReasonletMatch) -> str:
    """The text of the system message that offers a procedure."""
    runs = match.evidence.runs
    lines = [
        f"A known procedure for a similar question: {_line(match.reasonlet.name)}",
        f"Similarity {match.score.similarity:.2f}, success rate {match.score.success_rate:.2f}, "
        f"{runs} {'run' if runs == 1 else 'runs'}.",
        "Steps:",
    ]
    for number, step in enumerate(steps_of(match.reasonlet.graph), start=1):
        arguments = f" ({', '.join(step.arguments)})" if step.arguments else ""
        lines.append(f"{number}. {step.tool}{arguments}")
    lines.append("Follow it as far as it fits the question at hand.")
    return "\n".join(lines)


def matches_as_json(matches: Sequence[ReasonletMatch]) -> str:
    """The same of several matches, best first, as a JSON array."""
    return json.dumps([plain_match(match) for match in matches], ensure_ascii=False)


def plain_match(match: ReasonletMatch) -> dict[str, object]:
    """The same of a match as JSON-ready values."""
    return {
        "name": _line(match.reasonlet.name),
        "similarity": round(match.score.similarity, 4),
        "success_rate": round(match.score.success_rate, 4),
        "runs": match.evidence.runs,
        "steps": [
            {"tool": step.tool, "arguments": list(step.arguments)}
            for step in steps_of(match.reasonlet.graph)
        ],
    }


def _step(node: Node) -> Step:
    names = node.properties.get(ARGUMENTS)
    if not isinstance(names, list | tuple):
        names = ()
    arguments = tuple(_line(name) for name in names if isinstance(name, str))
    return Step(_line(node.tool or node.type), arguments)


def _line(text: str) -> str:
    """One line of visible text, at most as long as a name may be."""
    spaced = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    return " ".join(spaced.split())[:MAX_NAME].rstrip()

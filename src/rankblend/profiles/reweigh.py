"""The same recipe with other weights: of the score, and of the nodes below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.profiles.problems import Problems
from rankblend.relevance.composers import Node
from rankblend.relevance.values import shown

__all__ = ["Reweighted", "reweigh"]

Path = tuple[str, ...]


@frozen
class Reweighted:
    """Nodes with other weights, and where each changed value stands.

    Args:
        score: The score.
        nodes: All nodes by name.
        changed: Paths of the values given, e.g. ``score.weights.cue``.
    """

    score: Node
    nodes: Mapping[str, Node]
    changed: tuple[str, ...]


def reweigh(
    score: Node, nodes: Mapping[str, Node], weights: Mapping[str, float], problems: Problems
) -> Reweighted:
    """Change weights by name: ``cue`` of the score, ``words.keyword`` of the node ``words``.

    Raises:
        ProfileError: All problems: names that nothing has, with the nearest one; invalid weights.
    """
    held = {"": dict(score.weights), **{name: dict(node.weights) for name, node in nodes.items()}}
    known = [f"{node}.{each}".lstrip(".") for node, inputs in held.items() for each in inputs]
    changed: dict[str, Path] = {}
    named: Iterable[tuple[object, object]] = weights.items()
    for name, value in named:
        given = str(name) if isinstance(name, str) else shown(name)
        node, _, entry = given.rpartition(".")
        path: Path = ("nodes", node, "weights", entry) if node else ("score", "weights", entry)
        if entry not in held.get(node, {}):
            problems.unknown(path, "input", given, known)
        else:
            held[node][entry] = problems.number(path, value, low=0.0) or 0.0
            changed[node] = path[:-2]
    problems.raise_if_any()
    made = {"": score, **nodes}
    for node, where in changed.items():
        try:
            made[node] = evolve(made[node], weights=held[node])
        except InvalidArgumentError as error:
            prefix = ".".join(where)
            problems.take(where, [f"{prefix}.{line}" for line in error.problems])
    problems.raise_if_any()
    paths = [
        ".".join((*changed[node], "weights", entry))
        for node, _, entry in (str(name).rpartition(".") for name in weights)
    ]
    return Reweighted(made.pop(""), made, tuple(paths))

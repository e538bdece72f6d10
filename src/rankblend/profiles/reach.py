"""What a recipe uses of what it defines: reachable nodes and signals, their order, circles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from rankblend.profiles.recipe import SignalRecipe
from rankblend.relevance.composers import Node, node_inputs

__all__ = ["depth_of", "find_circles", "inputs_first", "reachable"]

MOST_CIRCLES = 20  # a file with more has made its point, and each costs a pass
Edges = Mapping[str, Sequence[str]]
"""Per name the names it is made of."""


def reachable(
    roots: Iterable[str], *, nodes: Mapping[str, Node], signals: Mapping[str, SignalRecipe]
) -> tuple[frozenset[str], frozenset[str]]:
    """The nodes and the signals that what is named in ``roots`` is made of, roots included.

    A name is looked up among the nodes first; names that nothing has are left out.
    """
    found: set[str] = set()
    open_names = list(roots)
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        if name in nodes:
            open_names.extend(node_inputs(nodes[name]))
        elif name in signals:
            open_names.extend(signals[name].of)
        else:
            continue
        found.add(name)
    return frozenset(found & nodes.keys()), frozenset(found & signals.keys() - nodes.keys())


def find_circles(edges: Edges) -> list[tuple[str, ...]]:
    """Circles among the names, each once as ``(a, b, …, a)``; empty when there is none."""
    remaining = {name: list(parts) for name, parts in edges.items()}
    circles: list[tuple[str, ...]] = []
    while len(circles) < MOST_CIRCLES:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            circles.append(tuple(reversed(error.args[1])))
            for name in circles[-1]:
                remaining.pop(name, None)
        else:
            break
    return circles


def inputs_first(edges: Edges) -> tuple[str, ...]:
    """The names so that each comes after what it is made of, otherwise in the given order.

    Names that are only made of, but not given, are left out. There must be no circle.
    """
    ordered: dict[str, None] = {}
    entered: set[str] = set()
    for start in edges:
        way = [(start, iter(edges[start]))] if start not in entered else []
        entered.add(start)
        while way:
            name, parts = way[-1]
            part = next((part for part in parts if part in edges and part not in entered), None)
            if part is None:
                ordered[name] = None
                way.pop()
            else:
                entered.add(part)
                way.append((part, iter(edges[part])))
    return tuple(ordered)


def depth_of(edges: Edges) -> int:
    """The greatest number of names on a way from a name to what it is made of; no circles."""
    depths: dict[str, int] = {}
    for name in inputs_first(edges):
        depths[name] = 1 + max((depths.get(part, 0) for part in edges[name]), default=0)
    return max(depths.values(), default=0)

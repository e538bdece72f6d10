"""What depends on the pool: a value that other candidates of the query can change.

Within one query such a value orders as well as any. Between queries it means nothing: the best of a
hopeless pool has 1.0. So no floor may be put on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rankblend.profiles.reach import inputs_first
from rankblend.profiles.recipe import SignalRecipe
from rankblend.relevance.composers import COMPOSERS, Node, node_inputs
from rankblend.relevance.curves import is_batch_relative

__all__ = ["relative_part", "relative_signals"]


def relative_signals(signals: Mapping[str, SignalRecipe]) -> frozenset[str]:
    """The signals whose values depend on the pool, directly or through what they are made of.

    Of signals that are made of themselves, which is refused elsewhere, the answer may lack some.
    """
    relative: set[str] = set()
    for name in inputs_first({name: signal.of for name, signal in signals.items()}):
        signal = signals[name]
        if is_batch_relative(signal.curve) or not relative.isdisjoint(signal.of):
            relative.add(name)
    return frozenset(relative)


def relative_part(root: Node, nodes: Mapping[str, Node], relative: Collection[str]) -> str | None:
    """What in a score depends on the pool: the name of a signal or composer, or None."""
    seen: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not COMPOSERS[node.compose].pointwise:
            return node.compose
        for name in node_inputs(node):
            if name in nodes and name not in seen:
                seen.add(name)
                waiting.append(nodes[name])
            elif name in relative:
                return name
    return None

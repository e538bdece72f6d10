"""What changes between two recipes, and how little would have to change to swap two memories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.recall._rank import Ranking
from rankblend.relevance import COMPOSERS, Node, SignalTable, compose_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rankblend.recall._result import Recall

_STEPS = 160  # points tried on each side of a weight before the nearest change of sign is bisected
_REACH = 10.0  # weights up to ten times the sum of a node's weights are tried


@frozen
class Move:
    """Where one memory stands in two results; rank None = not returned."""

    id: str
    before: int | None
    after: int | None

    @property
    def change(self) -> int | None:
        """Ranks gained (positive) or lost, None when it is only in one of the results."""
        return None if self.before is None or self.after is None else self.before - self.after


@frozen
class Swap:
    """One weight that, changed this far, puts the second memory before the first.

    Attributes:
        path: The weight, e.g. ``score.weights.cue``.
        weight: Its value now.
        needed: The nearest value that swaps the two.
    """

    path: str
    weight: float
    needed: float

    def __str__(self) -> str:
        return f"{self.path}: {self.weight:g} → {self.needed:.4g}"


@frozen
class Comparison:
    """The moves from one recall to another of the same query.

    Attributes:
        before, after: The two recalls.
        moves: Every memory in either result: those of ``after`` in its order, then those that fell
            out, in the order of ``before``.
    """

    before: Recall
    after: Recall
    moves: tuple[Move, ...]

    def swap(self, first: str, second: str) -> Swap | None:
        """`Recall.swap` of the earlier recall."""
        return self.before.swap(first, second)

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "before": {"profile": self.before.profile.name, "hash": self.before.profile.hash},
            "after": {"profile": self.after.profile.name, "hash": self.after.profile.hash},
            "moves": [
                {"id": m.id, "before": m.before, "after": m.after, "change": m.change}
                for m in self.moves
            ],
        }

    def __rich__(self) -> RenderableType:
        """For a rich console: both ranks with an arrow."""
        from rich.table import Table
        from rich.text import Text

        texts = {m.memory.id: m.memory.text for m in (*self.before, *self.after)}
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        table.add_column(Text(self.before.profile.name), justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column(Text(self.after.profile.name), justify="right", no_wrap=True)
        table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
        for move in self.moves:
            table.add_row(
                _rank(move.before),
                _arrow(move),
                _rank(move.after),
                Text(texts.get(move.id, move.id)),
            )
        return table


def compare(before: Recall, after: Recall) -> Comparison:
    """Rank moves between two recalls.

    Raises:
        InvalidArgumentError: They answer for different scopes, so that moves mean nothing.
    """
    if before.trace.scopes != after.trace.scopes or before.trace.reach != after.trace.reach:
        raise InvalidArgumentError(
            "compare: expected two recalls of one query at the same scopes; recall the same query "
            "with another profile="
        )
    old = {identifier: rank for rank, identifier in enumerate(before.ids, start=1)}
    new = {identifier: rank for rank, identifier in enumerate(after.ids, start=1)}
    everyone = dict.fromkeys((*new, *old))
    return Comparison(before, after, tuple(Move(i, old.get(i), new.get(i)) for i in everyone))


def smallest_swap(ranking: Ranking, first: str, second: str) -> Swap | None:
    """The smallest single-weight change after which ``second`` scores above ``first``.

    Every weight reachable from the score is varied alone, from 0 up to ten times the sum of its
    node's weights; floors, duplicate penalty and the pool stay as they are. For nested and
    non-additive scores there is no closed form, so the nearest change of sign is bracketed on a
    grid around the weight and then bisected to double precision; a change narrower than the grid
    (1/160 of the distance, growing outwards) can be missed. Where the profile promises a sum of
    its weights, one weight alone cannot be changed without the others: the change says how much is
    missing, it is no profile.

    Returns:
        The change, or None when no single weight swaps them.

    Raises:
        InvalidArgumentError: One of the two was not scored in this recall, or both are one.
    """
    named: tuple[object, object] = (first, second)
    if not all(isinstance(identifier, str) for identifier in named):
        raise InvalidArgumentError("swap: expected the ids of two memories as text")
    if first == second:
        raise InvalidArgumentError("swap: expected the ids of two memories, got one twice")
    rows = []
    for identifier in (first, second):
        position = (
            ranking.candidates.ids.index(identifier) if identifier in ranking.candidates.ids else -1
        )
        found = np.flatnonzero(ranking.rows == position)
        if not found.size:
            raise InvalidArgumentError(f"swap: {identifier!r} was not scored in this recall")
        rows.append(int(found[0]))
    lead = _lead_function(ranking, rows)
    best: Swap | None = None
    for path, node_name, weight_name, weight, scale in _weights(ranking):
        within = math.inf if best is None else abs(best.needed - best.weight)
        needed = _nearest_sign_change(partial(lead, node_name, weight_name), weight, scale, within)
        if needed is not None and abs(needed - weight) < within:
            best = Swap(path, weight, float(needed))
    return best


def _root(ranking: Ranking) -> Node:
    profile = ranking.profile
    return profile.rerank if ranking.node == "rerank" and profile.rerank else profile.score


def _weights(ranking: Ranking) -> Iterator[tuple[str, str, str, float, float]]:
    """Path, node ("" = root), input, weight and scale of every reachable weight."""
    nodes = ranking.profile.nodes
    pending, seen = [("", _root(ranking))], {""}
    while pending:
        node_name, node = pending.pop(0)
        prefix = f"nodes.{node_name}" if node_name else ranking.node
        total = sum(weight for _, weight in node.weights)
        for name, weight in node.weights:
            yield f"{prefix}.weights.{name}", node_name, name, weight, _REACH * max(total, 1e-9)
            if name in nodes and name not in seen:
                seen.add(name)
                pending.append((name, nodes[name]))


def _lead_function(ranking: Ranking, rows: list[int]) -> Callable[[str, str, float], float]:
    """How far the second memory leads the first when one weight is set; > 0 means swapped."""
    profile, root, nodes = ranking.profile, _root(ranking), ranking.profile.nodes
    everyone = [root, *nodes.values()]
    pointwise = all(COMPOSERS[node.compose].pointwise for node in everyone)
    chosen = ranking.rows[rows] if pointwise else ranking.rows
    first, second = (0, 1) if pointwise else rows
    full = ranking.derived.table
    table = SignalTable([full.ids[int(i)] for i in chosen], full.names, full.values[chosen])
    distances = ranking.candidates.distances[chosen]
    factors = np.ones(chosen.size)
    scored = ranking.composition.scores[rows if pointwise else slice(None)]
    after = ranking.scores[rows if pointwise else slice(None)]
    np.divide(after, scored, out=factors, where=scored > 0)

    def lead(node_name: str, weight_name: str, value: float) -> float:
        changed = root if not node_name else nodes[node_name]
        weights = tuple((n, value if n == weight_name else w) for n, w in changed.weights)
        try:
            node = evolve(changed, weights=weights)
        except InvalidArgumentError:
            return -math.inf  # a weight that this composer refuses swaps nothing
        new_root = node if not node_name else root
        new_nodes = nodes if not node_name else {**nodes, node_name: node}
        scores = compose_table(new_root, new_nodes, table, contributions=False).scores
        ranks = profile.scope.rank_scores(scores * factors, distances)
        return float(ranks[second] - ranks[first])

    return lead


def _nearest_sign_change(
    lead: Callable[[float], float], weight: float, scale: float, within: float
) -> float | None:
    if lead(weight) > 0:  # the second is ahead already
        return weight
    steps = scale * np.geomspace(1e-4, 1.0, _STEPS)
    if within < steps[-1]:  # farther away than what another weight needs is of no interest
        steps = np.append(steps[steps < within], within)
    found = []
    for direction in (1.0, -1.0):
        inside = weight
        for step in steps:
            outside = max(weight + direction * step, 0.0)
            if lead(outside) > 0:
                found.append(_bisect(lead, inside, outside))
                break
            inside = outside
            if outside == 0.0:
                break
    return min(found, key=lambda value: abs(value - weight), default=None)


def _bisect(lead: Callable[[float], float], behind: float, ahead: float) -> float:
    """The end nearest ``behind`` at which the lead is still positive."""
    for _ in range(60):
        middle = (behind + ahead) / 2
        if middle in (behind, ahead):
            break
        if lead(middle) > 0:
            ahead = middle
        else:
            behind = middle
    return ahead


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _arrow(move: Move) -> str:
    if move.before is None:
        return "[green]new[/]"
    if move.after is None:
        return "[red]out[/]"
    change = move.before - move.after
    if change == 0:
        return "[dim]=[/]"
    return f"[green]▲{change}[/]" if change > 0 else f"[red]▼{-change}[/]"

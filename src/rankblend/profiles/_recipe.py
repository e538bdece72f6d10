"""The recipe of one signal, and the other parts of a profile.

What may stand in each value is declared with it, once: a table of a profile file is read, checked
and written by these declarations. The profile checks all of its parts at once, so that four mistakes
are four lines of one error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from attrs import field, frozen

from rankblend.caches import ReadOnly
from rankblend.checks import Problems
from rankblend.profiles._problems import must
from rankblend.relevance import CurveStep, Node, node_inputs, parse_curve

MOST = 1_000_000
UNIT = partial(Problems.number, least=0.0, most=1.0)
MERGE_RULES = ("strongest", "error")


def read_only(mapping: Any) -> Any:
    """An unchangeable copy; what is no mapping stays, to be reported with all other problems."""
    return ReadOnly(mapping) if isinstance(mapping, Mapping) else mapping


def _names(value: Any) -> Any:
    """One name or several, as a profile file may write them."""
    return (value,) if isinstance(value, str) else as_tuple(value)


def as_tuple(value: Any) -> Any:
    """A list as a tuple; anything else stays, to be reported with all other problems."""
    return tuple(value) if isinstance(value, list) else value


def _steps(value: Any) -> tuple[CurveStep, ...]:
    """Steps, or the plain data of a profile file: ``"clip"``, ``{"half_life": {"days": 30}}``."""
    given = value if isinstance(value, (list, tuple)) else (value,)
    if all(isinstance(step, CurveStep) for step in given):
        return tuple(given)
    return parse_curve(value)


@frozen
class Pool:
    """How many candidates are looked at.

    Args:
        size: Proposals asked of each store and scope level, ≥ 1.
        max: Greatest number of candidates kept of their union, ≥ size.
    """

    size: int = field(default=100, metadata=must(Problems.whole, least=1, most=MOST))
    # Four proposing stores ship (vectors, keywords, graph, activity): the rest is room for a fifth.
    max: int = field(default=500, metadata=must(Problems.whole, least=1, most=MOST))


@frozen
class SignalRecipe:
    """How one signal comes from evidence, or from other signals.

    Args:
        evidence: What its curve reads, in the curve's order; ``store.name`` asks one store only.
            One name may stand alone. Empty when ``of`` is given.
        of: Signals its curve reads instead; the first step is then ``first_present``.
        curve: Steps from what is read to [0, 1], first to last, at least one; or what a profile
            file says, such as ``"clip"``.
        merge: When two stores give this signal for one memory: ``strongest`` keeps the greater
            value, ``error`` refuses.

    Raises:
        InvalidArgumentError: ``curve`` is plain data that says no curve.

    Example:
        >>> SignalRecipe("cosine", curve="clip").curve
        (CurveStep(name='clip', params=()),)
    """

    evidence: tuple[str, ...] = field(default=(), converter=_names)
    of: tuple[str, ...] = field(default=(), converter=_names)
    curve: tuple[CurveStep, ...] = field(default=(CurveStep("identity"),), converter=_steps)
    merge: str = field(default="strongest", metadata=must(Problems.choice, choices=MERGE_RULES))


@frozen
class Floor:
    """The least value of a signal a memory must have.

    Args:
        min: In [0, 1]; a value passes at ≥ min − 1e-12.
        absent: ``pass`` or ``drop``: what happens to a memory without this signal.
    """

    min: float = field(metadata=must(UNIT))
    absent: str = field(default="pass", metadata=must(Problems.choice, choices=("pass", "drop")))


@frozen
class Floors:
    """What a memory must reach to be returned, judged before the scope is folded in.

    Args:
        min_score: The least score, in [0, 1], or None.
        signals: Floors of single signals.
    """

    min_score: float | None = field(default=None, metadata=must(UNIT, optional=True))
    signals: Mapping[str, Floor] = field(factory=dict, converter=read_only)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled or copied; its contents can.
        return Floors, (self.min_score, dict(self.signals))


@frozen
class Select:
    """What is returned of the ranked candidates.

    Args:
        top: Most memories returned; 0 returns none, None leaves it to the caller.
        max_tokens: Most tokens returned, whole memories only; None is no limit.
        duplicate_penalty: λ of score × (1 − λ·max(0, cosine to the nearest better one)); 0 is off.
        diversity: Greedy maximal marginal relevance picks by
            (1 − diversity)·score − diversity·(greatest cosine to one already picked); 0 is off.
    """

    top: int | None = field(
        default=None, metadata=must(Problems.whole, least=0, most=MOST, optional=True)
    )
    max_tokens: int | None = field(
        default=None, metadata=must(Problems.whole, least=0, optional=True)
    )
    duplicate_penalty: float = field(default=0.0, metadata=must(UNIT))
    diversity: float = field(default=0.0, metadata=must(UNIT))


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

"""The small values a ranking profile is made of; they hold what was written, unchecked.

The profile checks all of its parts at once, so that four mistakes are four lines of one error.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from rankblend.relevance.curves import CurveStep

__all__ = ["MERGE_RULES", "Floor", "Floors", "Pool", "Select", "SignalRecipe", "read_only"]

MERGE_RULES = ("strongest", "error")


def read_only(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """An unchangeable copy."""
    return MappingProxyType(dict(mapping))


@frozen
class Pool:
    """How many candidates are looked at.

    Args:
        size: Proposals asked of each store and scope level, ≥ 1.
        max: Greatest number of candidates kept of their union, ≥ size.
    """

    size: int = 100
    # Four proposing stores ship (vectors, keywords, graph, activity): the rest is room for a fifth.
    max: int = 500


@frozen
class SignalRecipe:
    """How one signal comes from evidence, or from other signals.

    Args:
        evidence: What its curve reads, in the curve's order; ``store.name`` asks one store only.
            Empty when ``of`` is given.
        of: Signals its curve reads instead; the first step is then ``first_present``.
        curve: Steps from what is read to [0, 1], first to last, at least one.
        merge: When two stores give this signal for one memory: ``strongest`` keeps the greater
            value, ``error`` refuses.
    """

    evidence: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    curve: tuple[CurveStep, ...] = (CurveStep("identity"),)
    merge: str = "strongest"


@frozen
class Floor:
    """The least value of a signal a memory must have.

    Args:
        min: In [0, 1]; a value passes at ≥ min − 1e-12.
        absent: ``pass`` or ``drop``: what happens to a memory without this signal.
    """

    min: float
    absent: str = "pass"


@frozen
class Floors:
    """What a memory must reach to be returned, judged before the scope is folded in.

    Args:
        min_score: The least score, in [0, 1], or None.
        signals: Floors of single signals.
    """

    min_score: float | None = None
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

    top: int | None = None
    max_tokens: int | None = None
    duplicate_penalty: float = 0.0
    diversity: float = 0.0

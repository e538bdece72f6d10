"""The small values a ranking profile is made of; they hold what was written, unchecked.

The profile checks all of its parts at once, so that four mistakes are four lines of one error.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from rankblend.relevance.curves import CurveStep, parse_curve

__all__ = [
    "MERGE_RULES",
    "Floor",
    "Floors",
    "Pool",
    "Select",
    "SignalRecipe",
    "as_tuple",
    "read_only",
]

MERGE_RULES = ("strongest", "error")


def read_only(mapping: Any) -> Any:
    """An unchangeable copy; what is no mapping stays, to be reported with all other problems."""
    return MappingProxyType(dict(mapping)) if isinstance(mapping, Mapping) else mapping


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

    size: int = 100
    # Four proposing stores ship (vectors, keywords, graph, activity): the rest is room for a fifth.
    max: int = 500


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

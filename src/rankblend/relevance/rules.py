"""What a composer is: a name, what a profile may say to it, and a function over one node's inputs.

`Composer.evaluate` gets the inputs of one node over one pool and returns scores, present weight
and, when asked, one row of contributions per input. Missing policies, nesting and the root are not
its business (see `composers`). Those that come with rankblend are in `combiners`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.relevance.evidence import is_identifier
from rankblend.relevance.values import real_number, shown

__all__ = ["COMPOSERS", "Composer", "Inputs", "Option", "Outcome", "register_composer"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@frozen(eq=False)
class Inputs:
    """The s inputs of one node over a pool of n memories.

    Args:
        names: The inputs, in the order of the weights.
        columns: s arrays (n,), values in [0, 1], NaN absent.
        weights: Shape (s,), finite, ≥ 0, with a finite sum.
        fills: Shape (s,); what an absent input counts as, NaN to leave it absent.
        counts: Shape (s,); the fills that stem from an override, which make the input present.
        all_filled: The policy fills every absent input, so that all weight counts.
        strength: Of the pull toward ``prior``, as a multiple of all weight.
        prior: In [0, 1], or None without a pull.
        options: The node's options, defaults filled in.
        gates: Columns named by options, NaN absent.
        explain: Whether rows are wanted.
    """

    names: tuple[str, ...]
    columns: tuple[FloatArray, ...]
    weights: FloatArray
    fills: FloatArray
    counts: BoolArray
    all_filled: bool = False
    strength: float = 0.0
    prior: float | None = None
    options: Mapping[str, object] = field(factory=dict)
    gates: Mapping[str, FloatArray] = field(factory=dict)
    explain: bool = True


@frozen(eq=False)
class Outcome:
    """What a composer made of its inputs.

    Args:
        scores: Shape (n,), in [0, 1].
        present: Shape (n,), the weight of the inputs that are present or filled by an override.
        whole: All weight, in the same unit.
        anything: Shape (n,), whether there was something to compose, policy fills aside.
        rows: Row name → contribution (n,), NaN where it adds nothing; empty unless asked for.
    """

    scores: FloatArray
    present: FloatArray
    whole: float
    anything: BoolArray
    rows: dict[str, FloatArray]


@frozen
class Option:
    """One option of a composer.

    Args:
        name: Its key in a profile.
        kind: ``number`` (finite, > 0), ``input`` (the name of one of the node's inputs) or
            ``members`` (``"positive"``, ``"present"``, or a table giving for inputs one of these or
            the name of a node or signal that must be above 0).
        default: None when the option must be given.
    """

    name: str
    kind: str
    default: object = None

    def read(self, value: object, inputs: tuple[str, ...]) -> tuple[object, list[str]]:
        """The value in canonical, hashable form, and what is wrong with it."""
        if self.kind == "number":
            number = real_number(value)
            if number is None or not 0.0 < number < math.inf:
                return None, [f"{self.name}: expected a finite number > 0, got {shown(value)}"]
            return number, []
        if self.kind == "input":
            if not isinstance(value, str) or value not in inputs:
                expected = f"one of the inputs: {', '.join(inputs)}"
                return None, [f"{self.name}: expected {expected}; got {shown(value)}"]
            return value, []
        if isinstance(value, str) and value in ("positive", "present"):
            return value, []
        pairs = tuple(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, tuple) or not all(
            isinstance(pair, tuple)
            and len(pair) == 2
            and pair[0] in inputs
            and is_identifier(pair[1])
            for pair in pairs
        ):
            return None, [
                f'{self.name}: expected "positive", "present" or a table from inputs to one of '
                "these or to the name of a node or signal"
            ]
        chosen = dict(pairs)
        return tuple((name, chosen[name]) for name in inputs if name in chosen), []


@frozen
class Composer:
    """One way to compose, registered by name.

    Args:
        name: As in a profile.
        evaluate: The composer itself.
        additive: The rows sum to the score within 1e-12.
        label: What a row is.
        shrink: Whether it takes the policy ``Shrink`` (additive ones only).
        pointwise: A memory's score depends on its own inputs alone, not on the rest of the pool.
        options: What else a profile may say.
        check: What is wrong with these weights and (valid) options, beyond what always holds.
        meaning: One phrase.
    """

    name: str
    evaluate: Callable[[Inputs], Outcome]
    additive: bool = False
    label: str = "share"
    shrink: bool = False
    pointwise: bool = True
    options: tuple[Option, ...] = ()
    check: Callable[[Mapping[str, float], Mapping[str, object]], list[str]] | None = None
    meaning: str = field(default="", eq=False)


_REGISTRY: dict[str, Composer] = {}
COMPOSERS: Mapping[str, Composer] = MappingProxyType(_REGISTRY)


def register_composer(composer: Composer) -> Composer:
    """Add a composer; registering the same one twice is harmless.

    Raises:
        InvalidArgumentError: The name is taken by another, or is no identifier, or a composer that
            is not additive takes ``Shrink``.
    """
    problems = []
    if not is_identifier(composer.name):
        problems.append("composer name: expected ASCII letters, digits and _")
    if composer.shrink and not composer.additive:
        problems.append(f"composer {composer.name!r}: shrink needs an additive composer")
    if not problems and _REGISTRY.setdefault(composer.name, composer) != composer:
        problems.append(f"composer {composer.name!r} is already registered")
    if problems:
        raise InvalidArgumentError(problems)
    return composer

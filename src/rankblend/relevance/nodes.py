"""Nodes: what a profile says about one score.

A node names a composer, its weighted inputs (other nodes or signals), a missing policy, overrides
for single inputs and the composer's options. `composers.compose_table` evaluates a tree of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.kernels.compose import total_weight
from rankblend.relevance.combiners import COMPOSERS
from rankblend.relevance.evidence import is_identifier
from rankblend.relevance.missing import MissingPolicy, Override, Renormalize, Shrink
from rankblend.relevance.values import real_number, shown

__all__ = ["Node", "node_inputs", "node_problems"]


def _pairs(value: object) -> tuple[tuple[str, object], ...]:
    """A mapping or pairs as a tuple of pairs."""
    listed = value.items() if isinstance(value, Mapping) else value
    found = tuple(listed) if isinstance(listed, Iterable) else (None,)
    if any(not (isinstance(one, tuple) and len(one) == 2) for one in found) or any(
        not isinstance(name, str) for name, _ in found
    ):
        raise InvalidArgumentError(
            f"node: expected a mapping or pairs with names, got {type(value).__name__}"
        )
    return found


@frozen(init=False)
class Node:
    """One node of a composition.

    Args:
        compose: Name of a composer.
        weights: The inputs in order, each with its weight; a mapping, or pairs. At least one.
        missing: What absent inputs mean.
        absent: Overrides of single inputs; a mapping, or pairs.
        options: Of the composer; a mapping, or pairs. Defaults are filled in, so that a node that
            spells them out equals one that does not.

    Raises:
        InvalidArgumentError: All problems, each with its path, as `node_problems` finds them.

    Example:
        >>> Node("strongest", {"coverage": 1, "similarity": 1}).weights
        (('coverage', 1.0), ('similarity', 1.0))
    """

    compose: str
    weights: tuple[tuple[str, float], ...] = field(converter=_pairs)
    missing: MissingPolicy = field(factory=Renormalize)
    absent: tuple[tuple[str, Override], ...] = field(converter=_pairs, default=())
    options: tuple[tuple[str, object], ...] = field(converter=_pairs, default=())

    def __init__(
        self,
        compose: str,
        weights: Mapping[str, float] | Iterable[tuple[str, float]],
        *,
        missing: MissingPolicy = Renormalize(),  # noqa: B008 - a value without state
        absent: Mapping[str, Override] | Iterable[tuple[str, Override]] = (),
        options: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    ) -> None:
        self.__attrs_init__(compose, weights, missing, absent, options)

    def __attrs_post_init__(self) -> None:
        problems = node_problems(
            self.compose,
            self.weights,
            missing=self.missing,
            absent=self.absent,
            options=self.options,
        )
        if problems:
            raise InvalidArgumentError(problems)
        inputs = tuple(name for name, _ in self.weights)
        weights = tuple((name, real_number(weight)) for name, weight in self.weights)
        given, overrides = dict(self.options), dict(self.absent)
        options = tuple(
            (option.name, option.read(given.get(option.name, option.default), inputs)[0])
            for option in COMPOSERS[self.compose].options
        )
        absent = tuple((name, overrides[name]) for name in inputs if name in overrides)
        for name, value in (("weights", weights), ("options", options), ("absent", absent)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, compose: str, *inputs: str, missing: MissingPolicy = Renormalize()) -> Node:  # noqa: B008
        """A node without weights: every input counts 1."""
        return cls(compose, [(name, 1.0) for name in inputs], missing=missing)


def node_inputs(node: Node) -> tuple[str, ...]:
    """Every name the node reads: its inputs, then the nodes or signals its options name."""
    chosen = dict(node.options).get("members")
    named = [rule for _, rule in chosen] if isinstance(chosen, tuple) else []
    gates = (rule for rule in named if rule not in ("positive", "present"))
    return tuple(dict.fromkeys([*(name for name, _ in node.weights), *gates]))


def node_problems(
    compose: str,
    weights: Iterable[tuple[str, object]],
    *,
    missing: object,
    absent: Iterable[tuple[str, object]],
    options: Iterable[tuple[str, object]],
) -> list[str]:
    """All that is wrong with the parts of a node, each with its path below the node."""
    if not isinstance(compose, str):
        return [f"compose: expected the name of a composer, got {shown(compose)}"]
    composer = COMPOSERS.get(compose)
    if composer is None:
        return [f"compose: {UnknownNameError('composer', compose, COMPOSERS)}"]
    problems, amounts = [], {}
    for name, weight in weights:
        number = real_number(weight)
        if not is_identifier(name) or name in amounts:
            problems.append("weights: expected distinct names of ASCII letters, digits and _")
        elif number is None or not 0.0 <= number < math.inf:
            problems.append(f"weights.{name}: expected a finite number ≥ 0, got {shown(weight)}")
        amounts[name] = number or 0.0
    if not amounts:
        problems.append("weights: expected at least one input")
    elif total_weight(tuple(amounts.values())) == math.inf and not problems:
        problems.append("weights: expected a finite sum, got inf")
    if not isinstance(missing, MissingPolicy):
        problems.append(f"missing: expected a missing policy, got {type(missing).__name__}")
    elif isinstance(missing, Shrink) and not composer.shrink:
        problems.append(f"missing: shrink needs an additive composer, {compose} is none")
    for name, override in absent:
        if name not in amounts:
            problems.append(f"absent.{name}: expected one of the inputs: {', '.join(amounts)}")
        elif not isinstance(override, Override):
            problems.append(f"absent.{name}: expected neutral, zero or required")
    given = dict(options)
    known = [option.name for option in composer.options]
    problems += [
        f"{name}: unknown option of {compose}, expected {', '.join(known) or 'none'}"
        for name in given
        if name not in known
    ]
    for option in composer.options:
        value = given.get(option.name, option.default)
        problems += option.read(value, tuple(amounts))[1]
    if composer.check is not None and not problems:
        problems += composer.check(amounts, given)
    return problems

"""Missing policies: what an absent signal means to a node of a profile.

=====================  ==========================================================================
``Renormalize()``      Absent signals are left out and the weights of the others count for all.
``Neutral(v)``         An absent signal counts as v at full weight.
``Zero()``             An absent signal counts as 0 at full weight.
``Shrink(p, s)``       Left out, but the score is pulled toward the prior p with s times the weight
                       of the whole node: (Σwv + s·W·p) / (P + s·W), P the present weight, W all.
``Require(c)``         Left out, but no score at all where P / W < c − 1e-12.
=====================  ==========================================================================

Overrides of one input, ``Neutral``, ``Zero`` and ``Required()`` (no score without it), apply first;
an input that an override filled counts in P, and so as present. Where then nothing is present, or
no weight is above 0, ``Neutral`` gives v and ``Shrink`` its prior; with the others the score is 0.0
at the root, and the node is absent to its parent when nested, with ``Zero`` too: a node about which
nothing was observed is never an observed zero.

Which laws of the weighted mean the policies keep (tests/laws/test_compose_laws.py proves the yes
within 4(n + 1) units in the last place and exhibits a counterexample for each no):

==============================  ===========  =======  ======  ======  ===========================
law                             Renormalize  Neutral  Zero    Shrink  Require
==============================  ===========  =======  ======  ======  ===========================
between the least and the       yes          no ¹     no ²    no ³    yes, where it scores
greatest present value
scaling all weights changes     yes          yes      yes     yes     yes ⁴
nothing
an absent signal changes        yes          no       no      no ⁵    no: it may cost the score;
nothing, bit for bit                                                  yes where both score
raising a present value never   yes          yes      yes     yes     yes
lowers it
order of names changes nothing  yes          yes      yes     yes     yes ⁴
beyond rounding
==============================  ===========  =======  ======  ======  ===========================

| ¹ between the least and the greatest of the present values and v
| ² never above the greatest present value, but below the least
| ³ between the least and the greatest of the present values and the prior; yes for strength 0
| ⁴ except where P / W lies within rounding of c − 1e-12
| ⁵ it adds to W, and so to the pull; yes for strength 0
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from rankblend.errors import InvalidArgumentError
from rankblend.relevance._values import real_number, shown

COVERAGE_TOLERANCE = 1e-12


def _number(value: object) -> float:
    """The value as a float; NaN, which every check refuses, when it is no number."""
    number = real_number(value)
    return math.nan if number is None else number


def _unit_problem(path: str, value: object) -> list[str]:
    if 0.0 <= _number(value) <= 1.0:
        return []
    return [f"{path}: expected a number in [0, 1], got {shown(value)}"]


def _strength_problem(path: str, value: object) -> list[str]:
    if 0.0 <= _number(value) < math.inf:
        return []
    return [f"{path}: expected a finite number ≥ 0, got {shown(value)}"]


@frozen
class Renormalize:
    """Absent signals are left out and the weights of the present ones count for all."""


@frozen
class Zero:
    """An absent signal counts as 0 at full weight."""


@frozen
class Neutral:
    """An absent signal counts as ``value`` at full weight.

    Args:
        value: In [0, 1].

    Raises:
        InvalidArgumentError: It is not.
    """

    value: float

    def __attrs_post_init__(self) -> None:
        _refuse(_unit_problem("neutral", self.value))
        object.__setattr__(self, "value", _number(self.value))


@frozen
class Shrink:
    """The score is pulled toward a prior, less the more weight is present.

    Args:
        prior: In [0, 1].
        strength: Weight of the prior as a multiple of the node's whole weight; finite, ≥ 0.

    Raises:
        InvalidArgumentError: One of them is not; both are reported.
    """

    prior: float
    strength: float

    def __attrs_post_init__(self) -> None:
        _refuse(
            _unit_problem("shrink.prior", self.prior)
            + _strength_problem("shrink.strength", self.strength)
        )
        object.__setattr__(self, "prior", _number(self.prior))
        object.__setattr__(self, "strength", _number(self.strength))


@frozen
class Require:
    """No score where less than this share of the node's weight is present.

    Args:
        coverage: In [0, 1]; met at coverage − 1e-12.

    Raises:
        InvalidArgumentError: It is not.
    """

    coverage: float

    def __attrs_post_init__(self) -> None:
        _refuse(_unit_problem("require.coverage", self.coverage))
        object.__setattr__(self, "coverage", _number(self.coverage))


@frozen
class Required:
    """Override of one input: no score without it, whatever its weight."""


MissingPolicy = Renormalize | Neutral | Zero | Shrink | Require
Override = Neutral | Zero | Required

_POLICIES = (
    '"renormalize", "zero", {neutral = v}, {shrink = {prior, strength}}, {require = {coverage}}'
)
_OVERRIDES = '"required", "zero", {neutral = v}'


def parse_missing(data: object, *, path: str = "missing") -> MissingPolicy:
    """Read a policy from plain data.

    Args:
        data: ``"renormalize"``, ``"zero"``, ``{"neutral": v}``,
            ``{"shrink": {"prior": p, "strength": s}}`` or ``{"require": {"coverage": c}}``.
        path: Where it stands, for the messages.

    Raises:
        InvalidArgumentError: All problems, each with its path.
    """
    match data if isinstance(data, str | Mapping) else None:
        case "renormalize":
            return Renormalize()
        case "zero":
            return Zero()
        case {"neutral": value, **rest} if not rest:
            _refuse(_unit_problem(f"{path}.neutral", value))
            return Neutral(_number(value))
        case {"shrink": inside, **rest} if not rest:
            found, problems = _fields(inside, ("prior", "strength"), f"{path}.shrink")
            if "prior" in found:
                problems += _unit_problem(f"{path}.shrink.prior", found["prior"])
            if "strength" in found:
                problems += _strength_problem(f"{path}.shrink.strength", found["strength"])
            _refuse(problems)
            return Shrink(_number(found["prior"]), _number(found["strength"]))
        case {"require": inside, **rest} if not rest:
            found, problems = _fields(inside, ("coverage",), f"{path}.require")
            if "coverage" in found:
                problems += _unit_problem(f"{path}.require.coverage", found["coverage"])
            _refuse(problems)
            return Require(_number(found["coverage"]))
    raise InvalidArgumentError(f"{path}: expected one of {_POLICIES}, got {shown(data)}")


def parse_override(data: object, *, path: str = "absent") -> Override:
    """Read the override of one input: ``"required"``, ``"zero"`` or ``{"neutral": v}``.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    match data if isinstance(data, str | Mapping) else None:
        case "required":
            return Required()
        case "zero":
            return Zero()
        case {"neutral": value, **rest} if not rest:
            _refuse(_unit_problem(f"{path}.neutral", value))
            return Neutral(_number(value))
    raise InvalidArgumentError(f"{path}: expected one of {_OVERRIDES}, got {shown(data)}")


def plain_missing(policy: MissingPolicy | Override) -> str | dict[str, object]:
    """The plain data that `parse_missing` or `parse_override` reads as this policy."""
    match policy:
        case Neutral(value=value):
            return {"neutral": value}
        case Shrink(prior=prior, strength=strength):
            return {"shrink": {"prior": prior, "strength": strength}}
        case Require(coverage=coverage):
            return {"require": {"coverage": coverage}}
        case _:
            return type(policy).__name__.lower()


def _fields(
    data: object, expected: tuple[str, ...], path: str
) -> tuple[dict[str, object], list[str]]:
    """The expected fields found in a table, and what is wrong with the table."""
    if not isinstance(data, Mapping):
        return {}, [f"{path}: expected a table with {', '.join(expected)}, got {shown(data)}"]
    problems = [
        f"{path}.{name}: expected a value, it is missing" for name in expected if name not in data
    ]
    problems += [
        f"{path}: unknown field {shown(name)}, expected {', '.join(expected)}"
        for name in data
        if name not in expected
    ]
    return {name: data[name] for name in expected if name in data}, problems


def _refuse(problems: list[str]) -> None:
    if problems:
        raise InvalidArgumentError(problems)

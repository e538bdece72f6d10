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

from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import asdict, frozen

from rankblend.checks import Problems, Rule
from rankblend.values import shown

COVERAGE_TOLERANCE = 1e-12


_UNIT = partial(Problems.number, least=0.0, most=1.0)
_STRENGTH = partial(Problems.number, least=0.0)


def _check(policy: Neutral | Shrink | Require) -> None:
    """Hold the numbers of a policy to their rules, and keep them as floats.

    Raises:
        InvalidArgumentError: All that are not in their range.
    """
    problems, name = Problems(show=shown), _word(policy)
    for each, rule in _RULES[type(policy)].items():
        at = name if isinstance(policy, Neutral) else f"{name}.{each}"
        object.__setattr__(policy, each, rule(problems, at, getattr(policy, each)))
    problems.raise_if_any()


def _word(policy: object) -> str:
    return type(policy).__name__.lower()


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
        _check(self)


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
        _check(self)


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
        _check(self)


@frozen
class Required:
    """Override of one input: no score without it, whatever its weight."""


MissingPolicy = Renormalize | Neutral | Zero | Shrink | Require
Override = Neutral | Zero | Required

_RULES: Mapping[type, Mapping[str, Rule]] = {
    Neutral: {"value": _UNIT},
    Shrink: {"prior": _UNIT, "strength": _STRENGTH},
    Require: {"coverage": _UNIT},
}
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
    policy: MissingPolicy = _parsed(
        data, (Renormalize, Zero, Neutral, Shrink, Require), path=path, expected=_POLICIES
    )
    return policy


def parse_override(data: object, *, path: str = "absent") -> Override:
    """Read the override of one input: ``"required"``, ``"zero"`` or ``{"neutral": v}``.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    override: Override = _parsed(data, (Required, Zero, Neutral), path=path, expected=_OVERRIDES)
    return override


def _parsed(data: object, kinds: tuple[type[Any], ...], *, path: str, expected: str) -> Any:
    """A value of one of these kinds: its word, or a table of one with its numbers."""
    problems = Problems(show=shown, where=path)
    table: Mapping[Any, Any] = (
        data if isinstance(data, Mapping) else {data if isinstance(data, str) else None: None}
    )
    word: Any
    inside: Any
    word, inside = next(iter(table.items())) if len(table) == 1 else ("", None)
    kind = next((each for each in kinds if each.__name__.lower() == word), None)
    rules = _RULES.get(kind, {}) if kind is not None else {}
    if kind is None or bool(rules) is not isinstance(data, Mapping):
        problems.expected("", f"one of {expected}", data)
    elif kind is Neutral:
        inside = {"value": _UNIT(problems, word, inside)}
    elif not isinstance(inside, Mapping) and rules:
        problems.expected(word, f"a table with {', '.join(rules)}", inside)
    elif rules:
        for name in (name for name in rules if name not in inside):
            problems.add((word, name), "expected a value, it is missing")
        for name in (name for name in inside if name not in rules):
            problems.add(word, f"unknown field {shown(name)}, expected {', '.join(rules)}")
        for name in (name for name in rules if name in inside):
            rules[name](problems, (word, name), inside[name])
    problems.raise_if_any()
    assert kind is not None
    return kind(**inside or {})


def plain_missing(policy: MissingPolicy | Override) -> str | dict[str, object]:
    """The plain data that `parse_missing` or `parse_override` reads as this policy."""
    if isinstance(policy, Neutral):
        return {"neutral": policy.value}
    numbers = asdict(policy)
    return {_word(policy): numbers} if numbers else _word(policy)

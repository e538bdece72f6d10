from __future__ import annotations

import math

import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import (
    MissingPolicy,
    Neutral,
    Override,
    Renormalize,
    Require,
    Required,
    Shrink,
    Zero,
    parse_missing,
    parse_override,
    plain_missing,
)

POLICIES: list[tuple[object, MissingPolicy]] = [
    ("renormalize", Renormalize()),
    ("zero", Zero()),
    ({"neutral": 0.5}, Neutral(0.5)),
    ({"shrink": {"prior": 0.2, "strength": 0.5}}, Shrink(0.2, 0.5)),
    ({"require": {"coverage": 0.5}}, Require(0.5)),
]
OVERRIDES: list[tuple[object, Override]] = [
    ("required", Required()),
    ("zero", Zero()),
    ({"neutral": 0.25}, Neutral(0.25)),
]


@pytest.mark.parametrize(("data", "policy"), POLICIES)
def test_policy_when_parsed_and_made_plain_then_is_the_same(
    data: object, policy: MissingPolicy
) -> None:
    assert parse_missing(data) == policy
    assert plain_missing(policy) == data
    assert hash(parse_missing(data)) == hash(policy)


@pytest.mark.parametrize(("data", "override"), OVERRIDES)
def test_override_when_parsed_and_made_plain_then_is_the_same(
    data: object, override: Override
) -> None:
    assert parse_override(data) == override
    assert plain_missing(override) == data


def test_policy_when_given_integers_then_equals_the_one_with_floats() -> None:
    assert Neutral(1) == Neutral(1.0)
    assert type(Neutral(1).value) is float
    assert parse_missing({"shrink": {"prior": 0, "strength": 2}}) == Shrink(0.0, 2.0)
    assert math.copysign(1.0, Neutral(-0.0).value) == 1.0


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "high", None, True, [0.5]])
def test_values_when_outside_then_refused_by_every_constructor(value: object) -> None:
    for make in (Neutral, Require, lambda prior: Shrink(prior, 1.0)):
        with pytest.raises(InvalidArgumentError, match=r"\[0, 1\]"):
            make(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "high", None, False])
def test_strength_when_not_finite_or_negative_then_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"shrink\.strength"):
        Shrink(0.2, value)  # type: ignore[arg-type]


def test_shrink_when_both_are_wrong_then_reports_both() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Shrink(2, -1)
    assert caught.value.problems == (
        "shrink.prior: expected a number in [0, 1], got 2",
        "shrink.strength: expected a finite number ≥ 0, got -1",
    )


@pytest.mark.parametrize(
    "data",
    ["Renormalize", "required", "", None, 3, {}, [], {"neutral": 0.5, "zero": 1}, {"zero": True}],
    ids=repr,
)
def test_parse_missing_when_no_policy_then_names_the_path_and_the_choices(data: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_missing(data, path="score.missing")
    assert caught.value.problems[0].startswith("score.missing: expected one of")


@pytest.mark.parametrize("data", ["renormalize", {"shrink": {"prior": 0, "strength": 1}}, None])
def test_parse_override_when_no_override_then_refuses(data: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"absent\.cue"):
        parse_override(data, path="absent.cue")


def test_parse_missing_when_many_problems_then_reports_all_with_paths() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_missing({"shrink": {"prior": "high", "pull": 3}})
    assert caught.value.problems == (
        "missing.shrink.strength: expected a value, it is missing",
        'missing.shrink: unknown field "pull", expected prior, strength',
        'missing.shrink.prior: expected a number in [0, 1], got "high"',
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"shrink": 3}, "missing.shrink: expected a table with prior, strength, got 3"),
        (
            {"shrink": {"prior": 0.5, "strength": math.inf}},
            "missing.shrink.strength: expected a finite number ≥ 0, got inf",
        ),
        ({"require": {}}, "missing.require.coverage: expected a value, it is missing"),
        (
            {"require": {"coverage": 2}},
            "missing.require.coverage: expected a number in [0, 1], got 2",
        ),
        ({"neutral": True}, "missing.neutral: expected a number in [0, 1], got True"),
    ],
)
def test_parse_missing_when_a_number_is_wrong_then_says_where(data: object, problem: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_missing(data)
    assert caught.value.problems == (problem,)
    if data == {"neutral": True}:
        with pytest.raises(InvalidArgumentError, match=r"absent\.neutral"):
            parse_override(data)

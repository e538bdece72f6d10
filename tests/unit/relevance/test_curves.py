from __future__ import annotations

import math
import pickle
import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import InvalidArgumentError, InvalidArrayError
from rankblend.kernels import curves as kernels
from rankblend.relevance import (
    CURVES,
    EVIDENCE,
    Curve,
    CurveParameter,
    CurveStep,
    Evidence,
    apply_curve,
    apply_curve_details,
    check_curve,
    is_batch_relative,
    parse_curve,
    plain_curve,
    register_curve,
)
from rankblend.relevance import _curves as module

NAN, INF = math.nan, math.inf
COUNTS = [EVIDENCE[name] for name in ("runs", "successes", "judged_runs", "judged_successes")]
PARENTS = [EVIDENCE[f"parent_{kind.name}"] for kind in COUNTS]


def problems_of(data: object, **options: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_curve(data, **options)
    return caught.value.problems


def check(data: object, *names: str) -> list[str]:
    return check_curve(parse_curve(data), [EVIDENCE[name] for name in names])


def apply(data: object, values: list[float], evidence: str | Evidence) -> list[float]:
    kind = EVIDENCE[evidence] if isinstance(evidence, str) else evidence
    return apply_curve(parse_curve(data), [np.array(values)], [kind]).tolist()


@pytest.fixture
def registry() -> Iterator[dict[str, Curve]]:
    """The registry, put back as it was afterwards."""
    before = dict(module._REGISTRY)
    yield module._REGISTRY
    module._REGISTRY.clear()
    module._REGISTRY.update(before)


# reading


def test_parse_curve_when_read_from_toml_then_the_three_shapes_are_understood() -> None:
    data = tomllib.loads(
        'a = "clip"\nb = { half_life = { days = 30 } }\nc = ["over_max", { power = { p = 0.5 } }]'
    )
    assert parse_curve(data["a"]) == (CurveStep("clip"),)
    assert parse_curve(data["b"]) == (CurveStep("half_life", (("seconds", 2_592_000.0),)),)
    assert parse_curve(data["c"]) == (CurveStep("over_max"), CurveStep("power", (("p", 0.5),)))


def test_parse_curve_when_parameters_are_left_out_then_defaults_are_filled_in() -> None:
    (step,) = parse_curve("smoothed_rate")
    assert step.params == (("prior_weight", 5.0), ("agent_verdict_weight", 0.5))
    assert parse_curve("log_saturation") == parse_curve({"log_saturation": {"n_max": 100}})


def test_parse_curve_when_written_in_another_unit_or_order_then_equal() -> None:
    assert parse_curve({"half_life": {"days": 1}}) == parse_curve({"half_life": {"hours": 24.0}})
    assert parse_curve({"logistic": {"m": 1, "k": 2}}) == parse_curve(
        {"logistic": {"k": 2, "m": 1}}
    )
    assert hash(parse_curve({"half_life": {"days": 1}})) == hash(
        parse_curve({"half_life": {"seconds": 86400}})
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("clp", 'curve.clp: unknown curve "clp": did you mean "clip"?'),
        ([], "curve: expected at least one curve, got an empty list"),
        ({"half_life": {}}, "curve.half_life: expected one of days, hours, seconds, got none"),
        (
            {"half_life": {"days": 1, "hours": 1}},
            "curve.half_life: expected one of days, hours, seconds, got days and hours",
        ),
        (
            {"half_life": {"days": 0}},
            "curve.half_life.days: expected a finite number in (0, inf), got 0",
        ),
        (
            {"linear": {"days": 1, "floor": 1.5}},
            "curve.linear.floor: expected a finite number in [0, 1], got 1.5",
        ),
        (
            {"power": {"p": "high"}},
            'curve.power.p: expected a finite number in (0, inf), got "high"',
        ),
        (
            {"clip": {"low": 1}},
            'curve.clip: unknown parameter "low": known: none',
        ),
        (
            {"saturation": {"c": 6, "cc": 6}},
            'curve.saturation: unknown parameter "cc": did you mean "c"?',
        ),
    ],
)
def test_parse_curve_when_something_is_wrong_then_the_path_and_the_remedy(
    data: object, problem: str
) -> None:
    assert problems_of(data) == (problem,)


@pytest.mark.parametrize(
    "data",
    [None, 3, {}, {"clip": {}, "rank": {}}, {"power": 0.5}, {3: {}}, ["clip", ["rank"]], [None]],
)
def test_parse_curve_when_the_shape_is_wrong_then_refused(data: object) -> None:
    (problem,) = problems_of(data)
    assert "expected a name or one {name = {parameters}}" in problem


@pytest.mark.parametrize(
    "value", [True, NAN, INF, -INF, None, "1", [1], 10**400, 1e308, -1, 0, {"p": 1}]
)
def test_parse_curve_when_a_duration_is_no_positive_finite_number_then_refused(
    value: object,
) -> None:
    assert len(problems_of({"half_life": {"days": value}})) == 1


def test_parse_curve_when_several_things_are_wrong_then_all_are_told_with_their_path() -> None:
    data = ["clp", {"power": {"p": 0, "q": 1}}, {"half_life": {}}, 7]
    problems = problems_of(data, path="signals.x.curve")
    assert [problem.split(": ")[0] for problem in problems] == [
        "signals.x.curve[0].clp",
        "signals.x.curve[1].power",
        "signals.x.curve[1].power.p",
        "signals.x.curve[2].half_life",
        "signals.x.curve[3]",
    ]


def test_curve_step_when_made_by_hand_then_completed_checked_and_frozen() -> None:
    step = CurveStep("linear", (("hours", 2),))
    assert step.params == (("seconds", 7200.0), ("floor", 0.0))
    assert step.curve is CURVES["linear"]
    assert pickle.loads(pickle.dumps(step)) == step
    with pytest.raises(FrozenInstanceError):
        step.name = "clip"
    with pytest.raises(InvalidArgumentError) as caught:
        CurveStep("linear", (("floor", 2.0),))
    assert len(caught.value.problems) == 2


# writing


@pytest.mark.parametrize(
    "data",
    [
        "clip",
        {"half_life": {"days": 30}},
        {"half_life": {"hours": 5}},
        {"half_life": {"seconds": 0.1}},
        {"linear": {"days": 365, "floor": 0.1}},
        ["over_max", {"power": {"p": 0.5}}],
        {"logistic": {"k": 1, "m": -3}},
        {"smoothed_rate": {"prior_weight": 5, "agent_verdict_weight": 0.5}},
        {"saturation": {"c": 1e300}},
    ],
)
def test_plain_curve_when_the_data_are_complete_then_gives_them_back(data: object) -> None:
    assert plain_curve(parse_curve(data)) == data


def test_plain_curve_when_a_number_is_huge_then_a_float_and_when_whole_an_int() -> None:
    assert isinstance(
        plain_curve(parse_curve({"saturation": {"c": 1e300}}))["saturation"]["c"], float
    )
    assert isinstance(plain_curve(parse_curve({"saturation": {"c": 6.0}}))["saturation"]["c"], int)


def test_curve_step_when_a_zero_is_negative_then_written_as_zero() -> None:
    assert repr(CurveStep("logistic", (("m", -0.0),)).params) == "(('k', 1.0), ('m', 0.0))"


def test_plain_curve_when_hours_are_no_whole_number_then_seconds_and_exactly_back() -> None:
    hours = math.log(0.5) / math.log(0.995)
    steps = parse_curve({"half_life": {"hours": hours}})
    assert list(plain_curve(steps)["half_life"]) == ["seconds"]
    assert parse_curve(plain_curve(steps)) == steps


def test_is_batch_relative_when_any_step_is_then_the_whole_is() -> None:
    assert not is_batch_relative(parse_curve(["clip", {"power": {"p": 2}}]))
    for name in ("over_max", "min_max", "rank", "z_logistic"):
        assert is_batch_relative(parse_curve([name, "clip"]))


# checking


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ("clip", ["cosine"]),
        ("identity", ["coverage"]),
        ({"half_life": {"days": 7}}, ["age_updated"]),
        ({"linear": {"days": 365, "floor": 0.1}}, ["age_created"]),
        ("log_saturation", ["uses"]),
        ("reciprocal", ["hops"]),
        ("logistic", ["rerank_score"]),
        ({"saturation": {"c": 6}}, ["bm25"]),
        (["over_max", {"power": {"p": 0.5}}], ["ppr"]),
        ("over_max", ["activation"]),
        ("min_max", ["cosine"]),
        ("rank", ["rerank_score"]),
        ("z_logistic", ["bm25"]),
        (["clip", {"saturation": {"c": 1}}], ["cosine"]),
        ([{"half_life": {"hours": 138.3}}, "min_max"], ["age_used"]),
        ([{"power": {"p": 2}}, "clip"], ["bm25"]),
        ("first_present", ["coverage", "structured"]),
        (["first_present", "clip"], ["coverage", "cosine"]),
    ],
)
def test_check_curve_when_all_is_well_then_nothing(data: object, names: list[str]) -> None:
    assert check(data, *names) == []


def test_check_curve_when_counts_feed_the_rate_then_with_or_without_the_parent() -> None:
    steps = parse_curve("smoothed_rate")
    assert check_curve(steps, COUNTS) == []
    assert check_curve(steps, COUNTS + PARENTS) == []
    assert check_curve(steps, COUNTS[:2]) == ["smoothed_rate reads 4 or 8 kinds of evidence, got 2"]


@pytest.mark.parametrize(
    ("data", "names", "problems"),
    [
        (
            "identity",
            ["cosine"],
            ["identity needs values in [0, 1], cosine lies in [-1, 1]; use clip"],
        ),
        (
            {"saturation": {"c": 6}},
            ["rerank_score"],
            ["saturation needs values in [0, inf), rerank_score lies in (-inf, inf); use clip"],
        ),
        (
            {"power": {"p": 2}},
            ["bm25"],
            [
                "the result of power lies in [0, inf), a signal in [0, 1]; "
                "end with clip, saturation or over_max"
            ],
        ),
        (
            ["clip", {"half_life": {"days": 1}}],
            ["cosine"],
            ["half_life can only come first, it reads evidence itself"],
        ),
        (
            ["clip", "smoothed_rate"],
            ["cosine"],
            ["smoothed_rate can only come first, it reads evidence itself"],
        ),
        (
            {"half_life": {"days": 1}},
            ["bm25"],
            ["half_life reads seconds, bm25 is in score"],
        ),
        ("clip", ["age_used"], ["clip rises with age_used, where less is better"]),
        ("rank", ["hops"], ["rank rises with hops, where less is better"]),
        ("clip", ["coverage", "structured"], ["clip reads 1 kinds of evidence, got 2"]),
        ("clip", [], ["expected at least one curve and one kind of evidence"]),
        (
            "first_present",
            ["coverage", "cosine"],
            [
                "the result of first_present lies in [-1, 1], a signal in [0, 1]; "
                "end with clip, saturation or over_max"
            ],
        ),
    ],
)
def test_check_curve_when_something_does_not_fit_then_told(
    data: object, names: list[str], problems: list[str]
) -> None:
    assert check(data, *names) == problems


def test_check_curve_when_there_are_no_steps_then_told() -> None:
    assert len(check_curve((), [EVIDENCE["cosine"]])) == 1


def test_check_curve_when_several_things_do_not_fit_then_all_are_told() -> None:
    assert len(check(["log_saturation", {"linear": {"days": 1}}], "cosine", "age_used")) == 5


# applying


@pytest.mark.parametrize(
    ("data", "values", "evidence", "expected"),
    [
        ("clip", [-0.2, 0.5, NAN], "cosine", [0.0, 0.5, NAN]),
        ({"half_life": {"days": 1}}, [-5.0, 86_400.0], "age_used", [1.0, 0.5]),
        ("reciprocal", [0.0, 1.0, INF, NAN], "hops", [1.0, 0.5, 0.0, NAN]),
        ({"saturation": {"c": 6}}, [0.0, 6.0, 18.0], "bm25", [0.0, 0.5, 0.75]),
        (["over_max", {"power": {"p": 0.5}}], [0.01, 0.04, NAN, 0.0], "ppr", [0.5, 1.0, NAN, 0.0]),
        # a constant at cosine's declared minimum of -1 is 0; at 0 it is 1
        ("min_max", [-1.0, NAN], "cosine", [0.0, NAN]),
        ("min_max", [0.0, NAN], "cosine", [1.0, NAN]),
        # bm25 has a natural zero, so a rank leaves it at 0; salience has none
        ("rank", [0.0, 2.0, 1.0, 3.0], "bm25", [0.0, 0.75, 0.5, 1.0]),
        ("rank", [0.0, 0.5, 0.25, 1.0], "salience", [0.25, 0.75, 0.5, 1.0]),
    ],
)
def test_apply_curve_when_applied_then_the_signal(
    data: object, values: list[float], evidence: str, expected: list[float]
) -> None:
    np.testing.assert_allclose(apply(data, values, evidence), expected, rtol=1e-15, equal_nan=True)


@pytest.mark.parametrize(
    ("data", "values", "evidence", "expected"),
    [
        # the least value behind linear is its floor
        ([{"linear": {"seconds": 10, "floor": 0.2}}, "min_max"], [10.0, 99.0], "age_used", [0, 0]),
        ([{"linear": {"seconds": 10, "floor": 0.2}}, "min_max"], [5.0, 5.0], "age_used", [1, 1]),
        # "not reached" behind reciprocal is a natural zero
        (["reciprocal", "rank"], [INF, 1.0, 0.0], "hops", [0.0, 2 / 3, 1.0]),
        # a natural zero goes through what keeps it …
        ([{"saturation": {"c": 1}}, "over_max", "rank"], [0.0, 1.0, 2.0], "bm25", [0, 2 / 3, 1]),
        # … and not through what moves it
        (["logistic", "rank"], [0.0, 1.0, 2.0], "bm25", [1 / 3, 2 / 3, 1.0]),
    ],
)
def test_apply_curve_when_chained_then_minimum_and_natural_zero_follow(
    data: object, values: list[float], evidence: str, expected: list[float]
) -> None:
    np.testing.assert_allclose(apply(data, values, evidence), expected, rtol=1e-15)


def test_apply_curve_when_counts_are_given_then_it_also_tells_whether_the_parent_lifted() -> None:
    columns = [np.array([1.0, 1.0])] * 2 + [np.zeros(2)] * 2
    columns += [np.array([20.0, NAN])] * 2 + [np.array([0.0, NAN])] * 2
    signal, told = apply_curve_details(parse_curve("smoothed_rate"), columns, COUNTS + PARENTS)
    np.testing.assert_allclose(signal, [(0.5 + 25 / 6) / 5.5, 3.0 / 5.5], rtol=1e-15)
    assert told["uses_parent_prior"].tolist() == [True, False]
    plain, _ = apply_curve_details(parse_curve("smoothed_rate"), columns[:4], COUNTS)
    np.testing.assert_allclose(plain, 3.0 / 5.5, rtol=1e-15)


def test_apply_curve_when_there_is_nothing_to_tell_then_empty() -> None:
    assert not apply_curve_details(parse_curve("clip"), [np.zeros(1)], [EVIDENCE["cosine"]])[1]


def test_apply_curve_when_several_signals_then_the_first_present() -> None:
    signals = [Evidence("similarity"), Evidence("cue")]
    columns = [np.array([NAN, 0.2, NAN]), np.array([0.7, 0.9, NAN])]
    result = apply_curve(parse_curve("first_present"), columns, signals)
    np.testing.assert_array_equal(result, [0.7, 0.2, NAN])


def test_apply_curve_when_empty_then_empty() -> None:
    assert apply_curve(parse_curve("rank"), [np.array([])], [EVIDENCE["bm25"]]).shape == (0,)


def test_apply_curve_when_a_value_does_not_fit_the_curve_then_the_evidence_is_named() -> None:
    with pytest.raises(InvalidArrayError) as caught:
        apply({"saturation": {"c": 6}}, [1.0, -1.0], "bm25")
    assert caught.value.name == "saturation of bm25"
    assert caught.value.got == "-1 in row 1"


def test_apply_curve_when_rounding_leaves_the_unit_interval_then_brought_back() -> None:
    assert apply("identity", [1.0 + 1e-12, -1e-12], "coverage") == [1.0, 0.0]


@pytest.mark.parametrize("value", [1.1, -0.1, INF])
def test_apply_curve_when_the_result_is_no_signal_then_refused(value: float) -> None:
    with pytest.raises(InvalidArrayError, match="coverage") as caught:
        apply("identity", [0.5, value], "coverage")
    assert caught.value.got.endswith("in row 1")


@pytest.mark.parametrize(("columns", "kinds"), [(1, 2), (2, 2), (0, 0)])
def test_apply_curve_when_the_number_of_columns_is_wrong_then_refused(
    columns: int, kinds: int
) -> None:
    with pytest.raises(InvalidArgumentError):
        apply_curve(parse_curve("clip"), [np.zeros(1)] * columns, [EVIDENCE["cosine"]] * kinds)
    with pytest.raises(InvalidArgumentError):
        apply_curve((), [np.zeros(1)], [EVIDENCE["cosine"]])


# registering


def test_curves_when_listed_then_every_kernel_has_a_name_and_none_can_be_written() -> None:
    assert set(CURVES) == set(kernels.__all__)
    with pytest.raises(TypeError):
        CURVES["clip"] = CURVES["rank"]  # type: ignore[index]


def test_register_curve_when_new_then_profiles_can_name_it(registry: dict[str, Curve]) -> None:
    tent = Curve(
        "tent",
        lambda values, *, width: np.maximum(0.0, 1.0 - np.abs(values) / width),
        (CurveParameter("width", 1.0, default=2.0),),
    )
    assert register_curve(tent) is tent
    assert register_curve(tent) is tent
    assert apply(["tent"], [-1.0, 0.0, 5.0, NAN], "cosine")[:3] == [0.5, 1.0, 0.0]
    assert check("tent", "cosine") == []


@pytest.mark.parametrize("name", ["clip", "two words", "", "ümlaut"])
def test_register_curve_when_the_name_is_taken_or_no_identifier_then_refused(
    name: str, registry: dict[str, Curve]
) -> None:
    before = dict(registry)
    with pytest.raises(InvalidArgumentError):
        register_curve(Curve(name, lambda values: values))
    assert registry == before


def test_apply_curve_when_a_plug_in_moves_zero_then_it_is_no_natural_zero_any_more(
    registry: dict[str, Curve],
) -> None:
    register_curve(Curve("shift", lambda values: values - 0.5, direction="rising"))
    np.testing.assert_allclose(
        apply(["shift", "rank"], [0.0, 0.5, 1.0], "ppr"), [1 / 3, 2 / 3, 1.0]
    )


def test_apply_curve_when_a_plug_in_forgets_what_is_absent_then_it_stays_absent(
    registry: dict[str, Curve],
) -> None:
    register_curve(Curve("half", lambda values: np.full(len(values), 0.5)))
    assert np.isnan(apply("half", [NAN, 1.0], "cosine")).tolist() == [True, False]


@pytest.mark.parametrize("result", [np.zeros(3), np.zeros((2, 1)), 0.5, np.full(2, 2.0)])
def test_apply_curve_when_a_plug_in_returns_something_else_then_refused(
    result: Any, registry: dict[str, Curve]
) -> None:
    register_curve(Curve("odd", lambda values: result))
    with pytest.raises(InvalidArrayError):
        apply("odd", [0.1, 0.2], "cosine")


def test_apply_curve_when_a_plug_in_has_an_error_of_its_own_then_it_passes_through(
    registry: dict[str, Curve],
) -> None:
    def broken(values: object) -> None:
        raise ZeroDivisionError

    register_curve(Curve("broken", broken))
    with pytest.raises(ZeroDivisionError):
        apply("broken", [0.1], "cosine")


def test_check_curve_when_a_match_would_count_less_than_none_then_told() -> None:
    told = check_curve(parse_curve("reciprocal"), [EVIDENCE["bm25"]])
    assert told == ["reciprocal falls with bm25, where 0 is no match at all"]
    # A distance has no such zero, and rarely used may be what is wanted.
    distance = Evidence("l2", "score", 0.0, INF, relevance=True)
    assert check_curve(parse_curve("reciprocal"), [distance]) == []
    assert check_curve(parse_curve("reciprocal"), [EVIDENCE["uses"]]) == []

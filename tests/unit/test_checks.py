import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.checks import Problems, suggestion
from rankblend.errors import InvalidArgumentError, ProfileError, RankblendError
from rankblend.values import shown, type_name


def test_problems_when_several_then_one_error_tells_all_in_order() -> None:
    problems = Problems()
    problems.number("weight", -1, least=0)
    problems.whole("top", 1.5, least=0, optional=True)
    problems.text("name", " ", limit=10)
    with pytest.raises(InvalidArgumentError) as caught:
        problems.raise_if_any()
    assert caught.value.problems == (
        "weight: expected a finite number ≥ 0, got -1",
        "top: expected None or an integer ≥ 0, got 1.5",
        "name: expected some text, got a blank",
    )


def test_problems_when_nothing_is_wrong_then_raises_nothing() -> None:
    problems = Problems()
    assert problems.number("b", np.float32(0.5), least=0, most=1) == 0.5
    assert problems.whole("top", np.int64(3), least=0) == 3
    assert problems.time("at", "1970-01-01T00:00:01Z") == 1.0
    assert problems.clean
    problems.raise_if_any()


def test_problems_when_error_class_is_given_then_raises_that() -> None:
    problems = Problems(partial(ProfileError, "mine"))
    problems.add(("pool", "size"), "is odd")
    with pytest.raises(ProfileError, match="is odd") as caught:
        problems.raise_if_any()
    assert caught.value.profile == "mine"


def test_views_when_paths_lines_and_names_meet_then_each_is_written_as_usual() -> None:
    problems = Problems()
    problems.at("items", 3).add("links[0].weight", "a")
    problems.at("items", 3).at("links", 1).add("kind", "b")
    problems.line("memories.jsonl", 4).add("salience", "c")
    problems.line("memories.jsonl", 5).add("", "d")
    problems.line("memories.jsonl", 6).at("links", 2).add("kind", "e")
    problems.at("items", 7).add("", "f")
    problems.add(("signals", "odd name", "curve", 0), "g")
    assert problems.lines == [
        "items[3].links[0].weight: a",
        "items[3].links[1].kind: b",
        "memories.jsonl:4: salience: c",
        "memories.jsonl:5: d",
        "memories.jsonl:6: links[2].kind: e",
        "items[7]: f",
        'signals."odd name".curve[0]: g',
    ]


def test_view_when_others_found_something_before_then_is_clean() -> None:
    problems = Problems()
    problems.add("x", "bad")
    view = problems.at("items", 0)
    assert view.clean
    assert not problems.clean
    view.add("y", "bad")
    assert not view.clean
    assert problems.at("items", 1).clean


def test_raise_if_any_when_only_a_few_are_told_then_says_how_many_more() -> None:
    problems = Problems()
    for at in range(5):
        problems.add(f"a{at}", "bad")
    with pytest.raises(InvalidArgumentError) as caught:
        problems.raise_if_any(most=3)
    assert caught.value.problems == ("a0: bad", "a1: bad", "a2: bad", "… and 2 more")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "a finite number"),
        ({"least": 0}, "a finite number ≥ 0"),
        ({"above": 0}, "a finite number > 0"),
        ({"least": 0, "most": 1}, "a number in [0, 1]"),
        ({"above": 0, "most": 1}, "a number in (0, 1]"),
        ({"least": 0, "below": 1}, "a number in [0, 1)"),
        ({"most": 1_000_000}, "a number ≤ 1,000,000"),
        ({"least": 0.5, "optional": True}, "None or a finite number ≥ 0.5"),
    ],
)
@pytest.mark.parametrize("value", [math.nan, "1", True, [1], 10**400, -math.inf])
def test_number_when_none_then_says_the_range(
    limits: dict[str, Any], words: str, value: object
) -> None:
    problems = Problems()
    assert math.isnan(problems.number("x", value, **limits) or 0.0)
    [line] = problems.lines
    assert line.startswith(f"x: expected {words}, got ")


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(-10, 10), st.booleans(), st.booleans())
def test_number_when_in_range_then_is_kept_and_else_noted(
    value: float, low: float, high: float, open_low: bool, open_high: bool
) -> None:
    problems = Problems()
    limits = {"above" if open_low else "least": low, "below" if open_high else "most": high}
    number = problems.number("x", value, **limits)
    inside = (value > low if open_low else value >= low) and (
        value < high if open_high else value <= high
    )
    assert problems.clean is inside
    assert number == value if inside else math.isnan(number)


def test_refused_when_they_may_be_words_then_are_shown_as_the_caller_wants() -> None:
    found = []
    for show in (type_name, shown, None):
        problems = Problems(show=show) if show else Problems()
        problems.number("x", "secret", least=0)
        found += problems.lines
    assert [line.rpartition("got ")[2] for line in found] == ["str", '"secret"', "str"]


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (lambda it: it.text("x", 3, limit=9), "x: expected text, got int"),
        (lambda it: it.text("x", "abc", limit=2), "x: expected at most 2 characters, got 3"),
        (
            lambda it: it.text("x", "\ud800", limit=9),
            "x: contains a lone surrogate, which cannot be stored as UTF-8",
        ),
        (
            lambda it: it.identifier("x", "1a", "signal"),
            "x: signal names are ASCII letters, digits and _, and start with no digit",
        ),
        (
            lambda it: it.choice("x", "postive", ("positive", "present", "absent")),
            'x: expected one of positive, present, absent, got "postive": did you mean "positive"?',
        ),
        (lambda it: it.choice("x", 3, ("a", "b")), 'x: expected one of a, b, got 3'),
        (lambda it: it.flag("x", 1), "x: expected True or False, got 1"),
        (
            lambda it: it.time("x", datetime(2026, 1, 1)),  # noqa: DTZ001 - what is tested
            "x: expected a datetime with a time zone, got a naive one; use datetime.now(UTC)",
        ),
        (
            lambda it: it.time("x", "soon"),
            "x: expected ISO 8601, e.g. '2026-03-01T12:00:00+00:00'",
        ),
        (lambda it: it.time("x", 3), "x: expected an aware datetime, got int"),
        (
            lambda it: it.time("x", datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))),
            "x: expected a time within the years 1 to 9999 of UTC",
        ),
        (
            lambda it: it.clock(lambda: 3),
            "clock: expected it to return an aware datetime",
        ),
        (lambda it: it.duration("x", "1s"), "x: expected a timedelta or seconds, got str"),
        (lambda it: it.duration("x", 0), "x: expected a duration above 0"),
        (
            lambda it: it.duration("x", -1, positive=False),
            "x: expected a duration that is not negative",
        ),
        (
            lambda it: it.duration("x", 90_000, most=timedelta(days=1)),
            "x: expected at most 1 days",
        ),
        (lambda it: it.instance("x", 3, Problems), "x: expected a Problems, got int"),
        (lambda it: it.callable("x", 3), "x: expected a callable, got int"),
        (lambda it: it.sequence("x", "ab", "ids"), "x: expected a sequence of ids, got str"),
        (lambda it: it.table("x", [1]), "x: expected a table, got list"),
        (lambda it: it.names("x", ["a", "a"]), "x: str is listed twice"),
        (lambda it: it.keys("x", {"siz": 1}, ("size",)),
         'x.siz: unknown key: did you mean "size"?'),
        (lambda it: it.unknown("x", "profile", "crewia", ("crewai",)),
         'x: unknown profile "crewia": did you mean "crewai"?'),
    ],
)  # fmt: skip
def test_check_when_refused_then_says_where_and_what_was_expected(
    check: Callable[[Problems], object], line: str
) -> None:
    problems = Problems()
    check(problems)
    assert problems.lines == [line]


@pytest.mark.parametrize(
    "value",
    [
        [("a", 1)],
        {1: "a", "1": "b"},
        {"a": {1: "a", "1": "b"}},
        {"a": [{None: 1}]},
        {"a": math.nan},
        {"a": {1, 2}},
        {"a": "\ud800"},
        {"\ud800": 1},
    ],
)
def test_metadata_when_a_value_could_be_lost_or_not_be_stored_then_is_refused(
    value: object,
) -> None:
    problems = Problems()
    assert problems.metadata("metadata", value) == {}
    assert len(problems.lines) == 1


def test_metadata_when_nested_too_deep_then_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    problems = Problems()
    problems.metadata("metadata", deep)
    assert len(problems.lines) == 1
    while deep:  # taken apart, for it is freed by recursion
        deep = deep["a"]


@given(st.dictionaries(st.text(max_size=3), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=2), inner),
    max_leaves=8,
)).filter(lambda it: not any("\ud800" <= c <= "\udfff" for key in it for c in key)))  # fmt: skip
def test_metadata_when_json_then_is_an_equal_copy(value: dict[str, Any]) -> None:
    problems = Problems()
    assert problems.metadata("metadata", value) == value
    assert problems.clean


def test_attempt_when_a_value_refuses_itself_then_its_problems_are_noted_below_the_path() -> None:
    def several() -> int:
        raise InvalidArgumentError(["floor: bad", "mode: bad"])

    def one() -> int:
        raise RankblendError("is odd")

    problems = Problems()
    assert problems.attempt("scope", several) is None
    assert problems.attempt(("a", "b"), one) is None
    assert problems.attempt("c", lambda: 3) == 3
    assert problems.lines == ["scope.floor: bad", "scope.mode: bad", "a.b: is odd"]


def test_fields_when_read_by_rules_then_unknown_missing_and_wrong_are_all_noted() -> None:
    rules = {
        "size": partial(Problems.whole, least=1),
        "name": partial(Problems.text, limit=5),
        "floor": Problems.unit,
    }
    problems = Problems()
    found = problems.fields("pool", {"siez": 1, "floor": 2, "name": "a"}, rules,
                            required=("size",))  # fmt: skip
    assert found["name"] == "a"
    assert problems.lines == [
        'pool.siez: unknown key: did you mean "size"?',
        "pool.size: expected a value, it is missing",
        "pool.floor: expected a number in [0, 1], got 2",
    ]


def test_optional_when_none_then_none_and_nothing_noted() -> None:
    problems = Problems()
    assert problems.number("a", None, optional=True) is None
    assert problems.whole("a", None, least=0, optional=True) is None
    assert problems.text("a", None, limit=1, optional=True) is None
    assert problems.choice("a", None, ("x",), optional=True) is None
    assert problems.time("a", None, optional=True) is None
    assert problems.duration("a", None, optional=True) is None
    assert problems.flag("a", None, optional=True) is False
    assert problems.metadata("a", None) == {}
    assert problems.clean


def test_time_when_in_another_zone_then_seconds_of_utc() -> None:
    moment = datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert Problems().time("at", moment) == 0.0
    assert Problems().clock(lambda: datetime.fromtimestamp(5, UTC)) == 5.0


def test_suggestion_when_nothing_is_near_then_lists_what_is_known() -> None:
    assert suggestion("zzz", ["b", "a"]) == "; known: a, b"
    assert suggestion("zzz", []) == ""
    assert suggestion("z", [f"name{at}" for at in range(30)]).endswith(", …")

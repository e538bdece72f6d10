"""What holds for all scopes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.errors import InvalidScopeError
from rankblend.relevance import Scope

# Few and awkward names, so that two scopes often share levels, separators and prefixes of text.
awkward = st.text(alphabet="ab1%/: é\u2028😀", min_size=1, max_size=4)
anything = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)
parts = (awkward | anything).filter(lambda part: bool(part.strip()))
scopes = st.lists(
    st.tuples(parts, parts), min_size=1, max_size=5, unique_by=lambda level: level[0]
).map(Scope)
few = st.lists(
    st.tuples(st.sampled_from("kl"), st.sampled_from(["1", "10", "1/", "1:"])),
    min_size=1,
    max_size=2,
    unique_by=lambda level: level[0],
).map(Scope)


@given(scope=scopes)
def test_parse_when_given_what_str_wrote_then_the_same_scope(scope: Scope) -> None:
    assert Scope.parse(str(scope)) == scope
    assert str(Scope.parse(str(scope))) == str(scope)


@given(text=st.text(alphabet="ab:/% 2Ff35A\x00", max_size=12) | st.text(max_size=12))
def test_parse_when_given_any_text_then_a_scope_that_survives_or_a_clear_error(text: str) -> None:
    try:
        scope = Scope.parse(text)
    except InvalidScopeError:
        return
    assert Scope.parse(str(scope)) == scope


@given(one=scopes | few, other=scopes | few)
def test_distance_when_two_scopes_then_visible_exactly_for_a_prefix_of_levels(
    one: Scope, other: Scope
) -> None:
    visible = one.levels[: len(other)] == other.levels
    assert one.distance(other) == (len(one) - len(other) if visible else -1)
    assert other.contains(one) == visible


@given(one=few, other=few)
def test_path_when_two_scopes_then_prefix_of_text_exactly_when_it_contains(
    one: Scope, other: Scope
) -> None:
    assert other.path.startswith(one.path) == one.contains(other)
    assert (one.path == other.path) == (one == other)


@given(scope=scopes)
def test_ancestors_when_listed_then_exactly_what_is_visible_upward(scope: Scope) -> None:
    ancestors = scope.ancestors()
    assert ancestors[0] == scope
    assert ancestors[-1] == scope.root
    assert [scope.distance(ancestor) for ancestor in ancestors] == list(range(len(scope)))
    assert all(ancestor.contains(scope) for ancestor in ancestors)
    assert scope.parent == (ancestors[1] if len(ancestors) > 1 else None)


@given(one=few, two=few, three=few)
def test_distance_when_seen_through_a_middle_then_adds_up(
    one: Scope, two: Scope, three: Scope
) -> None:
    if one.distance(two) >= 0 and two.distance(three) >= 0:
        assert one.distance(three) == one.distance(two) + two.distance(three)


@given(scope=scopes)
def test_below_when_a_level_is_added_then_one_level_farther_and_never_seen_from_above(
    scope: Scope,
) -> None:
    kind = "x" * (1 + max(len(level.kind) for level in scope.levels))
    below = scope / f"{kind}:1"
    assert below.distance(scope) == 1
    assert scope.distance(below) == -1


@given(scope=scopes)
def test_scope_when_a_kind_repeats_then_refused(scope: Scope) -> None:
    with pytest.raises(InvalidScopeError):
        Scope([*scope.levels, scope.levels[0]])

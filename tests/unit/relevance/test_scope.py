from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import InvalidScopeError
from rankblend.relevance import MAX_LEVELS, Scope, ScopeLevel

SESSION = Scope.parse("tenant:acme/user:7/session:9")


def test_parse_when_a_path_is_given_then_root_first_levels() -> None:
    assert SESSION.levels == (
        ScopeLevel("tenant", "acme"),
        ScopeLevel("user", "7"),
        ScopeLevel("session", "9"),
    )
    assert len(SESSION) == 3
    assert str(SESSION) == "tenant:acme/user:7/session:9"


def test_scope_when_made_from_pairs_then_equal_hashable_and_ordered() -> None:
    scope = Scope([("tenant", "acme"), ("user", "7"), ("session", "9")])
    assert scope == SESSION
    assert hash(scope) == hash(SESSION)
    assert len({scope, SESSION}) == 1
    assert pickle.loads(pickle.dumps(scope)) == scope
    assert copy.deepcopy(scope) == scope


def test_scope_when_its_path_was_read_then_still_equal() -> None:
    scope = Scope.parse("tenant:acme")
    assert scope.path == "tenant:acme/"
    assert scope == Scope.parse("tenant:acme")


def test_scope_when_written_to_then_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        SESSION.levels = ()


@pytest.mark.parametrize(
    ("kind", "identifier", "text"),
    [
        ("a/b", "c", "a%2Fb:c"),
        ("a", "b:c", "a:b%3Ac"),
        ("a", "100%", "a:100%25"),
        ("a", "%2F", "a:%252F"),
        ("名前", " x ", "名前: x "),
    ],
)
def test_parse_when_a_part_has_separators_then_escaped_and_back(
    kind: str, identifier: str, text: str
) -> None:
    scope = Scope([(kind, identifier)])
    assert str(scope) == text
    assert Scope.parse(text) == scope


def test_parse_when_the_escape_is_in_lower_case_then_read_and_written_in_upper_case() -> None:
    assert str(Scope.parse("a:b%2fc")) == "a:b%2Fc"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "tenant",
        "tenant:",
        ":acme",
        "tenant: ",
        "\u2003:acme",
        "tenant:acme/",
        "/tenant:acme",
        "tenant:acme//user:7",
        "tenant:a:b",
        "tenant:acme/tenant:acme",
        "a:1/b:2/a:3",
        "tenant:%",
        "tenant:%4",
        "tenant:%41",
        "tenant:%zz",
        "tenant:a\nb",
        "tenant:\x00",
        "tenant:\x85",
        "tenant:\ud800",
    ],
)
def test_parse_when_it_is_no_path_then_refused(text: str) -> None:
    with pytest.raises(InvalidScopeError):
        Scope.parse(text)


@pytest.mark.parametrize("value", [None, 7, b"tenant:acme", ["tenant:acme"]])
def test_parse_when_it_is_no_text_then_refused(value: Any) -> None:
    with pytest.raises(InvalidScopeError):
        Scope.parse(value)
    with pytest.raises(InvalidScopeError):
        Scope.of(value)


@pytest.mark.parametrize("levels", [None, 7, [None], [("a",)], [("a", "b", "c")], [("a", 7)], []])
def test_scope_when_made_from_something_else_then_refused(levels: Any) -> None:
    with pytest.raises(InvalidScopeError):
        Scope(levels)


def test_scope_when_deep_then_64_levels_and_no_more() -> None:
    deepest = Scope([(f"k{depth}", "x") for depth in range(MAX_LEVELS)])
    assert len(deepest) == 64
    assert deepest.distance(deepest.root) == 63
    with pytest.raises(InvalidScopeError):
        deepest / "one:more"


def test_of_when_given_a_scope_then_itself_else_parsed() -> None:
    assert Scope.of(SESSION) is SESSION
    assert Scope.of("tenant:acme/user:7/session:9") == SESSION


def test_distance_when_an_ancestor_then_levels_upward() -> None:
    assert [SESSION.distance(scope) for scope in SESSION.ancestors()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("query", "memory"),
    [
        ("tenant:acme/user:7", "tenant:acme/user:7/session:9"),  # below
        ("tenant:acme/user:7", "tenant:acme/user:8"),  # beside
        ("tenant:acme-corp", "tenant:acme"),
        ("tenant:acme", "tenant:acme-corp"),
        ("tenant:acme/user:10", "tenant:acme/user:1"),
        ("tenant:acme", "org:acme"),  # another kind
        ("tenant:ACME", "tenant:acme"),
        ("tenant:\u00e9", "tenant:e\u0301"),  # not normalized
        ("user:7/tenant:acme", "tenant:acme"),
    ],
)
def test_distance_when_not_a_prefix_level_by_level_then_negative(query: str, memory: str) -> None:
    assert Scope.parse(query).distance(Scope.parse(memory)) == -1


def test_contains_when_below_or_equal_then_true() -> None:
    acme = Scope.parse("tenant:acme")
    assert acme.contains(SESSION)
    assert acme.contains(acme)
    assert not SESSION.contains(acme)
    assert not acme.contains(Scope.parse("tenant:acme-corp"))


def test_path_when_of_a_sibling_with_a_longer_name_then_no_prefix() -> None:
    one, ten = Scope.parse("s:1"), Scope.parse("s:10")
    assert not ten.path.startswith(one.path)
    assert (one / "t:2").path.startswith(one.path)


def test_relatives_when_asked_then_root_parent_and_child() -> None:
    acme = Scope.parse("tenant:acme")
    assert SESSION.root == acme
    assert acme.parent is None
    assert SESSION.parent == acme / "user:7"
    assert acme / "user:7/session:9" == SESSION


def test_distance_when_given_text_then_reads_it_as_everywhere_else() -> None:
    scope = Scope.parse("tenant:acme/user:7")
    assert scope.distance("tenant:acme") == 1
    assert scope.distance("tenant:acme-corp") == -1
    assert scope.contains("tenant:acme/user:7/session:9")
    with pytest.raises(InvalidScopeError):
        scope.distance(7)  # type: ignore[arg-type]

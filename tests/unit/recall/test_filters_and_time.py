"""Hard and soft conditions, expiry, and answers as of another time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.errors import InvalidArgumentError

Open = Callable[..., rb.Memory]
Profile = Callable[..., rb.RankingProfile]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER = "tenant:acme", "tenant:acme/user:7"

CONDITIONS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a", "b", "c"}),
    ({"lang": "en"}, {"a"}),
    ({"lang": ["en", "de"]}, {"a", "b"}),
    ({"lang": []}, set()),
    ({"lang": {"ne": "en"}}, {"b", "c"}),
    ({"lang": None}, {"c"}),
    ({"stars": {"gte": 3}}, {"a", "b"}),
    ({"stars": {"gt": 3}}, {"a"}),
    ({"stars": {"lte": 3}}, {"b"}),
    ({"stars": {"lt": 3}}, set()),
    ({"stars": {"gte": 3, "lt": 5}}, {"b"}),
    ({"stars": "5"}, set()),
    ({"tags": "x"}, {"a"}),
    ({"deep.n": 1}, {"b"}),
    ({"layer": "episodic"}, {"c"}),
    ({"layer": {"ne": "episodic"}}, {"a", "b"}),
    ({"salience": {"gte": 0.5}}, {"a"}),
    ({"confidence": 0.5}, {"b"}),
    ({"at": {"lt": "2026-02-01T00:00:00+00:00"}}, {"a"}),
    ({"at": {"gte": datetime(2026, 2, 1, tzinfo=UTC)}}, {"b", "c"}),
    ({"used": None}, {"a", "c"}),
    ({"expires": {"gt": NOW}}, {"c"}),
    ({"lang": "en", "stars": {"lt": 5}}, set()),
]


@pytest.fixture
def three(memory: rb.Memory) -> rb.Memory:
    memory.remember(
        "refund a", scope=USER, id="a", salience=0.5, at="2026-01-01T00:00:00+00:00",
        metadata={"lang": "en", "stars": 5, "tags": ["x", "y"]},
    )  # fmt: skip
    memory.remember(
        "refund b", scope=USER, id="b", confidence=0.5, at="2026-02-01T00:00:00+00:00",
        metadata={"lang": "de", "stars": 3, "deep": {"n": 1}},
    )  # fmt: skip
    memory.remember(
        "refund c", scope=TENANT, id="c", layer="episodic", expires="2026-04-01T00:00:00+00:00"
    )
    memory.reinforce("b", scope=USER)
    return memory


@pytest.mark.parametrize(("filters", "expected"), CONDITIONS)
def test_filters_when_given_then_only_what_satisfies_all_of_them_is_seen(
    three: rb.Memory, filters: dict[str, Any], expected: set[str]
) -> None:
    result = three.recall("refund", scope=USER, filters=filters)
    assert set(result.ids) == expected
    for identifier in {"a", "b", "c"} - expected:
        assert result.explain(identifier).verdict == "not visible to this query or unknown"


def test_filters_when_few_pass_then_they_act_before_the_limit(
    opened: Open, profile: Profile
) -> None:
    narrow = profile(
        """
        [pool]
        size = 1
        max = 1
        [signals.keyword]
        evidence = "bm25"
        curve = { saturation = { c = 6 } }
        [score]
        compose = "weighted_mean"
        weights = { keyword = 1.0 }
        """
    )
    memory = opened(profile=narrow)
    for n in range(30):
        memory.remember("refund refund", scope=USER, metadata={"n": n})
    memory.remember(
        "a refund mentioned in a long text about other things",
        scope=USER,
        id="m",
        metadata={"n": 99},
    )
    assert memory.recall("refund", scope=USER, filters={"n": 99}).ids == ("m",)


@pytest.mark.parametrize("argument", ["filters", "prefer"])
@pytest.mark.parametrize(
    "bad",
    [
        "lang",
        {"stars": {"above": 3}},
        {"stars": {}},
        {"at": {"gt": "2026-01-01T00:00:00"}},
        {"at": "yesterday"},
        {"salience": "high"},
        {"layer": {"gt": "a"}},
        {"": 1},
        {"stars": float("nan")},
        {"stars": {"gt": None}},
        {"lang": {"ne": object()}},
    ],
)
def test_filters_when_they_are_bad_then_they_are_refused_by_name(
    three: rb.Memory, argument: str, bad: Any
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        three.recall("refund", scope=USER, **{argument: bad})
    assert len(refused.value.problems) == 1
    assert refused.value.problems[0].startswith(f"{argument}: ")
    assert "filters: filters" not in refused.value.problems[0]


def test_recall_when_several_arguments_are_bad_then_all_are_told_at_once(three: rb.Memory) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        three.recall(
            5, scope="x", reach="up", top=-1, filters=5, prefer=5, seeds="ana", as_of="then",
            now=datetime(2026, 1, 1), weights=[1],  # noqa: DTZ001
        )  # type: ignore[arg-type]  # fmt: skip
    named = [problem.partition(":")[0] for problem in refused.value.problems]
    assert named == [
        "query",
        "scope",
        "reach",
        "top",
        "filters",
        "prefer",
        "seeds",
        "as_of",
        "now",
        "weights",
    ]


@pytest.mark.parametrize("top", [-1, 1.0, True, "3"])
def test_recall_when_top_is_no_count_then_it_is_refused(three: rb.Memory, top: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="top: expected an integer from 0 to 1,000,000"):
        three.recall("refund", scope=USER, top=top)


@pytest.mark.parametrize(
    "seeds",
    [5, [5], [""], [rb.Seed("")], [rb.Seed("a", 0)], [rb.Seed("a", 2)], [rb.Seed(None)]],  # type: ignore[arg-type]
)
def test_recall_when_seeds_are_bad_then_they_are_refused(three: rb.Memory, seeds: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="seeds"):
        three.recall("refund", scope=USER, seeds=seeds)


PREFERENCES = """
[signals.structured]
evidence = "structured"
curve = "identity"
[signals.keyword]
evidence = "bm25"
curve = { saturation = { c = 6 } }
[score]
compose = "weighted_mean"
weights = { structured = 1.0, keyword = 0.0 }
"""


def test_prefer_when_given_then_the_satisfied_share_is_the_structured_signal(
    three: rb.Memory, profile: Profile
) -> None:
    prefer = {"lang": "en", "stars": {"gte": 3}, "layer": "semantic", "tags": ["z", "y"]}
    result = three.recall("refund", scope=USER, profile=profile(PREFERENCES), prefer=prefer)
    # a: lang, stars, layer, tags = 4/4; b: stars, layer = 2/4; c: none = 0/4, and still seen.
    assert [(m.memory.id, m.signals.structured) for m in result] == [
        ("a", 1.0),
        ("b", 0.5),
        ("c", 0.0),
    ]


def test_prefer_when_not_given_then_structured_is_not_applicable(
    three: rb.Memory, profile: Profile
) -> None:
    result = three.recall("refund", scope=USER, profile=profile(PREFERENCES), prefer={})
    assert {m.signals.structured for m in result} == {None}
    assert result.explain(0).rows[0].why == "not applicable"


# Expiry


def test_expiry_when_the_moment_has_come_then_the_memory_is_out(memory: rb.Memory) -> None:
    memory.remember("refund", scope=USER, id="m", expires=NOW + timedelta(days=1))
    day = timedelta(days=1)
    just_before = NOW + day - timedelta(seconds=1)
    assert memory.recall("refund", scope=USER, now=just_before).ids == ("m",)
    assert memory.recall("refund", scope=USER, now=NOW + day).ids == ()
    assert memory.recall("refund", scope=USER, now=NOW + day, include_expired=True).ids == ("m",)
    memory.remember("refund", scope=USER, id="m", at=NOW + timedelta(hours=1))
    assert memory.recall("refund", scope=USER, now=NOW + day).ids == ("m",)


def test_expiry_when_memories_are_expired_then_the_profile_never_sees_them(
    memory: rb.Memory,
) -> None:
    memory.remember("refund", scope=USER, id="m", expires="2026-01-01T00:00:00+00:00")
    result = memory.recall("refund", scope=USER)
    assert result.explain("m").verdict == "not visible to this query or unknown"
    assert result.trace.pool == 0
    assert memory.recall("", scope=USER).ids == ()


# As of


def test_as_of_when_revisions_followed_then_the_one_valid_then_answers(memory: rb.Memory) -> None:
    for month, text in ((1, "tea at three"), (2, "tea at four"), (3, "tea at five")):
        memory.remember(text, scope=USER, id="tea", at=datetime(2026, month, 1, tzinfo=UTC))
    texts = {
        day: [m.memory.text for m in memory.recall("tea", scope=USER, as_of=day)]
        for day in ("2025-12-31T00:00:00+00:00", "2026-01-01T00:00:00+00:00", "2026-02-28T23:00:00+00:00", "2030-01-01T00:00:00+00:00")
    }  # fmt: skip
    assert list(texts.values()) == [[], ["tea at three"], ["tea at four"], ["tea at five"]]
    assert memory.recall("five", scope=USER, as_of="2026-02-01T00:00:00+00:00").ids == ()


def test_as_of_when_given_then_ages_and_uses_are_those_of_then(
    opened: Open, profile: Profile
) -> None:
    times = iter([NOW - timedelta(days=20), NOW - timedelta(days=10), NOW, NOW, NOW, NOW])
    memory = opened(clock=lambda: next(times), profile="symfonic")
    memory.remember("refund", scope=USER, id="m")
    memory.reinforce("m", scope=USER)
    memory.reinforce("m", scope=USER)
    past = memory.recall("refund", scope=USER, as_of=NOW - timedelta(days=6))
    # Written 14 days earlier, half-life 7 days: .5² = .25; used once by then: ln 2 / ln 101.
    assert past[0].signals.recency == pytest.approx(0.25, abs=1e-12)
    assert past[0].signals.frequency == pytest.approx(0.15019, abs=1e-5)
    assert past[0].memory.uses == 1
    assert past.trace.as_of == past.trace.now == (NOW - timedelta(days=6)).timestamp()
    assert memory.recall("refund", scope=USER)[0].memory.uses == 2


def test_as_of_when_a_memory_had_not_expired_yet_then_it_is_seen(memory: rb.Memory) -> None:
    memory.remember(
        "refund",
        scope=USER,
        id="m",
        at="2026-01-01T00:00:00+00:00",
        expires="2026-02-01T00:00:00+00:00",
    )
    assert memory.recall("refund", scope=USER).ids == ()
    assert memory.recall("refund", scope=USER, as_of="2026-01-15T00:00:00+00:00").ids == ("m",)
    assert memory.recall("refund", scope=USER, as_of="2026-02-01T00:00:00+00:00").ids == ()


def test_as_of_when_something_is_written_in_between_then_the_next_answer_knows_it(
    memory: rb.Memory,
) -> None:
    past = "2026-02-01T00:00:00+00:00"
    assert memory.recall("refund", scope=USER, as_of=past).ids == ()
    memory.remember("refund", scope=USER, id="m", at="2026-01-01T00:00:00+00:00")
    assert memory.recall("refund", scope=USER, as_of=past).ids == ("m",)
    memory.forget("m", scope=USER)
    assert memory.recall("refund", scope=USER, as_of=past).ids == ()


def test_as_of_when_another_tenant_asks_of_the_same_time_then_it_gets_its_own(
    memory: rb.Memory,
) -> None:
    for tenant in ("acme", "globex"):
        memory.remember(f"refund of {tenant}", scope=f"tenant:{tenant}", id=tenant)
    asked = {tenant: memory.recall("refund", scope=f"tenant:{tenant}", as_of=NOW).ids for tenant in ("acme", "globex")}  # fmt: skip
    assert asked == {"acme": ("acme",), "globex": ("globex",)}
    both = memory.recall("refund", scope=["tenant:acme", "tenant:globex"], as_of=NOW)
    assert set(both.ids) == {"acme", "globex"}


def test_as_of_when_entities_are_linked_then_the_walk_goes_there_too(memory: rb.Memory) -> None:
    memory.remember("refund asked for", scope=USER, id="a", links=["Ana"])
    memory.remember("arrived broken", scope=USER, id="b", links=["order 12"])
    memory.link("Ana", "order 12", scope=USER)
    past, present = (memory.recall("refund", scope=USER, as_of=when) for when in (NOW, None))
    assert set(past.ids) == {"a", "b"}
    assert [m.plain() for m in past] == [m.plain() for m in present]


def test_as_of_when_a_store_of_the_users_own_is_there_then_it_answers_as_it_can(
    opened: Open, told: Callable[..., Any], profile: Profile
) -> None:
    text = """
    [signals.similarity]
    evidence = "cosine"
    curve = "clip"
    [score]
    compose = "weighted_mean"
    weights = { similarity = 1.0 }
    """
    store = told({"old": {"cosine": 0.5}, "new": {"cosine": 0.9}}, proposes=["old"])
    memory = opened(stores=[store], profile=profile(text))
    memory.remember("a", scope=USER, id="old", at="2026-01-01T00:00:00+00:00")
    memory.remember("b", scope=USER, id="new")
    past = memory.recall("x", scope=USER, as_of="2026-02-01T00:00:00+00:00")
    assert [(m.memory.id, m.score) for m in past] == [("old", 0.5)]
    store.proposes = ("old", "new")
    # It knows the present only; what did not exist then is no candidate, and nobody is betrayed.
    again = memory.recall("x", scope=USER, as_of="2026-02-01T00:00:00+00:00")
    assert again.ids == ("old",)


WORDS = ("refund", "policy", "order", "tea")


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Revisions in the order in which they became valid, a day apart at least."""
    days = draw(st.lists(st.integers(1, 40), min_size=1, max_size=10, unique=True).map(sorted))
    return [
        {
            "id": draw(st.sampled_from("abcd")),
            "scope": draw(st.sampled_from((TENANT, USER))),
            "text": " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))),
            "at": NOW - timedelta(days=60 - day),
            "vector": draw(st.sampled_from(([1, 0], [3, 4], [0, 1]))),
            "salience": draw(st.sampled_from((None, 0.5))),
            "links": draw(st.lists(st.sampled_from("abcdx"), max_size=2, unique=True)),
            "expires": draw(st.sampled_from((None, NOW - timedelta(days=30)))),
            "layer": draw(st.sampled_from(("semantic", "procedural"))),
            "key": draw(st.sampled_from((None, "k"))),
        }
        for day in days
    ]


@settings(max_examples=40)
@given(history=histories(), day=st.integers(0, 45), profile=st.sampled_from(("default", "symfonic", "convex", "generative-agents")))  # fmt: skip
def test_as_of_when_compared_with_a_memory_of_only_those_revisions_then_the_answer_is_the_same(
    history: list[dict[str, Any]], day: int, profile: str
) -> None:
    then = NOW - timedelta(days=60 - day)
    with rb.Memory.open(":memory:") as full, rb.Memory.open(":memory:") as partial:
        full.remember_many(history)
        partial.remember_many([revision for revision in history if revision["at"] <= then])
        for query in ("refund order", ""):
            asked: dict[str, Any] = {"scope": USER, "profile": profile}
            past = full.recall(query, as_of=then, **asked)
            present = partial.recall(query, now=then, **asked)
            assert [m.plain() for m in past] == [m.plain() for m in present]
            assert past.trace.sources == present.trace.sources


def test_as_of_when_a_link_is_newer_then_it_does_not_hold_yet(memory: rb.Memory) -> None:
    for identifier in ("a", "b"):
        memory.remember(f"text {identifier}", scope=USER, id=identifier, at="2026-01-01T00:00:00Z")
    memory.link(
        "a", "b", scope=USER, kind="equivalent", verified=True, at="2026-02-01T00:00:00Z"
    )  # fmt: skip
    before = memory.recall("text", scope=USER, as_of="2026-01-15T00:00:00Z")
    after = memory.recall("text", scope=USER, as_of="2026-02-15T00:00:00Z")
    assert sorted(before.ids) == ["a", "b"]
    assert after.ids == ("a",)


def test_link_when_its_time_is_naive_then_refused(memory: rb.Memory) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"links\[0\]\.at: expected a datetime with a time"
    ):
        memory.link("a", "b", scope=USER, at="2026-02-01T00:00:00")

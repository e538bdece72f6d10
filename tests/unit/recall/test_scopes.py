"""Who sees what from where, and how distance folds into the order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError

Open = Callable[..., rb.Memory]
Told = Callable[..., Any]
Profile = Callable[..., rb.RankingProfile]
TENANT, USER, SESSION = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:7/session:9"

KEYWORDS = """
[pool]
size = 20
max = 60
[signals.keyword]
evidence = "bm25"
curve = { saturation = { c = 6 } }
[score]
compose = "weighted_mean"
weights = { keyword = 1.0 }
"""


def blend(mode: str, **more: object) -> str:
    return (
        KEYWORDS + f'[scope]\nmode = "{mode}"\n' + "".join(f"{k} = {v}\n" for k, v in more.items())
    )


def crowd(memory: rb.Memory) -> None:
    """500 relevant facts of the tenant, 5 less relevant notes of the session."""
    memory.remember_many(
        {"text": f"refund policy of region {n}", "scope": TENANT, "id": f"fact{n:03}"}
        for n in range(500)
    )
    memory.remember_many(
        {
            "text": f"in passing Ana wrote us a long note number {n} about some refund or other",
            "scope": SESSION,
            "id": f"note{n}",
        }
        for n in range(5)
    )


def test_backfill_when_an_ancestor_is_crowded_then_the_own_notes_come_first(
    opened: Open, profile: Profile
) -> None:
    memory = opened()
    crowd(memory)
    off, on, backfill = (
        memory.recall("refund policy", scope=SESSION, profile=profile(blend(mode), mode), top=10)
        for mode in ("off", "blend", "backfill")
    )
    # Off: 20 proposals for all levels together, and the facts fill them.
    assert not any(identifier.startswith("note") for identifier in off.ids)
    assert off.trace.pool == 20
    # On: every level proposes for itself, so the notes are candidates; the gate halves twice.
    assert on.trace.pool == backfill.trace.pool == 25
    assert {match.gate for match in on if match.distance == 2} == {0.25}
    # Backfill: all of the session, best first, then the best of the tenant.
    assert sorted(backfill.ids[:5]) == [f"note{n}" for n in range(5)]
    assert [match.distance for match in backfill] == [0] * 5 + [2] * 5
    assert all(match.rank_score >= 0.5 for match in backfill[:5])
    assert all(match.rank_score < 0.5 for match in backfill[5:])
    assert backfill.ids[5:] == off.ids[:5]


def test_scope_blend_when_the_session_has_few_notes_then_backfill_fills_up_from_above(
    opened: Open, profile: Profile
) -> None:
    memory = opened(profile=profile(blend("backfill")))
    for scope, identifier in ((TENANT, "t"), (USER, "u"), (SESSION, "s")):
        memory.remember("refund policy", scope=scope, id=identifier, metadata={"at": identifier})
        memory.remember(f"refund policy of {identifier}", scope=scope, id=f"{identifier}2")
    result = memory.recall("refund policy", scope=SESSION)
    assert [match.distance for match in result] == [0, 0, 1, 2]
    # "refund policy" thrice is one memory, the session's; the gates are 1, 1, .5 and .25.
    assert result.ids == ("s", "s2", "u2", "t2")
    assert [match.gate for match in result] == [1.0, 1.0, 0.5, 0.25]
    assert {i: [s.level for s in result.trace.sources[i]] for i in ("s2", "u2", "t2")} == {
        "s2": [0],
        "u2": [1],
        "t2": [2],
    }


def test_scope_blend_when_it_blends_then_rank_score_is_score_times_gate(
    opened: Open, profile: Profile
) -> None:
    memory = opened(profile=profile(blend("blend", half_life_levels=2.0, floor=0.2)))
    memory.remember("refund", scope=TENANT, id="t")
    memory.remember("refund policy and more", scope=SESSION, id="s")
    result = {match.memory.id: match for match in memory.recall("refund", scope=SESSION)}
    # .2 + .8 · .5^(2/2) = .6
    assert result["t"].gate == pytest.approx(0.6, abs=1e-15)
    assert result["t"].rank_score == result["t"].score * result["t"].gate
    assert result["s"].rank_score == result["s"].score


def test_floors_when_distance_discounts_then_they_act_before_it(
    opened: Open, told: Told, profile: Profile
) -> None:
    text = """
    [signals.similarity]
    evidence = "cosine"
    curve = "clip"
    [score]
    compose = "weighted_mean"
    weights = { similarity = 1.0 }
    [floors]
    min_score = 0.5
    [scope]
    mode = "blend"
    """
    says = {"far": {"cosine": 0.5}, "near": {"cosine": 0.4999}}
    memory = opened(stores=[told(says, proposes=["far", "near"])], profile=profile(text))
    memory.remember("far", scope=TENANT, id="far")
    memory.remember("near", scope=SESSION, id="near")
    result = memory.recall("x", scope=SESSION)
    # .5 passes the floor of .5 although .5 · .25 = .125 is what it is ranked by.
    assert [(match.memory.id, match.rank_score) for match in result] == [("far", 0.125)]
    assert result.explain("near").verdict == "under the floor of 'score': 0.4999, needed 0.5"


def test_order_when_rank_scores_tie_then_distance_then_ties_of_the_profile_then_id_decide(
    opened: Open, told: Told, profile: Profile
) -> None:
    text = """
    [signals.similarity]
    evidence = "cosine"
    curve = "clip"
    [signals.salience]
    evidence = "salience"
    curve = "identity"
    [score]
    compose = "weighted_mean"
    weights = { similarity = 1.0 }
    [order]
    ties = ["salience"]
    [scope]
    mode = "blend"
    floor = 1.0
    """
    ids = ["z", "b", "a", "bare", "up"]
    says = {identifier: {"cosine": 0.5} for identifier in ids}
    memory = opened(stores=[told(says, proposes=ids)], profile=profile(text))
    for identifier, scope, salience in (
        ("z", USER, 0.9), ("b", USER, 0.2), ("a", USER, 0.2), ("bare", USER, None), ("up", TENANT, 1.0),
    ):  # fmt: skip
        memory.remember(f"text {identifier}", scope=scope, id=identifier, salience=salience)
    result = memory.recall("x", scope=USER)
    assert len({match.rank_score for match in result}) == 1
    assert result.ids == ("z", "a", "b", "bare", "up")


@pytest.mark.parametrize("top", [0, 1, 3])
def test_top_when_given_then_at_most_so_many_are_returned(memory: rb.Memory, top: int) -> None:
    for n in range(5):
        memory.remember(f"refund {n}", scope=USER)
    assert len(memory.recall("refund", scope=USER, top=top)) == top


def test_top_when_it_is_0_then_the_explanation_says_that_nothing_was_asked_for(
    memory: rb.Memory,
) -> None:
    memory.remember("refund", scope=USER, id="m")
    result = memory.recall("refund", scope=USER, top=0)
    assert result.ids == ()
    assert result.explain("m").verdict == "out-ranked: place 1, nothing was asked for"


def test_top_when_it_is_none_then_the_profile_says_how_many_else_ten(
    opened: Open, profile: Profile
) -> None:
    memory = opened()
    for n in range(15):
        memory.remember(f"refund {n}", scope=USER)
    assert len(memory.recall("refund", scope=USER)) == 10
    assert len(memory.recall("refund", scope=USER, top=None)) == 10
    three = profile(KEYWORDS + "[select]\ntop = 3\n")
    assert len(memory.recall("refund", scope=USER, profile=three)) == 3
    assert len(memory.recall("refund", scope=USER, profile=three, top=12)) == 12
    none = profile(KEYWORDS + "[select]\ntop = 0\n", "none")
    assert len(memory.recall("refund", scope=USER, profile=none)) == 0


def test_recall_when_memories_were_written_in_another_order_then_the_answer_is_the_same(
    opened: Open, tmp_path: Path
) -> None:
    items = [
        {
            "text": f"refund {word}", "scope": scope, "id": f"{word}{level}", "vector": [1 + level, n],
            "salience": 0.5 if n % 2 else None, "links": [f"{word}{(level + 1) % 3}"],
            "at": "2026-01-01T00:00:00+00:00",
        }
        for n, word in enumerate(("policy", "order", "policy order"))
        for level, scope in enumerate((TENANT, USER, SESSION))
    ]  # fmt: skip
    answers = set()
    for order in range(4):
        shuffled = random.Random(order).sample(items, len(items))
        path = tmp_path / f"{order}.db"
        with opened(path) as memory:
            if order % 2:
                memory.remember_many(shuffled)
            else:
                for item in shuffled:
                    memory.remember(**item)  # type: ignore[arg-type]
            answers |= {
                (name, memory.recall("refund order", scope=SESSION, profile=name).ids)
                for name in rb.profile_names()
            }
        again = opened(path)
        answers |= {
            (name, again.recall("refund order", scope=SESSION, profile=name).ids)
            for name in rb.profile_names()
        }
    assert len(answers) == len(rb.profile_names())


# Several scopes, look-alikes, subtrees


def test_recall_when_several_scopes_are_named_then_their_union_is_seen_at_the_least_distance(
    memory: rb.Memory,
) -> None:
    other = "tenant:acme/user:8"
    memory.remember("refund of seven", scope=USER, id="7")
    memory.remember("refund of eight", scope=other, id="8")
    memory.remember("refund of nine", scope="tenant:acme/user:9", id="9")
    memory.remember("refund of all", scope=TENANT, id="all")
    result = memory.recall("refund", scope=[SESSION, other])
    assert {m.memory.id: m.distance for m in result} == {"7": 1, "8": 0, "all": 1}
    assert memory.recall("refund", scope=[SESSION, TENANT]).trace.scopes == (SESSION, TENANT)
    distances = {m.memory.id: m.distance for m in memory.recall("refund", scope=[SESSION, TENANT])}
    assert distances == {"7": 1, "all": 0}


def test_recall_when_scopes_of_two_tenants_are_named_then_both_are_seen(memory: rb.Memory) -> None:
    memory.remember("refund here", scope=TENANT, id="here")
    memory.remember("refund there", scope="tenant:globex", id="there")
    assert set(memory.recall("refund", scope=[TENANT, "tenant:globex"]).ids) == {"here", "there"}
    assert memory.recall("refund", scope=TENANT).ids == ("here",)


def test_recall_when_scopes_repeat_then_they_count_once(memory: rb.Memory) -> None:
    memory.remember("refund", scope=USER, id="m")
    result = memory.recall("refund", scope=[USER, USER, rb.Scope.parse(USER)])
    assert result.trace.scopes == (USER,)


@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        ([], "scope: expected at least one scope"),
        (None, "scope: expected text such as"),
        (5, "scope: expected text such as"),
        (["tenant:acme", "x"], "scope[1]: level 1: expected kind:id"),
    ],
)
def test_recall_when_the_scope_is_bad_then_it_is_named(
    memory: rb.Memory, scope: Any, problem: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        memory.recall("refund", scope=scope)
    assert [p for p in refused.value.problems if not p.startswith(problem)] == []


def test_recall_when_scopes_look_alike_then_none_sees_the_other(memory: rb.Memory) -> None:
    alike = ["a:1", "a:10", "a:1%2F", "a:1%252F", "A:1", "a:١", "a:1/b:1", "a:1/b:10", "a:１"]
    for number, scope in enumerate(alike):
        memory.remember(f"refund {number}", scope=scope, id=str(number))
    for number, scope in enumerate(alike):
        seen = set(memory.recall("refund", scope=scope).ids)
        assert seen == ({"0", str(number)} if scope.startswith("a:1/") else {str(number)})


def test_recall_when_a_nearer_memory_has_the_same_id_then_it_alone_is_seen(
    memory: rb.Memory,
) -> None:
    memory.remember("refund by bank transfer", scope=TENANT, id="m", vector=[1, 0])
    memory.remember("coffee in the morning", scope=USER, id="m", vector=[0, 1])
    assert memory.recall("refund", scope=USER).ids == ()
    assert memory.recall("coffee", scope=USER)[0].memory.text == "coffee in the morning"
    assert memory.recall("refund", scope=TENANT)[0].distance == 0
    # Filters narrow the view of this query, so what they leave out hides nothing.
    memory.remember("old", scope=USER, id="m", expires="2026-01-01T00:00:00+00:00")
    assert memory.recall("refund", scope=USER)[0].memory.text == "refund by bank transfer"


def test_subtree_when_it_is_not_allowed_then_it_is_refused(opened: Open, memory: rb.Memory) -> None:
    memory.remember("refund", scope=SESSION, id="below")
    with pytest.raises(InvalidArgumentError, match="allow_subtree=True"):
        memory.recall("refund", scope=TENANT, reach="subtree")
    with pytest.raises(InvalidArgumentError, match="expected 'ancestors' or 'subtree'"):
        memory.recall("refund", scope=TENANT, reach="everything")


def test_subtree_when_it_is_allowed_then_what_lies_below_is_seen_at_distance_0(
    opened: Open,
) -> None:
    memory = opened(allow_subtree=True)
    memory.remember("refund of all", scope=TENANT, id="up")
    memory.remember("refund of the user", scope=USER, id="here")
    memory.remember("refund of the session", scope=SESSION, id="below")
    memory.remember("refund of another", scope="tenant:acme/user:70", id="other")
    result = memory.recall("refund", scope=USER, reach="subtree")
    assert {m.memory.id: m.distance for m in result} == {"up": 1, "here": 0, "below": 0}
    assert set(memory.recall("refund", scope=USER).ids) == {"up", "here"}
    assert result.trace.reach == "subtree"


# Layers


def test_layers_when_tip_only_then_only_its_own_scope_sees_it(memory: rb.Memory) -> None:
    memory.remember("refund draft", scope=USER, id="draft", layer="working")
    assert memory.recall("refund", scope=USER).ids == ("draft",)
    assert memory.recall("refund", scope=SESSION).ids == ()
    assert memory.recall("refund", scope=[SESSION, USER]).ids == ("draft",)


def test_layers_when_shadow_then_the_nearest_of_a_key_hides_the_others(memory: rb.Memory) -> None:
    memory.remember("refund the old way", scope=TENANT, id="t", layer="procedural", key="refund")
    memory.remember("refund the new way", scope=USER, id="u", layer="procedural", key="refund")
    memory.remember("refund of orders", scope=TENANT, id="o", layer="procedural", key="orders")
    memory.remember("refund anyhow", scope=TENANT, id="free", layer="procedural")
    memory.remember("refund facts", scope=TENANT, id="fact", key="refund")
    assert set(memory.recall("refund", scope=SESSION).ids) == {"u", "o", "free", "fact"}
    assert set(memory.recall("refund", scope=TENANT).ids) == {"t", "o", "free", "fact"}
    assert memory.recall("refund", scope=USER).explain("t").verdict == (
        "not visible to this query or unknown"
    )
    # A filter narrows what is seen, it lifts no shadow.
    assert memory.recall("refund", scope=USER, filters={"layer": "procedural"}, top=9).ids != ()
    assert (
        "t"
        not in memory.recall(
            "old", scope=USER, filters={"at": {"lte": "2027-01-01T00:00:00+00:00"}}
        ).ids
    )


def test_layers_when_the_user_names_their_own_then_their_policy_holds(opened: Open) -> None:
    memory = opened(layers={"draft": rb.LayerPolicy("tip_only"), "working": rb.LayerPolicy()})
    memory.remember("refund draft", scope=USER, id="draft", layer="draft")
    memory.remember("refund work", scope=USER, id="work", layer="working")
    memory.remember("refund talk", scope=USER, id="talk", layer="nobody described it")
    assert set(memory.recall("refund", scope=SESSION).ids) == {"work", "talk"}


def test_layers_when_only_keywords_are_permitted_then_a_vector_neither_proposes_nor_scores(
    opened: Open,
) -> None:
    embedder = rb.embedders.from_callable(
        lambda texts: [[1.0, 0.0]] * len(texts), name="east", dimension=2
    )
    layers = {"notes": rb.LayerPolicy(permitted=["bm25", "coverage"])}
    memory = opened(embedder=embedder, layers=layers)
    memory.remember("nothing in common", scope=USER, id="vector only", layer="notes")
    memory.remember("refund policy", scope=USER, id="words", layer="notes", salience=1.0)
    memory.remember("something else", scope=USER, id="open")
    result = memory.recall("refund", scope=USER)
    assert set(result.ids) == {"words", "open"}
    words = next(match for match in result if match.memory.id == "words")
    assert dict(words.signals.present()) == {"keyword": words.score}
    assert "not proposed" in result.explain("vector only").verdict
    assert {s.store for s in result.trace.sources["words"]} == {"keywords"}
    # Blank: salience and activity may not propose it either.
    assert memory.recall("", scope=USER).ids == ("open",)


def test_layers_when_half_of_what_a_store_says_is_permitted_then_that_half_counts(
    opened: Open, profile: Profile
) -> None:
    text = """
    [signals.overlap]
    evidence = "coverage"
    curve = "identity"
    [signals.keyword]
    evidence = "bm25"
    curve = { saturation = { c = 6 } }
    [score]
    compose = "weighted_mean"
    weights = { overlap = 0.5, keyword = 0.5 }
    """
    layers = {"notes": rb.LayerPolicy(permitted=["coverage"])}
    memory = opened(layers=layers, profile=profile(text))
    memory.remember("refund policy", scope=USER, id="m", layer="notes")
    result = memory.recall("refund order", scope=USER)
    assert dict(result[0].signals.present()) == {"overlap": 0.5}
    assert result.explain("m").rows[1].why == "not permitted"


def test_layers_when_a_store_is_permitted_by_name_then_that_one_only(
    opened: Open, told: Told, profile: Profile
) -> None:
    text = """
    [signals.similarity]
    evidence = "cosine"
    curve = "clip"
    [score]
    compose = "weighted_mean"
    weights = { similarity = 1.0 }
    """
    stores = [
        told({"m": {"cosine": 0.25}}, name="low", proposes=["m"]),
        told({"m": {"cosine": 0.75}}, name="high", proposes=["m"]),
    ]
    layers = {"notes": rb.LayerPolicy(permitted=["low.cosine"])}
    memory = opened(stores=stores, layers=layers, profile=profile(text))
    memory.remember("text", scope=USER, id="m", layer="notes")
    result = memory.recall("x", scope=USER)
    assert result[0].score == 0.25
    assert [s.store for s in result.trace.sources["m"]] == ["low"]


def test_statistics_when_another_tenant_writes_then_no_score_moves(opened: Open) -> None:
    for statistics in ("root", "visible"):
        memory = opened(statistics=statistics)
        memory.remember("refund policy", scope=USER, id="m")
        memory.remember("order policy", scope=USER, id="n")
        before = memory.recall("refund policy", scope=USER)
        for n in range(20):
            memory.remember(f"refund refund {n}", scope="tenant:globex/user:7")
        after = memory.recall("refund policy", scope=USER)
        assert [m.plain() for m in before] == [m.plain() for m in after]
        memory.remember("refund", scope=TENANT)
        assert memory.recall("refund policy", scope=USER)[0].score != before[0].score


def test_statistics_when_taken_over_the_store_then_others_count(opened: Open) -> None:
    memory = opened(statistics="store")
    memory.remember("refund policy", scope=USER, id="m")
    before = memory.recall("refund", scope=USER)[0].score
    memory.remember_many({"text": f"tea {n}", "scope": "tenant:globex"} for n in range(9))
    assert memory.recall("refund", scope=USER)[0].score > before


def test_recall_when_scopes_come_in_another_order_then_the_answer_is_the_same(
    memory: rb.Memory,
) -> None:
    scopes = [SESSION, "tenant:acme/user:8", "tenant:globex"]
    for n, scope in enumerate([TENANT, USER, *scopes]):
        memory.remember(f"refund policy {n}", scope=scope, id=f"m{n}")
        memory.remember("refund", scope=scope, id="shared")
    answers = {
        memory.recall("refund policy", scope=order, profile="symfonic").ids
        for order in itertools.permutations(scopes)
    }
    assert len(answers) == 1

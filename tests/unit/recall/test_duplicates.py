"""Equivalent memories collapse, similar ones are penalized or spread, and caps keep memories whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.recall import group_equivalents

Open = Callable[..., rb.Memory]
Told = Callable[..., Any]
Profile = Callable[..., rb.RankingProfile]
TENANT, USER, SESSION = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:7/session:9"
EAST = from_callable(lambda texts: [[1.0, 0.0]] * len(texts), name="east", dimension=2)

TOLD = """
[signals.similarity]
evidence = "cosine"
curve = "clip"
[signals.salience]
evidence = "salience"
curve = "identity"
[score]
compose = "weighted_mean"
weights = { similarity = 0.5, salience = 0.5 }
[select]
top = 9
"""


def test_duplicates_when_only_spelling_differs_then_one_stands_for_all(memory: rb.Memory) -> None:
    for number, text in enumerate(("Refund  policy", "refund policy", "ＲＥＦＵＮＤ policy\n")):
        memory.remember(text, scope=USER, id=f"m{number}")
    memory.remember("refund policy!", scope=USER, id="other")
    result = memory.recall("refund policy", scope=USER)
    assert sorted(result.ids) == ["m0", "other"]
    for identifier in ("m1", "m2"):
        explained = result.explain(identifier)
        assert explained.verdict == "duplicate of 'm0', which stands for both"
        assert (explained.shown, explained.score, explained.rows) == (False, None, ())


def test_duplicates_when_at_several_scopes_then_the_nearest_represents_them(
    memory: rb.Memory,
) -> None:
    for scope, identifier in ((TENANT, "a"), (SESSION, "z"), (SESSION, "y"), (USER, "b")):
        memory.remember("refund policy", scope=scope, id=identifier)
    result = memory.recall("refund", scope=SESSION)
    assert result.ids == ("y",)
    assert result[0].distance == 0
    assert memory.recall("refund", scope=USER).ids == ("b",)


def test_duplicates_when_they_collapse_then_relevance_is_the_strongest_and_standing_ones_own(
    opened: Open, told: Told, profile: Profile
) -> None:
    says = {"near": {"cosine": 0.25}, "far": {"cosine": 0.75}}
    memory = opened(stores=[told(says, proposes=["near", "far"])], profile=profile(TOLD))
    memory.remember("refund", scope=TENANT, id="far", salience=1.0)
    memory.remember("refund", scope=USER, id="near", salience=0.5)
    result = memory.recall("x", scope=USER)
    assert result.ids == ("near",)
    assert dict(result[0].signals.present()) == {"salience": 0.5, "similarity": 0.75}
    assert result[0].score == 0.5 * 0.75 + 0.5 * 0.5
    rows = {row.name: row for row in result.explain("near").rows}
    assert rows["similarity"].evidence == "cosine 0.750 (from 'far')"
    assert rows["salience"].evidence == "salience 0.500"


def test_duplicates_when_the_representative_cannot_answer_then_the_others_answer_for_it(
    opened: Open, told: Told, profile: Profile
) -> None:
    store = told({"far": {"cosine": 0.75}}, proposes=["near", "far"])
    memory = opened(stores=[store], profile=profile(TOLD))
    memory.remember("refund", scope=TENANT, id="far", salience=1.0)
    memory.remember("refund", scope=USER, id="near")
    result = memory.recall("x", scope=USER)
    # Salience is no relevance: the far one's is not lent.
    assert dict(result[0].signals.present()) == {"similarity": 0.75}


def test_duplicates_when_only_one_is_proposed_then_it_stands_for_itself(
    opened: Open, told: Told, profile: Profile
) -> None:
    store = told({"far": {"cosine": 0.75}}, proposes=["far"])
    memory = opened(stores=[store], profile=profile(TOLD))
    memory.remember("refund", scope=TENANT, id="far")
    memory.remember("refund", scope=USER, id="near")
    assert memory.recall("x", scope=USER).ids == ("far",)


def test_duplicates_when_linked_as_verified_equivalents_then_they_collapse(
    memory: rb.Memory,
) -> None:
    same = rb.Link("b", "equivalent", verified=True)
    memory.remember("refund policy", scope=USER, id="a", links=[same])
    memory.remember("how we give money back: a refund", scope=USER, id="b")
    assert memory.recall("refund", scope=USER).ids == ("a",)
    memory.remember("refund policy", scope=USER, id="a")
    assert set(memory.recall("refund", scope=USER).ids) == {"a", "b"}


@pytest.mark.parametrize(
    ("kind", "verified"), [("equivalent", False), ("related", True), ("same", True)]
)
def test_duplicates_when_the_link_is_unverified_or_of_another_kind_then_nothing_collapses(
    memory: rb.Memory, kind: str, verified: bool
) -> None:
    memory.remember(
        "refund policy", scope=USER, id="a", links=[rb.Link("b", kind, verified=verified)]
    )
    memory.remember("how we give money back: a refund", scope=USER, id="b")
    memory.link("b", "a", scope=USER, kind=kind, verified=verified)
    assert set(memory.recall("refund", scope=USER).ids) == {"a", "b"}


def test_duplicates_when_linked_by_an_edge_then_only_where_its_scope_is_seen(
    memory: rb.Memory,
) -> None:
    memory.remember("refund policy", scope=TENANT, id="a")
    memory.remember("how we give money back: a refund", scope=TENANT, id="b")
    memory.link("b", "a", scope=USER, kind="equivalent", verified=True)
    assert memory.recall("refund", scope=SESSION).ids == ("a",)
    assert set(memory.recall("refund", scope="tenant:acme/user:8").ids) == {"a", "b"}
    assert set(memory.recall("refund", scope=TENANT).ids) == {"a", "b"}
    memory.unlink("b", "a", scope=USER, kind="equivalent")
    assert set(memory.recall("refund", scope=SESSION).ids) == {"a", "b"}


def test_duplicates_when_chained_then_the_whole_chain_is_one(memory: rb.Memory) -> None:
    memory.remember(
        "refund one", scope=USER, id="a", links=[rb.Link("b", "equivalent", verified=True)]
    )
    memory.remember("refund two", scope=USER, id="b")
    memory.remember("Refund TWO", scope=USER, id="c")
    memory.remember(
        "refund three", scope=USER, id="d", links=[rb.Link("c", "equivalent", verified=True)]
    )
    assert memory.recall("refund", scope=USER).ids == ("a",)


def test_duplicates_when_a_file_is_reopened_then_links_collapse_as_before(
    opened: Open, tmp_path: Any
) -> None:
    with opened(tmp_path / "m.db") as memory:
        memory.remember(
            "refund one", scope=USER, id="a", links=[rb.Link("b", "equivalent", verified=True)]
        )
        memory.remember("refund two", scope=USER, id="b")
        memory.remember("refund three", scope=USER, id="c")
        memory.link("c", "b", scope=USER, kind="equivalent", verified=True)
    assert opened(tmp_path / "m.db").recall("refund", scope=USER).ids == ("a",)


def test_duplicates_when_embeddings_are_equal_then_nothing_collapses(opened: Open) -> None:
    memory = opened(embedder=EAST)
    memory.remember("refunds are allowed", scope=USER, id="yes", vector=[1, 0])
    memory.remember("refunds are not allowed", scope=USER, id="no", vector=[1, 0])
    assert set(memory.recall("refunds", scope=USER).ids) == {"yes", "no"}


PENALTY = """
[signals.similarity]
evidence = "told.cosine"
curve = "clip"
[score]
compose = "weighted_mean"
weights = { similarity = 1.0 }
[select]
"""


def four(opened: Open, told: Told, recipe: rb.RankingProfile, **options: Any) -> rb.Memory:
    """Four memories told to score .9, .8, .7 and .6; b points like a, c across, d has no vector."""
    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    says = {identifier: {"cosine": score} for identifier, score in scores.items()}
    store = told(says, proposes=list(scores))
    memory = opened(stores=[*rb.default_stores(), store], profile=recipe, **options)
    vectors = {"a": [1, 0], "b": [1, 0], "c": [0, 1], "d": None}
    for identifier, vector in vectors.items():
        memory.remember(f"text of {identifier}", scope=USER, id=identifier, vector=vector)
    return memory


def test_duplicate_penalty_when_something_better_is_alike_then_the_score_is_lowered(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = four(opened, told, profile(PENALTY + "duplicate_penalty = 0.5"))
    result = memory.recall("x", scope=USER)
    scores = {match.memory.id: match.score for match in result}
    # b: .8 · (1 − .5 · 1) = .4; c lies across (cosine 0); d has no vector: neither is penalized.
    assert scores == pytest.approx({"a": 0.9, "c": 0.7, "d": 0.6, "b": 0.4}, abs=1e-7)
    assert result.ids == ("a", "c", "d", "b")
    assert result[3].contributions["duplicate_penalty"] == pytest.approx(-0.4, abs=1e-7)
    assert sum(result[3].contributions.values()) == pytest.approx(result[3].score, abs=1e-12)
    assert result.explain("b").rows[-1].name == "duplicate_penalty"
    assert "duplicate_penalty" not in result[0].contributions


def test_duplicate_penalty_when_the_layer_permits_no_cosine_then_its_vector_is_not_read(
    opened: Open, told: Told, profile: Profile
) -> None:
    recipe = profile(PENALTY + "duplicate_penalty = 0.5")
    layers = {"semantic": rb.LayerPolicy(permitted=["told.cosine", "bm25"])}
    memory = four(opened, told, recipe, layers=layers)
    scores = {m.memory.id: m.score for m in memory.recall("x", scope=USER)}
    assert scores == {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}


def test_diversity_when_asked_for_then_what_is_unlike_the_first_comes_second(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = four(opened, told, profile(PENALTY + "diversity = 0.5"))
    result = memory.recall("x", scope=USER)
    # After a: b .5·.8 − .5·1 = −.1, c .5·.7 − 0 = .35, d .5·.6 = .3; then d, then b.
    assert result.ids == ("a", "c", "d", "b")
    assert [match.rank for match in result] == [1, 2, 3, 4]
    assert [match.score for match in result] == [0.9, 0.7, 0.6, 0.8]
    two = memory.recall("x", scope=USER, top=2)
    assert two.ids == ("a", "c")
    assert memory.recall("x", scope=USER, top=0).ids == ()


def test_diversity_when_it_is_off_then_the_order_is_by_score(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = four(opened, told, profile(PENALTY + "diversity = 0.0"))
    assert memory.recall("x", scope=USER).ids == ("a", "b", "c", "d")


def test_token_cap_when_a_memory_does_not_fit_then_it_is_passed_over_whole(
    opened: Open, told: Told, profile: Profile
) -> None:
    lengths = {"text of a": 4, "text of b": 7, "text of c": 3, "text of d": 3}
    recipe = profile(PENALTY + "max_tokens = 10")
    memory = four(opened, told, recipe, token_counter=lengths.__getitem__)
    result = memory.recall("x", scope=USER)
    # a takes 4 of 10, b needs 7 of the 6 left, c and d take 3 each.
    assert result.ids == ("a", "c", "d")
    assert result.explain("b").verdict == "token cap: 7 tokens, 6 left"
    assert (
        memory.recall("x", scope=USER, top=2).explain("d").verdict.startswith("out-ranked: place 4")
    )


def test_token_cap_when_no_counter_is_given_then_four_characters_are_a_token(
    opened: Open, told: Told, profile: Profile
) -> None:
    # "text of a" has 9 characters: 3 tokens each.
    memory = four(opened, told, profile(PENALTY + "max_tokens = 8"))
    assert memory.recall("x", scope=USER).ids == ("a", "b")


def test_token_cap_when_it_is_0_then_nothing_is_returned(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = four(opened, told, profile(PENALTY + "max_tokens = 0"))
    assert memory.recall("x", scope=USER).ids == ()


@settings(max_examples=100)
@given(
    st.integers(0, 7).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 3), min_size=n, max_size=n),
            st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=5),
        )
    )
)
def test_group_equivalents_when_compared_with_reachability_then_the_same(
    drawn: tuple[list[int], list[tuple[int, int]]],
) -> None:
    digests, pairs = drawn
    n = len(digests)
    joined = {(a, b) for a in range(n) for b in range(n) if digests[a] == digests[b]}
    joined |= {(a, b) for a, b in pairs if max(a, b) < n} | {
        (b, a) for a, b in pairs if max(a, b) < n
    }
    for middle in range(n):
        joined |= {
            (a, b) for a in range(n) for b in range(n) if {(a, middle), (middle, b)} <= joined
        }
    labels = group_equivalents(
        [str(i) for i in range(n)], digests, [(str(a), str(b)) for a, b in pairs]
    )
    assert labels.tolist() == [min(b for b in range(n) if (a, b) in joined) for a in range(n)]

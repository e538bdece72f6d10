"""Propose, then observe: every store answers for everything any store proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.recall import stored_embedder

Open = Callable[..., rb.Memory]
Told = Callable[..., Any]
Profile = Callable[..., rb.RankingProfile]
USER = "tenant:acme/user:7"

# A pool of one: each store proposes its single best memory.
NARROW = """
[pool]
size = 1
max = 10
[signals.keyword]
evidence = "bm25"
curve = { saturation = { c = 6 } }
[signals.similarity]
evidence = "cosine"
curve = "clip"
[score]
compose = "weighted_mean"
weights = { keyword = 0.5, similarity = 0.5 }
"""


def east(texts: Sequence[str]) -> np.ndarray:
    """Every question points east."""
    return np.array([[1.0, 0.0]] * len(texts))


EAST = from_callable(east, name="east", dimension=2)


def reason(result: rb.Recall, identifier: str, signal: str) -> str:
    rows = result.explain(identifier).rows
    return next(row.why for row in rows if row.name == signal)


def test_recall_when_only_keywords_propose_a_memory_then_it_has_its_cosine_all_the_same(
    opened: Open, profile: Profile
) -> None:
    memory = opened(embedder=EAST, profile=profile(NARROW))
    memory.remember("nothing in common", scope=USER, id="near", vector=[1, 0])
    memory.remember("refund policy", scope=USER, id="words", vector=[3, 4])
    memory.remember("refund policy and much else besides", scope=USER, id="third", vector=[0, 1])
    result = memory.recall("refund policy", scope=USER)
    assert {i: [s.store for s in result.trace.sources[i]] for i in result.trace.sources} == {
        "words": ["keywords"],
        "near": ["vectors"],
    }
    signals = {match.memory.id: match.signals for match in result}
    assert signals["words"].similarity == pytest.approx(0.6)  # (3, 4)/5 · (1, 0)
    # … and vice versa: the vectors' proposal has a keyword score, which is an observed 0.
    assert signals["near"].keyword == 0.0
    assert result.trace.proposed == {"vectors": 1, "keywords": 1}
    assert result.trace.pool == 2


def test_recall_when_a_memory_has_no_vector_then_similarity_is_absent_not_zero(
    opened: Open, profile: Profile
) -> None:
    memory = opened(embedder=EAST, profile=profile(NARROW))
    memory.remember_many([{"text": "refund policy", "scope": USER, "id": "bare"}], embed=False)
    memory.remember("unlike", scope=USER, id="other", vector=[0, 1])
    result = memory.recall("refund policy", scope=USER)
    assert result[0].memory.id == "bare"
    assert result[0].signals.similarity is None
    # Its keyword signal alone makes the score: no half of it is lost to the missing one.
    assert result[0].score == result[0].signals.keyword
    assert reason(result, "bare", "similarity") == "not applicable"


def test_recall_when_there_is_no_embedder_then_similarity_is_not_applicable(
    opened: Open, profile: Profile
) -> None:
    memory = opened(profile=profile(NARROW))
    memory.remember("refund policy", scope=USER, id="m", vector=[1, 0])
    result = memory.recall("refund", scope=USER)
    assert result[0].signals.similarity is None
    assert reason(result, "m", "similarity") == "not applicable"
    assert not result.degraded


def test_recall_when_no_store_emits_an_evidence_then_the_reason_says_so(
    opened: Open, profile: Profile
) -> None:
    memory = opened(stores=[rb.default_stores()[1]], profile=profile(NARROW))
    memory.remember("refund policy", scope=USER, id="m")
    result = memory.recall("refund", scope=USER)
    assert reason(result, "m", "similarity") == "not emitted"


def test_recall_when_a_store_leaves_out_a_column_it_promised_then_it_is_not_emitted(
    opened: Open, told: Told, profile: Profile
) -> None:
    class Half(type(told())):  # type: ignore[misc]
        def observe(self, query: Any, ids: Sequence[str]) -> rb.Observation:
            return rb.Observation({})

    store = Half({}, emits=("cosine",), name="half", proposes=["m"])
    memory = opened(stores=[store, rb.default_stores()[1]], profile=profile(NARROW))
    memory.remember("refund policy", scope=USER, id="m")
    assert reason(memory.recall("refund", scope=USER), "m", "similarity") == "not emitted"


def test_recall_when_a_store_says_nan_without_a_reason_then_it_is_not_applicable(
    opened: Open, told: Told, profile: Profile
) -> None:
    class Terse(type(told())):  # type: ignore[misc]
        def observe(self, query: Any, ids: Sequence[str]) -> rb.Observation:
            return rb.Observation({"cosine": np.full(len(ids), np.nan)})

    store = Terse({}, emits=("cosine",), name="terse", proposes=["m"])
    memory = opened(stores=[store], profile=profile(NARROW))
    memory.remember("refund policy", scope=USER, id="m")
    assert reason(memory.recall("refund", scope=USER), "m", "similarity") == "not applicable"


def test_recall_when_a_layer_may_not_contribute_it_then_the_reason_says_so(
    opened: Open, profile: Profile
) -> None:
    layers = {"notes": rb.LayerPolicy(permitted=["bm25"])}
    memory = opened(embedder=EAST, profile=profile(NARROW), layers=layers)
    memory.remember("refund policy", scope=USER, id="m", layer="notes")
    result = memory.recall("refund", scope=USER)
    assert reason(result, "m", "similarity") == "not permitted"
    assert result[0].score == result[0].signals.keyword


def test_recall_when_two_stores_give_one_evidence_then_the_strongest_counts_and_both_are_shown(
    opened: Open, told: Told, profile: Profile
) -> None:
    low = told({"m": {"cosine": 0.25}}, name="low", proposes=["m"])
    high = told({"m": {"cosine": 0.75}}, name="high")
    memory = opened(stores=[low, high], profile=profile(NARROW))
    memory.remember("refund policy", scope=USER, id="m")
    result = memory.recall("refund", scope=USER)
    assert result[0].signals.similarity == 0.75
    row = next(row for row in result.explain("m").rows if row.name == "similarity")
    assert row.evidence == "cosine 0.250 (low), cosine 0.750 (high)"


def test_recall_when_two_stores_disagree_and_that_is_an_error_then_it_is_raised(
    opened: Open, told: Told, profile: Profile
) -> None:
    strict = profile(NARROW.replace('curve = "clip"', 'curve = "clip"\nmerge = "error"'))
    stores = [
        told({"m": {"cosine": 0.25}, "same": {"cosine": 0.5}}, name="low", proposes=["same", "m"]),
        told({"m": {"cosine": 0.75}, "same": {"cosine": 0.5}}, name="high", proposes=["same"]),
    ]
    memory = opened(stores=stores, profile=strict)
    memory.remember("refund policy", scope=USER, id="same")
    assert memory.recall("refund", scope=USER)[0].signals.similarity == 0.5
    memory.remember("other policy", scope=USER, id="m")
    stores[1].proposes = ("m",)
    with pytest.raises(rb.MemoryContractError, match="two stores give different values"):
        memory.recall("refund", scope=USER)


def test_recall_when_evidence_names_its_store_then_only_that_one_is_asked(
    opened: Open, told: Told, profile: Profile
) -> None:
    named = profile(NARROW.replace('evidence = "cosine"', 'evidence = "low.cosine"'))
    low = told({"m": {"cosine": 0.25}}, name="low", proposes=["m"])
    high = told({"m": {"cosine": 0.75}}, name="high", proposes=["m"])
    memory = opened(stores=[low, high], profile=named)
    memory.remember("refund policy", scope=USER, id="m")
    result = memory.recall("refund", scope=USER)
    assert result[0].signals.similarity == 0.25
    assert set(result.trace.proposed) == {"low"}


def test_recall_when_the_pool_is_full_then_every_store_had_its_turn(
    opened: Open, told: Told, profile: Profile
) -> None:
    ids = [f"a{n}" for n in range(5)] + [f"b{n}" for n in range(5)]
    small = profile(NARROW.replace("size = 1", "size = 5").replace("max = 10", "max = 6"))
    greedy = told({i: {"cosine": 0.9} for i in ids}, name="greedy", proposes=ids[:5])
    modest = told({}, name="modest", proposes=ids[5:])
    memory = opened(stores=[greedy, modest], profile=small)
    for identifier in ids:
        memory.remember(f"memory {identifier}", scope=USER, id=identifier)
    result = memory.recall("memory", scope=USER)
    assert tuple(result.trace.sources) == ("a0", "b0", "a1", "b1", "a2", "b2")
    assert "or the pool was full at 6" in result.explain("b4").verdict


def test_recall_when_the_query_is_blank_then_it_starts_from_recency_and_salience(
    opened: Open,
) -> None:
    memory = opened(embedder=EAST)
    memory.remember("first", scope=USER, id="first", at="2026-01-01T00:00:00+00:00")
    memory.remember("vital", scope=USER, id="vital", at="2026-01-02T00:00:00+00:00", salience=1.0)
    memory.remember("last", scope=USER, id="last", at="2026-01-03T00:00:00+00:00")
    for query in ("", " \n", "\t"):
        result = memory.recall(query, scope=USER)
        assert result.ids == ("vital", "last", "first")
        assert result.trace.proposed == {"catalog": 1, "activity": 3}
        assert not result.degraded


def test_recall_when_the_query_is_hostile_then_it_is_answered(memory: rb.Memory) -> None:
    memory.remember("refund policy", scope=USER, id="m")
    for query in (
        "refund \ud800",
        "refund \x00",
        "refund " + "x" * 10_000,
        "𝓡efund",
        "refund OR 1=1 --",
    ):
        assert memory.recall(query, scope=USER).ids == ("m",)


def test_recall_when_the_query_holds_a_lone_surrogate_then_the_embedder_gets_clean_text(
    opened: Open,
) -> None:
    def strict(texts: Sequence[str]) -> np.ndarray:
        return np.array([[float(len(text.encode("utf-8"))), 1.0] for text in texts])

    memory = opened(embedder=from_callable(strict, name="strict", dimension=2))
    memory.remember("refund policy", scope=USER, id="m")
    result = memory.recall("refund \ud800", scope=USER, strict=True)
    assert result[0].signals.similarity is not None


def test_recall_when_the_memory_is_empty_then_the_result_is_empty(opened: Open) -> None:
    memory = opened(embedder=EAST)
    for name in rb.profile_names():
        for query in ("refund", ""):
            result = memory.recall(query, scope=USER, profile=name)
            assert result.ids == ()
            assert not result.degraded


def test_recall_when_seeds_are_named_then_the_graph_starts_there(memory: rb.Memory) -> None:
    memory.remember("arrived broken", scope=USER, id="b", links=["order 12"])
    memory.remember("arrived late", scope=USER, id="c", links=["order 13"])
    assert memory.recall("refund", scope=USER).ids == ()
    assert memory.recall("refund", scope=USER, seeds=["order 12"]).ids == ("b",)
    assert memory.recall("refund", scope=USER, seeds=[rb.Seed("order 13", 0.5)]).ids == ("c",)
    assert memory.recall("what of order 12?", scope=USER).ids == ("b",)


def test_recall_when_a_store_is_written_to_by_the_memory_then_it_has_exactly_its_memories(
    opened: Open, told: Told
) -> None:
    store = told()
    memory = opened(stores=[store])
    memory.remember("a", scope=USER, id="a", vector=[1, 0])
    memory.remember("b", scope=USER, id="b")
    memory.remember("b again", scope=USER, id="b")
    memory.forget("a", scope=USER)
    assert [(key.id, record.text) for key, record in store.records.items()] == [("b", "b again")]


def test_stores_when_a_signal_store_is_added_then_its_signals_count(
    opened: Open, profile: Profile
) -> None:
    votes = rb.SignalStore("votes", lambda ids: {"b": {"liked": 1.0}}, emits=("liked",))
    liked = profile(
        NARROW.replace("size = 1", "size = 9")
        .replace("similarity = 0.5", "liked = 0.5")
        .replace("[signals.similarity]", "[signals.liked]")
        .replace('"cosine"', '"liked"')
        .replace('"clip"', '"identity"')
    )
    memory = opened(stores=[*rb.default_stores(), votes], profile=liked)
    memory.remember("refund policy", scope=USER, id="a")
    memory.remember("refund policy, long and with many other words", scope=USER, id="b")
    result = memory.recall("refund policy", scope=USER)
    assert result.ids == ("b", "a")
    assert result[0].signals.liked == 1.0
    assert reason(result, "a", "liked") == "not held by the store"


def test_structured_when_preferences_and_links_speak_then_the_greater_counts(
    memory: rb.Memory, profile: Profile
) -> None:
    structured = profile(
        """
        [signals.structured]
        evidence = "structured"
        curve = "identity"
        [score]
        compose = "weighted_mean"
        weights = { structured = 1.0 }
        """
    )
    memory.remember(
        "arrived broken", scope=USER, id="linked", links=["order 12"], metadata={"lang": "de"}
    )
    memory.remember(
        "arrived late", scope=USER, id="liked", links=["late", "order 12"], metadata={"lang": "en"}
    )
    memory.remember("neither", scope=USER, id="neither", metadata={"lang": "fr"})
    asked: dict[str, Any] = {
        "scope": USER,
        "profile": structured,
        "prefer": {"lang": "en"},
        "top": 9,
    }
    result = memory.recall("what of order 12?", **asked, seeds=["neither"])
    values = {match.memory.id: match.signals.structured for match in result}
    # One hop from order 12: 1/2, more than the 0 of another language; en: 1, more than 1/2.
    assert {name: values[name] for name in ("linked", "liked")} == {"linked": 0.5, "liked": 1.0}


def test_tokenizer_when_given_then_words_are_what_it_says(opened: Open) -> None:
    memory = opened(tokenizer=lambda text: text.casefold().split("|"))
    memory.remember("green tea|milk", scope=USER, id="m")
    assert memory.recall("tea", scope=USER).ids == ()
    assert memory.recall("Green Tea", scope=USER).ids == ("m",)


def test_stored_embedder_when_asked_of_a_file_then_it_names_who_wrote_it(
    opened: Open, tmp_path: Any
) -> None:
    path = tmp_path / "m.db"
    assert stored_embedder(path) is None
    assert not path.exists()
    with opened(path) as memory:
        memory.remember("tea", scope=USER)
    assert stored_embedder(path) is None
    with opened(path, embedder=EAST) as memory:
        memory.remember("tea", scope=USER)
    assert stored_embedder(path) == "east/2"

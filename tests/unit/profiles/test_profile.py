"""Profiles as values: constructed, reweighted, described."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import ProfileError
from rankblend.profiles import (
    Floor,
    Floors,
    Pool,
    RankingProfile,
    Select,
    SignalRecipe,
    dump_profile,
    load_profile,
    read_profile,
)
from rankblend.relevance import CurveStep, Evidence, Node

SIGNALS = {
    "a": SignalRecipe(("salience",)),
    "b": SignalRecipe(("cosine",), curve=(CurveStep("clip"),)),
}


def make(**parts: Any) -> RankingProfile:
    return RankingProfile(
        "x", Node("weighted_mean", {"a": 1, "b": 2}), **{"signals": SIGNALS, **parts}
    )


def test_profile_when_made_in_python_then_equals_the_one_read() -> None:
    read = read_profile(
        'name = "x"\n[signals.a]\nevidence = "salience"\n[signals.b]\nevidence = "cosine"\n'
        'curve = "clip"\n[score]\nweights = { a = 1, b = 2 }'
    )
    assert make() == read
    assert make().hash == read.hash
    assert {make(): 1}[read] == 1
    assert make() != evolve(read, name="y")
    assert make().hash == evolve(read, name="y").hash


def test_profile_when_made_wrong_in_python_then_all_problems_show_at_once() -> None:
    with pytest.raises(ProfileError) as caught:
        make(
            pool=Pool(5, 2),
            select=Select(top=10**6000),
            floors=Floors(min_score=True, signals={"c": Floor(2.0)}),
            ties=["zz"],
            reranking="relevance",
        )
    assert caught.value.problems == (
        "pool.max: expected at least pool.size = 5, got 2",
        "select.top: expected a whole number in [0, 1,000,000], got an integer beyond 64 bits",
        'reranking: is "relevance", but there is no [rerank] to replace the score',
        "floors.c.min: expected a number in [0, 1], got 2.0",
        'floors.c: unknown signal "c"; known: a, b',
        "floors.min_score: expected a number in [0, 1], got true",
        'order.ties: unknown signal "zz"; known: a, b',
    )


def test_profile_when_made_then_nothing_in_it_can_be_changed() -> None:
    profile = make(floors=Floors(signals={"a": Floor(0.5)}))
    with pytest.raises(FrozenInstanceError):
        profile.name = "y"  # type: ignore[misc]
    for mapping in (profile.signals, profile.nodes, profile.floors.signals, profile.origins):
        with pytest.raises(TypeError):
            mapping["a"] = None  # type: ignore[index]


def test_profile_when_given_mutable_parts_then_keeps_its_own_copy() -> None:
    signals = dict(SIGNALS)
    profile = make(signals=signals)
    signals.clear()
    assert set(profile.signals) == {"a", "b"}


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101, "\ud800", 5])
def test_profile_when_name_is_unusable_then_refused(name: Any) -> None:
    with pytest.raises(ProfileError, match="name"):
        evolve(make(), name=name)


def test_signals_needed_when_some_are_unused_then_leaves_them_out() -> None:
    signals = {
        **SIGNALS,
        "unused": SignalRecipe(("uses",), curve=(CurveStep("log_saturation"),)),
        "tie": SignalRecipe(of=("late",), curve=(CurveStep("first_present"),)),
        "late": SignalRecipe(("catalog.confidence",)),
    }
    profile = make(signals=signals, ties=("tie",))
    assert profile.signals_needed == ("a", "b", "late", "tie")
    assert profile.evidence_needed == {"salience", "cosine", "catalog.confidence"}
    assert [kind.name for kind in profile.kinds("late")] == ["confidence"]
    assert [kind.name for kind in profile.kinds("tie")] == ["late"]


def test_with_weights_when_some_change_then_others_stay_and_the_hash_is_another() -> None:
    base = load_profile("crewai")
    other = base.with_weights({"recency": 0, "importance": 1})
    assert other.score.weights == (("similarity", 0.5), ("recency", 0.0), ("importance", 1.0))
    assert other.score.absent == base.score.absent
    assert other.hash != base.hash
    assert base.with_weights({}).hash == base.hash == load_profile("crewai").hash
    assert base.with_weights({"similarity": 0.5}).hash == base.hash
    assert other.origins["score.weights.recency"] == "call"
    assert other.origins["score.weights.similarity"] == "crewai"
    assert other.name == "crewai"


def test_with_weights_when_many_are_tried_then_each_is_its_own_profile() -> None:
    base = load_profile("crewai")
    tried = [base.with_weights({"recency": at / 100}) for at in range(200)]
    assert len({profile.hash for profile in tried}) == 200
    assert [dict(profile.score.weights)["recency"] for profile in tried] == [
        at / 100 for at in range(200)
    ]
    assert base.with_weights({"recency": 1.99}) is tried[-1]


def test_with_weights_when_inputs_were_a_list_then_origins_follow() -> None:
    base = read_profile(
        '[signals.a]\nevidence = "salience"\n[signals.b]\nevidence = "confidence"\n'
        '[score]\nof = ["a", "b"]'
    )
    rows = {row.path: row for row in base.with_weights({"a": 2}).describe()}
    assert rows["score.weights.a"][1:] == (2.0, "call")
    assert rows["score.weights.b"][1:] == (1.0, "profile")


def test_with_weights_when_a_node_is_named_then_its_weight_changes() -> None:
    base = load_profile("default")
    other = base.with_weights({"words.keyword": 0.9, "similarity": 0.1})
    assert dict(other.nodes["words"].weights) == {"keyword": 0.9, "coverage": 0.2}
    assert dict(other.score.weights)["similarity"] == 0.1
    assert other.origins["nodes.words.weights.keyword"] == "call"
    assert other.hash != base.with_weights({"similarity": 0.1}).hash
    back = other.with_weights({"words.keyword": 0.5, "similarity": 0.3})
    assert back.hash == base.hash


def test_with_weights_when_a_nested_name_is_unknown_then_the_nearest_is_named() -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile("default").with_weights({"words.keywrd": 1, "keyword": 1, "wrds.coverage": 1})
    assert [line.rpartition("did you mean ")[2] for line in caught.value.problems] == [
        '"words.keyword"?', '"words.keyword"?', '"words.coverage"?'
    ]  # fmt: skip


def test_with_weights_when_several_are_wrong_then_all_are_named() -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile("crewai").with_weights(
            {"similarty": 1, "recency": -1, "importance": float("nan")}
        )
    assert caught.value.problems == (
        'score.weights.similarty: unknown input "similarty": did you mean "similarity"?',
        "score.weights.recency: expected a number ≥ 0, got -1",
        "score.weights.importance: expected a number ≥ 0, got nan",
    )


def test_with_weights_when_a_promised_sum_is_missed_then_refused() -> None:
    mnemosyne = load_profile("mnemosyne")
    with pytest.raises(ProfileError, match=r"they sum to 1\.2"):
        mnemosyne.with_weights({"similarity": 0.7})
    assert mnemosyne.with_weights({"similarity": 0.7, "success_rate": 0.1}).must_sum_to == {
        "score": 1.0
    }


def test_with_weights_when_the_composer_refuses_then_says_why() -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile("hindsight").with_weights({"recency": 2})
    assert caught.value.problems == ("score.weights.recency: expected a boost below 2, got 2.0",)
    with pytest.raises(ProfileError, match="finite sum"):
        load_profile("crewai").with_weights({"similarity": 1.7e308, "recency": 1.7e308})


@pytest.mark.parametrize("weights", [5, ["a"], None])
def test_with_weights_when_it_is_no_mapping_then_refused(weights: Any) -> None:
    with pytest.raises(ProfileError, match="expected a table of weights"):
        make().with_weights(weights)


def test_describe_when_a_preset_is_extended_then_shows_every_value_with_its_origin() -> None:
    text = 'extends = ["crewai"]\n[score.weights]\nrecency = 0.1\n[floors.similarity]\nmin = 0.2\n'
    rows = read_profile(text, name="mine.toml").describe()
    shown = {path: (value, origin) for path, value, origin in rows}
    assert len(shown) == len(rows)
    assert shown["score.weights.recency"] == (0.1, "mine.toml")
    assert shown["score.weights.similarity"] == (0.5, "crewai")
    assert shown["score.absent.importance"] == ({"neutral": 0.5}, "crewai")
    assert shown["signals.recency.curve"] == ({"half_life": {"days": 30}}, "crewai")
    assert shown["floors.similarity.min"] == (0.2, "mine.toml")
    assert shown["floors.similarity.absent"] == ("pass", "built-in")
    assert shown["select.top"] == (None, "built-in")
    assert shown["pool.size"] == (100, "built-in")


def test_describe_when_made_in_python_then_origin_is_code() -> None:
    assert {row.origin for row in make().describe()} == {"code"}


def test_describe_when_first_present_is_spelt_as_of_then_the_curve_keeps_its_origin() -> None:
    text = '[signals.a]\nevidence = "salience"\n[signals.c]\nof = ["a"]\n[score]\nof = ["c"]'
    rows = {row.path: row for row in read_profile(text, name="f.toml").describe()}
    assert rows["signals.c.curve"][1:] == ({"first_present": ["a"]}, "f.toml")
    assert rows["score.of"][1:] == (["c"], "f.toml")


def test_profile_when_parts_contradict_each_other_in_python_then_refused() -> None:
    with pytest.raises(ProfileError) as caught:
        make(
            evidence={"one": Evidence("two")},
            signals={
                **SIGNALS,
                "c": SignalRecipe(of=("a",), curve=(CurveStep("clip"),)),
                "d": SignalRecipe(("uses",), of=("a",), curve=(CurveStep("first_present"),)),
            },
            must_sum_to={"score": -1, "nodes.gone": 1},
            nodes={"a": Node.of("strongest", "b")},
        )
    assert caught.value.problems == (
        'evidence.one: declares evidence named "two"',
        "signals.c.curve: signals are read by first_present, as its first step",
        "signals.d: expected either evidence or the signals it is the first present of",
        "nodes.a: is the name of a signal as well; rename one of them",
        "score.weights_must_sum_to: expected a number ≥ 0, got -1",
    )


def test_signals_scored_when_some_only_decide_ties_then_leaves_them_out() -> None:
    default = load_profile("default")
    assert default.signals_scored == {
        "keyword", "coverage", "similarity", "proximity", "salience",
    }  # fmt: skip
    assert default.evidence_scored == default.evidence_needed - {"age_updated"}


@pytest.mark.parametrize(
    ("name", "signal", "expected"),
    [
        ("default", "keyword", True),
        ("default", "salience", False),
        ("symfonic", "cue", True),
        ("mw-memory", "recency", False),
    ],
)
def test_is_relevance_when_asked_then_tells_the_match_from_the_memorys_standing(
    name: str, signal: str, expected: bool
) -> None:
    assert load_profile(name).is_relevance(signal) is expected


def test_recipe_when_written_as_in_a_file_then_is_the_same() -> None:
    written = SignalRecipe("age_used", curve={"half_life": {"days": 1}})  # type: ignore[arg-type]
    assert written == SignalRecipe(("age_used",), curve=(CurveStep("half_life", {"days": 1}),))
    assert SignalRecipe(["cosine"], curve=["clip"]) == SignalRecipe("cosine", curve="clip")  # type: ignore[arg-type]


def test_profile_when_parts_are_of_other_types_then_all_are_told() -> None:
    with pytest.raises(ProfileError) as caught:
        RankingProfile(
            "x",
            None,  # type: ignore[arg-type]
            signals={"a": "cosine", "b": SignalRecipe(7)},  # type: ignore[arg-type,dict-item]
            nodes=[],  # type: ignore[arg-type]
            pool=20,  # type: ignore[arg-type]
            floors=Floors(None, {"a": 0.5}),  # type: ignore[dict-item]
            scope="blend",  # type: ignore[arg-type]
            rerank="score",  # type: ignore[arg-type]
        )
    assert caught.value.problems == (
        "score: expected Node, got nothing",
        "pool: expected Pool, got 20",
        'scope: expected ScopeBlend, got "blend"',
        'rerank: expected Node, got "score"',
        'signals.a: expected SignalRecipe, got "cosine"',
        "signals.b.evidence: expected a list of names, got 7",
        "nodes: expected Mapping, got a list",
        "floors.a: expected Floor, got 0.5",
    )


def test_profile_when_ties_are_one_text_then_it_is_not_taken_apart() -> None:
    with pytest.raises(ProfileError, match=r'order\.ties: expected a list of names, got "ab"'):
        make(ties="ab")


def test_profile_when_a_signal_is_called_like_the_least_score_then_refused() -> None:
    with pytest.raises(ProfileError, match=r"signals\.min_score: is what \[floors\] calls"):
        make(signals={**SIGNALS, "min_score": SignalRecipe("salience")})


@pytest.mark.parametrize("number", [np.int64, np.uint8, np.array], ids=str)
def test_profile_when_its_numbers_are_numpys_then_is_the_same_profile(number: Any) -> None:
    plain = RankingProfile(
        "p", Node.of("strongest", "a"), signals={"a": SignalRecipe("salience")},
        pool=Pool(7, 9), select=Select(3, diversity=1.0), floors=Floors(1.0, {"a": Floor(1.0)}),
    )  # fmt: skip
    made = RankingProfile(
        "p", Node.of("strongest", "a"), signals={"a": SignalRecipe("salience")},
        pool=Pool(number(7), number(9)), select=Select(number(3), diversity=np.float32(1)),
        floors=Floors(number(1), {"a": Floor(np.array(1.0))}),
    )  # fmt: skip
    assert made == plain
    assert made.hash == plain.hash
    assert load_profile(made) is made
    assert read_profile(dump_profile(made)) == plain

"""Every result explains itself; so does every absence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import rankblend as rb
from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.testing import hashed_embedder

Open = Callable[..., rb.Memory]
Told = Callable[..., Any]
Profile = Callable[..., rb.RankingProfile]
TENANT, USER = "tenant:acme", "tenant:acme/user:7"
ADDITIVE = [name for name in rb.profile_names() if name != "hindsight"]

SPARSE = """
[signals.similarity]
evidence = "cosine"
curve = "clip"
[signals.salience]
evidence = "salience"
curve = "identity"
[signals.confidence]
evidence = "confidence"
curve = "identity"
[score]
compose = "weighted_mean"
weights = { similarity = 0.5, salience = 0.3, confidence = 0.2 }
"""


def told_memory(opened: Open, told: Told, recipe: rb.RankingProfile) -> rb.Memory:
    memory = opened(stores=[told({"m": {"cosine": 0.8}}, proposes=["m", "bare"])], profile=recipe)
    memory.remember("text", scope=USER, id="m", salience=0.5)
    memory.remember("bare text", scope=USER, id="bare")
    return memory


def test_explain_when_renormalizing_then_absent_signals_have_a_reason_and_no_contribution(
    opened: Open, told: Told, profile: Profile
) -> None:
    recipe = profile(SPARSE)
    explained = told_memory(opened, told, recipe).recall("x", scope=USER).explain("m")
    similarity, salience, confidence = explained.rows
    # (.5 · .8 + .3 · .5) / .8 = .6875
    assert explained.score == pytest.approx(0.6875, abs=1e-12)
    assert similarity.contribution == pytest.approx(0.4 / 0.8, abs=1e-12)
    assert salience.contribution == pytest.approx(0.15 / 0.8, abs=1e-12)
    assert (similarity.evidence, similarity.value, similarity.weight) == ("cosine 0.800", 0.8, 0.5)
    assert (confidence.value, confidence.contribution, confidence.why) == (
        None,
        None,
        "not applicable",
    )
    assert (explained.rank, explained.shown, explained.additive) == (1, True, True)
    assert explained.verdict == "rank 1 of 2"
    assert explained.profile_hash == recipe.hash


def test_explain_when_the_policy_fills_or_pulls_then_its_rows_are_shown(
    opened: Open, told: Told, profile: Profile
) -> None:
    policies = {
        'missing = "zero"': {},
        "missing = { neutral = 0.5 }": {"filled:confidence": 0.1},
        # (.4 + .15 + .5 · 1 · .2) / (.8 + .5 · 1): the prior gives .1 / 1.3
        "missing = { shrink = { prior = 0.2, strength = 0.5 } }": {"prior": 0.1 / 1.3},
        'absent = { confidence = { neutral = 1.0 } }': {"filled:confidence": 0.2},
    }  # fmt: skip
    for number, (policy, expected) in enumerate(policies.items()):
        recipe = profile(SPARSE + policy, f"p{number}")
        memory = told_memory(opened, told, recipe)
        result = memory.recall("x", scope=USER)
        match = next(match for match in result if match.memory.id == "m")
        extra = {
            k: v
            for k, v in match.contributions.items()
            if k not in ("similarity", "salience", "confidence")
        }
        assert {k: v for k, v in extra.items() if v} == pytest.approx(expected, abs=1e-12), policy
        rows = result.explain("m").rows
        depth0 = [
            row.contribution for row in rows if row.depth == 0 and row.contribution is not None
        ]
        assert math.fsum(depth0) == pytest.approx(match.score, abs=1e-12)


def test_explain_when_the_policy_drops_a_memory_then_it_says_by_what(
    opened: Open, told: Told, profile: Profile
) -> None:
    recipe = profile(SPARSE + "missing = { require = { coverage = 0.75 } }")
    result = told_memory(opened, told, recipe).recall("x", scope=USER)
    # m has .8 of the weight, bare has none.
    assert result.ids == ("m",)
    dropped = result.explain("bare")
    assert dropped.verdict == "dropped by the missing policy (require: coverage)"
    assert not dropped.shown
    required = profile(SPARSE + 'absent = { salience = "required" }', "required")
    again = told_memory(opened, told, required).recall("x", scope=USER)
    assert again.explain("bare").verdict == "dropped by the missing policy (required: salience)"


def test_explain_when_a_floor_stands_then_it_is_named_with_both_numbers(
    opened: Open, told: Told, profile: Profile
) -> None:
    recipe = profile(
        SPARSE + '[floors]\nsalience = { min = 0.6 }\nsimilarity = { min = 0.1, absent = "drop" }'
    )
    result = told_memory(opened, told, recipe).recall("x", scope=USER)
    assert result.ids == ()
    assert result.explain("m").verdict == "under the floor of 'salience': 0.5000, needed 0.6"
    assert result.explain("bare").verdict == "under the floor of 'similarity': absent, needed 0.1"
    assert result.explain("m").score is not None


def test_explain_when_a_value_lies_on_the_floor_then_it_passes(
    opened: Open, told: Told, profile: Profile
) -> None:
    recipe = profile(
        SPARSE + "[floors]\nsalience = { min = 0.5 }\nsimilarity = { min = 0.8000000000000002 }"
    )
    assert told_memory(opened, told, recipe).recall("x", scope=USER).ids == ("m", "bare")


def test_explain_when_outranked_then_it_says_by_how_much_and_by_whom(
    opened: Open, told: Told, profile: Profile
) -> None:
    says = {"a": {"cosine": 0.75}, "b": {"cosine": 0.5}, "c": {"cosine": 0.25}}
    memory = opened(stores=[told(says, proposes=list(says))], profile=profile(SPARSE))
    for identifier in says:
        memory.remember(f"text {identifier}", scope=USER, id=identifier)
    result = memory.recall("x", scope=USER, top=2)
    assert (
        result.explain("c").verdict == "out-ranked: place 3, 0.2500 below the last one shown ('b')"
    )
    assert (result.explain("c").rank, result.explain("c").shown) == (None, False)


def test_explain_when_not_visible_or_unknown_then_the_words_are_the_same(
    memory: rb.Memory,
) -> None:
    memory.remember("refund", scope="tenant:globex", id="secret")
    memory.remember("refund", scope=f"{USER}/session:1", id="below")
    memory.remember("refund", scope=USER, id="m")
    result = memory.recall("refund", scope=USER)
    explained = {i: result.explain(i) for i in ("secret", "below", "nobody", "", "\ud800")}
    plain = [{**e.plain(), "id": ""} for e in explained.values()]
    assert all(other == plain[0] for other in plain)
    assert plain[0]["verdict"] == "not visible to this query or unknown"


def test_explain_when_not_proposed_then_it_says_how_many_were_asked_for(memory: rb.Memory) -> None:
    memory.remember("refund", scope=USER, id="m")
    memory.remember("tea at four", scope=USER, id="tea")
    result = memory.recall("refund", scope=USER)
    assert result.explain("tea").verdict == "not proposed: no store had it among its best 100"


def test_explain_when_the_position_is_bad_then_it_is_refused(memory: rb.Memory) -> None:
    memory.remember("refund", scope=USER, id="m")
    result = memory.recall("refund", scope=USER)
    assert result.explain() == result.explain(0) == result.explain("m")
    for bad in (1, -1, 99, True, None, 0.0):
        with pytest.raises(InvalidArgumentError, match="explain: expected a position"):
            result.explain(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the result is empty"):
        memory.recall("refund", scope=USER, top=0).explain(0)


def test_explain_when_the_memory_is_closed_then_the_pool_still_explains_itself(
    memory: rb.Memory,
) -> None:
    memory.remember("refund", scope=USER, id="m")
    result = memory.recall("refund", scope=USER)
    memory.close()
    assert result.explain("m").verdict == "rank 1 of 1"
    with pytest.raises(StoreClosedError):
        result.explain("nobody")


def test_explain_when_nested_then_children_are_indented_and_depth_0_adds_up(
    memory: rb.Memory,
) -> None:
    memory.remember("refund policy", scope=USER, id="m", confidence=0.5, review="confirmed")
    admitted = rb.load_profile("relevance-rerank")
    result = memory.recall("refund", scope=USER, profile=admitted, prefer={"layer": "semantic"})
    rows = result.explain("m").rows
    assert {row.depth for row in rows} >= {0, 1, 2}
    assert result.trace.reranking == "baseline: no reranker was given"
    top = [row.contribution for row in rows if row.depth == 0 and row.contribution is not None]
    assert math.fsum(top) == pytest.approx(result[0].score, abs=1e-12)


def test_explain_when_a_reranker_admits_then_the_rerank_score_is_explained(opened: Open) -> None:
    from rankblend.recall import Serving

    memory = opened(profile="relevance-rerank", reranker=lambda _: Serving("rerank", "admitted"))
    memory.remember("refund policy", scope=USER, id="m", confidence=0.5)
    result = memory.recall("refund", scope=USER)
    assert result.trace.reranking == "admitted"
    # .8 · strongest(coverage 1) + .2 · (.4 · .5 + .2 · reinforcement 0) / .6
    assert result[0].score == pytest.approx(0.8 + 0.2 * 0.2 / 0.6, abs=1e-12)
    assert [row.name for row in result.explain(0).rows if row.depth == 0] == [
        "relevance",
        "metadata",
    ]


def test_explain_when_printed_then_the_footer_is_the_score_and_nothing_is_markup(
    memory: rb.Memory,
) -> None:
    memory.remember("refund [/red] policy", scope=USER, id="[/bold]", salience=0.5)
    memory.remember("refund [/red] policy", scope=TENANT, id="[link]")
    result = memory.recall("refund policy", scope=USER)
    for identifier in ("[/bold]", "[link]", "[unknown"):
        text = str(result.explain(identifier))
        assert text.startswith(f"{identifier}: ")
    lines = str(result.explain(0)).splitlines()
    assert lines[0] == "[/bold]: rank 1 of 1"
    footer = next(line for line in lines if line.startswith("score"))
    assert footer.split()[-1] == f"{result[0].score:.4f}"
    assert result.profile.hash[:12] in lines[-1]


def test_explain_when_evidence_is_borrowed_from_an_id_like_markup_then_it_prints(
    opened: Open, told: Told, profile: Profile
) -> None:
    memory = opened(
        stores=[told({"[/x]": {"cosine": 0.9}}, proposes=["m", "[/x]"])], profile=profile(SPARSE)
    )
    memory.remember("refund", scope=USER, id="m")
    memory.remember("refund", scope=TENANT, id="[/x]")
    assert "from '[/x]'" in str(memory.recall("x", scope=USER).explain("m"))


def test_explain_when_hops_or_ages_are_observed_then_they_read_in_natural_units(
    opened: Open,
) -> None:
    memory = opened(profile="symfonic")
    memory.remember("refund", scope=USER, id="m", at="2026-02-27T12:00:00+00:00", links=["b"])
    memory.remember("tea", scope=USER, id="b", links=["c"])
    memory.remember("milk", scope=USER, id="c", at="2026-03-01T11:30:00+00:00")
    result = memory.recall("refund", scope=USER, seeds=["c"])
    rows = {(i, r.name): r.evidence for i in ("m", "c") for r in result.explain(i).rows}
    assert rows["m", "recency"] == "age_updated 2.0 d"
    assert rows["c", "recency"] == "age_updated 30.0 min"
    assert rows["m", "proximity"] == "hops 1"  # from b, which recency proposed


def test_explain_when_the_first_of_several_is_absent_then_it_says_why(memory: rb.Memory) -> None:
    memory.remember("refund", scope=USER, id="m")
    (cue, *_) = memory.recall("refund", scope=USER, profile="symfonic").explain("m").rows
    assert (cue.name, cue.value) == ("cue", 1.0)
    assert cue.evidence == "overlap: coverage 1.000; similarity not applicable"


def test_plain_when_anything_is_dumped_then_it_is_json(memory: rb.Memory) -> None:
    memory.remember("refund ü", scope=USER, id="m", salience=0.5, metadata={"a": [1, {"b": None}]})
    memory.remember("refund ü", scope=TENANT, id="n")
    memory.remember("tea", scope=TENANT, id="t")
    for name in rb.profile_names():
        result = memory.recall("refund", scope=USER, profile=name)
        back = json.loads(json.dumps(result.plain(), allow_nan=False))
        assert back["profile_hash"] == result.profile.hash
        assert [m["memory"]["id"] for m in back["matches"]] == list(result.ids)
        for identifier in ("m", "n", "t", "nobody"):
            json.dumps(result.explain(identifier).plain(), allow_nan=False)
        assert "refund" not in json.dumps(back["trace"])


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    words = ("refund", "policy", "order", "tea", "Ana")
    maybe = st.one_of(st.none(), st.floats(0, 1))
    count = draw(st.integers(1, 8))
    return [
        {
            "id": f"m{n}",
            "scope": draw(st.sampled_from((TENANT, USER))),
            "text": " ".join(draw(st.lists(st.sampled_from(words), min_size=1, max_size=5))),
            "salience": draw(maybe),
            "confidence": draw(maybe),
            "review": draw(st.sampled_from((None, "confirmed", "flagged"))),
            "maturity": draw(st.sampled_from((None, "settled"))),
            "links": draw(
                st.lists(st.sampled_from(["m0", "m1", "m2", "Ana"]), max_size=2, unique=True)
            ),
            "uses": draw(st.integers(0, 5)),
            "metadata": {"lang": draw(st.sampled_from(("en", "de")))},
        }
        for n in range(count)
    ]


@settings(max_examples=30)
@given(
    world=worlds(),
    query=st.sampled_from(("refund order", "", "Ana", "nothing known")),
    half=st.booleans(),
)
def test_explain_when_a_profile_is_additive_then_contributions_sum_to_the_score(
    world: list[dict[str, Any]], query: str, half: bool
) -> None:
    with rb.Memory.open(":memory:", embedder=hashed_embedder(8)) as memory:
        cut = len(world) // 2 if half else len(world)
        memory.remember_many(world[:cut])
        memory.remember_many(world[cut:], embed=False)
        for name in ADDITIVE:
            result = memory.recall(query, scope=USER, profile=name, prefer={"lang": "en"}, top=99)
            for identifier in result.trace.sources:
                explained = result.explain(identifier)
                if explained.score is None:
                    continue
                assert explained.additive, name
                amounts = [
                    r.contribution
                    for r in explained.rows
                    if r.depth == 0 and r.contribution is not None
                ]
                assert math.fsum(amounts) == pytest.approx(explained.score, abs=1e-12), name
            for match in result:
                assert math.fsum(match.contributions.values()) == pytest.approx(
                    match.score, abs=1e-12
                )
                assert 0.0 <= match.score <= 1.0
                assert 0.0 <= match.rank_score <= 1.0


def test_explain_when_the_composer_is_not_additive_then_contributions_are_labelled(
    memory: rb.Memory,
) -> None:
    memory.remember("refund policy", scope=USER, id="m")
    result = memory.recall("refund", scope=USER, profile="hindsight")
    explained = result.explain("m")
    assert (explained.additive, explained.label) == (False, "factor")
    product = math.prod(result[0].contributions.values())
    assert product == pytest.approx(result[0].score, abs=1e-12)
    assert "contribution (factor)" in str(explained)


def test_recall_when_shown_on_a_console_then_it_renders(memory: rb.Memory) -> None:
    memory.remember("refund [/red] policy", scope=USER, id="m")
    memory.remember("refund\nin two lines", scope=USER, id="n")
    before = memory.recall("refund", scope=USER)
    after = memory.recall("refund", scope=USER, profile="symfonic", top=1)
    console = Console(file=StringIO(), width=60)
    console.print(before.compare(after))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "refund [/red] policy" in shown
    assert "symfonic" in shown


def test_contributions_when_nobody_asked_yet_then_two_recalls_are_equal_all_the_same(
    memory: rb.Memory,
) -> None:
    memory.remember("refund policy", scope=USER, id="m", salience=0.5)
    first, second = (
        memory.recall("refund", scope=USER, now="2026-05-01T12:00:00Z")[0] for _ in range(2)
    )
    assert first == second
    assert repr(first.contributions) == repr(dict(first.contributions))
    assert math.fsum(first.contributions.values()) == pytest.approx(first.score, abs=1e-12)
    other = memory.recall(
        "refund", scope=USER, now="2026-05-01T12:00:00Z", weights={"salience": 0.9}
    )[0]
    assert other.contributions != first.contributions

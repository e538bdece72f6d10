"""The shipped presets: their numbers, their sources, and the ranking each one gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankblend.profiles import Pool, RankingProfile, load_profile, profile_names
from rankblend.relevance import (
    Composition,
    CurveStep,
    Neutral,
    Node,
    Renormalize,
    ScopeBlendMode,
    Shrink,
    SignalTable,
    Zero,
    apply_curve,
    apply_curve_details,
    compose_table,
    rank_order,
)

DAY = 86_400.0
NAN = math.nan


def derive(profile: RankingProfile, evidence: Mapping[str, Any], ids: list[str]) -> SignalTable:
    """The signals a profile needs, from columns of evidence by name; what is not given is absent."""
    columns: dict[str, NDArray[np.float64]] = {}
    for name in profile.signals_needed:
        recipe = profile.signals[name]
        inputs = [columns[part] for part in recipe.of] or [
            np.asarray(evidence.get(part, np.full(len(ids), NAN)), dtype=np.float64)
            for part in recipe.evidence
        ]
        columns[name] = apply_curve(recipe.curve, inputs, profile.kinds(name))
    return SignalTable(ids, list(columns), np.column_stack(list(columns.values())))


def compose(
    profile: RankingProfile, evidence: Mapping[str, Any], ids: list[str], *, rerank: bool = False
) -> Composition:
    root = profile.rerank if rerank else profile.score
    assert root is not None
    return compose_table(root, profile.nodes, derive(profile, evidence, ids))


def score(name: str, **evidence: float) -> float:
    """The score of one memory alone."""
    columns = {key: [value] for key, value in evidence.items()}
    return float(compose(load_profile(name), columns, ["m"]).scores[0])


@pytest.mark.parametrize("name", profile_names())
def test_preset_when_loaded_then_has_its_name_and_says_where_it_comes_from(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert len(profile.source) > 100
    assert profile.evidence_needed
    assert profile.pool.max >= profile.pool.size


@pytest.mark.parametrize("name", profile_names())
def test_preset_when_nothing_is_known_then_still_gives_a_finite_score(name: str) -> None:
    assert 0.0 <= score(name) <= 1.0


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("symfonic", {"cue": 1.0, "salience": 0.5, "recency": 0.3, "frequency": 0.2, "proximity": 0.2}),
        ("mnemosyne", {"similarity": 0.5, "success_rate": 0.3, "freshness": 0.2}),
        ("crewai", {"similarity": 0.5, "recency": 0.3, "importance": 0.2}),
        ("crewai-sprint", {"similarity": 0.3, "recency": 0.5, "importance": 0.2}),
        ("crewai-architecture", {"similarity": 0.5, "recency": 0.1, "importance": 0.4}),
        ("generative-agents", {"recency": 1.0, "importance": 1.0, "relevance": 1.0}),
        ("mw-memory", {"similarity": 0.40, "recency": 0.20, "importance": 0.15,
                       "reinforcement": 0.10, "task": 0.15}),
        ("zeph", {"recency": 0.35, "relevance": 0.35, "frequency": 0.15, "causal": 0.10,
                  "novelty": 0.05}),
        ("hindsight", {"relevance": 1.0, "recency": 0.2, "temporal": 0.2, "proof": 0.1}),
        ("rrf", {"keyword": 1.0, "similarity": 1.0}),
        ("convex", {"keyword": 0.5, "similarity": 0.5}),
        ("default", {"words": 0.7, "similarity": 0.3, "proximity": 0.2, "salience": 0.2}),
        ("default-sparse", {"words": 0.7, "similarity": 0.3, "proximity": 0.2, "salience": 0.2}),
        ("relevance-baseline", {"dense": 1.0, "sparse": 1.0}),
        ("relevance-rerank", {"dense": 1.0, "sparse": 1.0}),
    ],
)  # fmt: skip
def test_preset_when_loaded_then_has_the_weights_of_its_source(
    name: str, weights: dict[str, float]
) -> None:
    assert dict(load_profile(name).score.weights) == weights


@pytest.mark.parametrize(
    ("name", "signal", "evidence", "curve"),
    [
        ("symfonic", "recency", "age_updated", CurveStep("half_life", {"days": 7})),
        ("symfonic", "frequency", "uses", CurveStep("log_saturation", {"n_max": 100})),
        ("symfonic", "proximity", "hops", CurveStep("reciprocal")),
        ("mnemosyne", "freshness", "age_last_run", CurveStep("half_life", {"days": 30})),
        ("crewai", "recency", "age_created", CurveStep("half_life", {"days": 30})),
        ("crewai-sprint", "recency", "age_created", CurveStep("half_life", {"days": 7})),
        ("crewai-architecture", "recency", "age_created", CurveStep("half_life", {"days": 180})),
        ("mw-memory", "since_use", "age_used", CurveStep("half_life", {"days": 14})),
        ("mw-memory", "reinforcement", "uses", CurveStep("log_saturation", {"n_max": 30})),
        ("hindsight", "recency", "age_updated", CurveStep("linear", {"days": 365, "floor": 0.1})),
        ("convex", "keyword", "bm25", CurveStep("min_max")),
        ("convex", "similarity", "cosine", CurveStep("min_max")),
        ("default", "keyword", "bm25", CurveStep("saturation", {"c": 6})),
        ("default", "similarity", "cosine", CurveStep("clip")),
    ],
)
def test_preset_when_loaded_then_derives_its_signals_as_its_source_says(
    name: str, signal: str, evidence: str, curve: CurveStep
) -> None:
    recipe = load_profile(name).signals[signal]
    assert (recipe.evidence, recipe.curve) == ((evidence,), (curve,))


# --- mnemosyne ------------------------------------------------------------------------------------

COUNTS = ("runs", "successes", "judged_runs", "judged_successes")


def procedures(rows: list[dict[str, Any]], parents: dict[str, Any]) -> dict[str, list[float]]:
    """Columns of evidence of procedures that ran today and that nobody judged."""
    columns: dict[str, list[float]] = {"cosine": [], "age_last_run": []}
    for row in rows:
        columns["cosine"].append(row["similarity"])
        columns["age_last_run"].append(0.0)
        parent = parents.get(row["parent"])
        for count in COUNTS:
            columns.setdefault(count, []).append(row.get(count, 0))
            parent_count = NAN if parent is None else parent.get(count, 0)
            columns.setdefault(f"parent_{count}", []).append(parent_count)
    return columns


def test_mnemosyne_when_loaded_then_is_the_profile_of_the_specification() -> None:
    profile = load_profile("mnemosyne")
    assert profile.pool == Pool(20, 200)
    assert profile.score.missing == Renormalize()
    assert profile.must_sum_to == {"score": 1.0}
    assert profile.floors.min_score is None
    floor = profile.floors.signals["similarity"]
    assert (floor.min, floor.absent) == (0.5, "drop")
    assert profile.scope.mode is ScopeBlendMode.OFF
    assert profile.ties == ("similarity",)
    assert profile.select.top == 3
    assert profile.signals["success_rate"].evidence == (*COUNTS, *(f"parent_{it}" for it in COUNTS))
    assert dict(profile.signals["success_rate"].curve[0].params) == {
        "prior_weight": 5.0,
        "agent_verdict_weight": 0.5,
    }


def test_mnemosyne_when_given_the_worked_example_then_gives_its_totals_and_order(
    vectors: Callable[[str], Any],
) -> None:
    rows = vectors("mnemosyne")["worked_example"]["rows"]
    shuffled = [rows[2], rows[0], rows[1]]
    profile = load_profile("mnemosyne")
    ids = [row["name"] for row in shuffled]
    evidence = procedures(shuffled, {row["name"]: row for row in rows})
    table = derive(profile, evidence, ids)
    made = compose_table(profile.score, profile.nodes, table)
    for at, row in enumerate(shuffled):
        signals = table.signals(at).present()
        assert signals["similarity"] == row["similarity"]
        assert signals["success_rate"] == pytest.approx(row["success_rate"], abs=1e-15)
        assert signals["freshness"] == row["freshness"]
        assert made.scores[at] == pytest.approx(row["total"], abs=1e-15)
    ties = [table.values[:, table.names.index(name)] for name in profile.ties]
    order = rank_order(made.scores, np.zeros(3, np.int64), made.scores, ties, ids, blend=False)
    assert [ids[at] for at in order] == [row["name"] for row in rows]
    recipe = profile.signals["success_rate"]
    columns = [np.array(evidence[name], dtype=np.float64) for name in recipe.evidence]
    told = apply_curve_details(recipe.curve, columns, profile.kinds("success_rate"))[1]
    expected = [row["uses_parent_prior"] for row in shuffled]
    assert told["uses_parent_prior"].tolist() == expected


def test_mnemosyne_when_given_every_shared_rate_and_age_then_derives_its_signal(
    vectors: Callable[[str], Any],
) -> None:
    shared = vectors("mnemosyne")
    profile = load_profile("mnemosyne")
    standard = [
        case
        for case in shared["success_rate"]
        if (case["prior_weight"], case["agent_verdict_weight"]) == (5.0, 0.5)
    ]
    assert len(standard) >= 9
    rows = [{"similarity": 1.0, **case, "parent": case["name"]} for case in standard]
    evidence = procedures(rows, {case["name"]: case["parent"] for case in standard})
    rates = derive(profile, evidence, [case["name"] for case in standard])
    column = rates.values[:, rates.names.index("success_rate")]
    assert column == pytest.approx([case["success_rate"] for case in standard], abs=1e-15)
    ages = [case for case in shared["freshness"] if case["half_life_days"] == 30]
    assert len(ages) >= 7
    seconds = [case["days_since_last_run"] * DAY for case in ages]
    table = derive(profile, {"age_last_run": seconds}, [str(at) for at in range(len(ages))])
    column = table.values[:, table.names.index("freshness")]
    assert column == pytest.approx([case["freshness"] for case in ages], rel=1e-15)


def test_mnemosyne_when_totals_tie_then_similarity_decides_and_then_the_id() -> None:
    # .5·.9 + .3·.5 + .2·.25 = .65 = .5·.8 + .3·.5 + .2·.5 = .65; equal to the last bit below.
    profile = load_profile("mnemosyne")
    ids = ["z", "b", "a"]
    table = SignalTable(ids, profile.ties, [[0.75], [0.5], [0.5]])
    scores = np.full(3, 0.65)
    ties = [table.values[:, 0]]
    order = rank_order(scores, np.zeros(3, np.int64), scores, ties, ids, blend=False)
    assert [ids[at] for at in order] == ["z", "a", "b"]


def test_mnemosyne_when_similarity_is_exactly_the_floor_then_it_passes() -> None:
    floor = load_profile("mnemosyne").floors.signals["similarity"]
    table = derive(load_profile("mnemosyne"), {"cosine": [0.5, 0.4999, NAN]}, ["a", "b", "c"])
    values = table.values[:, table.names.index("similarity")]
    passes = np.where(np.isnan(values), floor.absent == "pass", values >= floor.min - 1e-12)
    assert passes.tolist() == [True, False, False]


# --- peers ----------------------------------------------------------------------------------------


def test_symfonic_when_all_is_known_then_is_its_weighted_mean() -> None:
    # cue .9, salience .4, recency .5 (7 d), frequency 1 (100 uses), proximity .5 (1 hop):
    # (.9 + .5·.4 + .3·.5 + .2·1 + .2·.5) / 2.2 = 1.55 / 2.2
    got = score(
        "symfonic", cosine=0.9, coverage=0.1, salience=0.4, age_updated=7 * DAY, uses=100, hops=1
    )
    assert got == pytest.approx(1.55 / 2.2, abs=1e-15)


def test_symfonic_when_there_is_no_vector_then_the_cue_is_the_word_overlap() -> None:
    assert score("symfonic", coverage=0.25) == 0.25
    assert score("symfonic", coverage=0.25, cosine=0.75) == 0.75


def test_crewai_when_given_the_surveyed_example_then_the_cosine_backend_ranks_as_there() -> None:
    # Measured on CrewAI itself with raw cosines: .512 for "relevant, 90 d", .500 for "unrelated,
    # today": .5·.75 + .3·.125 + .2·.5 = .5125; .5·.2 + .3·1 + .2·.5 = .5.
    assert score("crewai", cosine=0.75, age_created=90 * DAY) == pytest.approx(0.5125, abs=1e-15)
    assert score("crewai", cosine=0.2, age_created=0) == pytest.approx(0.5, abs=1e-15)
    assert load_profile("crewai").score.absent == (("importance", Neutral(0.5)),)


def test_crewai_when_similarity_is_missing_then_it_is_not_perfect() -> None:
    assert score("crewai", age_created=0) == pytest.approx(0.3 + 0.2 * 0.5, abs=1e-15)


def test_generative_agents_when_used_an_hour_ago_then_decays_by_the_factor_of_the_paper() -> None:
    recipe = load_profile("generative-agents").signals["since_use"]
    hours = np.array([0.0, 1.0, 2.0, 24.0])
    kinds = load_profile("generative-agents").kinds("since_use")
    assert apply_curve(recipe.curve, [hours * 3600], kinds) == pytest.approx(
        0.995**hours, abs=1e-14
    )


def test_generative_agents_when_there_are_three_then_each_signal_is_scaled_in_the_pool() -> None:
    # recency 1, .5, 0 at ages 0, x, ∞; importance 0, 1, .5; relevance 0, .25, 1
    half = math.log(0.5) / math.log(0.995) * 3600
    evidence = {
        "age_used": [0.0, half, math.inf],
        "salience": [0.1, 0.9, 0.5],
        "cosine": [-0.2, 0.0, 0.6],
    }
    made = compose(load_profile("generative-agents"), evidence, ["a", "b", "c"])
    assert made.scores == pytest.approx([1 / 3, 1.75 / 3, 1.5 / 3], abs=1e-12)


def test_mw_memory_when_no_task_is_given_then_the_rest_is_renormalized() -> None:
    # (.4·.5 + .2·.5 + .15·1 + .1·1) / .85 with a memory never used: its creation counts
    got = score("mw-memory", cosine=0.5, age_created=14 * DAY, salience=1, uses=30)
    assert got == pytest.approx(0.55 / 0.85, abs=1e-15)


def test_mw_memory_when_the_graph_tells_nearness_then_it_is_no_task() -> None:
    # Of the two stores that tell ``structured`` only the catalog speaks of shared tags.
    assert load_profile("mw-memory").signals["task"].evidence == ("catalog.structured",)
    assert score("mw-memory", **{"catalog.structured": 0.5}) == 0.5


def test_zeph_when_a_signal_is_missing_then_it_counts_zero() -> None:
    # .35·.5 + .35·.8 = .455; n = 10,000 uses are a full frequency
    assert score("zeph", age_created=30 * DAY, cosine=0.8) == pytest.approx(0.455, abs=1e-15)
    assert score("zeph", uses=10_000) == pytest.approx(0.15, abs=1e-15)
    assert score("zeph", novelty=1.0) == pytest.approx(0.05, abs=1e-15)
    assert load_profile("zeph").score.missing == Zero()


def test_hindsight_when_factors_are_absent_then_they_are_exactly_one() -> None:
    bound = 1.1 * 1.1 * 1.05
    assert score("hindsight", cosine=0.8) == pytest.approx(0.8 / bound, abs=1e-15)
    # A new memory has recency 1: 1 + .2·(1 − ½) = 1.1
    assert score("hindsight", cosine=0.8, age_updated=0) == pytest.approx(0.88 / bound, abs=1e-15)
    assert score("hindsight", age_updated=0) == 0.0


@pytest.mark.parametrize("uses", [0, 1, 2, 10, 100, 147, 148, 10_000])
def test_hindsight_when_proofs_grow_then_follows_the_published_curve(uses: int) -> None:
    proof = min(0.5 + math.log(1 + uses) / 10, 1.0)
    expected = 0.8 * (1 + 0.1 * (proof - 0.5)) / (1.1 * 1.1 * 1.05)
    assert score("hindsight", cosine=0.8, uses=uses) == pytest.approx(expected, abs=1e-15)


def test_rrf_when_ranks_are_known_then_sums_reciprocals() -> None:
    # "a" leads both lists; "b" is second by words only, "c" second by cosine and last by words.
    evidence = {"bm25": [9.0, 4.0, 1.0, 0.0], "cosine": [0.9, -0.1, 0.5, NAN]}
    made = compose(load_profile("rrf"), evidence, list("abcd"))
    most = 2 / 61
    expected = [1.0, (1 / 62) / most, (1 / 63 + 1 / 62) / most, 0.0]
    assert made.scores == pytest.approx(expected, abs=1e-15)


def test_convex_when_scaled_then_is_half_of_each() -> None:
    evidence = {"bm25": [8.0, 2.0, 0.0], "cosine": [0.2, 0.7, NAN]}
    made = compose(load_profile("convex"), evidence, list("abc"))
    # BM25 within [0, 8]: 1, .25, 0; cosine within [.2, .7]: 0, 1, absent = 0
    assert made.scores == pytest.approx([0.5, 0.625, 0.0], abs=1e-15)


def test_default_when_all_is_known_then_is_its_weighted_mean() -> None:
    profile = load_profile("default")
    assert profile.pool == Pool(100, 500)
    assert profile.ties == ("salience", "recency")
    assert profile.score.missing == Renormalize()
    evidence = {
        "bm25": [6.0, 0.0],
        "coverage": [0.5, 0.0],
        "cosine": [0.4, -0.4],
        "activation": [1.0, 4.0],
        "salience": [0.5, NAN],
    }
    made = compose(profile, evidence, ["a", "b"])
    # words: (.5·.5 + .2·.5) / .7 = .5; a: .7·.5 + .3·.4 + .2·√(1/4) + .2·.5 = .67 of 1.4; b: .2·1 of 1.2
    assert made.scores == pytest.approx([0.67 / 1.4, 0.2 / 1.2], abs=1e-15)


def test_default_when_the_question_is_blank_then_salience_decides() -> None:
    # Every memory covers a question without words; that must not outweigh what is known of it.
    assert score("default", salience=0.8, coverage=1.0) == pytest.approx(0.8, abs=1e-15)
    assert score("default", coverage=1.0) == 0.0


def test_default_sparse_when_little_is_known_then_leans_on_the_prior() -> None:
    profile = load_profile("default-sparse")
    assert profile.score.missing == Shrink(0.2, 0.5)
    # W = 1.4, P = .3: (.3·.9 + .5·1.4·.2) / (.3 + .5·1.4)
    assert score("default-sparse", cosine=0.9) == pytest.approx(0.41 / 1.0, abs=1e-15)
    flat = load_profile("default")
    assert profile.signals == flat.signals
    assert profile.ties == flat.ties


# --- relevance-rerank and its baseline ------------------------------------------------------------


def test_relevance_profiles_when_loaded_then_are_those_of_the_specification() -> None:
    base, rerank = load_profile("relevance-baseline"), load_profile("relevance-rerank")
    assert base.reranking == "baseline"
    assert base.rerank is None
    assert rerank.reranking == "relevance"
    assert rerank.score == base.score
    assert dict(base.score.options) == {
        "k": 60.0,
        "members": (("dense", "present"), ("sparse", "lexical")),
    }
    assert base.score.missing == Zero()
    assert base.nodes["sparse"] == Node(
        "weighted_sum", {"lexical": 0.4, "metadata": 0.6}, missing=Zero()
    )
    assert base.nodes["lexical"] == Node.of("strongest", "coverage", "structured")
    assert (
        base.nodes["metadata"]
        == rerank.nodes["metadata"]
        == Node(
            "weighted_mean",
            {
                "confidence": 0.4,
                "review": 0.2,
                "maturity": 0.1,
                "certainty": 0.1,
                "reinforcement": 0.2,
            },
        )
    )
    assert rerank.rerank == Node(
        "weighted_mean", {"relevance": 0.8, "metadata": 0.2}, missing=Zero()
    )
    assert rerank.nodes["relevance"] == Node.of("strongest", "coverage", "structured", "similarity")
    assert base.select.top == rerank.select.top == 20


def test_baseline_when_composed_then_equals_fusion_by_hand(rng: np.random.Generator) -> None:
    n = 60
    ids = [f"m{at:02}" for at in range(n)]
    evidence = {
        name: np.where(rng.random(n) < absent, NAN, values)
        for name, absent, values in [
            ("cosine", 0.3, rng.uniform(-1, 1, n)),
            ("coverage", 0.2, np.where(rng.random(n) < 0.3, 0, rng.random(n))),
            ("structured", 0.6, np.where(rng.random(n) < 0.3, 0, rng.random(n))),
            ("confidence", 0.3, rng.random(n)),
            ("review", 0.3, rng.choice([1, 0.75, 0.25], n)),
            ("maturity", 0.3, rng.choice([1, 0.5], n)),
            ("certainty", 0.3, rng.choice([1, 0.5], n)),
            ("uses", 0.3, rng.integers(0, 200, n).astype(float)),
        ]
    }
    made = compose(load_profile("relevance-baseline"), evidence, ids)

    def present(name: str, at: int) -> float | None:
        value = float(evidence[name][at])
        return None if math.isnan(value) else value

    def metadata(at: int) -> float | None:
        uses = present("uses", at)
        parts = {
            name: present(name, at) for name in ("confidence", "review", "maturity", "certainty")
        }
        parts["uses"] = None if uses is None else min(math.log1p(uses) / math.log(101), 1.0)
        weights = dict(zip(parts, (0.4, 0.2, 0.1, 0.1, 0.2), strict=True))
        known = {name: value for name, value in parts.items() if value is not None}
        whole = sum(weights[name] for name in known)
        return (
            sum(weights[name] * value for name, value in known.items()) / whole if known else None
        )

    dense = {at: value for at in range(n) if (value := present("cosine", at)) is not None}
    sparse = {}
    for at in range(n):
        lexical = max(present("coverage", at) or 0.0, present("structured", at) or 0.0)
        if lexical > 0:
            sparse[at] = 0.4 * lexical + 0.6 * (metadata(at) or 0.0)
    for at in range(n):
        votes = 0.0
        for ranked in (dense, sparse):
            if at in ranked:
                better = sum(value > ranked[at] + 1e-12 for value in ranked.values())
                votes += 1 / (60 + 1 + better)
        assert made.scores[at] == pytest.approx(votes / (2 / 61), abs=1e-12), ids[at]


def test_reranking_when_a_relevant_memory_has_poor_metadata_then_it_wins_where_it_lost() -> None:
    """One provisional, inferred, flagged memory with coverage .8 against eighty shining others."""
    others = 80
    ids = ["wanted", *(f"other{at:02}" for at in range(others))]
    evidence = {
        "cosine": [NAN] + [0.4] * others,
        "coverage": [0.8] + [0.25] * others,
        "confidence": [0.2] + [0.95] * others,
        "review": [0.25] + [1.0] * others,
        "maturity": [0.5] + [1.0] * others,
        "certainty": [0.5] + [1.0] * others,
        "uses": [0.0] + [100.0] * others,
    }
    profile = load_profile("relevance-rerank")
    before = compose(profile, evidence, ids).scores
    after = compose(profile, evidence, ids, rerank=True).scores
    assert (before > before[0]).sum() == others
    assert after.argmax() == 0
    # .8·.8 + .2·(.4·.2 + .2·.25 + .1·.5 + .1·.5 + .2·0)
    assert after[0] == pytest.approx(0.64 + 0.2 * 0.23, abs=1e-15)


def test_reranking_when_there_is_only_metadata_then_it_cannot_win() -> None:
    evidence = {"confidence": [1.0, NAN], "coverage": [NAN, 0.3]}
    after = compose(load_profile("relevance-rerank"), evidence, ["a", "b"], rerank=True).scores
    assert after == pytest.approx([0.2, 0.24], abs=1e-15)

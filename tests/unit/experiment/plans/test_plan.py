"""Plans refuse confounded arms; generated ones change just what they are about."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import rankblend as rb
from rankblend.errors import ConfoundedPlanError, InvalidArgumentError, ProfileError
from rankblend.experiment.plans import (
    Arm,
    Plan,
    Range,
    Unheld,
    add_one_in,
    curve_swaps,
    grid,
    guided_search,
    leave_one_out,
    missing_policies,
    pool_depths,
    proposing,
    random_search,
    random_weights,
    revise,
    scope_modes,
    scored_signals,
    store_dropout,
    subsets,
    without_signals,
)
from rankblend.relevance import Neutral, Node, Renormalize, Require, Shrink, Zero

DEFAULT = rb.load_profile("default")


def test_plan_when_arms_differ_elsewhere_too_then_refused_with_all_of_it():
    confounded = revise(DEFAULT, {"pool.size": 50, "scope.mode": "blend", "score.missing": "zero"})
    other = revise(DEFAULT, {"order.ties": ["recency"]})
    with pytest.raises(ConfoundedPlanError) as caught:
        Plan(Arm("base", DEFAULT), (Arm("a", confounded), Arm("b", other)), ("score.missing",))
    assert len(caught.value.problems) == 3
    assert all("score.missing" not in problem for problem in caught.value.problems)
    stated = ("score.missing", "pool", "scope.mode", "order")
    plan = Plan(Arm("base", DEFAULT), (Arm("a", confounded), Arm("b", other)), stated)
    assert plan.arms[0].changed == ("pool.size", "scope.mode", "score.missing")


def test_plan_when_the_replay_of_an_arm_differs_then_that_counts_as_well():
    arm = Arm("a", DEFAULT, without_stores=["graph"], observe=False, regime=Unheld("vectors", 0.3))
    with pytest.raises(ConfoundedPlanError) as caught:
        Plan(Arm("base", DEFAULT), (arm,), ())
    assert len(caught.value.problems) == 3


def test_plan_when_names_repeat_or_there_are_no_arms_then_refused():
    with pytest.raises(InvalidArgumentError, match="more than one"):
        Plan(Arm("x", DEFAULT), (Arm("x", DEFAULT),), ())
    with pytest.raises(InvalidArgumentError, match="at least one"):
        Plan(Arm("x", DEFAULT), (), ())


def test_arm_hash_when_replayed_as_live_then_the_profile_s_own():
    assert Arm("a", DEFAULT).hash == DEFAULT.hash
    others = [
        Arm("a", DEFAULT, observe=False),
        Arm("a", DEFAULT, without_stores=("graph",)),
        Arm("a", DEFAULT, regime=Unheld("vectors", 0.3)),
        Arm("a", DEFAULT, regime=Unheld("vectors", 0.3, seed=1)),
    ]
    assert len({arm.hash for arm in others} | {DEFAULT.hash}) == 5


def test_under_when_a_regime_is_given_then_every_arm_has_it_and_nothing_is_confounded():
    plan = missing_policies(DEFAULT, [Zero()]).under(Unheld("vectors", 0.3))
    assert {arm.regime.name for arm in plan.all_arms} == {"vectors lacks 30 % (seed 0)"}


def test_scored_signals_when_nodes_nest_then_the_signals_themselves():
    assert scored_signals(DEFAULT) == (
        "keyword", "coverage", "similarity", "proximity", "salience",
    )  # fmt: skip


@pytest.mark.parametrize("name", rb.profile_names())
def test_leave_one_out_when_made_of_a_preset_then_an_arm_for_each_signal_or_a_reason(name):
    profile = rb.load_profile(name)
    plan = leave_one_out(profile)
    assert len(plan.arms) + len(plan.skipped) == len(scored_signals(profile))
    for arm in plan.arms:
        left_out = arm.name.removeprefix("without ")
        assert left_out not in scored_signals(arm.profile)
        assert left_out not in arm.profile.signals_needed
        assert arm.changed


def test_without_signals_when_a_node_loses_all_inputs_then_it_goes_too():
    left = without_signals(DEFAULT, ["keyword", "coverage"])
    assert [name for name, _ in left.score.weights] == ["similarity", "proximity", "salience"]
    assert "words" not in left.nodes


def test_without_signals_when_nothing_is_left_or_unknown_then_refused():
    with pytest.raises(InvalidArgumentError, match="score by nothing"):
        without_signals(DEFAULT, scored_signals(DEFAULT))
    with pytest.raises(InvalidArgumentError) as caught:
        without_signals(DEFAULT, ["nobody", "nothing"])
    assert len(caught.value.problems) == 2


def test_leave_one_out_when_a_signal_carries_the_others_then_skipped_with_the_reason():
    plan = leave_one_out(rb.load_profile("hindsight"))
    assert plan.skipped
    assert all("base" in why for why in plan.skipped.values())


def test_add_one_in_when_started_from_one_then_each_arm_has_one_more():
    plan = add_one_in(DEFAULT, ["similarity"])
    assert scored_signals(plan.baseline.profile) == ("similarity",)
    assert [set(scored_signals(arm.profile)) for arm in plan.arms] == [
        {"similarity", name} for name in ("keyword", "coverage", "proximity", "salience")
    ]


def test_subsets_when_made_then_every_non_empty_one_once():
    plan = subsets(DEFAULT, ["keyword", "similarity", "proximity"])
    assert len(plan.arms) == 7
    assert plan.arms[0] == "keyword"
    assert plan.arms[5 - 1] == "keyword + proximity"  # 0b101
    assert plan.arms[-1] == plan.plan.baseline.name
    for name, arm in zip(plan.arms, plan.plan.arms, strict=False):
        studied = set(scored_signals(arm.profile)) & set(plan.signals)
        assert studied == set(name.split(" + "))
    with pytest.raises(InvalidArgumentError, match="at least two"):
        subsets(DEFAULT, ["keyword"])


def test_store_dropout_when_two_at_a_time_then_all_pairs_too():
    plan = store_dropout(DEFAULT, ["graph", "keywords", "vectors"], most=2)
    assert [arm.without_stores for arm in plan.arms] == [
        ("graph",), ("keywords",), ("vectors",),
        ("graph", "keywords"), ("graph", "vectors"), ("keywords", "vectors"),
    ]  # fmt: skip
    assert {arm.changed for arm in plan.arms} == {("replay.without_stores",)}


def test_proposing_when_made_then_only_observing_differs():
    (arm,) = proposing(DEFAULT).arms
    assert arm.changed == ("replay.observe",)
    assert not arm.observe


def test_missing_policies_when_swapped_then_in_the_score_and_in_nodes_below():
    plan = missing_policies(
        DEFAULT, [Renormalize(), Neutral(0.5), Zero(), Shrink(0.2, 0.5), Require(0.5)]
    )
    # Renormalize is the profile's own.
    assert [arm.name for arm in plan.arms] == [
        "neutral(0.5)", "zero", "shrink(0.2, 0.5)", "require(0.5)",
    ]  # fmt: skip
    for arm in plan.arms:
        assert arm.changed == ("nodes.words.missing", "score.missing")


def test_missing_policies_when_a_composer_cannot_take_one_then_skipped():
    strongest = evolve(DEFAULT, score=Node.of("strongest", "words", "similarity"))
    plan = missing_policies(strongest, [Zero(), Shrink(0.2, 0.5)])
    assert [arm.name for arm in plan.arms] == ["zero"]
    assert "shrink" in plan.skipped["shrink(0.2, 0.5)"]


def test_scope_modes_and_pool_depths_when_made_then_only_those_change():
    assert [arm.name for arm in scope_modes(DEFAULT).arms] == ["scope blend", "scope backfill"]
    plan = pool_depths(DEFAULT, [10, 100, 1000])
    assert [arm.changed for arm in plan.arms] == [("pool.size",), ("pool.max", "pool.size")]


def test_grid_when_made_then_every_point_but_the_baseline_s():
    plan = grid(
        DEFAULT, {"score.weights.similarity": [0.3, 0.5], "score.missing": ["renormalize", "zero"]}
    )
    assert len(plan.arms) == 3
    with pytest.raises(InvalidArgumentError):
        grid(DEFAULT, {})
    with pytest.raises(InvalidArgumentError):
        grid(DEFAULT, {"pool.size": range(1, 20_000)})


def test_grid_when_a_part_of_a_curve_a_policy_or_an_option_varies_then_nothing_is_confounded():
    curve = {"signals.keyword.curve.saturation.c": [3, 12], "score.weights.words": [0.5]}
    assert [arm.changed for arm in grid(DEFAULT, curve).arms] == [
        ("score.weights.words", "signals.keyword.curve")
    ] * 2
    prior = grid(rb.load_profile("default-sparse"), {"score.missing.shrink.prior": [0.1, 0.3]})
    assert [arm.changed for arm in prior.arms] == [("score.missing",)] * 2
    k = grid(rb.load_profile("rrf"), {"score.k": [10, 100]})
    assert [arm.changed for arm in k.arms] == [("score.options",)] * 2


def test_grid_when_a_point_is_invalid_then_skipped_with_the_reason():
    plan = grid(DEFAULT, {"score.weights.similarity": [-1.0, 0.5]})
    assert len(plan.arms) == 1
    assert "≥ 0" in next(iter(plan.skipped.values()))


def test_random_search_when_seeded_then_the_same_points_within_the_space():
    space = {"score.weights.similarity": Range(0.1, 10.0, log=True), "score.missing": ["zero"]}
    plans = [random_search(DEFAULT, space, count=5, seed=4) for _ in range(2)]
    assert plans[0] == plans[1]
    weights = [dict(arm.profile.score.weights)["similarity"] for arm in plans[0].arms]
    assert all(0.1 <= weight <= 10.0 for weight in weights)
    assert len(set(weights)) == 5


def test_random_weights_when_made_then_they_sum_to_what_was_promised():
    promised = rb.load_profile("mnemosyne")
    for arm in random_weights(promised, count=5).arms:
        assert sum(weight for _, weight in arm.profile.score.weights) == pytest.approx(1.0)


def test_curve_swaps_when_made_then_only_that_curve():
    plan = curve_swaps(DEFAULT, "similarity", ["min_max", ["clip", {"power": {"p": 2.0}}]])
    assert {arm.changed for arm in plan.arms} == {("signals.similarity.curve",)}
    with pytest.raises(InvalidArgumentError):
        curve_swaps(DEFAULT, "nobody", ["clip"])


def test_guided_search_when_one_weight_matters_then_found_and_every_try_is_kept():
    pytest.importorskip("optuna")

    def score(profiles):
        return [-((dict(p.score.weights)["similarity"] - 2.0) ** 2) for p in profiles]

    plan = guided_search(
        DEFAULT, {"score.weights.similarity": Range(0.0, 5.0)}, score, trials=40, batch=8
    )
    assert len(plan.arms) == 40
    assert max(score([arm.profile for arm in plan.arms])) > -0.05


def test_revise_when_the_path_is_wrong_then_refused():
    with pytest.raises(ProfileError):
        revise(DEFAULT, {"score.weighed.similarity": 1.0})
    with pytest.raises(InvalidArgumentError):
        revise(DEFAULT, {"pool.size.of": 1})


def test_revise_when_inputs_were_a_list_then_it_becomes_weights():
    profile = rb.load_profile("rrf")
    name = profile.score.weights[0][0]
    changed = revise(profile, {f"score.weights.{name}": 2.0})
    assert dict(changed.score.weights) == dict(profile.score.weights) | {name: 2.0}


def test_revise_when_a_step_of_a_curve_is_named_then_only_that_step():
    changed = revise(DEFAULT, {"signals.proximity.curve.1.power.p": 0.25})
    assert changed.signals["proximity"].curve[1].params == (("p", 0.25),)
    assert np.isclose(DEFAULT.signals["proximity"].curve[1].params[0][1], 0.5)

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, InvalidArrayError, InvalidSignalError
from rankblend.relevance import (
    COMPOSERS,
    Composer,
    Composition,
    MissingPolicy,
    Neutral,
    Node,
    Option,
    Override,
    RelevanceSignals,
    Renormalize,
    Require,
    Required,
    Shrink,
    SignalTable,
    Zero,
    compose_table,
    node_inputs,
    register_composer,
)

NAN = math.nan


def evaluate(
    root: Node,
    *rows: Mapping[str, float],
    nodes: Mapping[str, Node] | None = None,
    contributions: bool = True,
) -> Composition:
    table = SignalTable.from_signals(
        (str(at), RelevanceSignals(**row)) for at, row in enumerate(rows)
    )
    return compose_table(root, nodes or {}, table, contributions=contributions)


def mean(missing: MissingPolicy = Renormalize(), **absent: Override) -> Node:  # noqa: B008
    return Node("weighted_mean", {"a": 3, "b": 1}, missing=missing, absent=absent)


def row_of(made: Composition, row: int) -> dict[str, float]:
    found = {name: float(values[row]) for name, values in made.contributions.items()}
    return {name: value for name, value in found.items() if not math.isnan(value)}


class TestPolicies:
    @pytest.mark.parametrize(
        ("missing", "score", "rows"),
        [
            (Renormalize(), 0.8, {"b": 0.8}),
            (Neutral(0.4), 0.5, {"b": 0.2, "filled:a": 0.3}),  # (3 · .4 + .8) / 4
            (Zero(), 0.2, {"b": 0.2, "filled:a": 0.0}),
            (Shrink(0.2, 0.5), 0.4, {"b": 0.8 / 3, "prior": 0.4 / 3}),  # (.8 + 2 · .2) / 3
            (Shrink(0.2, 0.0), 0.8, {"b": 0.8, "prior": 0.0}),
            (Require(0.25), 0.8, {"b": 0.8}),
        ],
    )
    def test_score_when_a_is_absent_then_follows_the_policy(
        self, missing: MissingPolicy, score: float, rows: dict[str, float]
    ) -> None:
        made = evaluate(mean(missing), {"b": 0.8})
        assert made.scores[0] == pytest.approx(score, abs=1e-15)
        assert made.present.tolist() == [True]
        assert row_of(made, 0) == pytest.approx(rows, abs=1e-15)
        assert not made.dropped

    @pytest.mark.parametrize(
        ("missing", "score", "present", "rows"),
        [
            (Renormalize(), 0.0, False, {}),
            (Zero(), 0.0, False, {}),
            (Require(0.0), 0.0, False, {}),
            (Neutral(0.3), 0.3, True, {"filled:a": 0.225, "filled:b": 0.075}),
            (Shrink(0.3, 0.7), 0.3, True, {"prior": 0.3}),
            (Shrink(0.3, 0.0), 0.3, True, {"prior": 0.3}),
        ],
    )
    def test_score_when_nothing_is_present_then_is_the_policys_value_exactly(
        self, missing: MissingPolicy, score: float, present: bool, rows: dict[str, float]
    ) -> None:
        made = evaluate(mean(missing), {})
        assert made.scores.tolist() == [score]
        assert made.present.tolist() == [present]
        assert row_of(made, 0) == pytest.approx(rows, abs=1e-15)

    @pytest.mark.parametrize(
        ("missing", "score", "present", "rows"),
        [
            (Renormalize(), 0.0, False, {}),
            (Zero(), 0.0, False, {}),
            (Neutral(0.3), 0.3, True, {"prior": 0.3}),
            (Shrink(0.3, 0.7), 0.3, True, {"prior": 0.3}),
        ],
    )
    def test_score_when_no_weight_is_above_zero_then_nothing_is_present(
        self, missing: MissingPolicy, score: float, present: bool, rows: dict[str, float]
    ) -> None:
        node = Node("weighted_mean", {"a": 0, "b": 0}, missing=missing)
        made = evaluate(node, {"a": 1.0, "b": 0.5})
        assert made.scores.tolist() == [score]
        assert made.present.tolist() == [present]
        assert row_of(made, 0) == rows

    def test_score_when_only_a_weightless_input_is_present_then_nothing_is_present(self) -> None:
        node = Node("weighted_mean", {"a": 0, "b": 1})
        assert not evaluate(node, {"a": 1.0}).present[0]
        made = evaluate(attrs.evolve(node, missing=Neutral(0.25)), {"a": 1.0})
        assert made.scores[0] == 0.25
        assert row_of(made, 0) == {"filled:b": 0.25}

    def test_require_when_coverage_is_met_within_tolerance_then_passes(self) -> None:
        # .7 + .1 of .7 + .1 + .2 is 0.7999999999999999 in floating point.
        node = Node("weighted_mean", {"a": 0.7, "b": 0.1, "c": 0.2}, missing=Require(0.8))
        made = evaluate(node, {"a": 0.5, "b": 0.5}, {"a": 0.5}, {})
        assert made.scores.tolist() == pytest.approx([0.5, 0.0, 0.0])
        assert made.present.tolist() == [True, False, False]
        assert made.dropped["require: coverage"].tolist() == [False, True, True]
        assert row_of(made, 1) == {}
        node = attrs.evolve(node, missing=Require(0.8 + 2e-12))
        assert not evaluate(node, {"a": 0.5, "b": 0.5}).present[0]

    def test_require_when_nothing_is_present_then_drops(self) -> None:
        made = evaluate(mean(Require(0.5)), {})
        assert made.dropped["require: coverage"].tolist() == [True]
        weightless = Node("weighted_mean", {"a": 0}, missing=Require(0.5))
        assert evaluate(weightless, {"a": 1}).dropped["require: coverage"].tolist() == [True]

    def test_override_when_it_fills_then_counts_as_present(self) -> None:
        made = evaluate(mean(a=Zero()), {"b": 0.8}, {})
        assert made.scores.tolist() == [0.2, 0.0]
        assert made.present.tolist() == [True, True]
        assert row_of(made, 0) == {"b": 0.2, "filled:a": 0.0}
        # Under require the filled weight is covered: 3 / 4.
        assert evaluate(mean(Require(0.75), a=Neutral(0.5)), {}).scores.tolist() == [0.5]
        # Under shrink too: (3 · .5 + 2 · .2) / (3 + 2).
        made = evaluate(mean(Shrink(0.2, 0.5), a=Neutral(0.5)), {})
        assert made.scores[0] == pytest.approx(0.38, abs=1e-15)

    def test_override_when_policy_is_neutral_then_goes_first(self) -> None:
        # a counts 0, b the policy's .8: (0 + .8) / 4
        made = evaluate(mean(Neutral(0.8), a=Zero()), {})
        assert made.scores.tolist() == [0.2]
        assert row_of(made, 0) == {"filled:a": 0.0, "filled:b": 0.2}

    def test_required_when_absent_then_drops_whatever_the_policy_or_weight(self) -> None:
        for missing in (Renormalize(), Neutral(0.5), Zero(), Shrink(0.5, 1), Require(0.1)):
            for weights in ({"a": 3, "b": 1}, {"a": 0, "b": 1}):
                node = Node("weighted_mean", weights, missing=missing, absent={"a": Required()})
                made = evaluate(node, {"b": 0.8}, {"a": 0.0, "b": 0.8})
                assert made.present.tolist() == [False, True]
                assert made.scores[0] == 0.0
                assert made.dropped["required: a"].tolist() == [True, False]
                assert row_of(made, 0) == {}

    def test_dropped_when_several_reasons_hold_then_all_are_told(self) -> None:
        made = evaluate(mean(Require(0.5), a=Required()), {"b": 1.0})
        assert list(made.dropped) == ["required: a", "require: coverage"]

    @pytest.mark.parametrize("strength", [1e-300, 1.0, 1e300, 1.7e308])
    @pytest.mark.parametrize("scale", [5e-324, 1.0, 8e307])
    def test_shrink_when_numbers_are_extreme_then_stays_the_formula(
        self, strength: float, scale: float
    ) -> None:
        node = Node("weighted_mean", {"a": scale, "b": scale}, missing=Shrink(0.25, strength))
        # (1 + 2s · .25) / (1 + 2s)
        expected = (
            (1.0 / (2 * strength) + 0.25) / (1.0 / (2 * strength) + 1.0)
            if (strength > 1e-200)
            else 1.0
        )
        assert evaluate(node, {"a": 1.0}).scores[0] == pytest.approx(expected, rel=1e-14)


class TestNesting:
    NODES: ClassVar[Mapping[str, Node]] = {
        "relevance": Node.of("strongest", "coverage", "similarity"),
        "metadata": Node("weighted_mean", {"confidence": 0.4, "review": 0.2}),
    }
    ROOT = Node("weighted_mean", {"relevance": 0.8, "metadata": 0.2}, missing=Zero())

    def test_tree_when_nested_then_is_the_reranker_of_the_specification(self) -> None:
        made = evaluate(
            self.ROOT,
            {"coverage": 0.5, "similarity": 0.75, "confidence": 0.9, "review": 0.3},
            {"confidence": 1.0, "review": 1.0},
            {},
            nodes=self.NODES,
        )
        # .8 · .75 + .2 · (.36 + .06) / .6 = .74; metadata alone .2
        assert made.scores.tolist() == pytest.approx([0.74, 0.2, 0.0], abs=1e-15)
        assert made.present.tolist() == [True, True, False]
        assert row_of(made, 0) == pytest.approx({"relevance": 0.6, "metadata": 0.14})
        assert row_of(made, 1) == pytest.approx({"metadata": 0.2, "filled:relevance": 0.0})
        assert list(made.children) == ["relevance", "metadata"]
        assert row_of(made.children["relevance"], 0) == {"similarity": 0.75}
        assert made.children["relevance"].present.tolist() == [True, False, False]

    @pytest.mark.parametrize(
        ("inner", "score"),
        [
            (Renormalize(), 0.6),  # absent to its parent
            (Zero(), 0.6),  # too: nothing was observed
            (Require(0.0), 0.6),
            (Neutral(0.2), 0.4),  # (.2 + .6) / 2
            (Shrink(0.2, 1.0), 0.4),
        ],
    )
    def test_nested_node_when_nothing_is_present_then_is_absent_unless_its_policy_speaks(
        self, inner: MissingPolicy, score: float
    ) -> None:
        nodes = {"inner": Node("weighted_mean", {"x": 1}, missing=inner)}
        made = evaluate(Node.of("weighted_mean", "inner", "y"), {"y": 0.6}, nodes=nodes)
        assert made.scores[0] == pytest.approx(score, abs=1e-15)

    def test_nested_node_when_it_fails_then_is_absent_and_the_root_drops_nothing(self) -> None:
        nodes = {
            "covered": Node("weighted_mean", {"x": 1, "z": 3}, missing=Require(0.5)),
            "needs": Node("weighted_mean", {"x": 1, "z": 3}, absent={"z": Required()}),
        }
        root = Node.of("weighted_mean", "covered", "needs", "y")
        made = evaluate(root, {"x": 1.0, "y": 0.6}, nodes=nodes)
        assert made.scores[0] == pytest.approx(0.6, abs=1e-15)
        assert not made.dropped
        assert list(made.children["covered"].dropped) == ["require: coverage"]
        assert list(made.children["needs"].dropped) == ["required: z"]

    def test_root_when_it_requires_a_nested_node_then_drops_by_its_name(self) -> None:
        root = Node.of("weighted_mean", "inner", "y")
        root = attrs.evolve(root, absent={"inner": Required()})
        made = evaluate(root, {"y": 0.6}, nodes={"inner": Node.of("strongest", "x")})
        assert made.dropped["required: inner"].tolist() == [True]

    def test_input_when_node_and_signal_share_a_name_then_is_the_node(self) -> None:
        nodes = {"x": Node.of("weighted_mean", "y")}
        assert evaluate(Node.of("strongest", "x"), {"x": 1.0, "y": 0.5}, nodes=nodes).scores == 0.5

    def test_input_when_known_to_nobody_then_is_absent(self) -> None:
        assert evaluate(Node.of("weighted_mean", "x", "y"), {"y": 0.5}).scores[0] == 0.5

    def test_node_when_read_twice_then_is_evaluated_once(self) -> None:
        nodes = {
            "shared": Node.of("strongest", "x"),
            "left": Node.of("weighted_mean", "shared"),
            "right": Node.of("weighted_mean", "shared", "y"),
        }
        made = evaluate(Node.of("weighted_mean", "left", "right"), {"x": 0.5, "y": 1}, nodes=nodes)
        left, right = made.children["left"], made.children["right"]
        assert left.children["shared"] is right.children["shared"]
        assert made.scores[0] == pytest.approx(0.625)  # (.5 + .75) / 2

    @pytest.mark.parametrize(
        "nodes",
        [
            {"a": Node.of("strongest", "a")},
            {"a": Node.of("strongest", "b"), "b": Node.of("strongest", "x", "a")},
            {
                "a": Node("reciprocal_rank_fusion", {"x": 1}, options={"members": {"x": "b"}}),
                "b": Node.of("strongest", "a"),
            },
        ],
    )
    def test_nodes_when_one_reads_itself_then_refused(self, nodes: dict[str, Node]) -> None:
        with pytest.raises(InvalidArgumentError, match="reads itself: a →"):
            evaluate(Node.of("weighted_mean", "x", "a"), {"x": 1.0}, nodes=nodes)

    def test_nodes_when_not_reached_then_may_even_be_circular(self) -> None:
        nodes = {"a": Node.of("strongest", "a")}
        assert evaluate(Node.of("weighted_mean", "x"), {"x": 1.0}, nodes=nodes).scores[0] == 1.0

    def test_nodes_when_a_chain_is_longer_than_the_stack_then_evaluates(self) -> None:
        nodes = {f"n{at}": Node.of("strongest", f"n{at + 1}") for at in range(3_000)}
        made = evaluate(Node.of("strongest", "n0"), {"n3000": 0.5}, nodes=nodes)
        assert made.scores[0] == 0.5


class TestComposers:
    def test_strongest_when_weights_differ_then_only_zero_matters(self) -> None:
        node = Node("strongest", {"a": 0, "b": 0.1, "c": 9})
        made = evaluate(node, {"a": 1.0, "b": 0.5, "c": 0.4}, {"a": 1.0}, {"b": 0.5, "c": 0.5})
        assert made.scores.tolist() == [0.5, 0.0, 0.5]
        assert made.present.tolist() == [True, False, True]
        assert (made.additive, made.label) == (False, "winner")
        assert [row_of(made, row) for row in range(3)] == [{"b": 0.5}, {}, {"b": 0.5}]

    def test_strongest_when_absent_counts_then_it_may_win(self) -> None:
        node = attrs.evolve(Node.of("strongest", "a", "b"), missing=Neutral(0.5))
        made = evaluate(node, {"a": 0.4}, {"a": 0.6}, {})
        assert made.scores.tolist() == [0.5, 0.6, 0.5]
        assert [row_of(made, row) for row in range(3)] == [
            {"filled:b": 0.5},
            {"a": 0.6},
            {"filled:a": 0.5},
        ]

    def test_strongest_when_all_are_zero_then_zero_is_the_winner(self) -> None:
        made = evaluate(Node.of("strongest", "a", "b"), {"a": 0.0, "b": 0.0})
        assert made.present[0]
        assert row_of(made, 0) == {"a": 0.0}

    def test_weighted_sum_when_some_are_absent_then_still_divides_by_all_weight(self) -> None:
        node = Node("weighted_sum", {"a": 3, "b": 1})
        made = evaluate(node, {"a": 1.0, "b": 1.0}, {"b": 0.8}, {})
        assert made.scores.tolist() == [1.0, 0.2, 0.0]
        assert made.present.tolist() == [True, True, False]
        assert row_of(made, 1) == {"b": 0.2}

    def test_comb_mnz_when_fewer_are_hit_then_loses_twice(self) -> None:
        node = Node("comb_mnz", {"a": 3, "b": 1, "c": 0})
        made = evaluate(node, {"a": 1, "b": 1}, {"a": 1, "b": 0, "c": 1}, {"a": 0}, {"c": 1})
        # 2/2 · 4/4; 1/2 · 3/4; 0; nothing
        assert made.scores.tolist() == [1.0, 0.375, 0.0, 0.0]
        assert made.present.tolist() == [True, True, True, False]
        assert made.additive
        assert row_of(made, 1) == {"a": 0.375, "b": 0.0}

    def test_shrink_when_a_composer_divides_by_all_weight_then_mixes_in_the_prior(self) -> None:
        for name, score in (("weighted_sum", 0.75), ("comb_mnz", 0.375)):
            node = Node(name, {"a": 3, "b": 1}, missing=Shrink(0.2, 0.5))
            made = evaluate(node, {"a": 1.0}, {})
            assert made.scores.tolist() == pytest.approx([(score + 0.1) / 1.5, 0.2])
            assert row_of(made, 0) == pytest.approx({"a": score / 1.5, "prior": 0.1 / 1.5})

    def test_geometric_mean_when_weighted_then_is_the_root_of_the_product(self) -> None:
        node = Node("geometric_mean", {"a": 1, "b": 3, "c": 0})
        made = evaluate(node, {"a": 0.5, "b": 0.25, "c": 0}, {"a": 0.3}, {"a": 0, "b": 1}, {"c": 1})
        # (.5 · .25³)^(1/4)
        assert made.scores.tolist() == pytest.approx([0.0078125**0.25, 0.3, 0.0, 0.0], abs=1e-15)
        assert made.scores[1] == 0.3
        assert made.present.tolist() == [True, True, True, False]
        assert made.label == "log share"
        assert sum(row_of(made, 0).values()) == pytest.approx(math.log(made.scores[0]), abs=1e-14)
        assert row_of(made, 2) == {"a": -math.inf, "b": 0.0}

    def test_geometric_mean_when_absent_counts_zero_then_is_zero(self) -> None:
        node = attrs.evolve(Node.of("geometric_mean", "a", "b"), missing=Zero())
        made = evaluate(node, {"a": 1.0}, {})
        assert made.scores.tolist() == [0.0, 0.0]
        assert made.present.tolist() == [True, False]

    @pytest.mark.parametrize(("value", "share"), [(0.5, math.log(0.5)), (0.0, -math.inf)])
    def test_geometric_mean_when_only_the_policy_speaks_then_its_row_is_a_logarithm_too(
        self, value: float, share: float
    ) -> None:
        node = Node("geometric_mean", {"a": 0}, missing=Neutral(value))
        made = evaluate(node, {"a": 1.0})
        assert made.scores.tolist() == [value]
        assert row_of(made, 0) == pytest.approx({"prior": share})

    BOOSTED = Node("boosted", {"base": 1, "recency": 0.2, "proof": 0.1}, options={"base": "base"})

    def test_boosted_when_factors_are_neutral_or_absent_then_are_exactly_one(self) -> None:
        made = evaluate(
            self.BOOSTED,
            {"base": 0.8},
            {"base": 0.8, "recency": 0.5, "proof": 0.5},
            {"base": 1.0, "recency": 1.0, "proof": 1.0},
            {"base": 0.8, "recency": 0.0},
            {"recency": 1.0, "proof": 1.0},
        )
        # .8 / (1.1 · 1.05); the same; 1; .8 · .9 / (1.1 · 1.05); nothing without the base
        expected = [0.8 / 1.155, 0.8 / 1.155, 1.0, 0.72 / 1.155, 0.0]
        assert made.scores.tolist() == pytest.approx(expected, abs=1e-15)
        assert made.scores[0] == made.scores[1]
        assert made.present.tolist() == [True, True, True, True, False]
        assert made.label == "factor"
        assert row_of(made, 3) == pytest.approx({"base": 0.8 / 1.155, "recency": 0.9})
        assert row_of(made, 4) == {}

    def test_boosted_when_base_is_absent_then_only_a_value_of_the_policy_or_override_helps(
        self,
    ) -> None:
        row = {"recency": 1.0}
        for missing in (Renormalize(), Zero(), Require(0.1)):
            assert not evaluate(attrs.evolve(self.BOOSTED, missing=missing), row).present[0]
        made = evaluate(attrs.evolve(self.BOOSTED, missing=Neutral(0.3)), row, {})
        assert made.scores.tolist() == [0.3, 0.3]
        assert [row_of(made, at) for at in (0, 1)] == [{"prior": 0.3}, {"prior": 0.3}]
        made = evaluate(attrs.evolve(self.BOOSTED, absent={"base": Neutral(0.5)}), row)
        assert made.scores[0] == pytest.approx(0.5 * 1.1 / 1.155)
        assert math.prod(row_of(made, 0).values()) == pytest.approx(made.scores[0])

    def test_boosted_when_there_are_thousands_of_boosts_then_stays_finite(self) -> None:
        weights = {"base": 1.0} | {f"b{at}": 1.99 for at in range(2_000)}
        node = Node("boosted", weights, options={"base": "base"})
        assert evaluate(node, dict.fromkeys(weights, 1.0)).scores[0] == pytest.approx(1.0)

    def test_fusion_when_default_then_is_reciprocal_rank_over_the_positive(self) -> None:
        node = Node("reciprocal_rank_fusion", {"a": 1, "b": 2})
        made = evaluate(node, {"a": 0.9, "b": 0.1}, {"a": 0.5}, {"a": 0.0, "b": 0.7}, {"b": 0}, {})
        most = 1 / 61 + 2 / 61
        expected = [(1 / 61 + 2 / 62) / most, (1 / 62) / most, (2 / 61) / most, 0.0, 0.0]
        assert made.scores.tolist() == pytest.approx(expected, abs=1e-15)
        assert made.present.tolist() == [True, True, True, False, False]
        assert made.additive
        assert row_of(made, 2) == pytest.approx({"b": (2 / 61) / most})

    def test_fusion_when_values_are_equal_then_share_the_best_rank(self) -> None:
        node = Node("reciprocal_rank_fusion", {"a": 1}, options={"k": 1})
        made = evaluate(node, {"a": 0.5}, {"a": 0.9}, {"a": 0.5}, {"a": 0.1})
        # ranks 2, 1, 2, 4; votes 2 / (1 + rank)
        assert made.scores.tolist() == pytest.approx([2 / 3, 1.0, 2 / 3, 2 / 5])

    def test_fusion_when_members_are_present_then_zeros_are_listed(self) -> None:
        node = Node("reciprocal_rank_fusion", {"a": 1}, options={"members": "present", "k": 1})
        made = evaluate(node, {"a": 0.5}, {"a": 0.0}, {})
        assert made.scores.tolist() == pytest.approx([1.0, 2 / 3, 0.0])
        assert made.present.tolist() == [True, True, False]

    def test_fusion_when_a_list_has_a_gate_then_only_those_above_zero_there_are_on_it(self) -> None:
        node = Node(
            "reciprocal_rank_fusion",
            {"dense": 1, "sparse": 1},
            options={"members": {"sparse": "matched", "dense": "present"}, "k": 1},
        )
        assert node_inputs(node) == ("dense", "sparse", "matched")
        made = evaluate(
            node,
            {"dense": 0.0, "sparse": 0.9},
            {"dense": 0.4, "sparse": 0.3, "hit": 0.2},
            {"sparse": 0.95, "hit": 0.0},
            nodes={"matched": Node.of("strongest", "hit")},
        )
        # dense ranks 2, 1, –; sparse ranks –, 1, –; each vote 2 / (1 + rank) / 2
        assert made.scores.tolist() == pytest.approx([1 / 3, 1.0, 0.0])
        assert "matched" in made.children

    def test_fusion_when_absent_counts_then_a_fill_is_a_share_of_the_greatest_vote(self) -> None:
        node = attrs.evolve(Node.of("reciprocal_rank_fusion", "a", "b"), missing=Neutral(0.5))
        made = evaluate(node, {"a": 0.9}, {}, {"a": 0.0, "b": 0.0}, {"a": 0.0})
        # (1 + .5) / 2; exactly v; observed throughout on no list: nothing; .5 / 2
        assert made.scores.tolist() == [0.75, 0.5, 0.0, 0.25]
        assert made.present.tolist() == [True, True, False, True]
        assert row_of(made, 0) == {"a": 0.5, "filled:b": 0.25}

    def test_fusion_when_policy_is_zero_then_adds_nothing_and_lists_nobody(self) -> None:
        for members in ("positive", "present"):
            node = Node(
                "reciprocal_rank_fusion",
                {"a": 1, "b": 1},
                missing=Zero(),
                options={"members": members},
            )
            made = evaluate(node, {"a": 0.9}, {"b": 0.2}, {})
            assert made.scores.tolist() == [0.5, 0.5, 0.0]
            assert made.present.tolist() == [True, True, False]

    def test_fusion_when_shrunk_then_a_memory_on_no_list_gets_the_prior(self) -> None:
        node = Node("reciprocal_rank_fusion", {"a": 1}, missing=Shrink(0.2, 1.0))
        made = evaluate(node, {"a": 0.9}, {}, {"a": 0.0})
        assert made.scores.tolist() == pytest.approx([0.6, 0.2, 0.1])  # (1 + .2) / 2; prior; .2 / 2

    @pytest.mark.parametrize("name", sorted(set(COMPOSERS) - {"boosted"}))
    def test_composer_when_all_inputs_are_one_then_scores_one(self, name: str) -> None:
        made = evaluate(Node(name, {"a": 0.1, "b": 0.7, "c": 0.3}), {"a": 1, "b": 1, "c": 1})
        assert made.scores[0] == pytest.approx(1.0, abs=1e-15)
        assert made.scores[0] <= 1.0

    @pytest.mark.parametrize("name", sorted(COMPOSERS))
    def test_composer_when_pool_is_empty_then_everything_is_empty(self, name: str) -> None:
        options = {"base": "a"} if name == "boosted" else {}
        for missing in (Renormalize(), Neutral(0.5), Require(0.5)):
            node = Node(name, {"a": 1, "b": 1}, missing=missing, options=options)
            made = compose_table(node, {}, (["a", "b"], np.empty((0, 2))))
            assert made.scores.shape == made.present.shape == (0,)

    @pytest.mark.parametrize("name", sorted(COMPOSERS))
    def test_composer_when_not_explaining_then_scores_the_same_without_rows(
        self, name: str, rng: np.random.Generator
    ) -> None:
        values = rng.random((50, 4))
        values[rng.random(values.shape) < 0.4] = NAN
        options = {"base": "b"} if name == "boosted" else {}
        node = Node(name, {"a": 1, "b": 0.5, "c": 0, "d": 0.2}, options=options)
        plain = compose_table(node, {}, ("abcd", values), contributions=False)
        full = compose_table(node, {}, ("abcd", values))
        assert plain.contributions == {}
        assert list(full.contributions)[:4] == list("abcd")
        assert np.array_equal(plain.scores, full.scores)
        assert np.array_equal(plain.present, full.present)


class TestComposition:
    def test_arrays_when_written_to_then_refuse(self) -> None:
        made = evaluate(mean(Require(0.5)), {"b": 0.5})
        for array in (
            made.scores,
            made.present,
            made.contributions["a"],
            made.dropped["require: coverage"],
        ):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(TypeError):
            made.contributions["a"] = made.scores  # type: ignore[index]

    def test_equality_when_arrays_match_then_equal(self) -> None:
        assert evaluate(mean(), {"b": 0.5}) == evaluate(mean(), {"b": 0.5})
        assert evaluate(mean(), {"b": 0.5}) != evaluate(mean(), {"b": 0.6})
        assert evaluate(mean(), {"b": 0.5}) != evaluate(mean(Zero(), a=Neutral(1)), {"b": 0.5})

    def test_table_when_given_as_names_and_matrix_then_is_checked(self) -> None:
        node = Node.of("strongest", "a")
        assert compose_table(node, {}, (["a"], [[0.5]])).scores.tolist() == [0.5]
        with pytest.raises(InvalidArrayError):
            compose_table(node, {}, (["a", "a"], [[0.5, 0.5]]))
        with pytest.raises(InvalidArrayError):
            compose_table(node, {}, (["a"], [0.5]))
        with pytest.raises(InvalidSignalError):
            compose_table(node, {}, (["a"], [[math.inf]]))

    def test_matrix_when_composed_then_is_not_touched(self) -> None:
        values = np.array([[0.5, NAN], [NAN, 0.1]])
        before = values.copy()
        compose_table(mean(Neutral(0.5)), {}, (["a", "b"], values))
        assert np.array_equal(values, before, equal_nan=True)


class TestNode:
    def test_node_when_options_are_spelled_out_then_equals_the_default(self) -> None:
        plain = Node.of("reciprocal_rank_fusion", "a", "b")
        full = Node(
            "reciprocal_rank_fusion",
            [("a", 1), ("b", 1)],
            options={"members": "positive", "k": 60},
        )
        assert plain == full
        assert hash(plain) == hash(full)
        assert plain.options == (("k", 60.0), ("members", "positive"))

    def test_node_when_overrides_come_in_another_order_then_is_the_same(self) -> None:
        left = Node("strongest", {"a": 1, "b": 1}, absent={"b": Zero(), "a": Required()})
        right = Node("strongest", {"a": 1, "b": 1}, absent={"a": Required(), "b": Zero()})
        assert left == right
        assert attrs.evolve(left, absent=()) == Node.of("strongest", "a", "b")

    def test_node_when_weights_come_in_another_order_then_is_another(self) -> None:
        assert Node("strongest", {"a": 1, "b": 1}) != Node("strongest", {"b": 1, "a": 1})

    def test_node_when_many_parts_are_wrong_then_reports_all_with_paths(self) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            Node(
                "strongest",
                [("a", "high"), ("a b", 1), ("c", math.nan), ("d", True), ("c", 1)],  # type: ignore[list-item]
                missing=Shrink(0.1, 1),
                absent={"z": Zero(), "a": Renormalize()},  # type: ignore[dict-item]
                options={"k": 60},
            )
        assert caught.value.problems == (
            'weights.a: expected a finite number ≥ 0, got "high"',
            "weights: expected distinct names of ASCII letters, digits and _",
            "weights.c: expected a finite number ≥ 0, got nan",
            "weights.d: expected a finite number ≥ 0, got True",
            "weights: expected distinct names of ASCII letters, digits and _",
            "missing: shrink needs an additive composer, strongest is none",
            "absent.z: expected one of the inputs: a, a b, c, d",
            "absent.a: expected neutral, zero or required",
            "k: unknown option of strongest, expected none",
        )

    @pytest.mark.parametrize("compose", ["strongst", 3, None, []])
    def test_node_when_composer_is_unknown_then_refused(self, compose: object) -> None:
        with pytest.raises(InvalidArgumentError, match="compose"):
            Node(compose, {"a": 1})  # type: ignore[arg-type]

    @pytest.mark.parametrize("weights", [{}, [], None, 3, [("a",)], [(1, 2)], "ab"])
    def test_node_when_there_are_no_weights_then_refused(self, weights: object) -> None:
        with pytest.raises(InvalidArgumentError):
            Node("strongest", weights)  # type: ignore[arg-type]

    def test_node_when_weights_have_no_finite_sum_then_refused(self) -> None:
        with pytest.raises(InvalidArgumentError, match="sum"):
            Node("weighted_mean", {"a": 1e308, "b": 1e308})

    def test_node_when_policy_is_no_policy_then_refused(self) -> None:
        with pytest.raises(InvalidArgumentError, match="missing"):
            Node("weighted_mean", {"a": 1}, missing="zero")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({}, "base: expected one of the inputs: a, b; got None"),
            ({"base": "c"}, 'base: expected one of the inputs: a, b; got "c"'),
            ({"base": "b"}, "weights.a: expected a boost below 2, got 2.0"),
            ({"base": "a"}, None),
        ],
    )
    def test_boosted_when_base_or_strengths_do_not_fit_then_refused(
        self, options: dict[str, object], problem: str | None
    ) -> None:
        weights = {"a": 2, "b": 0.5}
        if problem is None:
            assert Node("boosted", weights, options=options).options == (("base", "a"),)
            return
        with pytest.raises(InvalidArgumentError) as caught:
            Node("boosted", weights, options=options)
        assert caught.value.problems == (problem,)

    def test_boosted_when_base_has_no_weight_then_refused(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"weights\.a"):
            Node("boosted", {"a": 0, "b": 1}, options={"base": "a"})

    @pytest.mark.parametrize("k", [0, -1, math.inf, math.nan, "60", True, None])
    def test_fusion_when_k_is_no_positive_number_then_refused(self, k: object) -> None:
        with pytest.raises(InvalidArgumentError, match="k: expected a finite number > 0"):
            Node("reciprocal_rank_fusion", {"a": 1}, options={"k": k})

    @pytest.mark.parametrize(
        "members", ["listed", 3, None, {"z": "positive"}, {"a": "a b"}, {"a": 1}, (1,), ("ab",)]
    )
    def test_fusion_when_members_are_unknown_then_refused(self, members: object) -> None:
        with pytest.raises(InvalidArgumentError, match="members: expected"):
            Node("reciprocal_rank_fusion", {"a": 1}, options={"members": members})


class TestRegistry:
    def test_composers_when_listed_then_shrink_goes_with_additive_ones_only(self) -> None:
        assert sorted(COMPOSERS) == [
            "boosted",
            "comb_mnz",
            "geometric_mean",
            "reciprocal_rank_fusion",
            "strongest",
            "weighted_mean",
            "weighted_sum",
        ]
        assert all(composer.additive == composer.shrink for composer in COMPOSERS.values())
        pointwise = {name for name, composer in COMPOSERS.items() if composer.pointwise}
        assert set(COMPOSERS) - pointwise == {"reciprocal_rank_fusion"}
        with pytest.raises(TypeError):
            COMPOSERS["mine"] = COMPOSERS["strongest"]  # type: ignore[index]

    def test_register_when_name_is_taken_then_refused_and_the_same_is_harmless(self) -> None:
        strongest = COMPOSERS["strongest"]
        assert register_composer(strongest) is strongest
        with pytest.raises(InvalidArgumentError, match="already registered"):
            register_composer(attrs.evolve(strongest, label="mine"))
        assert COMPOSERS["strongest"] is strongest

    def test_register_when_invalid_then_refused(self) -> None:
        evaluate = COMPOSERS["strongest"].evaluate
        with pytest.raises(InvalidArgumentError) as caught:
            register_composer(Composer("a b", evaluate, shrink=True))
        assert len(caught.value.problems) == 2
        assert "a b" not in COMPOSERS

    def test_option_when_read_then_is_canonical(self) -> None:
        assert Option("k", "number").read(3, ("a",)) == (3.0, [])
        members = Option("members", "members")
        value, problems = members.read({"b": "present", "a": "gate"}, ("a", "b"))
        assert value == (("a", "gate"), ("b", "present"))
        assert problems == []
        assert members.read(value, ("a", "b")) == (value, [])

"""Laws of composition, for each missing policy: kept ones proved, broken ones exhibited.

The table these tests stand for is in the docstring of `rankblend.relevance._missing`. Tolerance is
4(n + 1) units in the last place for n present signals, and none where bits are claimed. Values are
0 or at least 1e-9 and weights 0 or from 1e-6 to 1e6, so that every product stays normal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankblend.relevance import (
    COMPOSERS,
    Composition,
    MissingPolicy,
    Neutral,
    Node,
    Override,
    RelevanceSignals,
    RelevanceWeights,
    Renormalize,
    Require,
    Required,
    Shrink,
    SignalTable,
    Zero,
    compose_table,
)

Signals = Mapping[str, float]
Weights = Mapping[str, float]

NAMES = [f"s{at}" for at in range(8)]
units = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-9, 1.0))
weights_of_one = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))
policies = st.one_of(
    st.just(Renormalize()),
    st.just(Zero()),
    st.builds(Neutral, units),
    st.builds(Shrink, units, st.one_of(st.just(0.0), st.floats(1e-6, 1e3))),
    st.builds(Require, units),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, float], dict[str, float]]:
    """Weights and the present signals, of up to eight names."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    weights = {name: draw(weights_of_one) for name in names}
    present = draw(st.lists(st.sampled_from(names), unique=True))
    return weights, {name: draw(units) for name in present}


def compose(weights: Weights, signals: Signals, missing: MissingPolicy) -> Composition:
    table = SignalTable.from_signals({"a": RelevanceSignals(**signals)})
    return compose_table(Node("weighted_mean", weights, missing=missing), {}, table)


def score(weights: Weights, signals: Signals, missing: MissingPolicy) -> float | None:
    """None where the policy gives no score."""
    made = compose(weights, signals, missing)
    return None if made.dropped else float(made.scores[0])


def within(left: float, right: float, present: int) -> bool:
    return abs(left - right) <= 4 * (present + 1) * float(np.spacing(max(left, right)))


def weighted_present(weights: Weights, signals: Signals) -> list[float]:
    return [value for name, value in signals.items() if weights.get(name, 0.0) > 0.0]


def near_threshold(weights: Weights, signals: Signals, missing: MissingPolicy) -> bool:
    """Whether rounding may decide the coverage."""
    if not isinstance(missing, Require):
        return False
    whole = sum(map(Fraction, weights.values()))
    present = sum(Fraction(weights[name]) for name in signals)
    limit = Fraction(missing.coverage) - Fraction(1, 10**12)
    return whole > 0 and abs(present / whole - limit) < Fraction(1, 10**14)


@given(cases(), policies)
def test_score_when_composed_then_lies_between_the_extremes_the_policy_names(
    case: tuple[dict[str, float], dict[str, float]], missing: MissingPolicy
) -> None:
    weights, signals = case
    got = score(weights, signals, missing)
    if got is None:
        assert isinstance(missing, Require)
        return
    values = weighted_present(weights, signals)
    match missing:
        case Neutral(value=value):
            values.append(value)
        case Shrink(prior=value, strength=strength) if strength > 0.0 or not values:
            values.append(value)
        case Zero():
            values.append(0.0)
    low, high = min(values, default=0.0), max(values, default=0.0)
    assert 0.0 <= got <= 1.0
    assert got >= low or within(got, low, len(signals))
    assert got <= high or within(got, high, len(signals))


@given(cases(), policies, st.floats(1e-100, 1e100))
def test_score_when_all_weights_are_scaled_then_stays(
    case: tuple[dict[str, float], dict[str, float]], missing: MissingPolicy, scale: float
) -> None:
    weights, signals = case
    scaled = {name: weight * scale for name, weight in weights.items()}
    got, other = score(weights, signals, missing), score(scaled, signals, missing)
    if got is None or other is None:
        assert got is other or near_threshold(weights, signals, missing)
    else:
        assert within(got, other, len(signals))


@given(cases(), policies, st.integers(-900, 900))
def test_score_when_weights_are_scaled_by_a_power_of_two_then_keeps_its_bits(
    case: tuple[dict[str, float], dict[str, float]], missing: MissingPolicy, exponent: int
) -> None:
    weights, signals = case
    scaled = {name: math.ldexp(weight, exponent) for name, weight in weights.items()}
    assert score(weights, signals, missing) == score(scaled, signals, missing)


@given(cases())
def test_score_when_weights_of_absent_signals_are_left_out_then_keeps_its_bits(
    case: tuple[dict[str, float], dict[str, float]],
) -> None:
    weights, signals = case
    fewer = {name: weight for name, weight in weights.items() if name in signals}
    full = RelevanceWeights.only(weights).compose(RelevanceSignals(**signals))
    assert full == RelevanceWeights.only(fewer).compose(RelevanceSignals(**signals))
    assert full == score(weights, signals, Renormalize()) == score(
        weights, signals, Shrink(1, 0)
    ) or not weighted_present(weights, signals)


@given(cases(), units)
def test_require_when_both_score_then_an_absent_signal_changes_no_bit(
    case: tuple[dict[str, float], dict[str, float]], coverage: float
) -> None:
    weights, signals = case
    fewer = {name: weight for name, weight in weights.items() if name in signals}
    full = score(weights, signals, Require(coverage))
    if full is not None and fewer:
        assert full == score(fewer, signals, Require(coverage))


@given(cases(), policies, st.data())
def test_score_when_a_present_value_rises_then_never_falls(
    case: tuple[dict[str, float], dict[str, float]], missing: MissingPolicy, data: st.DataObject
) -> None:
    weights, signals = case
    if not signals:
        return
    name = data.draw(st.sampled_from(sorted(signals)))
    raised = {**signals, name: data.draw(st.floats(signals[name], 1.0))}
    before, after = score(weights, signals, missing), score(weights, raised, missing)
    assert (before is None) == (after is None)
    assert before is None or after is None or after >= before


@given(cases(), policies, st.randoms(use_true_random=False))
def test_score_when_names_come_in_another_order_then_stays(
    case: tuple[dict[str, float], dict[str, float]], missing: MissingPolicy, random: object
) -> None:
    weights, signals = case
    names = list(weights)
    random.shuffle(names)  # type: ignore[attr-defined]
    got = score(weights, signals, missing)
    other = score({name: weights[name] for name in names}, signals, missing)
    if got is None or other is None:
        assert got is other or near_threshold(weights, signals, missing)
    else:
        assert within(got, other, len(signals))


@given(cases(), st.randoms(use_true_random=False))
def test_score_when_signals_come_in_another_order_then_keeps_its_bits(
    case: tuple[dict[str, float], dict[str, float]], random: object
) -> None:
    weights, signals = case
    names = list(signals)
    random.shuffle(names)  # type: ignore[attr-defined]
    turned = RelevanceSignals(**{name: signals[name] for name in names})
    composer = RelevanceWeights.only(weights)
    assert composer.compose(turned) == composer.compose(RelevanceSignals(**signals))


class TestBrokenLaws:
    """One counterexample for each "no" of the table."""

    EVEN: ClassVar[Weights] = {"a": 1.0, "b": 1.0}

    @pytest.mark.parametrize(
        ("missing", "expected"),
        [(Neutral(0.2), 0.5), (Zero(), 0.4), (Shrink(0.2, 0.5), 0.5)],
    )
    def test_bounds_when_policy_adds_a_low_value_then_score_falls_below_the_least(
        self, missing: MissingPolicy, expected: float
    ) -> None:
        # (.8 + .2) / 2, .8 / 2 and (.8 + 1 · .2) / (1 + 1)
        got = score(self.EVEN, {"a": 0.8}, missing)
        assert got == pytest.approx(expected)
        assert got < 0.8  # type: ignore[operator]

    @pytest.mark.parametrize("missing", [Neutral(0.9), Shrink(0.9, 0.5)])
    def test_bounds_when_policy_adds_a_high_value_then_score_rises_above_the_greatest(
        self, missing: MissingPolicy
    ) -> None:
        assert score(self.EVEN, {"a": 0.5}, missing) == pytest.approx(0.7)  # (.5 + .9) / 2

    @pytest.mark.parametrize("missing", [Neutral(0.2), Zero(), Shrink(0.2, 0.5)])
    def test_absent_signal_when_it_has_a_weight_then_changes_the_score(
        self, missing: MissingPolicy
    ) -> None:
        without = score({"a": 1.0}, {"a": 0.8}, missing)
        assert score(self.EVEN, {"a": 0.8}, missing) < without  # type: ignore[operator]

    def test_absent_signal_when_coverage_is_required_then_costs_the_score(self) -> None:
        assert score({"a": 1.0}, {"a": 0.8}, Require(0.75)) == 0.8
        assert score(self.EVEN, {"a": 0.8}, Require(0.75)) is None


OVERRIDES: st.SearchStrategy[Override] = st.one_of(
    st.just(Zero()), st.just(Required()), st.builds(Neutral, units)
)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """Any node over the eight names."""
    compose = draw(st.sampled_from(sorted(COMPOSERS)))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    limit = st.one_of(st.just(0.0), st.floats(1e-6, 1.9))
    weights = {name: draw(limit if compose == "boosted" else weights_of_one) for name in names}
    options: dict[str, object] = {}
    if compose == "boosted":
        options["base"] = names[-1]
        weights[names[-1]] = draw(st.floats(1e-6, 1e6))
    if compose == "reciprocal_rank_fusion":
        options["members"] = draw(st.sampled_from(["positive", "present"]))
        options["k"] = draw(st.floats(0.5, 100.0))
    missing = draw(policies)
    if isinstance(missing, Shrink) and not COMPOSERS[compose].shrink:
        missing = Renormalize()
    overridden = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    absent = {name: draw(OVERRIDES) for name in overridden}
    return Node(compose, weights, missing=missing, absent=absent, options=options)


pools = st.lists(st.dictionaries(st.sampled_from(NAMES), units), min_size=1, max_size=5)


def table_of(pool: list[dict[str, float]]) -> SignalTable:
    return SignalTable.from_signals(
        ((str(at), RelevanceSignals(**row)) for at, row in enumerate(pool)), names=NAMES
    )


@settings(max_examples=150)
@given(nodes(), pools)
def test_composition_of_any_node_then_keeps_its_promises(
    node: Node, pool: list[dict[str, float]]
) -> None:
    made = compose_table(node, {}, table_of(pool))
    assert ((made.scores >= 0.0) & (made.scores <= 1.0)).all()
    assert (made.scores[~made.present] == 0.0).all()
    for failed in made.dropped.values():
        assert not made.present[failed].any()
    rows = np.array(list(made.contributions.values()))
    assert np.isnan(rows[:, ~made.present]).all()
    explained = made.present & ~np.isnan(rows).all(axis=0)
    assert np.array_equal(explained, made.present)
    added = np.nansum(rows, axis=0)
    if made.additive:
        assert np.abs(added - made.scores).max() <= 1e-12
    elif made.label == "winner":
        assert (np.isnan(rows).sum(axis=0) >= len(rows) - 1).all()
        assert np.array_equal(added, made.scores)
    elif made.label == "factor":
        product = np.where(explained, np.nanprod(rows, axis=0), 0.0)
        assert np.allclose(product, made.scores, rtol=1e-13, atol=0)
    else:
        with np.errstate(divide="ignore"):
            logs = np.log(made.scores[explained])
        assert np.allclose(added[explained], logs, rtol=1e-13, atol=1e-13)


@settings(max_examples=150)
@given(nodes().filter(lambda node: COMPOSERS[node.compose].pointwise), pools, st.data())
def test_composition_of_a_pointwise_node_then_has_the_bits_of_each_row_alone(
    node: Node, pool: list[dict[str, float]], data: st.DataObject
) -> None:
    # Repeated beyond the length of a vector register, so that its tail is met too.
    repeated = pool * data.draw(st.integers(1, 9))
    whole = compose_table(node, {}, table_of(repeated))
    for at, row in enumerate(pool):
        alone = compose_table(node, {}, table_of([row]))
        for copy in range(at, len(repeated), len(pool)):
            assert alone.scores[0] == whole.scores[copy]
            assert alone.present[0] == whole.present[copy]
        for name, values in alone.contributions.items():
            assert np.array_equal(values[0], whole.contributions[name][at], equal_nan=True)


@given(nodes(), pools, st.randoms(use_true_random=False))
def test_composition_when_rows_come_in_another_order_then_each_keeps_its_bits(
    node: Node, pool: list[dict[str, float]], random: object
) -> None:
    order = list(range(len(pool)))
    random.shuffle(order)  # type: ignore[attr-defined]
    made = compose_table(node, {}, table_of(pool))
    turned = compose_table(node, {}, table_of([pool[at] for at in order]))
    assert np.array_equal(made.scores[order], turned.scores)
    assert np.array_equal(made.present[order], turned.present)


@given(st.lists(units, min_size=1, max_size=12), st.floats(0.5, 100.0))
def test_fusion_when_values_change_but_not_their_order_then_scores_stay(
    values: list[float], k: float
) -> None:
    node = Node("reciprocal_rank_fusion", {"a": 1.0}, options={"k": k})
    column = np.array(values)[:, None]
    ranks = np.unique(column, return_inverse=True)[1].reshape(-1, 1)
    other = np.where(column > 0.0, (ranks + 1.0) / (len(values) + 1.0), 0.0)
    assert np.array_equal(
        compose_table(node, {}, (["a"], column)).scores,
        compose_table(node, {}, (["a"], other)).scores,
    )


@given(cases(), st.floats(0.0, 1.0))
def test_renormalize_when_all_present_are_equal_then_is_that_value(
    case: tuple[dict[str, float], dict[str, float]], value: float
) -> None:
    weights, signals = case
    equal = dict.fromkeys(signals, value if value >= 1e-9 else 0.0)
    got = score(weights, equal, Renormalize())
    if weighted_present(weights, equal):
        assert within(got or 0.0, next(iter(equal.values())), len(equal))

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import (
    InvalidArgumentError,
    InvalidArrayError,
    InvalidSignalError,
    InvalidWeightError,
)
from rankblend.relevance import RelevanceSignals, RelevanceWeights, SignalTable
from rankblend.relevance._weights import checked_weights

DEFAULTS = {"cue": 1.0, "salience": 0.5, "recency": 0.3, "frequency": 0.2, "proximity": 0.2}


def test_constructor_when_others_are_given_then_keeps_the_five_defaults_in_front() -> None:
    weights = RelevanceWeights(success_rate=0.7, salience=0)
    assert list(weights.items()) == list({**DEFAULTS, "salience": 0.0, "success_rate": 0.7}.items())


def test_only_when_given_then_has_just_these_in_their_order() -> None:
    weights = RelevanceWeights.only({"similarity": 0.5, "cue": 1})
    assert list(weights.items()) == [("similarity", 0.5), ("cue", 1.0)]
    assert weights == RelevanceWeights.only([("similarity", 0.5), ("cue", 1)])
    assert len(RelevanceWeights.only({})) == 0


def test_mapping_when_read_then_behaves_as_one_and_cannot_be_written() -> None:
    weights = RelevanceWeights()
    assert weights["recency"] == 0.3
    assert weights.get("other") is None
    assert "other" not in weights
    assert dict(weights) == DEFAULTS
    with pytest.raises(KeyError):
        weights["other"]
    with pytest.raises(TypeError):
        weights["cue"] = 2.0  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        weights._items = ()


def test_equality_when_order_differs_then_differs_because_sums_may() -> None:
    left, right = RelevanceWeights(a=1, b=2), RelevanceWeights(b=2, a=1)
    assert left == RelevanceWeights(a=1.0, b=2.0)
    assert hash(left) == hash(RelevanceWeights(a=1.0, b=2.0))
    assert left != right
    assert left != dict(left)


def test_copies_when_made_then_equal() -> None:
    weights = RelevanceWeights(a=1)
    assert pickle.loads(pickle.dumps(weights)) == weights
    assert copy.deepcopy(weights) == weights


def test_repr_when_printed_then_shows_names_and_weights() -> None:
    assert repr(RelevanceWeights.only({"a": 1})) == "RelevanceWeights(a=1.0)"


@pytest.mark.parametrize(
    "value", [-1, -5e-324, math.nan, math.inf, "high", None, True, np.bool_(False), 1j, 10**400]
)
@pytest.mark.parametrize("name", ["recency", "other"])
def test_weight_when_no_finite_number_from_zero_then_refused_by_name(
    name: str, value: object
) -> None:
    with pytest.raises(InvalidWeightError) as caught:
        RelevanceWeights(**{name: value})  # type: ignore[arg-type]
    assert caught.value.name == name
    with pytest.raises(InvalidWeightError):
        RelevanceWeights.only({name: value})  # type: ignore[dict-item]


def test_weights_when_their_sum_is_infinite_then_refused_without_a_name() -> None:
    with pytest.raises(InvalidWeightError) as caught:
        RelevanceWeights(cue=1e308, salience=1e308)
    assert caught.value.name is None


@pytest.mark.parametrize("pairs", [[("a b", 1)], [("a", 1), ("a", 2)], [("", 1)]])
def test_names_when_not_distinct_identifiers_then_refused(pairs: list[tuple[str, float]]) -> None:
    with pytest.raises(InvalidArgumentError):
        checked_weights(pairs)


def test_compose_when_some_are_absent_then_renormalizes() -> None:
    # (1.0 · 0.9 + 0.5 · 0.4) / 1.5
    score = RelevanceWeights().compose(RelevanceSignals(cue=0.9, salience=0.4, unknown=1.0))
    assert score == pytest.approx(1.1 / 1.5, abs=1e-15)
    assert type(score) is float


def test_compose_when_nothing_counts_then_zero() -> None:
    weights = RelevanceWeights.only({"cue": 0, "salience": 1})
    assert weights.compose(RelevanceSignals()) == 0.0
    assert weights.compose(RelevanceSignals(cue=1.0)) == 0.0
    assert RelevanceWeights.only({}).compose(RelevanceSignals(cue=1.0)) == 0.0
    assert RelevanceWeights.only({"cue": 0}).compose(RelevanceSignals(cue=1.0)) == 0.0


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1.0, 1e300, 3e307])
def test_compose_when_weights_are_extreme_then_stays_the_mean(scale: float) -> None:
    # Plain products would give 0 or 1 at 5e-324.
    weights = RelevanceWeights.only({"a": scale, "b": scale, "c": scale})
    score = weights.compose(RelevanceSignals(a=0.3, b=0.6, c=0.6))
    assert score == pytest.approx(0.5, rel=1e-15)


def test_compose_when_caller_traps_floating_point_then_does_not_raise() -> None:
    with np.errstate(all="raise"):
        weights = RelevanceWeights.only({"a": 1.0, "b": 1e-300})
        assert weights.compose(RelevanceSignals(a=1.0, b=1e-300)) == 1.0


def test_compose_when_all_are_one_then_never_exceeds_one(rng: np.random.Generator) -> None:
    for _ in range(500):
        weights = RelevanceWeights.only({f"s{at}": w for at, w in enumerate(rng.random(7))})
        assert weights.compose(RelevanceSignals(**dict.fromkeys(weights, 1.0))) <= 1.0


def test_compose_when_given_no_signals_then_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="RelevanceSignals"):
        RelevanceWeights().compose({"cue": 0.5})  # type: ignore[arg-type]


def test_compose_table_when_given_names_and_matrix_then_equals_the_table() -> None:
    values = [[0.5, math.nan], [math.nan, 0.25], [math.nan, math.nan]]
    table = SignalTable(["a", "b", "c"], ["cue", "salience"], values)
    weights = RelevanceWeights()
    assert weights.compose_table(table).tolist() == [0.5, 0.25, 0.0]
    assert np.array_equal(
        weights.compose_table((["cue", "salience"], values)), weights.compose_table(table)
    )
    with pytest.raises(InvalidArrayError):
        weights.compose_table((["cue"], values))
    with pytest.raises(InvalidSignalError):
        weights.compose_table((["cue"], [[1.5]]))


@pytest.mark.parametrize("weights", [{"cue": 1.0}, {"salience": 1.0}, {"other": 0.0}, {}])
def test_compose_table_when_a_far_value_is_outside_then_the_first_is_named_whatever_weighs(
    weights: dict[str, float],
) -> None:
    values = np.full((100_000, 2), np.nan)
    values[70_001, 0] = np.inf
    values[70_000] = 0.5, np.nextafter(1.0, 2.0)
    with pytest.raises(InvalidSignalError, match="salience"):
        RelevanceWeights.only(weights).compose_table((["cue", "salience"], values))
    values[70_000, 0] = -5e-324
    with pytest.raises(InvalidSignalError, match="cue"):
        RelevanceWeights.only(weights).compose_table((["cue", "salience"], values))


def test_compose_table_when_given_a_matrix_then_leaves_it_as_it_was() -> None:
    values = np.array([[-0.0, math.nan], [1.0, 0.5]])
    before = values.tobytes()
    scores = RelevanceWeights.only({"cue": 1.0}).compose_table((["cue", "salience"], values))
    assert scores.tobytes() == np.array([0.0, 1.0]).tobytes()  # no −0.0
    assert values.tobytes() == before


def test_compose_table_when_empty_then_empty() -> None:
    for weights in (RelevanceWeights(), RelevanceWeights.only({})):
        assert weights.compose_table((["cue"], np.empty((0, 1)))).shape == (0,)


@pytest.mark.parametrize("rows", [1, 7, 255, 257, 9_001])
@pytest.mark.parametrize("inputs", [1, 5, 8, 9, 20])
def test_compose_table_when_of_any_size_and_layout_then_has_the_bits_of_the_scalar(
    rng: np.random.Generator, rows: int, inputs: int
) -> None:
    names = [f"s{at}" for at in range(inputs)]
    values = rng.random((rows, inputs))
    values[rng.random(values.shape) < 0.3] = math.nan
    weights = RelevanceWeights.only(zip(names, rng.random(inputs), strict=True))
    scores = weights.compose_table((names, values))
    assert np.array_equal(scores, weights.compose_table((names, np.asfortranarray(values))))
    assert np.array_equal(scores[::-1], weights.compose_table((names, values[::-1])))
    for row in rng.choice(rows, size=min(rows, 25), replace=False):
        present = {
            name: value
            for name, value in zip(names, values[row].tolist(), strict=True)
            if not math.isnan(value)
        }
        assert scores[row] == weights.compose(RelevanceSignals(**present))

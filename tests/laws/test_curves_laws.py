"""What holds for every curve and every column."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankblend.kernels import curves as kernels
from rankblend.relevance import (
    CURVES,
    EVIDENCE,
    CurveStep,
    apply_curve,
    check_curve,
    is_batch_relative,
    parse_curve,
    plain_curve,
)

NAN = math.nan
positive = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)


def columns(low: float, high: float = math.inf) -> st.SearchStrategy[list[float]]:
    """Columns with everything a range allows: both ends, tiny and huge, and absent entries."""
    ends = st.sampled_from([low if math.isfinite(low) else -1e308, high, 0.0 if low <= 0 else low])
    some = st.floats(low, high, allow_nan=False) | ends | st.just(NAN)
    return st.lists(some, max_size=12)


def same_bits(one: Any, other: Any) -> bool:
    return np.asarray(one, np.float64).tobytes() == np.asarray(other, np.float64).tobytes()


POINTWISE: dict[str, tuple[Any, float, int]] = {
    "clip": (kernels.clip, -math.inf, 1),
    "half_life": (partial(kernels.half_life, seconds=1e5), -math.inf, -1),
    "linear": (partial(kernels.linear, seconds=1e5, floor=0.1), -math.inf, -1),
    "log_saturation": (partial(kernels.log_saturation, n_max=100.0), 0.0, 1),
    "reciprocal": (kernels.reciprocal, 0.0, -1),
    "logistic": (partial(kernels.logistic, k=0.3, m=5.0), -math.inf, 1),
    "saturation": (partial(kernels.saturation, c=6.0), 0.0, 1),
    "power": (partial(kernels.power, p=0.5), 0.0, 1),
    "identity": (kernels.identity, -math.inf, 1),
}
RELATIVE: dict[str, tuple[Any, float]] = {
    "over_max": (kernels.over_max, 0.0),
    "min_max": (kernels.min_max, -math.inf),
    "rank": (kernels.rank, -math.inf),
    "z_logistic": (kernels.z_logistic, -math.inf),
    "min_max with a zero": (partial(kernels.min_max, minimum=0.0, natural_zero=True), 0.0),
    "rank with a zero": (partial(kernels.rank, minimum=0.0, natural_zero=True), 0.0),
    "z_logistic with a zero": (partial(kernels.z_logistic, minimum=0.0, natural_zero=True), 0.0),
}
pointwise = given(name=st.sampled_from(sorted(POINTWISE)), data=st.data())
relative = given(name=st.sampled_from(sorted(RELATIVE)), data=st.data())
many = settings(max_examples=150)


@many
@pointwise
def test_pointwise_curves_when_asked_one_by_one_then_the_same_bits(
    name: str, data: st.DataObject
) -> None:
    curve, low, _ = POINTWISE[name]
    values = data.draw(columns(low))
    together = curve(np.array(values, np.float64))
    assert same_bits([curve(np.array([value]))[0] for value in values], together)
    wide = np.full((len(values), 3), 0.5)
    wide[:, 1] = values
    assert same_bits(curve(wide[:, 1]), together)


@many
@pointwise
def test_pointwise_curves_when_ordered_then_never_the_other_way_round(
    name: str, data: st.DataObject
) -> None:
    curve, low, direction = POINTWISE[name]
    result = curve(np.sort(np.array(data.draw(columns(low)), np.float64)))
    present = result[~np.isnan(result)]
    # libm is not monotone to the last bit
    differences = [b - a for a, b in pairwise(present) if a != b]
    assert all(direction * difference >= -1e-15 for difference in differences)


@many
@relative
def test_pool_curves_when_ordered_then_never_the_other_way_round(
    name: str, data: st.DataObject
) -> None:
    curve, low = RELATIVE[name]
    result = curve(np.sort(np.array(data.draw(columns(low)), np.float64)))
    assert (np.diff(result[~np.isnan(result)]) >= -1e-15).all()


@many
@relative
def test_pool_curves_when_permuted_then_the_same_bits_permuted(
    name: str, data: st.DataObject
) -> None:
    curve, low = RELATIVE[name]
    values = np.array(data.draw(columns(low)), np.float64)
    order = np.array(data.draw(st.permutations(range(len(values)))), np.int64)
    assert same_bits(curve(values[order]), curve(values)[order])


@many
@relative
def test_pool_curves_when_absent_entries_are_added_then_the_rest_stays(
    name: str, data: st.DataObject
) -> None:
    curve, low = RELATIVE[name]
    values = np.array(data.draw(columns(low)), np.float64)
    place = data.draw(st.integers(0, len(values)))
    more = np.insert(values, place, NAN)
    assert same_bits(np.delete(curve(more), place), curve(values))


@many
@relative
def test_pool_curves_when_something_is_present_then_the_best_is_best_and_within_bounds(
    name: str, data: st.DataObject
) -> None:
    curve, low = RELATIVE[name]
    values = np.array(data.draw(columns(low)), np.float64)
    result = curve(values)
    assert (np.isnan(result) == np.isnan(values)).all()
    present = ~np.isnan(values)
    assert ((result[present] >= 0.0) & (result[present] <= 1.0)).all()
    if name.endswith("a zero") or name == "over_max":
        assert (result[values == 0.0] == 0.0).all()
    if present.any() and name in ("rank", "min_max"):
        assert result[np.nanargmax(values)] == (
            0.0 if (values[present] == -math.inf).all() else 1.0
        )


STEPS = {
    "identity": st.just({}),
    "clip": st.just({}),
    "half_life": st.fixed_dictionaries({"days": st.floats(1e-9, 1e9)}),
    "linear": st.fixed_dictionaries({"hours": st.floats(1e-9, 1e9), "floor": st.floats(0, 1)}),
    "log_saturation": st.fixed_dictionaries({"n_max": positive}),
    "reciprocal": st.just({}),
    "logistic": st.fixed_dictionaries(
        {"k": positive, "m": st.floats(allow_nan=False, allow_infinity=False)}
    ),
    "saturation": st.fixed_dictionaries({"c": positive}),
    "power": st.fixed_dictionaries({"p": positive}),
    "over_max": st.just({}),
    "min_max": st.just({}),
    "rank": st.just({}),
    "z_logistic": st.just({}),
    "first_present": st.just({}),
}
step_data = st.sampled_from(sorted(STEPS)).flatmap(
    lambda name: STEPS[name].map(lambda table: {name: table})
)
chains = st.lists(step_data, min_size=1, max_size=3)


@many
@given(chain=chains, data=st.data())
def test_any_chain_when_it_passes_the_check_then_gives_signals_or_absent(
    chain: list[Any], data: st.DataObject
) -> None:
    steps = parse_curve(chain)
    fitting = [kind for kind in EVIDENCE.values() if not check_curve(steps, [kind])]
    assume(fitting)
    kind = data.draw(st.sampled_from(fitting))
    values = np.array(data.draw(columns(max(kind.low, -1e308), kind.high)), np.float64)
    before = values.tobytes()
    signal = apply_curve(steps, [values], [kind])
    assert values.tobytes() == before
    assert signal.dtype == np.float64
    assert (np.isnan(signal) == np.isnan(values)).all()
    present = signal[~np.isnan(signal)]
    assert ((present >= 0.0) & (present <= 1.0)).all()
    assert not np.signbit(present).any()
    if not is_batch_relative(steps):
        singles = [apply_curve(steps, [values[i : i + 1]], [kind])[0] for i in range(len(values))]
        assert same_bits(singles, signal)


@given(chain=chains)
def test_any_chain_when_written_and_read_then_the_same(chain: list[Any]) -> None:
    steps = parse_curve(chain)
    assert parse_curve(plain_curve(steps)) == steps
    assert all(CurveStep(step.name, step.params) == step for step in steps)
    assert [step.name for step in steps] == [next(iter(table)) for table in chain]


def test_the_chains_here_when_compared_with_the_registry_then_only_the_rate_is_missing() -> None:
    assert set(CURVES) - set(STEPS) == {"smoothed_rate"}


@given(age=st.floats(0.0, 1e12), seconds=st.floats(1e-3, 1e12))
def test_half_life_when_one_more_has_passed_then_half(age: float, seconds: float) -> None:
    now, later = kernels.half_life(np.array([age, age + seconds]), seconds=seconds)
    assert later == pytest.approx(now / 2, rel=1e-9, abs=1e-300)


@given(values=st.lists(st.floats(0.0, 1e6), min_size=2, max_size=9), a=st.floats(0.5, 4.0))
def test_min_max_and_rank_when_scaled_then_the_same_within_rounding(
    values: list[float], a: float
) -> None:
    column = np.round(np.array(values), 3)
    for curve in (kernels.min_max, kernels.z_logistic):
        np.testing.assert_allclose(curve(a * column + 1.0), curve(column), atol=1e-6)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Runs, successes, judged runs, judged successes that do not contradict one another."""
    judged, agents = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    good, agents_good = draw(st.integers(0, judged)), draw(st.integers(0, agents))
    return judged + agents, good + agents_good, judged, good


def rate(own: tuple[int, ...], parent: tuple[int, ...] = (), *, w: float = 0.5) -> Any:
    given = [np.array([float(count)]) for count in (*own, *parent)]
    return kernels.smoothed_rate(*given, prior_weight=5.0, agent_verdict_weight=w)


@given(own=counts(), parent=counts(), w=st.floats(0.0, 1.0))
def test_smoothed_rate_when_there_is_a_parent_then_it_only_lifts(
    own: tuple[int, ...], parent: tuple[int, ...], w: float
) -> None:
    (alone,), _ = rate(own, w=w)
    (with_parent,), (lifted,) = rate(own, parent, w=w)
    assert 0.0 <= alone <= with_parent <= 1.0
    if not lifted:
        assert alone == with_parent


@given(own=counts(), w=st.floats(0.0, 1.0), judged=st.booleans())
def test_smoothed_rate_when_one_more_success_then_never_lower_and_a_failure_never_higher(
    own: tuple[int, ...], w: float, judged: bool
) -> None:
    runs, successes, judged_runs, judged_good = own
    more = judged_runs + judged
    (before,), _ = rate(own, w=w)
    (success,), _ = rate((runs + 1, successes + 1, more, judged_good + judged), w=w)
    (failure,), _ = rate((runs + 1, successes, more, judged_good), w=w)
    assert failure - 1e-15 <= before <= success + 1e-15

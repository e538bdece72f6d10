"""Curves fitted to how often evidence is right."""

from __future__ import annotations

import numpy as np
import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError, ProfileError, UnknownNameError
from rankblend.experiment.fit import calibrate_curve, with_curve
from rankblend.relevance import CURVES

TRUE = {
    "saturation": ({"c": 4.0}, lambda rng, n: rng.exponential(6.0, n), 0.9),
    "half_life": ({"seconds": 2e5}, lambda rng, n: rng.exponential(4e5, n), 0.9),
    "logistic": ({"k": 1.5, "m": 3.0}, lambda rng, n: rng.normal(3.0, 2.0, n), 1.0),
    "power": ({"p": 2.0}, lambda rng, n: rng.random(n), 0.8),
}


@pytest.mark.parametrize("curve", TRUE)
def test_curve_when_hits_follow_it_then_its_parameters_are_found(curve, rng):
    params, draw, scale = TRUE[curve]
    x = draw(rng, 6_000)
    chance = scale * CURVES[curve].function(x, **params)
    hits = rng.random(x.size) < chance
    clusters = [f"c{i % 20}" for i in range(x.size)]
    found = calibrate_curve(x, hits, clusters, curve=curve)
    assert found.step.name == curve
    for name, value in found.step.params:
        assert value == pytest.approx(params[name], rel=0.25)
    assert found.scale == pytest.approx(scale, abs=0.1)
    # On held-out clusters: far better than knowing nothing, about as good as any rising curve.
    assert found.loss < found.constant_loss - 0.01
    assert found.loss == pytest.approx(found.isotonic_loss, abs=0.01)


def test_curve_when_evidence_says_nothing_then_no_better_than_one_chance_for_all(rng):
    x, hits = rng.exponential(3.0, 2_000), rng.random(2_000) < 0.2
    found = calibrate_curve(x, hits, [f"c{i % 10}" for i in range(2_000)], curve="saturation")
    assert found.loss > found.constant_loss - 0.003


def test_evidence_when_absent_then_left_out(rng):
    x = rng.exponential(3.0, 500)
    hits = rng.random(500) < x / (x + 3)
    clusters = [f"c{i % 10}" for i in range(500)]
    alone = calibrate_curve(x, hits, clusters, curve="saturation")
    more = calibrate_curve(
        np.append(x, [np.nan] * 50), np.append(hits, [True] * 50), clusters + ["d"] * 50,
        curve="saturation",
    )  # fmt: skip
    assert (more.step, more.hits, more.loss) == (alone.step, alone.hits, alone.loss)


def test_profile_when_given_the_curve_then_it_has_it(rng):
    x = rng.exponential(3.0, 500)
    hits = rng.random(500) < x / (x + 3)
    found = calibrate_curve(x, hits, [f"c{i % 10}" for i in range(500)], curve="saturation")
    profile = with_curve(rb.load_profile("default"), "keyword", found)
    assert profile.signals["keyword"].curve == (found.step,)
    with pytest.raises(ProfileError):
        with_curve(rb.load_profile("default"), "nobody", found)


def test_arguments_when_wrong_then_refused():
    with pytest.raises(UnknownNameError):
        calibrate_curve([1.0, 2.0], [True, False], ["a", "b"], curve="clip")
    with pytest.raises(InvalidArgumentError, match="hits and misses"):
        calibrate_curve([1.0, 2.0], [True, True], ["a", "b"], curve="saturation")
    with pytest.raises(InvalidArgumentError, match="takes"):
        calibrate_curve([-1.0, 2.0], [True, False], ["a", "b"], curve="saturation")
    with pytest.raises(InvalidArgumentError, match="one of each"):
        calibrate_curve([1.0, 2.0], [True], ["a", "b"], curve="saturation")
    with pytest.raises(InvalidArgumentError, match="hits and misses"):
        calibrate_curve([np.nan, np.nan], [True, False], ["a", "b"], curve="saturation")

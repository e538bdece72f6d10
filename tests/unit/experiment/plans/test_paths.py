"""Where two profiles differ: exactly where their hashes say that they do."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve

import rankblend as rb
from rankblend.experiment.plans import profile_differences, revise
from rankblend.experiment.plans._edit import covers
from rankblend.relevance import Node


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(rb.profile_names(), 2)))
def test_differences_when_two_presets_are_compared_then_empty_just_if_hashes_are_equal(one, other):
    first, second = rb.load_profile(one), rb.load_profile(other)
    found = profile_differences(first, second)
    assert bool(found) == (first.hash != second.hash)
    assert found == profile_differences(second, first)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("score.weights.similarity", 0.31),
        ("nodes.words.weights.keyword", 0.7),
        ("nodes.words.missing", "zero"),
        ("score.missing", {"neutral": 0.5}),
        ("signals.keyword.curve", {"saturation": {"c": 3}}),
        ("signals.recency.evidence", "age_created"),
        ("pool.size", 50),
        ("scope.mode", "backfill"),
        ("floors.min_score", None),
        ("floors.similarity", {"min": 0.2}),
        ("order.ties", ["recency"]),
        ("select.duplicate_penalty", 0.5),
    ],
)
def test_differences_when_one_value_is_changed_then_just_its_path(path, value):
    profile = rb.load_profile("default")
    changed = revise(profile, {path: value})
    expected = () if changed.hash == profile.hash else (path,)
    assert profile_differences(profile, changed) == expected


def test_differences_when_a_signal_is_unused_then_it_does_not_count():
    profile = rb.load_profile("default")
    more = revise(profile, {"signals.extra": {"evidence": "uses", "curve": "log_saturation"}})
    assert profile_differences(profile, more) == ()


def test_differences_when_inputs_come_in_another_order_then_said():
    profile = rb.load_profile("crewai")
    turned = evolve(profile, score=Node("weighted_mean", dict(reversed(profile.score.weights))))
    assert turned.hash != profile.hash
    assert "score.order" in profile_differences(profile, turned)


def test_differences_when_only_name_and_source_differ_then_none():
    profile = rb.load_profile("default")
    assert profile_differences(profile, evolve(profile, name="other", source="elsewhere")) == ()


def test_covers_when_a_path_is_named_or_lies_below_then_true():
    assert covers(["score.weights"], "score.weights.cue")
    assert covers(["signals.*.curve"], "signals.cue.curve")
    assert not covers(["score.weight"], "score.weights.cue")
    assert not covers(["score.weights.cue"], "score.weights")
    assert not covers([], "score")

"""Which recipe a recall uses: the memory's, another by name or path, with other weights for one call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError, ProfileError, UnknownNameError

Open = Callable[..., rb.Memory]
Profile = Callable[..., rb.RankingProfile]
USER = "tenant:acme/user:7"


@pytest.fixture
def two(memory: rb.Memory) -> rb.Memory:
    memory.remember("refund policy", scope=USER, id="words")
    memory.remember("refund of an order that came late", scope=USER, id="salient", salience=1.0)
    return memory


def test_weights_when_given_for_one_call_then_they_rank_and_the_hash_is_another(
    two: rb.Memory,
) -> None:
    plain = two.recall("refund policy", scope=USER)
    light = two.recall("refund policy", scope=USER, weights={"salience": 0})
    assert plain.ids == ("salient", "words")
    assert light.ids == ("words", "salient")
    assert len({plain.profile.hash, light.profile.hash, two.profile.hash}) == 2
    assert plain.profile == two.profile
    assert light.trace.profile_hash == light.profile.hash == light.explain(0).profile_hash
    assert dict(light.profile.score.weights)["salience"] == 0.0
    assert light.profile.origins["score.weights.salience"] == "call"
    # The next call knows nothing of them.
    assert two.recall("refund policy", scope=USER).profile.hash == plain.profile.hash


def test_weights_when_equal_to_the_profiles_or_none_then_the_hash_is_the_same(
    two: rb.Memory,
) -> None:
    for weights in (None, {}, {"salience": 0.2}):
        assert two.recall("refund", scope=USER, weights=weights).profile.hash == two.profile.hash


def test_weights_when_a_name_is_unknown_then_the_nearest_is_suggested(two: rb.Memory) -> None:
    with pytest.raises(ProfileError) as refused:
        two.recall(
            "refund", scope=USER, weights={"saliense": 1, "keyword": -1, "similarity": "much"}
        )  # type: ignore[dict-item]
    problems = dict(problem.split(": ", 1) for problem in refused.value.problems)
    assert 'did you mean "salience"' in problems["score.weights.saliense"]
    assert set(problems) == {
        "score.weights.saliense", "score.weights.keyword", "score.weights.similarity",
    }  # fmt: skip


def test_weights_when_a_promised_sum_is_broken_then_it_is_refused(two: rb.Memory) -> None:
    with pytest.raises(ProfileError, match=r"1\.0|sum"):
        two.recall("refund", scope=USER, profile="mnemosyne", weights={"similarity": 0.9})


def test_profile_when_named_or_given_as_path_or_object_then_it_is_the_same_recipe(
    two: rb.Memory, tmp_path: Path
) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(rb.dump_profile(rb.load_profile("symfonic")), encoding="utf-8")
    answers = [
        two.recall("refund", scope=USER, profile=given)
        for given in ("symfonic", path, str(path), rb.load_profile("symfonic"))
    ]
    assert len({answer.profile.hash for answer in answers}) == 1
    assert len({answer.ids for answer in answers}) == 1
    assert len({tuple(match.score for match in answer) for answer in answers}) == 1


def test_profile_when_unknown_then_the_nearest_name_is_suggested(two: rb.Memory) -> None:
    with pytest.raises(UnknownNameError, match='did you mean "symfonic"'):
        two.recall("refund", scope=USER, profile="symphonic")


@pytest.mark.parametrize("given", [5, b"default", ["default"]])
def test_profile_when_it_is_no_profile_then_it_is_refused(two: rb.Memory, given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="profile: expected a name, a path"):
        two.recall("refund", scope=USER, profile=given)


def test_open_when_no_profile_is_named_then_it_is_the_default() -> None:
    with rb.Memory.open(":memory:") as memory:
        assert memory.profile == rb.load_profile("default")
        assert repr(memory) == "<Memory profile='default'>"


def test_open_when_the_profile_is_unknown_then_no_file_is_made(
    opened: Open, tmp_path: Path
) -> None:
    with pytest.raises(UnknownNameError):
        opened(tmp_path / "m.db", profile="defualt")
    assert list(tmp_path.glob("m.db*")) == []


def test_profiles_when_any_shipped_one_ranks_then_every_number_is_in_its_range(
    two: rb.Memory,
) -> None:
    for name in rb.profile_names():
        for match in two.recall("refund policy", scope=USER, profile=name, prefer={"layer": "x"}):
            assert 0.0 <= match.score <= 1.0
            assert 0.0 <= match.rank_score <= 1.0
            assert all(0.0 <= value <= 1.0 for value in match.signals.present().values())


def test_recall_when_indexed_and_sliced_then_it_is_a_sequence_of_matches(two: rb.Memory) -> None:
    result = two.recall("refund", scope=USER)
    assert len(result) == 2
    assert [match.rank for match in result] == [1, 2]
    assert result[0] is result.matches[0]
    assert result[-1] is result.matches[1]
    assert result[:1] == result.matches[:1]
    assert result.ids == tuple(match.memory.id for match in result)
    with pytest.raises(IndexError):
        result[2]

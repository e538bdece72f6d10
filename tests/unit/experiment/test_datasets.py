"""The data sets, on the real files beside the project."""

from __future__ import annotations

import json

import pytest

from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.experiment.datasets import load_bfcl, load_dataset, load_locomo, load_musique
from rankblend.relevance import Scope


def test_locomo_has_the_published_counts(shared):
    data = load_locomo(shared / "data/locomo/locomo10.json")
    assert len(data.memories) == 5_882
    assert len(data.queries) == 1_536
    assert sum(len(query.relevant) for query in data.queries) == 2_360
    assert data.excluded == {"adversarial": 446, "no usable evidence": 4}
    assert len({query.cluster for query in data.queries}) == 10


def test_locomo_turn_carries_speaker_caption_session_date_and_next(shared):
    data = load_locomo(shared / "data/locomo/locomo10.json")
    first = data.memories[0]
    assert first["id"] == "conv-26:D1:1"
    assert first["text"].startswith("Caroline: Hey Mel!")
    assert str(first["scope"]) == "dataset:locomo/conversation:conv-26/session:1"
    assert first["at"].isoformat() == "2023-05-08T13:56:00+00:00"
    assert first["links"] == ({"target": "conv-26:D1:2", "kind": "next"},)
    assert any("[shares " in memory["text"] for memory in data.memories)


def test_locomo_queries_name_only_turns_of_their_conversation(shared):
    data = load_locomo(shared / "data/locomo/locomo10.json")
    scope_of = {memory["id"]: memory["scope"] for memory in data.memories}
    for query in data.queries:
        assert all(query.scope.contains(scope_of[turn]) for turn in query.relevant)
        assert query.now is not None


def test_last_turn_of_a_session_has_no_next(shared):
    data = load_locomo(shared / "data/locomo/locomo10.json")
    scope_of = {memory["id"]: memory["scope"] for memory in data.memories}
    for memory in data.memories:
        assert all(scope_of[link["target"]] == memory["scope"] for link in memory["links"])


def test_musique_has_the_published_counts(shared):
    data = load_musique(shared / "data/musique")
    assert len(data.memories) == 1_890
    assert len(data.queries) == 100
    assert sum(len(query.relevant) for query in data.queries) == 237
    assert {query.family for query in data.queries} == {"2hop", "3hop", "4hop"}
    assert set(data.links) == {Scope.parse("dataset:musique")}


def test_bfcl_maps_the_published_number_of_questions(shared):
    data = load_bfcl(shared / "data/bfcl_memory")
    assert len(data.memories) == 323
    assert len(data.queries) == 143
    assert data.excluded == {"quote found in no turn": 12}


def test_unknown_data_set_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        load_dataset("locmo", "anywhere")
    assert caught.value.nearest == "locomo"


@pytest.mark.parametrize("name", ["locomo", "musique", "bfcl"])
def test_missing_path_is_refused(name, tmp_path):
    with pytest.raises(InvalidArgumentError):
        load_dataset(name, tmp_path / "nothing")


@pytest.mark.parametrize(
    "content",
    ["not json", "{}", "[1]", '[{"conversation": {}, "qa": [{"category": 99}]}]', "[]\x00"],
)
def test_file_that_is_not_locomo_is_refused(content, tmp_path):
    path = tmp_path / "locomo10.json"
    path.write_text(content)
    with pytest.raises(InvalidArgumentError):
        load_locomo(path)


def test_truncated_locomo_is_refused(shared, tmp_path):
    data = json.loads((shared / "data/locomo/locomo10.json").read_text())[:1]
    data[0]["conversation"]["session_1_date_time"] = "yesterday"
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InvalidArgumentError, match="not LoCoMo"):
        load_locomo(path)

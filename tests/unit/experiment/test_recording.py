from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import rankblend as rb
from rankblend.errors import InvalidArgumentError, RecordingError, StoreFailedError
from rankblend.experiment.datasets import Dataset, JudgedQuery
from rankblend.experiment.plans import Unheld
from rankblend.experiment.recording import Manifest, Recording, record
from rankblend.experiment.recording._arrow import MANIFEST
from rankblend.profiles import Pool, RankingProfile, Select, SignalRecipe, load_profile
from rankblend.relevance import Node, Scope
from rankblend.stores import Observation, Reason, StoreQuery
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 3, 1, tzinfo=UTC)
USER = Scope.parse("tenant:acme/user:7")
TEXTS = ("refund policy", "refund order", "tea order", "bank transfer", "policy of Ana", "Ana")
DEFAULT = load_profile("default")


@pytest.fixture(scope="module")
def memory() -> Iterator[rb.Memory]:
    with rb.Memory.open(":memory:", embedder=hashed_embedder(8), clock=lambda: NOW) as opened:
        opened.remember_many(
            {"id": f"m{number}", "text": text, "scope": "tenant:acme" if number % 2 else USER,
             "links": ["m1"], "metadata": {"kind": text.split()[0]}}
            for number, text in enumerate(TEXTS)
        )  # fmt: skip
        yield opened


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    queries = tuple(
        JudgedQuery(f"q{number}", text, USER, {f"m{number % 6}": 1.0} if number % 5 else {},
                    f"family{number % 2}", f"cluster{number % 3}")
        for number, text in enumerate(TEXTS * 6)
    )  # fmt: skip
    return Dataset("acme", "none", (), {}, queries, reach="ancestors")


@pytest.fixture(scope="module")
def recording(
    memory: rb.Memory, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    out = tmp_path_factory.mktemp("recording") / "r.arrow"
    return record(memory, dataset, out=out, profiles=[DEFAULT], now=NOW)


class Interrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C."""


def test_record_when_interrupted_then_no_file_and_a_rerun_resumes(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path, recording: Recording
) -> None:
    out, asked = tmp_path / "resumed.arrow", []

    def interrupt(count: int) -> None:
        asked.append(count)
        raise Interrupted

    with pytest.raises(Interrupted):
        record(memory, dataset, out=out, profiles=[DEFAULT], now=NOW, progress=interrupt)
    assert not out.exists()
    first = (tmp_path / "resumed.arrow.partial" / "batch-000000.arrow").read_bytes()
    again = record(memory, dataset, out=out, profiles=[DEFAULT], progress=asked.append)
    assert sum(asked[1:]) == len(dataset.queries)
    assert not (tmp_path / "resumed.arrow.partial").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["resumed.arrow"]
    assert first
    assert again.manifest == recording.manifest
    for one, other in zip(again, recording, strict=True):
        mine, theirs = one.candidates(DEFAULT), other.candidates(DEFAULT)
        assert mine.ids == theirs.ids
        assert all(
            (a.values.tobytes(), a.reasons.tolist()) == (b.values.tobytes(), b.reasons.tolist())
            for name in mine.evidence
            for a, b in zip(mine.evidence[name], theirs.evidence[name], strict=True)
        )


def test_record_when_resumed_with_other_arguments_then_refused(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path
) -> None:
    def interrupt(_: int) -> None:
        raise Interrupted

    out = tmp_path / "r.arrow"
    with pytest.raises(Interrupted):
        record(memory, dataset, out=out, depth=20, progress=interrupt)
    with pytest.raises(RecordingError, match="another depth"):
        record(memory, dataset, out=out, depth=21)


def test_record_when_out_is_that_recording_already_then_it_is_opened(
    memory: rb.Memory, dataset: Dataset, recording: Recording
) -> None:
    before = recording.path.stat().st_mtime_ns
    again = record(memory, dataset, out=recording.path, profiles=[DEFAULT])
    assert again.manifest == recording.manifest
    assert recording.path.stat().st_mtime_ns == before
    fewer = evolve(dataset, queries=dataset.queries[:3])
    with pytest.raises(RecordingError, match="dataset_hash, queries"):
        record(memory, fewer, out=recording.path, profiles=[DEFAULT])


def test_record_when_arguments_are_wrong_then_all_are_told(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        record(memory, evolve(dataset, queries=()), out=tmp_path / "r", depth=0,
               now=datetime(2026, 1, 1))  # noqa: DTZ001  # fmt: skip
    assert len(caught.value.problems) == 3
    with pytest.raises(InvalidArgumentError, match="no store emits 'cosin'"):
        record(memory, dataset, out=tmp_path / "r", evidence=["cosin", "bm25"])


class Failing:
    """Emits and never answers."""

    name = "failing"
    emits = ("rerank_score",)

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return ()

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        raise OSError

    def close(self) -> None: ...


def test_record_when_a_store_fails_then_its_error_and_no_file(
    dataset: Dataset, tmp_path: Path
) -> None:
    with rb.Memory.open(":memory:", stores=[*rb.default_stores(), Failing()]) as memory:
        memory.remember("refund", scope=USER, id="m0")
        with pytest.raises(StoreFailedError, match="failing"):
            record(memory, dataset, out=tmp_path / "r.arrow", now=NOW)
    assert not (tmp_path / "r.arrow").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "cannot be read"), (b"ARROW1\0\0rubbish", "cannot be read"), (None, "no such file")],
)
def test_open_when_the_file_is_none_then_a_recording_error(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "x.arrow"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordingError, match=words):
        Recording.open(path)


def test_open_when_truncated_then_a_recording_error(recording: Recording, tmp_path: Path) -> None:
    whole = recording.path.read_bytes()
    for length in (len(whole) // 2, len(whole) - 5):
        path = tmp_path / f"{length}.arrow"
        path.write_bytes(whole[:length])
        with pytest.raises(RecordingError):
            Recording.open(path)


def test_open_when_another_format_or_no_recording_then_told_apart(
    recording: Recording, tmp_path: Path
) -> None:
    newer = recording.manifest.to_json().replace('"format": 1', '"format": 99')
    cases = [
        ({MANIFEST: newer.encode()}, "has format 99"),
        ({MANIFEST: b"[]"}, "manifest cannot be read"),
        ({}, "no recording"),
    ]
    for number, (metadata, words) in enumerate(cases):
        path = tmp_path / f"{number}.arrow"
        batch = pa.record_batch({"id": ["q"]})
        with pa.ipc.new_file(str(path), batch.schema.with_metadata(metadata)) as writer:
            writer.write_batch(batch)
        with pytest.raises(RecordingError, match=words):
            Recording.open(path)


def test_manifest_when_written_and_read_then_equal(recording: Recording) -> None:
    manifest = recording.manifest
    assert Manifest.from_json(manifest.to_json(), where="here") == manifest
    assert manifest.dataset == "acme"
    assert manifest.embedder == "hashed/8"
    assert manifest.memories == len(TEXTS)
    assert [store.name for store in manifest.stores if store.holds_vectors] == ["vectors"]


def test_recording_when_read_then_it_knows_its_queries(
    recording: Recording, dataset: Dataset
) -> None:
    assert len(recording) == len(dataset.queries)
    assert recording.ids == tuple(query.id for query in dataset.queries)
    assert recording[-1].id == dataset.queries[-1].id
    assert recording[1].grades == dict(dataset.queries[1].relevant)
    assert recording[1].family == "family1"
    assert recording.clusters[4] == recording[4].cluster == "cluster1"
    assert recording.judgments.judged.tolist() == [bool(q.relevant) for q in dataset.queries]
    with pytest.raises(IndexError):
        recording[len(dataset.queries)]


def test_candidates_when_the_pool_is_deeper_than_recorded_then_refused(
    recording: Recording,
) -> None:
    deeper = evolve(DEFAULT, pool=Pool(101, 500))
    with pytest.raises(RecordingError, match=r"pool.size 101 is deeper than recorded \(100\)"):
        recording[0].candidates(deeper)


def test_candidates_when_evidence_was_not_recorded_then_refused_by_name(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path
) -> None:
    some = record(
        memory, dataset, out=tmp_path / "some.arrow", evidence=["bm25", "keywords.coverage"],
        profiles=[DEFAULT], now=NOW,
    )  # fmt: skip
    with pytest.raises(RecordingError) as caught:
        some[0].candidates(DEFAULT)
    told = " ".join(caught.value.problems)
    for name in ("vectors.cosine", "graph.activation", "catalog.salience", "activity.age_updated"):
        assert name in told
    words = RankingProfile("words", Node.of("strongest", "k"), signals={
        "k": SignalRecipe("bm25", curve={"saturation": {"c": 6}})})  # fmt: skip
    live = memory.recall(TEXTS[0], scope=USER, profile=words, now=NOW).ranking.candidates
    assert some[0].candidates(words).ids == live.ids


def test_candidates_when_no_store_emits_the_evidence_then_absent_as_live(
    recording: Recording, memory: rb.Memory
) -> None:
    hindsight = load_profile("hindsight")  # reads a cross-encoder's score, and none is open
    found = recording[0].candidates(hindsight)
    assert found.evidence["rerank_score"] == ()
    assert found.ids == memory.recall(TEXTS[0], scope=USER, profile=hindsight, now=NOW).ranking.candidates.ids  # fmt: skip


def test_candidates_when_a_store_is_left_out_then_neither_proposed_nor_observed(
    recording: Recording,
) -> None:
    whole = recording[0].candidates(DEFAULT)
    without = recording[0].candidates(DEFAULT, without_stores=["vectors"])
    assert without.evidence["cosine"] == ()
    assert set(without.ids) <= set(whole.ids)
    # The graph keeps what it said from the seeds of all stores, the one left out included.
    kept = dict(zip(whole.ids, whole.evidence["activation"][0].values, strict=True))
    values = without.evidence["activation"][0].values
    assert values.tolist() == [kept[name] for name in without.ids]
    with pytest.raises(RecordingError, match="'vector' was not recorded"):
        recording[0].candidates(DEFAULT, without_stores=["vector"])


def test_candidates_when_only_proposing_then_evidence_only_on_ones_own(
    memory: rb.Memory, dataset: Dataset, recording: Recording
) -> None:
    few = evolve(DEFAULT, pool=Pool(2, 500))
    whole = recording[0].candidates(few)
    own = recording[0].candidates(few, observe=False)
    assert own.ids == whole.ids
    live = memory.recall(TEXTS[0], scope=USER, profile=few, now=NOW)
    for column in own.evidence["cosine"]:
        for name, value, reason in zip(own.ids, column.values, column.reasons, strict=True):
            proposed = any(source.store == "vectors" for source in live.trace.sources[name])
            assert np.isnan(value) == (not proposed)
            assert (reason == Reason.UNKNOWN) == (not proposed)
    age = own.evidence["age_updated"][0]  # read for ties only: its store proposes nothing
    assert not np.isnan(age.values).any()


def test_candidates_when_a_store_lacks_memories_then_it_knows_nothing_of_them(
    recording: Recording,
) -> None:
    regime = Unheld("vectors", 0.5)
    found = recording[0].candidates(DEFAULT, regime=regime)
    (column,) = found.evidence["cosine"]
    assert np.isnan(column.values).tolist() == (~regime.holds("vectors", found.ids)).tolist()


def test_candidates_when_penalties_and_caps_are_on_then_vectors_and_tokens_as_live(
    recording: Recording, memory: rb.Memory
) -> None:
    capped = evolve(DEFAULT, select=Select(max_tokens=9, duplicate_penalty=0.3))
    live = memory.recall(TEXTS[0], scope=USER, profile=capped, now=NOW).ranking.candidates
    found = recording[0].candidates(capped)
    assert found.vectors is not None
    assert live.vectors is not None
    assert found.vectors.tobytes() == live.vectors.tobytes()
    assert found.tokens is not None
    assert live.tokens is not None
    assert found.tokens.tolist() == live.tokens.tolist()


def test_record_when_filtered_and_preferring_then_as_live(
    memory: rb.Memory, dataset: Dataset, tmp_path: Path
) -> None:
    arguments = {"filters": {"kind": ["refund", "tea"]}, "prefer": {"kind": "tea"}}
    recording = record(
        memory, dataset, out=tmp_path / "f.arrow", profiles=[DEFAULT], now=NOW, **arguments
    )
    profile = load_profile("relevance-baseline")
    live = memory.recall(TEXTS[0], scope=USER, profile=profile, now=NOW, **arguments)
    found = recording[0].candidates(profile)
    assert found.ids == live.ranking.candidates.ids
    shares = found.evidence["structured"]
    expected = live.ranking.candidates.evidence["structured"]
    assert [one.store for one in shares] == [one.store for one in expected]
    assert [one.values.tobytes() for one in shares] == [one.values.tobytes() for one in expected]

"""A store of somebody else's that can do everything is served as the stores that come along are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rankblend as rb
from rankblend.errors import CacheWarning
from rankblend.stores import Contents, StoreQuery
from rankblend.testing import hashed_embedder

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "conformance"))
from capable_store import Capable

SCOPE = "tenant:acme"
PROFILE = """
name = "capable"
extends = "default"
[evidence.joins_test]
unit = "count"
range = [0.0, inf]
natural_zero = true
[signals.joined]
evidence = "joins_test"
curve = { log_saturation = { n_max = 10 } }
[score.weights]
joined = 0.3
"""
PENALTY = "[select]\nduplicate_penalty = 0.5\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def profile(tmp_path: Path) -> rb.RankingProfile:
    path = tmp_path / "capable.toml"
    path.write_text(PROFILE, encoding="utf-8")
    return rb.load_profile(path)


@pytest.fixture
def penalized(tmp_path: Path) -> rb.RankingProfile:
    path = tmp_path / "penalized.toml"
    path.write_text(PROFILE + PENALTY, encoding="utf-8")
    return rb.load_profile(path)


class WithoutCache(Capable):
    """Keeps nothing between two openings."""

    snapshot = restore = None  # type: ignore[assignment]


def opened(file: Path | str, store: Capable) -> rb.Memory:
    return rb.Memory.open(file, stores=[store], embedder=hashed_embedder(32))


def fill(memory: rb.Memory, count: int = 30) -> None:
    memory.remember_many(
        {"id": f"m{n:02}", "text": f"refund note {n}", "scope": SCOPE} for n in range(count)
    )
    memory.link("m01", "m02", scope=SCOPE)


def linked(memory: rb.Memory, profile: rb.RankingProfile) -> list[str]:
    """The memories of which the store says that they have links."""
    recall = memory.recall("refund note", scope=SCOPE, profile=profile, top=100)
    assert not recall.degraded
    return sorted(m.memory.id for m in recall if dict(m.signals.present()).get("joined"))


def test_bulk_load_when_a_memory_is_opened_then_one_call_fills_the_store(
    file: Path, profile: rb.RankingProfile
) -> None:
    with opened(file, WithoutCache()) as memory:
        fill(memory)
    store = WithoutCache()
    with opened(file, store) as memory:
        assert linked(memory, profile) == ["m01", "m02"]
        assert store.calls == ["load_contents"]
        memory.remember("refund note late", scope=SCOPE, id="late")
        memory.unlink("m01", "m02", scope=SCOPE)
        assert linked(memory, profile) == []
        assert "late" in memory.recall("late", scope=SCOPE, profile=profile).ids


def test_cache_when_a_memory_is_opened_again_then_the_store_is_restored(
    file: Path, profile: rb.RankingProfile
) -> None:
    first = Capable()
    with opened(file, first) as memory:
        fill(memory)
    assert "snapshot" in first.calls
    with opened(file, WithoutCache()) as memory:  # somebody writes without keeping a cache
        memory.remember("refund note late", scope=SCOPE, id="late")
        memory.link("late", "m03", scope=SCOPE)
    store = Capable()
    with opened(file, store) as memory:
        assert linked(memory, profile) == ["late", "m01", "m02", "m03"]
    assert store.calls[0] == "restore"
    assert "load_contents" not in store.calls


def test_cache_when_something_was_erased_since_then_the_store_does_not_have_it(
    file: Path, profile: rb.RankingProfile
) -> None:
    with opened(file, Capable()) as memory:
        fill(memory)
    with opened(file, WithoutCache()) as memory:
        memory.unlink("m01", "m02", scope=SCOPE)
        memory.forget("m05", scope=SCOPE)
    with opened(file, Capable()) as memory:
        assert linked(memory, profile) == []
        assert "m05" not in memory.recall("refund note 5", scope=SCOPE, profile=profile).ids


class Raising(Capable):
    """Cannot read what it kept."""

    def restore(self, data: bytes, *, rows: object = None) -> bool:
        raise RuntimeError("no")


class Unkept(Capable):
    """Cannot keep what it holds."""

    def snapshot(self) -> bytes:
        raise RuntimeError("no")


def test_cache_when_the_store_cannot_read_or_write_it_then_a_warning_and_nothing_is_lost(
    file: Path, profile: rb.RankingProfile
) -> None:
    with opened(file, Capable()) as memory:
        fill(memory)
    with pytest.warns(CacheWarning, match="take its cache"):
        memory = opened(file, Raising())
    with memory:
        assert linked(memory, profile) == ["m01", "m02"]
    memory = opened(file.with_suffix(".other"), Unkept())
    fill(memory)
    with pytest.warns(CacheWarning, match="give its cache"):
        memory.close()


def test_as_of_when_the_store_can_be_made_anew_then_it_answers_from_that_time(
    profile: rb.RankingProfile,
) -> None:
    store = Capable()
    with opened(":memory:", store) as memory:
        memory.remember("refund old", scope=SCOPE, id="m", at="2024-01-01T00:00:00+00:00")
        memory.remember("refund new", scope=SCOPE, id="m", at="2025-01-01T00:00:00+00:00")
        memory.link("m", "Rome", scope=SCOPE, at="2025-01-01T00:00:00+00:00")
        then = memory.recall(
            "refund old", scope=SCOPE, profile=profile, as_of="2024-06-01T00:00:00+00:00"
        )
        now = memory.recall("refund old", scope=SCOPE, profile=profile)
        signals = [dict(recall[0].signals.present()) for recall in (then, now)]
    assert [found["coverage"] for found in signals] == [1.0, 0.5]
    assert [found["joined"] > 0 for found in signals] == [False, True]
    assert "fresh" in store.calls


def test_diversity_when_the_store_gives_vectors_then_near_duplicates_are_penalized(
    profile: rb.RankingProfile, penalized: rb.RankingProfile
) -> None:
    store = Capable()
    with opened(":memory:", store) as memory:
        for n, text in enumerate(("refund alpha beta gamma", "refund alpha beta gamma delta")):
            memory.remember(text, scope=SCOPE, id=f"twin{n}")
        memory.remember("refund by bank transfer", scope=SCOPE, id="other")
        plain, lowered = (
            memory.recall("refund alpha beta gamma", scope=SCOPE, profile=chosen)
            for chosen in (profile, penalized)
        )
    assert "vectors_of" in store.calls
    scores = [{m.memory.id: m.score for m in recall} for recall in (plain, lowered)]
    assert scores[1]["twin0"] == scores[0]["twin0"]
    assert scores[1]["twin1"] < scores[0]["twin1"]


class BadVectors(Capable):
    """Its vectors are of no use."""

    def vectors_of(self, query: StoreQuery, ids: object) -> object:  # type: ignore[override]
        return super().vectors_of(query, ["m00"])


class NoVectors(Capable):
    """It fails."""

    def vectors_of(self, query: StoreQuery, ids: object) -> object:  # type: ignore[override]
        raise RuntimeError("no")


@pytest.mark.parametrize("kind", [BadVectors, NoVectors])
def test_diversity_when_the_store_fails_then_the_recall_is_degraded_and_stands(
    kind: type[Capable], penalized: rb.RankingProfile
) -> None:
    with opened(":memory:", kind()) as memory:
        fill(memory)
        recall = memory.recall("refund note", scope=SCOPE, profile=penalized)
        assert len(recall) == 10
        assert [failure.during for failure in recall.trace.failures] == ["vectors"]


def test_links_when_another_memory_writes_them_then_the_store_is_told(
    file: Path, profile: rb.RankingProfile
) -> None:
    store = Capable()
    with opened(file, store) as memory, opened(file, Capable()) as other:
        fill(memory)
        other.link("m03", "m04", scope=SCOPE)
        assert linked(memory, profile) == ["m01", "m02", "m03", "m04"]
        other.unlink("m01", "m02", scope=SCOPE)
        assert linked(memory, profile) == ["m03", "m04"]


class Fixed(Capable):
    """Cannot be made anew, nor filled in one call."""

    fresh = load_contents = snapshot = restore = None  # type: ignore[assignment]


def test_links_when_the_store_has_no_other_way_then_it_is_told_one_by_one(
    file: Path, profile: rb.RankingProfile
) -> None:
    with opened(file, Fixed()) as memory:
        fill(memory)
    store = Fixed()
    with opened(file, store) as memory:
        assert linked(memory, profile) == ["m01", "m02"]
        memory.unlink("m01", "m02", scope=SCOPE)
        memory.link("m03", "m04", scope=SCOPE)
        memory._engine.distrust()  # type: ignore[union-attr]
        assert linked(memory, profile) == ["m03", "m04"]


def test_reembed_when_the_store_can_be_made_anew_then_it_gets_the_new_vectors(
    file: Path, penalized: rb.RankingProfile
) -> None:
    with opened(file, Capable()) as memory:
        fill(memory)
        memory.reembed(hashed_embedder(16))
        assert memory.stores["capable"].dimension == 16  # type: ignore[attr-defined]
        assert not memory.recall("refund", scope=SCOPE, profile=penalized).degraded


def test_networkx_when_the_store_walks_then_its_links_are_shown() -> None:
    with opened(":memory:", Capable()) as memory:
        fill(memory)
        assert set(memory.to_networkx(scope=SCOPE).nodes) == {"m01", "m02"}
        assert set(memory.to_networkx(scope="tenant:other").nodes) == set()


def test_filling_when_somebody_writes_meanwhile_then_no_store_holds_what_nobody_can_name(
    file: Path,
) -> None:
    """A memory that comes while one store is filled, and is gone before the next is."""

    class Meddling(WithoutCache):
        deeds: tuple[str, ...] = ()

        def load_contents(self, contents: Contents) -> None:
            super().load_contents(contents)
            if self.done < len(self.deeds):
                getattr(self, self.deeds[self.done])()
                type(self).done += 1

        def come(self) -> None:
            other.remember("refund of the moment", scope=SCOPE, id="late")

        def go(self) -> None:
            other.forget("late", scope=SCOPE)

        done = 0

    class First(Meddling):
        name, deeds, done = "first", ("come",), 0

    class Last(Meddling):
        name, deeds, done = "last", ("go",), 0

    with rb.Memory.open(file) as other:
        other.remember("refund policy", scope=SCOPE, id="policy")
        stores = [First(), *rb.default_stores(), Last()]
        with rb.Memory.open(file, stores=stores) as memory:
            found = memory.recall("refund", scope=SCOPE, profile="default", strict=True)
            assert (First.done, Last.done) == (1, 1)
            assert list(found.ids) == ["policy"]

"""Writing memories: what is stored, what a second writing means, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.embedders import from_callable
from rankblend.errors import (
    EmbedderMismatchError,
    EmbeddingError,
    InvalidArgumentError,
    StoreClosedError,
    StoreError,
)

Open = Callable[..., rb.Memory]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER = "tenant:acme", "tenant:acme/user:7"


def lengths(texts: Sequence[str]) -> np.ndarray:
    return np.array([[len(text), 1.0] for text in texts])


LENGTHS = from_callable(lengths, name="lengths", dimension=2)


def test_remember_when_everything_is_given_then_get_gives_it_back(memory: rb.Memory) -> None:
    link = rb.Link("order 12", "about", 0.5, verified=True)
    identifier = memory.remember(
        "Ana prefers bank transfer",
        scope=USER,
        id="pref",
        layer="episodic",
        key="payment",
        salience=0.8,
        confidence=0.25,
        review="confirmed",
        maturity="settled",
        certainty="stated",
        links=["ana", link],
        at="2026-02-01T08:00:00+01:00",
        expires=datetime(2027, 1, 1, tzinfo=UTC),
        metadata={"lang": "en", "tags": ["a", "b"], "deep": {"n": 1}},
        vector=[3, 4],
    )
    stored = memory.get("pref", scope=USER)
    assert identifier == stored.id == "pref"
    assert (str(stored.scope), stored.text) == (USER, "Ana prefers bank transfer")
    assert (stored.layer, stored.key) == ("episodic", "payment")
    assert (stored.salience, stored.confidence) == (0.8, 0.25)
    assert (stored.review, stored.maturity, stored.certainty) == ("confirmed", "settled", "stated")
    assert stored.links == (rb.Link("ana"), link)
    assert stored.at == stored.created == datetime(2026, 2, 1, 7, tzinfo=UTC)
    assert stored.expires == datetime(2027, 1, 1, tzinfo=UTC)
    assert stored.metadata == {"lang": "en", "tags": ["a", "b"], "deep": {"n": 1}}
    assert (stored.uses, stored.used) == (0, None)


def test_remember_when_only_text_and_scope_are_given_then_the_rest_is_absent(
    memory: rb.Memory,
) -> None:
    stored = memory.get(memory.remember("tea at four", scope=USER), scope=USER)
    assert (stored.layer, stored.at, stored.created) == ("semantic", NOW, NOW)
    assert stored.metadata == {}
    assert stored.links == ()
    nothing = (stored.key, stored.salience, stored.confidence, stored.review, stored.maturity)
    assert (*nothing, stored.certainty, stored.expires, stored.used) == (None,) * 8


def test_remember_when_no_id_is_given_then_each_memory_has_its_own(memory: rb.Memory) -> None:
    ids = {memory.remember("tea at four", scope=USER) for _ in range(20)}
    assert len(ids) == len(memory) == 20


def test_remember_when_the_id_is_known_then_it_is_the_next_revision(memory: rb.Memory) -> None:
    memory.remember("tea at four", scope=USER, id="tea", salience=0.9, metadata={"v": 1})
    memory.reinforce("tea", scope=USER)
    memory.remember("tea at five", scope=USER, id="tea", at="2026-03-02T00:00:00+00:00")
    stored = memory.get("tea", scope=USER)
    assert len(memory) == 1
    # What is not given again is absent, it is not kept from the revision before; uses are kept.
    assert (stored.text, stored.salience, stored.metadata) == ("tea at five", None, {})
    assert (stored.created, stored.uses) == (NOW, 1)
    assert [m.memory.text for m in memory.recall("tea", scope=USER)] == ["tea at five"]


def test_remember_when_the_revision_is_older_then_the_present_stays(memory: rb.Memory) -> None:
    memory.remember("tea at four", scope=USER, id="tea")
    memory.remember("tea at three", scope=USER, id="tea", at="2025-01-01T00:00:00+00:00")
    assert memory.get("tea", scope=USER).text == "tea at four"
    assert memory.recall("three", scope=USER).ids == ()


def test_remember_when_the_id_exists_at_another_scope_then_both_are_kept(memory: rb.Memory) -> None:
    memory.remember("the tenant's tea", scope=TENANT, id="tea")
    memory.remember("the user's tea", scope=USER, id="tea")
    assert len(memory) == 2
    assert memory.get("tea", scope=USER).text == "the user's tea"
    assert memory.get("tea", scope=TENANT).text == "the tenant's tea"
    assert memory.get("tea", scope="tenant:acme/user:8").text == "the tenant's tea"


def test_remember_when_the_scope_is_an_object_then_as_with_its_text(memory: rb.Memory) -> None:
    memory.remember("tea", scope=rb.Scope.parse(USER), id="tea")
    assert memory.get("tea", scope=USER).scope == rb.Scope.parse(USER)


@pytest.mark.parametrize(
    "when",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 7, 20, tzinfo=UTC),
    ],
)
def test_remember_when_a_time_is_extreme_then_it_can_be_read_back(
    memory: rb.Memory, when: datetime
) -> None:
    memory.remember("tea", scope=USER, id="tea", at=min(when, NOW), expires=when)
    expires = memory.get("tea", scope=USER).expires
    # Seconds of the year 9999 in a double are 1/32768 apart: half of that is lost at most.
    assert expires is not None
    assert abs(expires - when) <= timedelta(microseconds=31)
    assert len(memory.recall("tea", scope=USER, include_expired=True)) == 1


def test_remember_when_metadata_is_changed_afterwards_then_the_memory_is_not(
    memory: rb.Memory,
) -> None:
    tags = ["a"]
    memory.remember("tea", scope=USER, id="tea", metadata={"tags": tags})
    tags.append("b")
    assert memory.get("tea", scope=USER).metadata == {"tags": ["a"]}


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e300])
def test_remember_when_a_vector_has_any_length_then_only_its_direction_counts(
    memory: rb.Memory, told: Callable[..., Any], opened: Open, scale: float
) -> None:
    embedder = from_callable(
        lambda texts: np.array([[1.0, 0.0]] * len(texts)), name="x", dimension=2
    )
    memory = opened(embedder=embedder)
    memory.remember("tea", scope=USER, id="tea", vector=[3 * scale, 4 * scale])
    match = memory.recall("tea", scope=USER)[0]
    # (3, 4) / 5 · (1, 0) = .6
    assert match.signals.similarity == pytest.approx(0.6, abs=1e-7)


REFUSED: dict[str, dict[str, Any]] = {
    "text: expected text, got int": {"text": 5},
    "text: expected text, got NoneType": {"text": None},
    "text: expected some text, got a blank": {"text": " \n"},
    "text: contains a lone surrogate": {"text": "tea \ud800"},
    "text: expected at most 1,000,000 characters": {"text": "x" * 1_000_001},
    "scope: expected text such as": {"scope": None},
    "scope: level 1: expected kind:id": {"scope": "acme"},
    "id: expected text, got int": {"id": 7},
    "id: expected some text": {"id": " "},
    "id: control characters": {"id": "a\x00b"},
    "id: contains a lone surrogate": {"id": "\udfff"},
    "id: expected at most 512": {"id": "x" * 513},
    "layer: expected some text": {"layer": ""},
    "layer: expected text, got NoneType": {"layer": None},
    "key: expected some text": {"key": ""},
    "key: contains a lone surrogate": {"key": "\ud800"},
    "salience: expected None or a number in [0, 1], got 1.5": {"salience": 1.5},
    "salience: expected None or a number in [0, 1], got nan": {"salience": math.nan},
    "salience: expected None or a number in [0, 1], got inf": {"salience": 10**400},
    "salience: expected None or a number in [0, 1], got bool": {"salience": True},
    "confidence: expected None or a number in [0, 1], got str": {"confidence": "high"},
    "review: expected one of confirmed, unreviewed, flagged": {"review": "ok"},
    "maturity: expected one of settled, provisional": {"maturity": 1},
    "certainty: expected one of stated, inferred": {"certainty": []},
    "links: expected a sequence": {"links": "order 12"},
    "links: expected a sequence of ids or Links": {"links": 5},
    "links[0]: expected an id or a Link": {"links": [5]},
    "links[0]: expected target, kind, weight, verified": {"links": [{"to": "x"}]},
    "links[0].target: expected text, got int": {"links": [rb.Link(5)]},  # type: ignore[arg-type]
    "links[1].target: expected some text": {"links": ["a", ""]},
    "links[0].kind: expected some text": {"links": [rb.Link("a", "")]},
    "links[0].weight: expected a number in (0, 1], got 0": {"links": [rb.Link("a", weight=0)]},
    "links[0].weight: expected a number in (0, 1], got 2": {"links": [rb.Link("a", weight=2)]},
    "links[0].weight: expected a number": {"links": [rb.Link("a", weight=None)]},  # type: ignore[arg-type]
    "links[0].verified: expected True or False": {"links": [rb.Link("a", verified="no")]},  # type: ignore[arg-type]
    "at: expected a datetime with a time zone": {"at": datetime(2026, 1, 1)},  # noqa: DTZ001
    "at: expected ISO 8601": {"at": "yesterday"},
    "at: expected an aware datetime, got float": {"at": 1.5},
    "at: expected a time within the years 1 to 9999": {
        "at": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
    },
    "expires: expected a datetime with a time zone": {"expires": "2026-01-01T00:00:00"},
    "metadata: expected a mapping": {"metadata": ["a"]},
    "metadata: expected a mapping from names": {"metadata": {1: "a"}},
    "metadata: expected JSON values": {"metadata": {"a": math.nan}},
    "metadata: expected JSON values (": {"metadata": {"a": {1, 2}}},
    "metadata: contains a lone surrogate": {"metadata": {"a": ["\ud800"]}},
    "vector: expected one row of numbers, got dtype": {"vector": ["a"]},
    "vector: expected one row of numbers, got shape (2, 2)": {"vector": [[1, 0], [0, 1]]},
    "vector: expected one row of numbers, got shape (0,)": {"vector": []},
    "vector: expected a vector of a length above 0": {"vector": [0.0, 0.0]},
    "vector: expected finite float32 numbers": {"vector": [1.0, math.nan]},
    "vector: expected finite float32 numbers, got NaN": {"vector": [math.inf, 1.0]},
}


@pytest.mark.parametrize("problem", REFUSED)
def test_remember_when_an_argument_is_bad_then_it_is_named_and_nothing_is_stored(
    memory: rb.Memory, problem: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        memory.remember(**{"text": "tea", "scope": USER, **REFUSED[problem]})
    assert len(refused.value.problems) == 1
    assert refused.value.problems[0].startswith(problem)
    assert len(memory) == 0


def test_remember_when_everything_is_bad_then_every_problem_is_told_at_once(
    memory: rb.Memory,
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        memory.remember(
            "", scope="", id="", layer="", key="", salience=2, confidence=-1, review="x",
            maturity="x", certainty="x", links=[""], at="x", expires="x", metadata={"a": {1}},
            vector=[0],
        )  # type: ignore[arg-type]  # fmt: skip
    named = {problem.partition(":")[0].partition("[")[0] for problem in refused.value.problems}
    assert named == {
        "text", "scope", "id", "layer", "key", "salience", "confidence", "review", "maturity",
        "certainty", "links", "at", "expires", "metadata", "vector",
    }  # fmt: skip
    assert len(memory) == 0


def test_remember_when_it_is_refused_then_no_message_repeats_the_text(memory: rb.Memory) -> None:
    secret = "the vault's code is 4711"
    with pytest.raises(InvalidArgumentError) as refused:
        memory.remember(secret, scope=USER, salience=2, metadata={"note": {secret}})
    assert "4711" not in str(refused.value)


def test_remember_when_a_vector_has_another_dimension_then_nothing_is_stored(
    memory: rb.Memory,
) -> None:
    memory.remember("tea", scope=USER, vector=[1, 0])
    with pytest.raises(InvalidArgumentError, match="expected 2 dimensions"):
        memory.remember_many(
            [
                {"text": "coffee", "scope": USER},
                {"text": "milk", "scope": USER, "vector": [1, 0, 0]},
            ]
        )
    assert len(memory) == 1


def test_remember_when_a_vector_does_not_fit_the_embedder_then_it_is_refused(opened: Open) -> None:
    memory = opened(embedder=LENGTHS)
    with pytest.raises(InvalidArgumentError, match="expected 2 dimensions"):
        memory.remember("tea", scope=USER, vector=[1, 0, 0])
    assert len(memory) == 0
    memory.remember("tea", scope=USER)
    assert memory.recall("tea", scope=USER)[0].signals.similarity is not None


def test_remember_many_when_all_are_good_then_the_ids_come_in_order(memory: rb.Memory) -> None:
    items = ({"text": f"tea {n}", "scope": USER, "id": f"t{n}"} for n in (3, 1, 2))
    assert memory.remember_many(items) == ["t3", "t1", "t2"]
    assert memory.remember_many([]) == []
    assert len(memory) == 3


def test_remember_many_when_one_is_bad_then_none_is_stored_and_the_item_is_named(
    memory: rb.Memory,
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        memory.remember_many(
            [
                {"text": "tea", "scope": USER},
                {"text": "tea", "scope": USER, "salience": 2, "mood": "good"},
                "tea",  # type: ignore[list-item]
                {"text": "tea"},
                {"text": "tea", "scope": USER, "uses": -1, "used": "x"},
            ]
        )
    found = [problem.partition(":")[0] for problem in refused.value.problems]
    assert found == [
        "items[1].mood", "items[1].salience", "items[2]", "items[3].scope", "items[4].uses",
        "items[4].used",
    ]  # fmt: skip
    assert len(memory) == 0


@pytest.mark.parametrize("items", [None, 5, "tea"])
def test_remember_many_when_it_gets_no_sequence_then_it_is_refused(
    memory: rb.Memory, items: Any
) -> None:
    with pytest.raises(InvalidArgumentError, match="items: expected a sequence of mappings"):
        memory.remember_many(items)


def test_remember_many_when_an_id_comes_twice_then_these_are_its_revisions(
    memory: rb.Memory,
) -> None:
    memory.remember_many(
        [
            {"text": "tea at four", "scope": USER, "id": "tea", "at": "2026-01-01T00:00:00+00:00"},
            {"text": "tea at five", "scope": USER, "id": "tea", "at": "2026-02-01T00:00:00+00:00"},
        ]
    )
    assert len(memory) == 1
    assert memory.recall("tea", scope=USER)[0].memory.text == "tea at five"
    past = memory.recall("tea", scope=USER, as_of="2026-01-15T00:00:00+00:00")
    assert past[0].memory.text == "tea at four"


def test_remember_many_when_uses_are_brought_then_they_count(memory: rb.Memory) -> None:
    memory.remember_many(
        [
            {
                "text": "tea",
                "scope": USER,
                "id": "tea",
                "uses": 3,
                "used": "2026-02-01T00:00:00+00:00",
            }
        ]
    )
    stored = memory.get("tea", scope=USER)
    assert (stored.uses, stored.used) == (3, datetime(2026, 2, 1, tzinfo=UTC))


def test_remember_many_when_not_embedding_then_only_brought_vectors_are_there(opened: Open) -> None:
    memory = opened(embedder=LENGTHS)
    memory.remember_many(
        [
            {"text": "tea", "scope": USER, "id": "bare"},
            {"text": "tea too", "scope": USER, "id": "brought", "vector": [1, 1]},
        ],
        embed=False,
    )
    similarity = {m.memory.id: m.signals.similarity for m in memory.recall("tea", scope=USER)}
    assert similarity["bare"] is None
    assert similarity["brought"] is not None
    assert memory.reembed(LENGTHS) == 2
    assert memory.recall("tea", scope=USER)[0].signals.similarity is not None


# Embedders that fail while writing


def raising(texts: Sequence[str]) -> np.ndarray:
    raise ConnectionError(f"could not send {texts[0]}")


FAILING: dict[str, Callable[[Sequence[str]], Any]] = {
    "raised": raising,
    "non-finite": lambda texts: np.full((len(texts), 2), np.nan),
    "rows": lambda texts: np.ones((len(texts) + 1, 2)),
    "shape": lambda texts: np.ones(len(texts)),
    "length": lambda texts: np.ones((len(texts), 3)),
    "norm": lambda texts: np.zeros((len(texts), 2)),
}


@pytest.mark.parametrize("reason", FAILING)
def test_remember_when_the_embedder_fails_then_nothing_is_stored(opened: Open, reason: str) -> None:
    embedder = from_callable(FAILING[reason], name="failing", dimension=2)
    memory = opened(embedder=embedder)
    with pytest.raises(EmbeddingError) as failed:
        memory.remember_many(
            [{"text": "the code is 4711", "scope": USER}, {"text": "b", "scope": USER}]
        )
    assert failed.value.reason == reason
    assert "4711" not in str(failed.value)
    assert len(memory) == 0


def test_remember_when_it_is_refused_then_the_file_belongs_to_no_embedder_yet(
    opened: Open, tmp_path: Path
) -> None:
    # The embedder does not state its dimension, so the brought vector looks right at first.
    unstated = from_callable(lambda texts: np.ones((len(texts), 3)), name="unstated")
    with (
        opened(tmp_path / "m.db", embedder=unstated) as memory,
        pytest.raises(InvalidArgumentError),
    ):
        memory.remember_many(
            [{"text": "a", "scope": USER}, {"text": "b", "scope": USER, "vector": [1, 0]}]
        )
    memory = opened(tmp_path / "m.db", embedder=LENGTHS)
    memory.remember("tea", scope=USER)
    assert len(memory) == 1


def test_open_when_another_embedder_wrote_the_file_then_it_is_refused_with_the_command(
    opened: Open, tmp_path: Path
) -> None:
    path = tmp_path / "m.db"
    with opened(path, embedder=LENGTHS) as memory:
        memory.remember("tea", scope=USER)
    other = from_callable(lengths, name="other", dimension=2)
    with pytest.raises(EmbedderMismatchError, match="rankblend reembed") as refused:
        opened(path, embedder=other)
    assert (refused.value.stored, refused.value.given) == ("lengths/2", "other/2")
    assert len(opened(path, embedder=LENGTHS)) == 1
    assert len(opened(path)) == 1


def test_reembed_when_it_is_done_then_the_new_embedder_opens_the_file(
    opened: Open, tmp_path: Path
) -> None:
    wide = from_callable(
        lambda texts: np.array([[len(t), 1, 0.5] for t in texts]), name="wide", dimension=3
    )
    path = tmp_path / "m.db"
    memory = opened(path, embedder=LENGTHS)
    memory.remember("tea", scope=USER, id="tea")
    before = memory.recall("tea", scope=USER)[0].signals.similarity
    assert before == pytest.approx(1.0, abs=1e-6)
    assert memory.reembed(wide) == 1
    assert memory.recall("tea!", scope=USER)[0].signals.similarity is not None
    memory.close()
    with pytest.raises(EmbedderMismatchError):
        opened(path, embedder=LENGTHS)
    again = opened(path, embedder=wide)
    assert again.recall("tea", scope=USER)[0].signals.similarity == pytest.approx(1.0, abs=1e-6)


def test_reembed_when_the_embedder_fails_then_nothing_changes(opened: Open) -> None:
    memory = opened(embedder=LENGTHS)
    memory.remember("tea", scope=USER)
    before = memory.recall("tea", scope=USER)[0].signals
    with pytest.raises(EmbeddingError):
        memory.reembed(from_callable(raising, name="failing", dimension=2))
    assert memory.recall("tea", scope=USER)[0].signals == before


# Opening and closing

BAD_OPTIONS: dict[str, dict[str, Any]] = {
    "embedder: expected a callable": {"embedder": "wordllama"},
    "tokenizer: expected a callable": {"tokenizer": 5},
    "clock: expected a callable": {"clock": datetime(2026, 1, 1, tzinfo=UTC)},
    "token_counter: expected a callable": {"token_counter": 4},
    "reranker: expected a callable": {"reranker": "x"},
    "store_timeout: expected None or a finite number > 0, got 0": {"store_timeout": 0},
    "store_timeout: expected None or a finite number > 0, got inf": {"store_timeout": math.inf},
    "store_timeout: expected None": {"store_timeout": True},
    "statistics: expected root, visible or store": {"statistics": "all"},
    "layers: expected policies by layer name": {"layers": 5},
    "layers['notes']: expected a LayerPolicy": {"layers": {"notes": "inherit"}},
    "stores: expected several stores": {"stores": 5},
    "stores[0]: expected a store": {"stores": [object()]},
    "stores: two stores are called 'catalog'": {
        "stores": [rb.SignalStore("catalog", dict, emits=["liked"])]
    },
}


@pytest.mark.parametrize("problem", BAD_OPTIONS)
def test_open_when_an_option_is_bad_then_it_is_named(
    opened: Open, tmp_path: Path, problem: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        opened(tmp_path / "m.db", **BAD_OPTIONS[problem])
    assert refused.value.problems[0].startswith(problem)


def test_open_when_it_fails_then_the_stores_are_closed(
    opened: Open, told: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "m.db").write_bytes(b"this is no catalog" * 100)
    store = told()
    with pytest.raises(rb.errors.CatalogCorruptError):
        opened(tmp_path / "m.db", stores=[store])
    assert store.closed == 1


def test_close_when_called_twice_then_stores_are_closed_once(
    opened: Open, told: Callable[..., Any]
) -> None:
    store = told()
    memory = opened(stores=[store])
    memory.close()
    memory.close()
    assert store.closed == 1


def test_close_when_a_store_raises_then_the_others_and_the_file_are_closed_all_the_same(
    opened: Open, told: Callable[..., Any], tmp_path: Path
) -> None:
    class Stubborn(type(told())):  # type: ignore[misc]
        def close(self) -> None:
            super().close()
            raise OSError("will not close")

    stores = [
        told(name="first"),
        Stubborn({}, emits=("cosine",), name="stubborn", proposes=()),
        told(name="last"),
    ]
    memory = rb.Memory.open(tmp_path / "m.db", stores=stores)
    memory.remember("tea", scope=USER)
    with pytest.raises(StoreError, match=r"stubborn.*failed to close .OSError."):
        memory.close()
    assert [store.closed for store in stores] == [1, 1, 1]
    assert not (tmp_path / "m.db-wal").exists()
    assert len(opened(tmp_path / "m.db")) == 1


def test_memory_when_it_is_closed_then_every_call_says_so(
    memory: rb.Memory, tmp_path: Path
) -> None:
    memory.close()
    calls: list[Callable[[], object]] = [
        lambda: memory.remember("tea", scope=USER),
        lambda: memory.remember_many([]),
        lambda: memory.link("a", "b", scope=USER),
        lambda: memory.link_many([], scope=USER),
        lambda: memory.unlink("a", "b", scope=USER),
        lambda: memory.forget("a", scope=USER),
        lambda: memory.reinforce("a", scope=USER),
        lambda: memory.reembed(LENGTHS),
        lambda: memory.export(tmp_path / "out.jsonl"),
        lambda: memory.recall("tea", scope=USER),
        lambda: memory.get("a", scope=USER),
        lambda: len(memory),
    ]
    for call in calls:
        with pytest.raises(StoreClosedError, match="closed"):
            call()
    assert repr(memory) == "<Memory closed>"
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("now", [NOW.replace(tzinfo=None), NOW.timestamp(), None])
def test_clock_when_it_returns_no_aware_datetime_then_it_is_named(
    opened: Open, now: object
) -> None:
    memory = opened(clock=lambda: now)
    with pytest.raises(
        InvalidArgumentError, match="clock: expected it to return an aware datetime"
    ):
        memory.remember("tea", scope=USER)

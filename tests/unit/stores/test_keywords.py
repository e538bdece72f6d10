"""The keyword store: scores by hand, edges, isolation, writing, keeping."""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.relevance import EVIDENCE, Scope, cue_overlap
from rankblend.stores import (
    Key,
    Reach,
    Reason,
    Record,
    Statistics,
    Store,
    StoreQuery,
    SupportsBatch,
    SupportsWrite,
)
from rankblend.stores._rows import NumberedIds, ScopedRows
from rankblend.stores.keywords import KeywordStore
from rankblend.stores.keywords._cache import Arrays, joined
from rankblend.stores.keywords._cache import _arrays as read_arrays

ACME = Scope.parse("tenant:acme")
USER = ACME / "user:7"
SESSION = USER / "session:1"
SIBLING = ACME / "user:8"
OTHER = Scope.parse("tenant:acme-corp")


def record(id_: str, text: str, scope: Scope = USER, serial: int = -1) -> Record:
    return Record(Key(scope, id_), text, serial)


def filled(*records: Record) -> KeywordStore:
    store = KeywordStore()
    store.add(records)
    return store


def ask(text: str, *scopes: Scope, **more: object) -> StoreQuery:
    return StoreQuery(text, scopes or (USER,), **more)


def bm25(store: KeywordStore, query: StoreQuery, *ids: str) -> list[float]:
    return store.observe(query, ids).columns["bm25"].tolist()


def merged(store: KeywordStore) -> None:
    store._index.merge()
    store._renumbered()


# Three ways an index may lie after writing; every one must answer alike.
STATES: dict[str, Callable[[KeywordStore], None]] = {
    "as written": lambda store: None,
    "in the postings": merged,
    "compacted": KeywordStore._compact,
}


@pytest.fixture(params=STATES)
def settle(request: pytest.FixtureRequest) -> Callable[[KeywordStore], None]:
    return STATES[request.param]


# -- evidence -------------------------------------------------------------------------------------


def test_store_is_what_the_contract_asks_for() -> None:
    store = KeywordStore()
    assert isinstance(store, Store)
    assert isinstance(store, SupportsWrite)
    assert isinstance(store, SupportsBatch)
    assert set(store.emits) <= set(EVIDENCE)


def test_bm25_of_one_term_is_its_idf_times_its_saturated_count(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(record("a", "green tea"), record("b", "black coffee milk"), record("c", "tree"))
    settle(store)
    # N 3, df 1: idf = ln(1 + 2.5/1.5); lengths 2, 3, 1, mean 2: norm of a = 1.2·(.25 + .75·2/2)
    expected = math.log(8 / 3) * 1 / (1 + 1.2)
    got = bm25(store, ask("tea"), "a", "b", "c")
    assert got[0] == pytest.approx(expected, abs=1e-15)
    assert got[1:] == [0.0, 0.0]


def test_bm25_counts_inflections_together(settle: Callable[[KeywordStore], None]) -> None:
    store = filled(record("a", "run running runs"), record("b", "sleep"))
    settle(store)
    # N 2, df 1: idf = ln(1 + 1.5/1.5); tf 3; lengths 3 and 1, mean 2: norm = 1.2·(.25 + .75·3/2)
    expected = math.log(2) * 3 / (3 + 1.2 * 1.375)
    assert bm25(store, ask("runner runs"), "a")[0] == pytest.approx(expected, abs=1e-15)


def test_bm25_counts_a_repeated_query_term_once() -> None:
    store = filled(record("a", "green tea"), record("b", "coffee"))
    assert bm25(store, ask("tea"), "a") == bm25(store, ask("tea teas TEA?"), "a")


def test_bm25_parameters_are_taken() -> None:
    store = KeywordStore(k1=0.0, b=0.0)
    store.add([record("a", "tea tea tea"), record("b", "coffee")])
    assert bm25(store, ask("tea"), "a")[0] == pytest.approx(math.log(2), abs=1e-15)


@pytest.mark.parametrize(
    "wrong", [{"k1": -0.1}, {"k1": math.inf}, {"k1": math.nan}, {"b": 1.5}, {"b": math.nan}]
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        KeywordStore(**wrong)


def test_parameters_out_of_range_are_refused_all_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        KeywordStore(k1=-1, b=2)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("text", ["", " \t\n", "?! …", "\ud800"])
def test_query_without_tokens_is_covered_by_everything_and_has_no_bm25(text: str) -> None:
    store = filled(record("a", "green tea"), record("b", ""))
    seen = store.observe(ask(text), ["a", "b", "nobody"])
    assert seen.columns["coverage"][:2].tolist() == [1.0, 1.0]
    assert np.isnan(seen.columns["coverage"][2])
    assert np.isnan(seen.columns["bm25"]).all()
    assert seen.reason("bm25").tolist() == [
        Reason.NOT_APPLICABLE,
        Reason.NOT_APPLICABLE,
        Reason.UNKNOWN,
    ]
    assert store.propose(ask(text), 10) == []


def test_query_of_stop_words_has_coverage_but_no_bm25() -> None:
    store = filled(record("a", "who am I"))
    seen = store.observe(ask("who are you"), ["a"])
    assert seen.columns["coverage"].tolist() == [1 / 3]
    assert seen.reason("bm25").tolist() == [Reason.NOT_APPLICABLE]
    assert store.propose(ask("who are you"), 10) == []


def test_memory_that_shares_no_term_is_observed_as_zero_and_not_proposed() -> None:
    store = filled(record("a", "green tea"), record("b", "the coffee"), record("c", ""))
    seen = store.observe(ask("the tea"), ["b", "c"])
    assert seen.columns["bm25"].tolist() == [0.0, 0.0]
    assert seen.reason("bm25").tolist() == [Reason.PRESENT, Reason.PRESENT]
    assert seen.columns["coverage"].tolist() == [0.5, 0.0]
    assert store.propose(ask("the tea"), 10) == ["a"]


def test_query_words_nobody_holds_are_an_observation_too() -> None:
    store = filled(record("a", "green tea"))
    seen = store.observe(ask("xylophone"), ["a"])
    assert (seen.columns["bm25"].tolist(), seen.columns["coverage"].tolist()) == ([0.0], [0.0])


TEXTS = st.lists(
    st.sampled_from(
        ["tea", "Tea", "the", "x", "東京都", "東京", "中", "café", "cafe\u0301", "हिन्दी"]
    )
    | st.text(max_size=4),
    max_size=6,
).map(" ".join)


@given(cue=TEXTS, texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_coverage_is_cue_overlap(cue: str, texts: list[str]) -> None:
    ids = [str(at) for at in range(len(texts))]
    store = filled(*(record(id_, text) for id_, text in zip(ids, texts, strict=True)))
    seen = store.observe(ask(cue), ids)
    assert seen.columns["coverage"].tolist() == [cue_overlap(cue, text) for text in texts]


def test_coverage_follows_the_tokenizer_given() -> None:
    store = KeywordStore(tokenizer=lambda text: text.split("|"))
    store.add([record("a", "green tea|milk")])
    assert store.observe(ask("green tea|sugar"), ["a"]).columns["coverage"].tolist() == [0.5]


def test_evidence_on_one_id_does_not_depend_on_the_others(rng: np.random.Generator) -> None:
    words = ["tea", "milk", "sugar", "lemon", "cup", "pot", "leaf", "water", "green", "black"]
    store = filled(
        *(record(f"m{at}", " ".join(rng.choice(words, rng.integers(1, 9)))) for at in range(300))
    )
    query = ask("lemon tea with sugar and milk in a green pot")
    ids = [f"m{at}" for at in range(300)]
    together = store.observe(query, ids).columns["bm25"]
    backwards = store.observe(query, ids[::-1] + ids[:7]).columns["bm25"]
    alone = [bm25(store, query, id_)[0] for id_ in ids]
    assert together.tolist() == alone
    assert backwards.tolist() == alone[::-1] + alone[:7]


def test_proposals_are_ordered_by_what_is_observed(
    rng: np.random.Generator, settle: Callable[[KeywordStore], None]
) -> None:
    words = ["tea", "milk", "sugar", "lemon", "cup", "pot", "leaf", "water", "green", "black"]
    store = filled(
        *(record(f"m{at}", " ".join(rng.choice(words, rng.integers(1, 9)))) for at in range(300))
    )
    settle(store)
    for text in ("lemon", "lemon tea with sugar", " ".join(words)):
        ids = [f"m{at}" for at in range(300)]
        scores = dict(zip(ids, bm25(store, ask(text), *ids), strict=True))
        ranked = sorted((id_ for id_ in ids if scores[id_] > 0), key=lambda i: (-scores[i], i))
        for limit in (0, 1, 17, 300, 10_000):
            assert store.propose(ask(text), limit) == ranked[:limit]


def test_ties_at_the_limit_are_resolved_by_id(settle: Callable[[KeywordStore], None]) -> None:
    store = filled(*(record(id_, "green tea") for id_ in ["d", "b", "é", "a", "B", "c"]))
    settle(store)
    assert store.propose(ask("tea"), 3) == ["B", "a", "b"]


def test_negative_limit_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="limit"):
        KeywordStore().propose(ask("tea"), -1)


def test_batch_answers_as_single() -> None:
    store = filled(record("a", "green tea"), record("b", "tea", ACME), record("c", "tea", OTHER))
    queries = [ask("tea"), ask("green"), ask("", ACME), ask("tea", ACME, OTHER)]
    assert store.propose_many(queries, 2, level=0) == [
        store.propose(query, 2, level=0) for query in queries
    ]
    for query, seen in zip(queries, store.observe_many(queries, [["a", "c"]] * 4), strict=True):
        alone = store.observe(query, ["a", "c"])
        for name in store.emits:
            assert np.array_equal(seen.columns[name], alone.columns[name], equal_nan=True)
            assert np.array_equal(seen.reason(name), alone.reason(name))


def test_batch_with_another_number_of_id_lists_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(KeywordStore().observe_many([ask("tea")], []))


# -- scopes ---------------------------------------------------------------------------------------


def test_invisible_and_unknown_are_the_same(settle: Callable[[KeywordStore], None]) -> None:
    store = filled(
        record("own", "tea"),
        record("deeper", "tea", SESSION),
        record("sibling", "tea", SIBLING),
        record("other", "tea", OTHER),
    )
    settle(store)
    seen = store.observe(ask("tea"), ["deeper", "sibling", "other", "nobody", "own"])
    for name in store.emits:
        assert np.isnan(seen.columns[name][:4]).all()
        assert seen.reason(name).tolist() == [Reason.UNKNOWN] * 4 + [Reason.PRESENT]
    assert store.propose(ask("tea"), 10) == ["own"]
    assert store.propose(ask("tea", reach=Reach.SUBTREE), 10) == ["deeper", "own"]


@pytest.mark.parametrize("statistics", [Statistics.ROOT, Statistics.VISIBLE])
def test_nothing_outside_the_root_moves_a_score(
    statistics: Statistics, settle: Callable[[KeywordStore], None]
) -> None:
    store = filled(record("a", "green tea"), record("b", "coffee"))
    query = ask("tea", statistics=statistics)
    before = bm25(store, query, "a", "b")
    store.add([record(f"x{at}", "tea tea tea and more words", OTHER) for at in range(50)])
    settle(store)
    assert bm25(store, query, "a", "b") == before
    assert bm25(store, ask("tea", statistics=Statistics.STORE), "a") != before[:1]


def test_statistics_of_the_root_count_what_is_invisible_inside(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(record("a", "tea"), record("s", "tea", SIBLING), record("d", "milk", SESSION))
    settle(store)
    # root: N 3, df 2, mean 1: ln(1 + 1.5/2.5)/2.2; visible: N 1, df 1: ln(1 + .5/1.5)/2.2
    assert bm25(store, ask("tea"), "a")[0] == pytest.approx(math.log(1.6) / 2.2, abs=1e-15)
    visible = bm25(store, ask("tea", statistics=Statistics.VISIBLE), "a")[0]
    assert visible == pytest.approx(math.log(4 / 3) / 2.2, abs=1e-15)


def test_statistics_of_the_visible_leave_out_what_is_not_admitted() -> None:
    store = filled(record("a", "tea", serial=0), record("b", "tea", serial=1))
    query = ask("tea", statistics=Statistics.VISIBLE, admitted=np.array([True, False]))
    # N 1, df 1
    assert bm25(store, query, "a")[0] == pytest.approx(math.log(4 / 3) / 2.2, abs=1e-15)
    # root: both count, admitted or not: N 2, df 2: ln(1 + .5/2.5)
    root = ask("tea", admitted=np.array([True, False]))
    assert bm25(store, root, "a")[0] == pytest.approx(math.log(1.2) / 2.2, abs=1e-15)


def test_several_roots_take_the_union_of_their_statistics(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(
        record("a", "tea", ACME), record("b", "tea", SIBLING), record("c", "milk cup pot", OTHER)
    )
    settle(store)
    # N 3, df 2, lengths 1, 1, 3: mean 5/3; norm of a = 1.2·(.25 + .75·3/5) = .84
    both = bm25(store, ask("tea", ACME, OTHER), "a")[0]
    assert both == pytest.approx(math.log(1.6) / 1.84, abs=1e-15)
    assert bm25(store, ask("tea", OTHER, USER), "a")[0] == both


def test_level_limits_proposals_and_not_statistics(settle: Callable[[KeywordStore], None]) -> None:
    store = filled(
        record("near", "tea", SESSION), record("mid", "tea leaf", USER), record("far", "tea", ACME)
    )
    settle(store)
    query = ask("tea", SESSION, statistics=Statistics.VISIBLE)
    assert [store.propose(query, 10, level=level) for level in (None, 0, 1, 2, 3)] == [
        ["far", "near", "mid"],
        ["near"],
        ["mid"],
        ["far"],
        [],
    ]


def test_of_one_id_at_several_scopes_the_nearest_is_seen(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(record("m", "coffee", SESSION), record("m", "tea", USER), record("n", "tea"))
    settle(store)
    assert bm25(store, ask("tea", SESSION), "m") == [0.0]
    assert store.propose(ask("tea", SESSION), 10) == ["n"]
    assert store.propose(ask("tea", SESSION), 10, level=1) == ["n"]
    assert store.propose(ask("tea"), 10) == ["m", "n"]


def test_what_is_not_admitted_is_left_out_before_the_limit(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(*(record(f"m{at}", "tea", serial=at) for at in range(6)))
    settle(store)
    admitted = np.array([False, False, False, True, True])
    query = ask("tea", admitted=admitted)
    assert store.propose(query, 2) == ["m3", "m4"]
    assert store.observe(query, ["m0", "m5"]).reason("coverage").tolist() == [Reason.UNKNOWN] * 2


# -- writing --------------------------------------------------------------------------------------


def test_replaced_memory_answers_with_its_new_text_at_once(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(record("a", "green tea"), record("b", "tea"))
    settle(store)
    query = ask("coffee tea")
    store.propose(query, 5)
    store.add([record("a", "coffee")])
    assert len(store) == 2
    assert store.propose(ask("coffee"), 5) == ["a"]
    assert store.propose(ask("tea"), 5) == ["b"]
    assert store.propose(query, 5) == ["a", "b"]


def test_statistics_follow_every_write(settle: Callable[[KeywordStore], None]) -> None:
    store = filled(record("a", "tea"), record("b", "milk"))
    settle(store)
    query = ask("tea")
    assert bm25(store, query, "a")[0] == pytest.approx(math.log(2) / 2.2, abs=1e-15)  # N 2, df 1
    store.add([record("c", "tea")])
    assert bm25(store, query, "a")[0] == pytest.approx(math.log(1.6) / 2.2, abs=1e-15)  # N 3, df 2
    store.remove([Key(USER, "b")])
    assert bm25(store, query, "a")[0] == pytest.approx(math.log(1.2) / 2.2, abs=1e-15)  # N 2, df 2


def test_statistics_after_a_compaction_are_of_the_rows_as_they_lie_now() -> None:
    # As many rows as before, but the boundary between the tenants moves.
    store = filled(record("a", "tea", ACME), record("b", "milk", ACME), record("c", "tea", OTHER))
    store._compact()
    for scope in (ACME, OTHER):
        store.propose(ask("tea", scope), 5)
    store.remove([Key(ACME, "b")])
    store.add([record("d", "milk", OTHER)])
    store._compact()
    # ACME: N 1, df 1; OTHER: N 2, df 1
    assert bm25(store, ask("tea", ACME), "a")[0] == pytest.approx(math.log(4 / 3) / 2.2, abs=1e-15)
    assert bm25(store, ask("tea", OTHER), "c")[0] == pytest.approx(math.log(2) / 2.2, abs=1e-15)


def test_removed_memory_is_gone_and_unknown_keys_are_ignored(
    settle: Callable[[KeywordStore], None],
) -> None:
    store = filled(record("a", "tea"), record("b", "tea"))
    settle(store)
    store.remove([Key(USER, "a"), Key(USER, "nobody"), Key(SESSION, "b"), Key(USER, "a")])
    assert len(store) == 1
    assert store.propose(ask("tea"), 5) == ["b"]
    assert store.observe(ask("tea"), ["a"]).reason("bm25").tolist() == [Reason.UNKNOWN]
    store.add([record("a", "tea")])
    assert store.propose(ask("tea"), 5) == ["a", "b"]


def test_of_one_key_twice_in_a_batch_the_last_counts() -> None:
    store = filled(record("a", "tea"), record("b", "milk"), record("a", "coffee"))
    assert len(store) == 2
    assert store.propose(ask("tea coffee"), 5) == ["a"]
    assert bm25(store, ask("tea"), "a") == [0.0]


def test_adding_and_removing_nothing_changes_nothing() -> None:
    store = KeywordStore()
    store.add([])
    store.remove([])
    assert len(store) == 0
    assert store.propose(ask("tea"), 5) == []
    assert store.observe(ask("tea"), []).columns["bm25"].shape == (0,)


def test_tokenizer_that_raises_leaves_the_store_as_it_was() -> None:
    def fragile(text: str) -> list[str]:
        if text == "poison":
            raise RuntimeError("no")
        return text.split()

    store = KeywordStore(tokenizer=fragile)
    store.add([record("a", "tea")])
    with pytest.raises(RuntimeError, match="no"):
        store.add([record("a", "unheard"), record("b", "poison")])
    assert len(store) == 1
    assert store.propose(ask("tea"), 5) == ["a"]
    assert b"unheard" not in store.snapshot()


def test_hostile_texts_are_kept_and_found() -> None:
    hostile = {
        "surrogate": "\ud800 tea \udfff",
        "nul": "tea\x00cup",
        "long word": "x" * 200_000 + " tea",
        "many words": " ".join(f"w{at}" for at in range(20_000)) + " tea",
        "often": "tea " * 70_000,
        "marks": "a" + "\u0301" * 5_000 + " tea",
        "emoji": "👩‍👧🏽 tea",
    }
    store = filled(*(record(id_, text) for id_, text in hostile.items()))
    assert sorted(store.propose(ask("tea"), 100)) == sorted(hostile)
    assert store.propose(ask("x" * 200_000), 5) == ["long word"]
    store.propose(ask("\ud800\x00 tea"), 5)
    # tf 70,000 does not fit 16 bits: the score must still be below the idf, and close to it
    query = ask("tea", statistics=Statistics.STORE)
    idf = math.log1p(0.5 / 7.5)
    assert idf * 0.9999 < bm25(store, query, "often")[0] < idf


def test_count_that_outgrows_the_counts_before_it_is_kept() -> None:
    store = KeywordStore(b=0.0)
    for id_, times in (("few", 3), ("many", 256), ("more", 65_536)):
        store.add([record(id_, "tea " * times)])
        merged(store)
    assert store.propose(ask("tea"), 5) == ["more", "many", "few"]


def test_query_of_many_words_is_answered() -> None:
    store = filled(record("a", "w1 w2"), record("b", "tea"))
    seen = store.observe(ask(" ".join(f"w{at}" for at in range(20_000))), ["a", "b"])
    assert seen.columns["coverage"].tolist() == [2 / 20_000, 0.0]


def test_large_loads_enter_the_postings_and_small_ones_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rankblend.stores.keywords._store._PENDING", 20)
    monkeypatch.setattr("rankblend.stores.keywords._index._STEP", 7)
    store = KeywordStore()
    store.add([record(f"m{at:03}", f"tea number{at} of many") for at in range(100)])
    assert store._index.pending == 0
    store.add([record(f"n{at}", "tea") for at in range(30)])
    assert store._index.pending == 30
    assert len(store.propose(ask("tea"), 1000)) == 130
    assert store._index.pending == 0
    assert store.propose(ask("number42"), 5) == ["m042"]


def test_closed_store_refuses_everything_and_may_be_closed_twice() -> None:
    store = filled(record("a", "tea"))
    data = store.snapshot()
    store.close()
    store.close()
    for call in (
        lambda: store.add([]),
        lambda: store.remove([]),
        lambda: store.propose(ask("tea"), 1),
        lambda: store.observe(ask("tea"), []),
        lambda: store.snapshot(),
        lambda: store.restore(data),
        lambda: len(store),
    ):
        with pytest.raises(StoreClosedError, match="keywords"):
            call()


def test_questions_and_writes_from_several_threads_do_not_disturb_each_other() -> None:
    store = filled(*(record(f"m{at}", "green tea") for at in range(50)))
    problems: list[object] = []

    def read() -> None:
        for _ in range(60):
            found = store.propose(ask("tea"), 1000)
            if found[:1] != ["m0"] or not {f"m{at}" for at in range(50)} <= set(found):
                problems.append(found)

    def write(name: str) -> None:
        for at in range(60):
            store.add([record(f"{name}{at}", f"tea and {name} number{at}")])

    threads = [threading.Thread(target=read) for _ in range(2)]
    threads += [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.propose(ask("tea"), 1000)) == 50 + 2 * 60


# -- keeping --------------------------------------------------------------------------------------


def sample() -> KeywordStore:
    store = filled(
        record("a", "green tea", SESSION, 4),
        record("a", "running late", ACME, 2),
        record("\ud800 ü", "東京 the running", USER, 7),
        record("gone", "confidential", USER, 5),
        record("empty", "", OTHER, 0),
        record("mark", "tea", Scope.parse("tenant:a%2Fb"), 9),
    )
    store.remove([Key(USER, "gone")])
    return store


QUERIES = [
    ask("tea running 東京", SESSION),
    ask("run tea", ACME, OTHER, Scope.parse("tenant:a%2Fb")),
    ask("tea", ACME, reach=Reach.SUBTREE, statistics=Statistics.STORE),
    ask("", USER),
]
IDS = ["a", "\ud800 ü", "gone", "empty", "mark"]


def answers(store: KeywordStore) -> list[object]:
    seen = [store.observe(query, IDS) for query in QUERIES]
    return [
        [store.propose(query, 9) for query in QUERIES],
        [[str(column) for column in one.columns.values()] for one in seen],
        [[one.reason(name).tolist() for name in store.emits] for one in seen],
    ]


def test_restored_store_answers_alike_and_can_be_written_to(
    settle: Callable[[KeywordStore], None],
) -> None:
    store, restored = sample(), KeywordStore()
    settle(store)
    expected = answers(store)
    assert restored.restore(store.snapshot())
    assert answers(restored) == expected == answers(store)
    for each in (store, restored):
        each.add([record("new", "late running tea", SESSION, 11)])
        each.remove([Key(USER, "\ud800 ü")])
    assert answers(restored) == answers(store)
    assert len(restored) == len(store) == 5


def test_restoring_replaces_what_was_there() -> None:
    store = filled(record("old", "tea"))
    assert store.restore(KeywordStore().snapshot())
    assert len(store) == 0
    assert store.propose(ask("tea"), 5) == []
    store.add([record("a", "tea")])
    assert store.propose(ask("tea"), 5) == ["a"]


def test_snapshot_of_the_same_state_is_the_same() -> None:
    store = sample()
    assert store.snapshot() == store.snapshot()


def test_snapshot_has_no_word_of_a_removed_or_replaced_memory() -> None:
    store = sample()
    store.add([record("a", "replaced", SESSION, 4)])
    data = store.snapshot()
    assert b"confidential" not in data
    assert b"gone" not in data
    assert b"green" not in data
    assert b"replac" in data


def rows_of(keys: dict[int, Key]) -> ScopedRows:
    rows = ScopedRows()
    rows.add(list(keys.values()), list(keys))
    return rows


def test_restore_with_rows_takes_them_as_its_own() -> None:
    store, restored = sample(), KeywordStore()
    rows = rows_of({0: Key(OTHER, "empty")})
    others = (Key(SESSION, "a"), Key(ACME, "a"), Key(USER, "\ud800 ü"))
    store.remove([*others, Key(Scope.parse("tenant:a%2Fb"), "mark")])
    assert restored.restore(store.snapshot(), rows=rows)
    assert restored._rows is rows


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {0: Key(ACME, "m")},
        {0: Key(USER, "n")},
        {1: Key(USER, "m")},
        {0: Key(USER, "m"), 1: Key(USER, "n")},
    ],
    ids=["none", "scope", "id", "serial", "more"],
)
def test_restore_with_rows_of_other_memories_is_refused(keys: dict[int, Key]) -> None:
    data = filled(record("m", "tea", USER, 0)).snapshot()
    store = filled(record("kept", "tea"))
    assert not store.restore(data, rows=rows_of(keys))
    assert store.propose(ask("tea"), 5) == ["kept"]


@pytest.mark.parametrize(
    "other",
    [{"language": "german"}, {"language": None}, {"tokenizer": str.split}],
    ids=["german", "none", "tokenizer"],
)
def test_restore_into_a_store_that_reads_otherwise_is_refused(other: dict[str, object]) -> None:
    store = KeywordStore(**other)
    assert not store.restore(sample().snapshot())
    assert len(store) == 0


def test_restore_into_a_store_with_other_parameters_uses_those() -> None:
    store = KeywordStore(k1=0.0)
    assert store.restore(filled(record("a", "tea tea"), record("b", "milk")).snapshot())
    assert bm25(store, ask("tea"), "a")[0] == pytest.approx(math.log(2), abs=1e-15)


def test_restore_of_anything_cut_short_is_refused() -> None:
    data = sample().snapshot()
    store = KeywordStore()
    assert not any(store.restore(data[:length]) for length in range(len(data)))
    assert not store.restore(data + b"\x00")
    assert store.restore(data)


@given(at=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_restore_of_anything_damaged_is_refused(at: int, flip: int) -> None:
    data = bytearray(sample().snapshot())
    data[at % len(data)] ^= flip
    assert not KeywordStore().restore(bytes(data))


SPOILT: dict[str, Callable[[Arrays], object]] = {
    "an array missing": lambda arrays: arrays.pop("counts"),
    "a token that is no word": lambda arrays: arrays["tokens"].__setitem__(0, 99),
    "a stem that is no word": lambda arrays: arrays["stems"].__setitem__(0, 99),
    "a row that is not there": lambda arrays: arrays["posting_rows"].__setitem__(0, 5),
    "postings cut short": lambda arrays: arrays.update(posting_rows=arrays["posting_rows"][1:]),
    "a size below 0": lambda arrays: arrays["sizes"].__iadd__(np.array([-9, 9, 0, 0, 0])),
    "a length missing": lambda arrays: arrays.update(lengths=arrays["lengths"][1:]),
    "an id missing": lambda arrays: arrays.update(id_ends=arrays["id_ends"][:-1]),
    "a text cut short": lambda arrays: arrays.update(word_texts=arrays["word_texts"][:-1]),
    "a text that is not UTF-8": lambda arrays: arrays["word_texts"].__setitem__(0, 255),
    "a scope that is not listed": lambda arrays: arrays["scopes"].__setitem__(0, 99),
    "a scope that is none": lambda arrays: arrays["scope_texts"].__setitem__(0, 47),
    "rows out of order": lambda arrays: arrays["scopes"].__setitem__(slice(None), range(5)[::-1]),
    "the same key twice": lambda arrays: arrays["scopes"].__setitem__(slice(None), 0),
    "floats": lambda arrays: arrays.update(counts=arrays["counts"].astype(np.float64)),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_restore_of_arrays_that_do_not_fit_is_refused(spoil: Callable[[Arrays], object]) -> None:
    identity = KeywordStore()._analysis.identity
    arrays = read_arrays(sample().snapshot(), identity)
    assert KeywordStore().restore(joined(arrays, identity))
    spoil(arrays)
    assert not KeywordStore().restore(joined(arrays, identity))


def test_restore_of_bytes_after_the_arrays_is_refused() -> None:
    data = sample().snapshot() + b"more"
    signed = data[:8] + zlib.crc32(data[12:]).to_bytes(4, "little") + data[12:]
    assert not KeywordStore().restore(signed)


@pytest.mark.parametrize("data", [b"", b"rbkw", b"\x80\x04.", b"{}", bytes(100)])
def test_restore_of_something_else_is_refused(data: bytes) -> None:
    assert not KeywordStore().restore(data)


_WORDS = st.lists(st.sampled_from(["tea", "teas", "green", "refund", "the", "ana"]), max_size=6)


@given(
    texts=st.lists(
        st.tuples(st.sampled_from([ACME, USER, OTHER]), _WORDS), min_size=1, max_size=12
    ),
    late=st.lists(st.tuples(st.sampled_from([USER, OTHER]), _WORDS), max_size=4),
    asked=_WORDS,
    gone=st.integers(0, 11),
)
def test_observation_when_the_query_was_proposed_for_then_it_is_the_same_to_the_bit(
    texts: list[tuple[Scope, list[str]]],
    late: list[tuple[Scope, list[str]]],
    asked: list[str],
    gone: int,
) -> None:
    """Scores found for proposals serve as evidence, also after a write in between."""
    every = [
        record(f"m{at}", " ".join(words), scope) for at, (scope, words) in enumerate(texts + late)
    ]
    store = filled(*every[: len(texts)])
    ids = [each.id for each in every] + ["unknown"]
    query, same = ask(" ".join(asked)), ask(" ".join(asked))
    for write in (lambda: None, lambda: store.add(every[len(texts) :]),
                  lambda: store.remove([every[gone % len(every)].key])):  # fmt: skip
        store.propose(query, 5)
        write()
        for _ in range(2):
            after, alone = store.observe(query, ids), store.observe(same, ids)
            for name in store.emits:
                assert after.columns[name].tobytes() == alone.columns[name].tobytes()
            store.propose(query, 5)


def test_observation_when_serials_name_a_hidden_memory_then_proposing_changes_nothing() -> None:
    store = filled(
        record("a", "green tea", ACME, 0), record("a", "black coffee", USER, 1),
        record("b", "green hat", USER, 2),
    )  # fmt: skip
    ids = NumberedIds(["a", "b"], np.array([0, 2]))
    query, same = ask("green tea"), ask("green tea")
    store.propose(query, 5)
    assert store.observe(query, ids).columns["bm25"].tolist() == (
        store.observe(same, ids).columns["bm25"].tolist()
    )

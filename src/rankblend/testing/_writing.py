"""Tests of stores that keep memories: writes show at once and leave no ghosts."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pytest
from attrs import evolve, fields

from rankblend.stores import Key, Reason, Record, Store, SupportsBatch, SupportsWrite
from rankblend.testing._subject import EVERYTHING, LEVELS, Filled, StoreHooks
from rankblend.testing._worlds import (
    HOME,
    NOW,
    ODD_IDS,
    ODD_TEXTS,
    TENANT,
    USER,
    home_query,
    memory,
    standard_world,
)


class WriteTests(StoreHooks):
    """A store is what was last written to it, and nothing else."""

    def test_store_when_it_is_new_then_it_knows_nothing(self) -> None:
        """Empty, also beside another one that is full: no proposals, everything unknown."""
        with self.filled(standard_world(self.dimension)), self.filled() as filled:
            query = home_query(self.dimension)
            assert filled.propose(query, EVERYTHING) == []
            seen = filled.observe(query, ["home-m", "nobody"])
            for name, column in seen.columns.items():
                assert np.isnan(column).all(), name
                assert (seen.reason(name) == Reason.UNKNOWN).all(), name
            if isinstance(filled.store, SupportsWrite):
                assert len(filled.store) == 0

    def test_remove_then_nothing_of_the_memory_is_left(self) -> None:
        """As if it had never been written: no ghost in proposals, evidence, statistics, count."""
        world = standard_world(self.dimension)
        gone = [record for record in world if record.id in ("home-x", "user-b", "tenant-t")]
        kept = [record for record in world if record not in gone]
        with self.filled(world) as filled, self.filled(kept) as fresh:
            filled.erase([record.key for record in gone])
            self.assert_alike(filled, fresh, home_query(self.dimension))
            seen = filled.observe(home_query(self.dimension), [record.id for record in gone])
            for name in seen.columns:
                assert (seen.reason(name) == Reason.UNKNOWN).all(), f"{name}: a ghost"
            self._check_count(filled)

    def test_remove_when_everything_goes_then_the_store_is_empty(self) -> None:
        """And takes memories again afterwards."""
        world = standard_world(self.dimension)
        with self.filled(world) as filled, self.filled() as empty, self.filled(world) as fresh:
            filled.erase([record.key for record in world])
            self.assert_alike(filled, empty, home_query(self.dimension))
            self._check_count(filled)
            filled.write(world)
            self.assert_alike(filled, fresh, home_query(self.dimension))

    def test_remove_when_keys_are_unknown_then_nothing_happens(self) -> None:
        """Another scope's key, a key removed before, a key twice, none at all."""
        world = standard_world(self.dimension)
        home = next(record for record in world if record.id == "home-x")
        with self.filled(world) as filled, self.filled(world) as fresh:
            filled.erase([])
            filled.erase([Key(HOME, "nobody"), Key(USER, home.id), Key(TENANT, home.id)])
            self.assert_alike(filled, fresh, home_query(self.dimension))
            fresh.erase([home.key])
            filled.erase([home.key, home.key])
            filled.erase([home.key])
            self.assert_alike(filled, fresh, home_query(self.dimension))
            self._check_count(filled)

    def test_update_then_the_new_content_is_seen_at_once_and_the_old_is_gone(self) -> None:
        """Stronger and weaker: an update is a removal and an addition in one."""
        world = standard_world(self.dimension)
        for name, hits in (("home-x", 0), ("home-c", 4), ("tenant-m", 4)):
            old = next(record for record in world if record.id == name)
            # A write leaves alone when a memory was first written and how it was used.
            new = evolve(
                memory(old.scope, name, hits, number=5, dimension=self.dimension),
                links=old.links,
                at=NOW - 60.0,
                used=old.used,
                uses=old.uses,
            )
            updated = [new if record is old else record for record in world]
            with self.filled(world) as filled, self.filled(updated) as fresh:
                filled.write([new])
                self.assert_alike(filled, fresh, home_query(self.dimension))
                filled.write([new])
                self.assert_alike(filled, fresh, home_query(self.dimension))
                self._check_count(filled)

    def test_add_when_a_batch_names_a_key_twice_then_the_last_one_counts(self) -> None:
        """As if they had been written one after the other."""
        first = memory(HOME, "home-x", 0, dimension=self.dimension)
        last = evolve(
            memory(HOME, "home-x", 3, dimension=self.dimension),
            at=NOW - 60.0,
            used=first.used,
            uses=first.uses,
        )
        with self.filled([first, last]) as filled, self.filled([first]) as fresh:
            fresh.write([last])
            self.assert_alike(filled, fresh, home_query(self.dimension))
            self._check_count(filled)

    def test_add_leaves_the_records_alone(self) -> None:
        """Neither a record nor its vector, links or metadata is changed."""
        world = standard_world(self.dimension)
        given = [evolve(record, serial=n, vector=_copied(record)) for n, record in enumerate(world)]
        before = [_contents(record) for record in given]
        store = self.make_store()
        try:
            self.write(store, given)
            store.propose(self.ask(home_query(self.dimension)), 5)
            assert [_contents(record) for record in given] == before, "a record was changed"
        finally:
            store.close()

    def test_ids_when_they_are_unusual_then_they_are_ids_like_others(self) -> None:
        """Other scripts, composed and decomposed accents, quotes, NUL, wildcards, very long."""
        for number, odd in enumerate(ODD_IDS):
            plain = memory(HOME, "home-m", 3, number=number, dimension=self.dimension)
            strange = evolve(plain, key=Key(HOME, odd))
            query = home_query(self.dimension)
            with self.filled([plain, strange]) as filled:
                seen = filled.observe(query, ["home-m", odd, odd + " ", odd.upper() + "x"])
                for name in seen.columns:
                    reasons = seen.reason(name)
                    assert reasons[1] != Reason.UNKNOWN, f"{name}: {odd[:20]!r} is unknown"
                    assert (reasons[2:] == Reason.UNKNOWN).all(), f"{name}: an id that is not held"
                filled.erase([strange.key])
                left = filled.observe(query, [odd])
                for name in left.columns:
                    assert left.reason(name)[0] == Reason.UNKNOWN, f"{name}: {odd[:20]!r} stays"

    def test_texts_when_they_are_unusual_then_they_are_kept_and_asked_for(self) -> None:
        """Without spaces, right to left, emoji, NUL, empty, very long: no error, no effect on others."""
        odd = [
            evolve(memory(HOME, f"odd-{n}", 2, number=n, dimension=self.dimension), text=text)
            for n, text in enumerate(ODD_TEXTS)
        ]
        with self.filled([*standard_world(self.dimension), *odd]) as filled:
            for text in ODD_TEXTS:
                query = evolve(home_query(self.dimension), text=text)
                proposed = filled.propose(query, EVERYTHING)
                assert set(proposed) <= set(filled.visible(query))
                self.assert_same(
                    filled.observe(query, ["odd-0", "home-x"]),
                    filled.observe(query, ["odd-0", "home-x"]),
                    "asked twice",
                )

    def test_memories_when_they_lack_everything_then_they_are_kept(self) -> None:
        """No vector, no links, no labels, never used: absent evidence at most, and no zero."""
        bare = [
            Record(Key(HOME, "bare"), "refund", created=1.0, at=1.0),
            Record(Key(USER, "empty"), "", created=1.0, at=1.0),
        ]
        with self.filled([*standard_world(self.dimension), *bare]) as filled:
            query = home_query(self.dimension)
            seen = filled.observe(query, ["bare", "empty"])
            for name in ("cosine", "salience", "confidence", "review", "maturity", "certainty",
                         "age_used"):  # fmt: skip
                if name in seen.columns:
                    assert np.isnan(seen.columns[name]).all(), f"{name}: a value made up"
            assert set(filled.propose(query, EVERYTHING)) <= set(filled.visible(query))
            filled.erase([record.key for record in bare])
            with self.filled(standard_world(self.dimension)) as fresh:
                self.assert_alike(filled, fresh, home_query(self.dimension))

    def test_observe_gives_the_evidence_expected(self) -> None:
        """Where the author of the store says what to expect, that is what is observed."""
        with self.filled(standard_world(self.dimension)) as filled:
            query = home_query(self.dimension)
            for record in filled.held.values():
                if not query.admits(record):
                    continue
                wanted = self.expected(query, record)
                if wanted is None:
                    pytest.skip("expected() says nothing")
                seen = filled.observe(query, [record.id]).columns
                for name, value in wanted.items():
                    close = np.isclose(seen[name][0], value, rtol=1e-7, atol=1e-7, equal_nan=True)
                    assert close, f"{name} of {record.id}: {seen[name][0]!r}, expected {value!r}"

    def test_batches_give_what_single_questions_give(self) -> None:
        """`SupportsBatch`: the same proposals and the same bits."""
        with self.filled(standard_world(self.dimension)) as filled:
            store: Store = filled.store
            if not isinstance(store, SupportsBatch):
                pytest.skip("the store answers one query at a time")
            query = home_query(self.dimension)
            queries = [
                self.ask(question)
                for question in (
                    query,
                    evolve(query, scopes=(USER,)),
                    evolve(query, text="", vector=None),
                    evolve(query, text="garden violin"),
                    evolve(query, scopes=(TENANT / "user:8",)),
                    query,
                )
            ]
            for level in LEVELS:
                for limit in (0, 3, EVERYTHING):
                    many = store.propose_many(queries, limit, level=level)
                    one = [store.propose(question, limit, level=level) for question in queries]
                    assert [list(p) for p in many] == [list(p) for p in one], f"level {level}"
            ids = [sorted(filled.visible(query))[: 3 * n] for n in range(len(queries))]
            for asked, question, seen in zip(
                ids, queries, store.observe_many(queries, ids), strict=True
            ):
                self.assert_same(seen, store.observe(question, asked), "batch and single")
            assert list(store.propose_many([], 3)) == []
            assert list(store.observe_many([], [])) == []

    def _check_count(self, filled: Filled) -> None:
        if isinstance(filled.store, SupportsWrite):
            assert len(filled.store) == len(filled.held), "len() is not what is held"


def _copied(record: Record) -> np.ndarray:
    assert record.vector is not None
    return record.vector.copy()


def _contents(record: Record) -> Sequence[object]:
    values = {name.name: getattr(record, name.name) for name in fields(Record)}
    vector = values.pop("vector")
    return [vector.tobytes(), copy.deepcopy(values)]

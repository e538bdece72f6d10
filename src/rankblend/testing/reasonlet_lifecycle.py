"""Standard tests of a store of procedures: review, erase, prune, move."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from rankblend.reasonlets.capture import Provenance
from rankblend.reasonlets.errors import ReasonletUnavailableError
from rankblend.reasonlets.reasonlet import Erased, Feedback, Status
from rankblend.reasonlets.store.protocol import Counts, ReasonletStore, Search
from rankblend.testing.reasonlet_subject import (
    GRAPHS,
    OTHER,
    SCOPE,
    ReasonletStoreHooks,
    draft,
    refused,
    run,
    vector,
)

__all__ = ["ReasonletLifecycleTests"]


class ReasonletLifecycleTests(ReasonletStoreHooks):
    """Review and lifecycle."""

    def test_review_when_decided_then_recallable_or_gone(self) -> None:
        """Pages by id; an active one, or one with versions below it, cannot be rejected."""

        async def test(store: ReasonletStore) -> None:
            waiting = draft(status=Status.PENDING_REVIEW)
            made = [await store.remember(waiting) for _ in range(3)]
            ids = [each.id for each in made]
            child = await store.remember(evolve(waiting, parent_id=ids[0], graph=GRAPHS[1]))
            page = await store.pending(SCOPE, 2, None)
            assert [each.id for each in page] == ids[:2]
            assert [each.id for each in await store.pending(SCOPE, 9, ids[1])] == [
                ids[2], child.id
            ]  # fmt: skip
            assert await refused(store.reject(SCOPE, ids[0])) == "conflict"
            await store.reject(SCOPE, child.id)
            assert await refused(store.reject(SCOPE, child.id)) == "not_found"
            for _ in range(2):
                await store.approve(SCOPE, ids[0])
            assert await refused(store.reject(SCOPE, ids[0])) == "conflict"
            assert [each.id for each in await store.search(Search(SCOPE, vector(1, 0), 9))] == [
                ids[0]
            ]

        self.with_store(test)

    def test_search_when_others_are_gone_then_they_leave_no_gap_in_the_limit(self) -> None:
        """What was rejected or erased does not take the place of what is there."""

        async def test(store: ReasonletStore) -> None:
            ben = Provenance("kit", subject_id="ben")
            gone = [await store.remember(draft(provenance=ben)) for _ in range(4)]
            left = await store.remember(draft(vector=vector(1, 1)))
            nearest = Search(SCOPE, vector(1, 0), 4)
            assert [each.id for each in await store.search(nearest)] == [each.id for each in gone]
            await store.erase_subject(SCOPE, "ben", purge=False)
            assert [each.id for each in await store.search(nearest)] == [left.id]

        self.with_store(test)

    def test_erase_subject_when_done_twice_then_the_second_time_finds_nothing(self) -> None:
        """Theirs go with runs and feedback, their runs of others' too; children become roots."""

        async def test(store: ReasonletStore) -> None:
            nobody = Provenance("kit")
            theirs = await store.remember(draft())
            await store.feedback(SCOPE, theirs.execution, Feedback(1, 1, 1, False))
            child = await store.remember(
                draft(parent_id=theirs.id, graph=GRAPHS[1], provenance=nobody,
                       run=run(provenance=nobody, at=50.0))
            )  # fmt: skip
            await store.record(SCOPE, child.id, run(success=False, at=90.0))
            for expected in (Erased(1, 2, 1, 1), Erased(0, 0, 0, 0)):
                assert await store.erase_subject(SCOPE, "ana", purge=True) == expected
            (kept,) = [each.reasonlet for each in await store.dump()]
            assert (kept.id, kept.parent_id, kept.version) == (child.id, None, "1.1")
            assert kept.family == child.id  # the id of what was erased is nowhere
            assert (kept.metrics.runs, kept.metrics.last_run.timestamp()) == (1, 50.0)

        self.with_store(test)

    def test_prune_when_runs_go_then_counters_stay_and_feedback_is_not_found(self) -> None:
        """By age, by number, by both; judged counters can be rebuilt from what is stored."""

        async def test(store: ReasonletStore) -> None:
            made = await store.remember(draft(run=run(at=10.0, evaluator=True)))
            for at in (20.0, 30.0, 40.0):
                await store.record(SCOPE, made.id, run(at=at))
            (before,) = await store.get([made.id])
            assert await store.prune(OTHER, before=None, keep=0) == 0
            assert await store.prune(None, before=15.0, keep=None) == 1
            assert await store.prune(SCOPE, before=None, keep=1) == 2
            assert (await store.get([made.id])) == [before]
            assert await store.prune(SCOPE, before=None, keep=0) == 1
            assert (await store.dump())[0].pruned == Counts(4, 4, 1, 1)
            assert (await store.get([made.id])) == [before]
            late = store.feedback(SCOPE, made.execution, Feedback(1, 1, 1, True))
            assert await refused(late) == "not_found"
            assert await store.rebuild_judged_counters() == 1
            (after,) = await store.get([made.id])
            assert after is not None
            assert (after.metrics.runs, after.metrics.judged_runs) == (4, 0)

        self.with_store(test)

    def test_load_when_another_store_was_dumped_then_it_is_the_same(self) -> None:
        """Ids, numbers, vectors, runs and counters; and what is there already is a conflict."""

        async def test(store: ReasonletStore) -> None:
            first = await store.remember(draft())
            await store.remember(draft(parent_id=first.id, graph=GRAPHS[1]))
            await store.record(SCOPE, first.id, run(success=False))
            await store.prune(None, before=None, keep=1)
            dumped = await store.dump()
            assert await refused(store.load(dumped)) == "conflict"
            other = self.make_store()
            await other.load(dumped)
            moved = await other.dump()
            assert [each.reasonlet for each in moved] == [each.reasonlet for each in dumped]
            assert [each.runs for each in moved] == [each.runs for each in dumped]
            assert [each.pruned for each in moved] == [each.pruned for each in dumped]
            assert all(
                np.array_equal(a.vector, b.vector) for a, b in zip(moved, dumped, strict=True)
            )
            assert await other.statistics(None) == await store.statistics(None)
            await other.aclose()

        self.with_store(test)

    def test_load_when_a_parent_is_missing_then_nothing_is_stored(self) -> None:
        """All of it, or nothing."""

        async def test(store: ReasonletStore) -> None:
            first = await store.remember(draft())
            await store.remember(draft(parent_id=first.id, graph=GRAPHS[1]))
            other = self.make_store()
            assert await refused(other.load((await store.dump())[1:])) == "not_found"
            assert list(await other.dump()) == []
            await other.aclose()

        self.with_store(test)

    def test_remember_when_a_vector_has_another_length_then_unavailable(self) -> None:
        """It could not be compared with those that are there."""

        async def test(store: ReasonletStore) -> None:
            await store.remember(draft())
            with pytest.raises(ReasonletUnavailableError):
                await store.remember(draft(vector=vector(1, 0, 0)))
            assert len(await store.dump()) == 1

        self.with_store(test)

    def test_aclose_when_called_twice_then_nothing_happens(self) -> None:
        """After it, everything is unavailable."""

        async def test(store: ReasonletStore) -> None:
            await store.aclose()
            await store.aclose()
            with pytest.raises(ReasonletUnavailableError):
                await store.dump()

        self.with_store(test)

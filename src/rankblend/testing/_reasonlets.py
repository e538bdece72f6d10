"""Conformance of stores of procedures: what every one must do, and the reference it equals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from numpy.typing import NDArray

from rankblend.reasonlets import (
    Counts,
    Draft,
    Edge,
    Erased,
    Feedback,
    Graph,
    Node,
    Outcome,
    Produced,
    Provenance,
    ReasonletConflictError,
    ReasonletError,
    ReasonletNotFoundError,
    ReasonletStore,
    ReasonletUnavailableError,
    Run,
    Search,
    Status,
)
from rankblend.relevance import Scope
from rankblend.testing._guard import Guarded
from rankblend.testing._reasonlet_machine import ReasonletStoreMachine

SCOPE, OTHER = Scope.parse("tenant:acme"), Scope.parse("tenant:acme/user:7")
AGENT = Provenance("kit", "run-1", "ana", {"kind": "test"})
GRAPHS = [Graph([Node("a", "tool"), Node(end, "answer")], [Edge("a", end)]) for end in "xyz"]


def vector(*numbers: float) -> NDArray[np.float32]:
    """A unit vector."""
    row = np.array(numbers, np.float64)
    unit: NDArray[np.float32] = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def run(*, success: bool = True, at: float = 1_000.0, **changes: Any) -> Run:
    """A run, by default one that worked."""
    return Run(at, Outcome(success), **{"provenance": AGENT, **changes})


def draft(**changes: Any) -> Draft:
    """A capture of a new procedure, with changes."""
    made = Draft(
        SCOPE, "How?", GRAPHS[0], "refund", "how", AGENT, None, vector(1, 0), Status.ACTIVE,
        run(),
    )  # fmt: skip
    return evolve(made, **changes)


class ReasonletStoreHooks(Guarded):
    """The hooks of `ReasonletStoreConformance`.

    Attributes:
        examples: How many sequences of calls the state machine tries.
    """

    hooks = Guarded.hooks | {"examples", "make_store"}
    examples: ClassVar[int] = 15

    def make_store(self) -> ReasonletStore:
        """A new, empty store."""
        raise NotImplementedError("fill in make_store(): return a new, empty ReasonletStore")

    def with_store(self, test: Callable[[Any], Awaitable[object]]) -> None:
        """Run a test on a new store, closed at the end."""

        async def main() -> None:
            store = self.make_store()
            assert isinstance(store, ReasonletStore)
            try:
                await test(store)
            finally:
                await store.aclose()

        asyncio.run(main())


async def refused(call: Awaitable[object]) -> str:
    """The code a call is refused with."""
    try:
        await call
    except (ReasonletNotFoundError, ReasonletConflictError) as error:
        return error.code
    except ReasonletError as error:
        pytest.fail(f"refused with {error.code}")
    pytest.fail("not refused")


class ReasonletContractTests(ReasonletStoreHooks):
    """Remembering, searching and feedback."""

    def test_remember_when_there_is_no_parent_then_a_family_begins(self) -> None:
        """Version 1.0, one run, ids in the order of creation also when the clock goes back."""

        async def test(store: ReasonletStore) -> None:
            assert await store.dimension() is None
            first = await store.remember(draft())
            second = await store.remember(draft(run=run(at=5.0)))
            assert (first.version, first.produced) == ("1.0", Produced.CREATED)
            assert first.id < second.id
            (made,) = await store.get([first.id])
            assert made is not None
            assert (made.family, made.parent_id, made.graph) == (first.id, None, GRAPHS[0])
            assert (made.provenance, made.question, made.intent) == (AGENT, "How?", "refund")
            assert made.metrics.runs == 1
            assert await store.dimension() == 2

        self.with_store(test)

    def test_remember_when_there_is_a_parent_then_its_graph_decides(self) -> None:
        """The same procedure is a run, another one the next version; branches share the numbers."""

        async def test(store: ReasonletStore) -> None:
            first = await store.remember(draft())
            again = await store.remember(
                draft(parent_id=first.id, status=Status.PENDING_REVIEW, question="other words")
            )
            assert (again.id, again.produced, again.status) == (
                first.id, Produced.EXECUTION, Status.ACTIVE
            )  # fmt: skip
            one = await store.remember(draft(parent_id=first.id, graph=GRAPHS[1]))
            two = await store.remember(draft(parent_id=first.id, graph=GRAPHS[2]))
            three = await store.remember(draft(parent_id=one.id, graph=GRAPHS[2]))
            assert [each.version for each in (one, two, three)] == ["1.1", "1.2", "1.3"]
            family = await store.family(SCOPE, three.id)
            assert [each.version for each in family] == ["1.0", "1.1", "1.2", "1.3"]

        self.with_store(test)

    def test_remember_when_many_do_at_once_then_no_run_and_no_number_is_lost(self) -> None:
        """Sixteen versions and sixteen runs of one procedure, side by side."""

        async def test(store: ReasonletStore) -> None:
            first = await store.remember(draft())
            graphs = [Graph([Node(f"n{n}", "tool")]) for n in range(16)]
            made = await asyncio.gather(
                *(store.remember(draft(parent_id=first.id, graph=graph)) for graph in graphs),
                *(store.record(SCOPE, first.id, run(success=n % 2 == 0)) for n in range(16)),
            )
            numbers = sorted(int(each.version[2:]) for each in made[:16])
            assert numbers == list(range(1, 17))
            assert len({each.execution for each in made}) == 32
            (kept,) = await store.get([first.id])
            assert kept is not None
            assert (kept.metrics.runs, kept.metrics.successes) == (17, 9)

        self.with_store(test)

    def test_calls_when_something_is_in_another_scope_then_not_found(self) -> None:
        """What another scope holds is unknown here, and nothing changes."""

        async def test(store: ReasonletStore) -> None:
            made = await store.remember(draft())
            before = await store.dump()
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                "parent": lambda: store.remember(draft(scope=OTHER, parent_id=made.id)),
                "record": lambda: store.record(OTHER, made.id, run()),
                "feedback": lambda: store.feedback(OTHER, made.execution, Feedback(0, 0, 0, True)),
                "family": lambda: store.family(OTHER, made.id),
                "approve": lambda: store.approve(OTHER, made.id),
                "reject": lambda: store.reject(OTHER, made.id),
            }
            for what, call in calls.items():
                assert await refused(call()) == "not_found", what
            assert [each.reasonlet for each in await store.dump()] == [
                each.reasonlet for each in before
            ]

        self.with_store(test)

    def test_search_when_asked_then_the_nearest_active_ones_of_the_scope(self) -> None:
        """Exactly the scope, or those above too; by similarity, then id; intent before the limit."""

        async def test(store: ReasonletStore) -> None:
            near = await store.remember(draft(vector=vector(1, 0.1)))
            twin = await store.remember(draft(vector=vector(1, 0.1)))
            far = await store.remember(draft(vector=vector(0, 1), intent="other"))
            below = await store.remember(draft(scope=OTHER))
            await store.remember(draft(status=Status.PENDING_REVIEW))

            async def ids(**changes: Any) -> list[str]:
                asked = {"scope": SCOPE, "vector": vector(1, 0), "limit": 9, **changes}
                return [each.id for each in await store.search(Search(**asked))]

            assert await ids() == [near.id, twin.id, far.id]
            assert await ids(limit=1) == [near.id]
            assert await ids(limit=1, intent="other") == [far.id]
            assert await ids(intent="nobody's") == []
            assert await ids(scope=OTHER) == [below.id]
            above = await ids(scope=OTHER, ancestors=True)
            assert above == [below.id, near.id, twin.id, far.id]
            (found, *_) = await store.search(Search(SCOPE, vector(1, 0), 1))
            assert abs(found.similarity - 1 / np.hypot(1, 0.1)) < 1e-6
            assert (found.counts, found.parent, found.last_run) == (Counts(1, 1), None, 1_000.0)
            assert found.definition() == (await store.get([near.id]))[0]

        self.with_store(test)

    def test_lookup_when_asked_then_active_ones_of_any_scope_in_order(self) -> None:
        """None for what waits and for what nobody has; the parent's counts come along."""

        async def test(store: ReasonletStore) -> None:
            first = await store.remember(draft(run=run(evaluator=True)))
            second = await store.remember(draft(parent_id=first.id, graph=GRAPHS[1]))
            waits = await store.remember(draft(status=Status.PENDING_REVIEW))
            found = await store.lookup([second.id, "nobody", waits.id, first.id])
            assert [each and each.id for each in found] == [second.id, None, None, first.id]
            assert found[0] is not None
            assert found[0].parent == Counts(1, 1, 1, 1)

        self.with_store(test)

    def test_feedback_when_given_then_the_counters_move_with_the_verdict(self) -> None:
        """Before the evaluator's, which is before the agent's; changed, never withdrawn."""

        async def test(store: ReasonletStore) -> None:
            made = await store.remember(draft(run=run(success=True, evaluator=False)))

            async def counts() -> tuple[int, ...]:
                (kept,) = await store.get([made.id])
                assert kept is not None
                told = kept.metrics
                return told.runs, told.successes, told.judged_runs, told.judged_successes

            assert await counts() == (1, 0, 1, 0)
            for worked, expected in ((True, 1), (None, 1), (False, 0), (None, 0), (True, 1)):
                await store.feedback(SCOPE, made.execution, Feedback(0.5, 1, 0, worked))
                assert await counts() == (1, expected, 1, expected)
            (entry,) = await store.dump()
            assert entry.runs[0].feedback == Feedback(0.5, 1, 0, True)

        self.with_store(test)


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


class ReasonletStoreConformance(ReasonletContractTests, ReasonletLifecycleTests):
    """What every store of procedures must do; subclass it and fill in `make_store`.

    Attributes:
        examples: How many sequences of calls the state machine tries.
    """

    def test_state_machine_agrees_with_the_reference(self) -> None:
        """Any calls in any order leave the same as in the in-memory store."""
        kit = self

        class Machine(ReasonletStoreMachine):
            def make_store(self) -> ReasonletStore:
                return kit.make_store()

        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=15,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate,),
            ),
        )

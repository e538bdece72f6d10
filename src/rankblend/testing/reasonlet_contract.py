"""Standard tests of a store of procedures: remember, find, judge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from rankblend.reasonlets.graph import Graph, Node
from rankblend.reasonlets.reasonlet import Feedback, Produced, Status
from rankblend.reasonlets.store.protocol import Counts, ReasonletStore, Search
from rankblend.testing.reasonlet_subject import (
    AGENT,
    GRAPHS,
    OTHER,
    SCOPE,
    ReasonletStoreHooks,
    draft,
    refused,
    run,
    vector,
)

__all__ = ["ReasonletContractTests"]


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

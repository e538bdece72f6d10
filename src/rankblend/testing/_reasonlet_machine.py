"""A state machine that does the same to a store of procedures and to the reference."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rankblend.reasonlets import (
    Draft,
    Entry,
    Feedback,
    Graph,
    InMemoryReasonletStore,
    Node,
    Outcome,
    Provenance,
    ReasonletError,
    ReasonletStore,
    Run,
    Search,
    Status,
)
from rankblend.relevance import Scope

_SCOPES = (Scope.parse("t:1"), Scope.parse("t:1/u:2"))
_GRAPHS = [Graph([Node(name, "tool")]) for name in "xyz"]
_VECTORS = [
    (np.array(row) / np.linalg.norm(row)).astype(np.float32)
    for row in ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.2])
]
_INTENTS = ("refund", "other")
_scopes, _some, _yes = st.sampled_from(_SCOPES), st.integers(0, 20), st.booleans()
_verdicts, _subjects = st.sampled_from([None, True, False]), st.sampled_from(["ana", None])
_times = st.sampled_from([100.0, 200.0, 300.0, 400.0])


class ReasonletStoreMachine(RuleBasedStateMachine):
    """Ids differ between the two; everything is compared by the order of creation."""

    def make_store(self) -> ReasonletStore:
        """The store in question."""
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        """Two empty stores."""
        self.loop = asyncio.new_event_loop()
        self.stores = (self.make_store(), InMemoryReasonletStore())
        self.places: dict[str, int] = {}
        self.ids: list[tuple[str, str]] = []
        self.executions: list[tuple[str, str]] = []

    def teardown(self) -> None:
        """Close both."""
        if hasattr(self, "loop"):
            for store in self.stores:
                self.loop.run_until_complete(store.aclose())
            self.loop.close()

    def both(self, calls: list[Coroutine[Any, Any, Any]]) -> list[Any]:
        """What both answer, or the codes of their errors; the codes are the same."""
        answers: list[Any] = []
        for call in calls:
            try:
                answers.append(self.loop.run_until_complete(call))
            except ReasonletError as error:
                answers.append(error.code)
        if any(isinstance(answer, str) for answer in answers):
            assert answers[0] == answers[1], f"answered {answers[0]}, expected {answers[1]}"
        return answers

    def pick(self, which: int) -> tuple[str, str]:
        """The ids of one procedure, perhaps of one that is gone."""
        return self.ids[which % len(self.ids)] if self.ids else ("none", "none")

    @rule(
        scope=_scopes, graph=st.integers(0, 2), vector=st.integers(0, 2), at=_times,
        intent=st.sampled_from(_INTENTS), parent=st.none() | _some, pending=_yes,
        subject=_subjects, success=_yes, judged=_verdicts,
    )  # fmt: skip
    def remember(self, scope: Scope, graph: int, vector: int, at: float, intent: str,
                 parent: int | None, pending: bool, subject: str | None, success: bool,
                 judged: bool | None) -> None:  # fmt: skip
        """Keep a procedure, a version or a run."""
        provenance = Provenance("kit", subject_id=subject)
        above = (None, None) if parent is None else self.pick(parent)
        status = Status.PENDING_REVIEW if pending else Status.ACTIVE
        answers = self.both(
            [
                store.remember(
                    Draft(
                        scope, "How?", _GRAPHS[graph], intent, "how", provenance, id_,
                        _VECTORS[vector], status, Run(at, Outcome(success), provenance, judged),
                    )
                )
                for store, id_ in zip(self.stores, above, strict=True)
            ]
        )  # fmt: skip
        self._note(answers)

    @rule(scope=_scopes, which=_some, at=_times, subject=_subjects, success=_yes, judged=_verdicts)
    def record(self, scope: Scope, which: int, at: float, subject: str | None, success: bool,
               judged: bool | None) -> None:  # fmt: skip
        """Keep a run."""
        run = Run(at, Outcome(success), Provenance("kit", subject_id=subject), judged)
        pairs = zip(self.stores, self.pick(which), strict=True)
        self._note(self.both([store.record(scope, id_, run) for store, id_ in pairs]))

    @rule(scope=_scopes, which=_some, worked=_verdicts)
    def feedback(self, scope: Scope, which: int, worked: bool | None) -> None:
        """Judge a run, perhaps one that is gone."""
        if self.executions:
            chosen = self.executions[which % len(self.executions)]
            given = Feedback(0.25, 0.5, 1.0, worked)
            pairs = zip(self.stores, chosen, strict=True)
            self.both([store.feedback(scope, execution, given) for store, execution in pairs])

    @rule(scope=_scopes, which=_some, approve=_yes)
    def review(self, scope: Scope, which: int, approve: bool) -> None:
        """Approve or reject."""
        pairs = zip(self.stores, self.pick(which), strict=True)
        self.both([s.approve(scope, i) if approve else s.reject(scope, i) for s, i in pairs])

    @rule(scope=st.none() | _scopes, before=st.none() | _times, keep=st.none() | st.integers(0, 2))
    def prune(self, scope: Scope | None, before: float | None, keep: int | None) -> None:
        """Drop runs."""
        counts = self.both([s.prune(scope, before=before, keep=keep) for s in self.stores])
        assert counts[0] == counts[1], f"pruned {counts[0]}, expected {counts[1]}"

    @rule(scope=_scopes, purge=_yes)
    def erase(self, scope: Scope, purge: bool) -> None:
        """Erase a person."""
        erased = self.both([s.erase_subject(scope, "ana", purge=purge) for s in self.stores])
        assert erased[0] == erased[1], f"erased {erased[0]}, expected {erased[1]}"

    @rule()
    def rebuild(self) -> None:
        """Count the judged runs anew."""
        changed = self.both([store.rebuild_judged_counters() for store in self.stores])
        assert changed[0] == changed[1], f"rebuilt {changed[0]}, expected {changed[1]}"

    @rule(scope=_scopes, vector=st.integers(0, 2), limit=st.integers(1, 4),
          intent=st.none() | st.sampled_from(_INTENTS), ancestors=_yes)  # fmt: skip
    def search(
        self, scope: Scope, vector: int, limit: int, intent: str | None, ancestors: bool
    ) -> None:
        """Look for the nearest."""
        asked = Search(scope, _VECTORS[vector], limit, intent, ancestors)
        found, expected = self.both([self._found(store, asked) for store in self.stores])
        assert found == expected, f"found {found}, expected {expected}"

    @invariant()
    def both_hold_the_same(self) -> None:
        """Definitions, runs, counters, and what is counted over all."""
        if hasattr(self, "stores"):
            held = self.both([self._image(store) for store in self.stores])
            assert held[0] == held[1], f"holds {held[0]}, expected {held[1]}"

    def _note(self, answers: list[Any]) -> None:
        """Remember which ids stand for the same."""
        if isinstance(answers[0], str):
            return
        shown = [(each.version, each.status, each.produced) for each in answers]
        assert shown[0] == shown[1], f"answered {shown[0]}, expected {shown[1]}"
        for known, pair in (
            (self.ids, (answers[0].id, answers[1].id)),
            (self.executions, (answers[0].execution, answers[1].execution)),
        ):
            if pair not in known:
                known.append(pair)
                self.places |= dict.fromkeys(pair, len(known))

    async def _found(self, store: ReasonletStore, asked: Search) -> list[object]:
        return [
            (self.places[each.id], round(each.similarity, 6), each.counts, each.parent,
             each.last_run, each.definition().metrics)
            for each in await store.search(asked)
        ]  # fmt: skip

    async def _image(self, store: ReasonletStore) -> object:
        entries = [self._entry(entry) for entry in await store.dump()]
        waiting = [
            [self.places[each.id] for each in await store.pending(scope, 100, None)]
            for scope in _SCOPES
        ]
        return entries, waiting, await store.statistics(None), await store.statistics(_SCOPES[1])

    def _entry(self, entry: Entry) -> object:
        made = entry.reasonlet
        places = [self.places.get(i or "") for i in (made.id, made.parent_id)]
        runs = [(self.places[each.id], each.run, each.feedback) for each in entry.runs]
        told = (made.version, made.status, made.scope, made.graph, made.metrics, made.provenance)
        pruned = (entry.pruned, entry.pruned_last_run, entry.pruned_last_success)
        return places, told, runs, pruned, entry.vector.tolist()

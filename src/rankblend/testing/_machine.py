"""A hypothesis state machine: any sequence of writes, then the same answers as a new store."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from attrs import evolve
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from rankblend.stores import Key, Reason, Record, StoreQuery
from rankblend.testing import strategies
from rankblend.testing._subject import EVERYTHING, LEVELS, Filled, StoreHooks
from rankblend.testing._worlds import BELOW, HOME, LOOKALIKES, NOW, OTHER_ROOTS, TENANT, USER

# Mostly one path, so that memories and questions meet; the rest are its look-alikes.
_SCOPES = st.one_of(
    st.sampled_from((TENANT, USER, HOME, BELOW)),
    st.sampled_from((HOME, USER)),
    st.sampled_from((*LOOKALIKES[:4], *OTHER_ROOTS[:5])),
)


class MachineTests(StoreHooks):
    """The store against the reference's idea of who sees what, and against itself made anew."""

    def test_state_machine_agrees_with_the_reference_and_with_a_new_store(self) -> None:
        """Whatever was added, replaced and removed before: only what is held now counts."""
        kit = self

        class Machine(_StoreMachine):
            def __init__(self) -> None:
                super().__init__(kit)

        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=8,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
                phases=(Phase.generate, Phase.shrink) if self.shrink else (Phase.generate,),
            ),
        )


class _StoreMachine(RuleBasedStateMachine):
    """Writes at random; every question is put to the store and to one filled in a single step."""

    def __init__(self, kit: StoreHooks) -> None:
        super().__init__()
        self.kit = kit
        self.stack = ExitStack()
        self.filled = self.stack.enter_context(kit.filled())
        self.latest: dict[Key, Record] = {}
        self.step = 0

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Start with something to ask about."""
        self._write(data, least=6)

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        """Add memories, some perhaps under keys that are held."""
        self._write(data, least=1)
        self._ask(data)

    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        """Replace one that is held."""
        if self.latest:
            key = data.draw(st.sampled_from(sorted(self.latest)))
            drawn = data.draw(strategies.records(self.kit.dimension, scope=key.scope))
            self._put([evolve(drawn, key=key)])
            self._ask(data)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove some that are held and some that are not."""
        unknown = st.builds(Key, _SCOPES, strategies.ids())
        held = st.sampled_from(sorted(self.latest)) if self.latest else unknown
        doomed = data.draw(st.lists(held, max_size=3)) + data.draw(st.lists(unknown, max_size=2))
        self.filled.erase(doomed)
        for key in doomed:
            self.latest.pop(key, None)
        self._ask(data)

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """Ask again, without a write before."""
        self._ask(data)

    def _write(self, data: st.DataObject, *, least: int) -> None:
        batch: dict[Key, Record] = {}
        for _ in range(data.draw(st.integers(least, least + 4))):
            record = data.draw(strategies.records(self.kit.dimension, scope=data.draw(_SCOPES)))
            batch[record.key] = record
        self._put(list(batch.values()))

    def _put(self, batch: list[Record]) -> None:
        # A later write is a later revision, whatever time hypothesis drew.
        self.step += 1
        batch = [revision(record, self.latest.get(record.key), self.step) for record in batch]
        self.filled.write(batch)
        self.latest.update({record.key: record for record in batch})

    def _ask(self, data: st.DataObject) -> None:
        """Ask anything, from anywhere, and a new store the same."""
        query = data.draw(strategies.queries(self.kit.dimension, at=_SCOPES))
        # By id, so that all memories of one id are admitted or none: which of several the mask
        # leaves is then not in question.
        without = data.draw(st.one_of(st.none(), st.sets(strategies.ids(), max_size=4)))
        # in another order than they came
        with self.kit.filled([self.latest[key] for key in sorted(self.latest)]) as fresh:
            asked, again = (
                query if without is None else _without(filled, query, without)
                for filled in (self.filled, fresh)
            )
            for level in LEVELS:
                allowed = self.filled.visible(asked, level)
                every = self.filled.propose(asked, EVERYTHING, level)
                assert set(every) <= set(allowed), f"level {level}: {set(every) - set(allowed)}"
                assert len(every) == len(set(every)), f"level {level}: an id twice in {every}"
                wanted = fresh.propose(again, EVERYTHING, level)
                assert every == wanted, f"level {level}: {every}, a new store {wanted}"
                for limit in (3, 1, 0):
                    proposed = self.filled.propose(asked, limit, level)
                    assert proposed == every[:limit], f"level {level}, limit {limit}: {proposed}"
            self._check_evidence(asked, fresh, again)

    def _check_evidence(self, asked: StoreQuery, fresh: Filled, again: StoreQuery) -> None:
        known = sorted({key.id for key in self.latest} | {"nobody", "a", "é"})
        seen = self.filled.observe(asked, known)
        visible = set(self.filled.visible(asked))
        hidden = np.array([id_ not in visible for id_ in known])
        for name, column in seen.columns.items():
            assert np.isnan(column[hidden]).all(), f"{name}: a value for what cannot be seen"
            assert (seen.reason(name)[hidden] == Reason.UNKNOWN).all(), f"{name}: not UNKNOWN"
        self.kit.assert_same(seen, fresh.observe(again, known), "not what a new store says")

    def teardown(self) -> None:
        """Close the store."""
        self.stack.close()


def revision(record: Record, held: Record | None, step: int) -> Record:
    """The record as a later revision of what is held under its key, if anything is.

    Writing does not touch when a memory was first written or how it was used.
    """
    # An hour a step, the drawn day (101 to 300 before NOW) only within it.
    at = NOW - 300 * 86_400.0 + step * 3600.0 + (NOW - record.at) / 86_400.0
    if held is None:
        return evolve(record, at=at)
    return evolve(record, at=at, created=held.created, used=held.used, uses=held.uses)


def _without(filled: Filled, query: StoreQuery, ids: set[str]) -> StoreQuery:
    return filled.admitting(query, lambda record: record.id not in ids)

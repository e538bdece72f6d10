"""A hypothesis state machine: any sequence of writes, then the same answers as a new store."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from attrs import evolve
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from rankblend.stores.protocol import Key, Reason, Record, StoreQuery
from rankblend.testing import strategies
from rankblend.testing.subject import EVERYTHING, Filled, StoreHooks

__all__ = ["MachineTests"]


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
                stateful_step_count=10,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
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

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        """Add some memories, or write others under keys that are held."""
        batch = data.draw(
            st.lists(
                strategies.records(self.kit.dimension),
                min_size=1,
                max_size=5,
                unique_by=lambda record: record.key,
            )
        )
        if self.latest and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(self.latest)))
            batch = [evolve(batch[0], key=key)]
        # A later write is a later revision, whatever time hypothesis drew.
        self.step += 1
        batch = [evolve(record, at=record.at + self.step * 3600.0) for record in batch]
        self.filled.write(batch)
        self.latest.update({record.key: record for record in batch})

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove some that are held and some that are not."""
        pool = st.sampled_from(sorted(self.latest)) if self.latest else strategies.keys()
        doomed = data.draw(st.lists(st.one_of(pool, strategies.keys()), max_size=4))
        self.filled.erase(doomed)
        for key in doomed:
            self.latest.pop(key, None)

    @rule(data=st.data(), limit=st.sampled_from((0, 1, 2, 5, EVERYTHING)))
    def ask(self, data: st.DataObject, limit: int) -> None:
        """Ask anything, from anywhere."""
        query = data.draw(
            strategies.queries(self.kit.dimension, at=sorted({k.scope for k in self.latest},
                                                             key=lambda scope: scope.path))
        )  # fmt: skip
        level = data.draw(st.sampled_from((None, 0, 1, 2)))
        # By id, so that all memories of one id are admitted or none: which of several the mask
        # leaves is then not in question.
        without = data.draw(st.one_of(st.none(), st.sets(strategies.ids(), max_size=4)))
        with self.kit.filled(list(self.latest.values())) as fresh:
            asked, again = (
                query if without is None else _without(filled, query, without)
                for filled in (self.filled, fresh)
            )
            proposed = self.filled.propose(asked, limit, level)
            allowed = self.filled.visible(asked, level)
            assert set(proposed) <= set(allowed), f"proposed {set(proposed) - set(allowed)}"
            assert len(proposed) == len(set(proposed)), f"an id twice in {proposed}"
            assert len(proposed) <= limit, f"{len(proposed)} ids, limit {limit}"
            wanted = fresh.propose(again, limit, level)
            assert proposed == wanted, f"proposed {proposed}, a new store {wanted}"
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


def _without(filled: Filled, query: StoreQuery, ids: set[str]) -> StoreQuery:
    return filled.admitting(query, lambda record: record.id not in ids)

"""Conformance of stores of procedures: what every one must do, and the reference it equals."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rankblend.reasonlets.store.protocol import ReasonletStore
from rankblend.testing.reasonlet_contract import ReasonletContractTests
from rankblend.testing.reasonlet_lifecycle import ReasonletLifecycleTests
from rankblend.testing.reasonlet_machine import ReasonletStoreMachine

__all__ = ["ReasonletStoreConformance"]


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

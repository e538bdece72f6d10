"""The conformance kit on every store of procedures that comes with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankblend.reasonlets import InMemoryReasonletStore, SqliteReasonletStore
from rankblend.testing import ReasonletStoreConformance, run_conformance


class TestInMemoryReasonletStore(ReasonletStoreConformance):
    examples = 5

    def make_store(self) -> InMemoryReasonletStore:
        return InMemoryReasonletStore()


class TestSqliteReasonletStoreInMemory(ReasonletStoreConformance):
    examples = 25

    def make_store(self) -> SqliteReasonletStore:
        return SqliteReasonletStore.open(":memory:")


class TestSqliteReasonletStoreInAFile(ReasonletStoreConformance):
    examples = 4

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder, self._files = tmp_path, 0

    def make_store(self) -> SqliteReasonletStore:
        self._files += 1
        return SqliteReasonletStore.open(self._folder / f"{self._files}.db")


class Forgetful(InMemoryReasonletStore):
    """Loses the feedback it is given."""

    async def feedback(self, *_: object) -> None:
        """Nothing happens."""


def test_kit_when_a_store_is_wrong_then_it_says_so() -> None:
    class Kit(ReasonletStoreConformance):
        def make_store(self) -> InMemoryReasonletStore:
            return Forgetful()

    failed = {name for name, outcome in run_conformance(Kit).items() if outcome.status == "failed"}
    assert "test_feedback_when_given_then_the_counters_move_with_the_verdict" in failed
    assert "test_state_machine_agrees_with_the_reference" in failed

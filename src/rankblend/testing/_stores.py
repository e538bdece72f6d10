"""The kits a store's author subclasses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import pytest

from rankblend.stores import Store, StoreQuery, SupportsWrite
from rankblend.testing._capabilities import CapabilityTests
from rankblend.testing._contract import ContractTests
from rankblend.testing._machine import MachineTests
from rankblend.testing._proposing import ProposalTests
from rankblend.testing._seeing import VisibilityTests
from rankblend.testing._subject import EVERYTHING, ObservedStore
from rankblend.testing._worlds import home_query, standard_world
from rankblend.testing._writing import WriteTests


class StoreConformance(
    ContractTests, ProposalTests, VisibilityTests, WriteTests, CapabilityTests, MachineTests
):
    """Everything a store that keeps memories must do.

    Subclass it in a test file and fill in ``make_store``; pytest finds the tests::

        class TestMyStore(StoreConformance):
            def make_store(self):
                return MyStore()

    A store that is not filled by ``add`` and ``remove`` also fills in `write` and `erase`. The
    standard tests cannot be overridden; one that is known to fail is listed in ``xfails`` with the
    reason. All hooks: see `rankblend.testing._subject.StoreHooks`.
    """

    @contextmanager
    def subject(self) -> Iterator[tuple[Store, StoreQuery, list[str]]]:
        """The standard world, asked at its home."""
        with self.filled(standard_world(self.dimension)) as filled:
            query = home_query(self.dimension)
            yield filled.store, self.ask(query), filled.visible(query)


class SignalStoreConformance(ContractTests):
    """Everything a store that keeps nothing and only answers for ids must do.

    Subclass it, fill in ``make_store`` and name some ids that the store has an answer for::

        class TestVotes(SignalStoreConformance):
            ids = ("n1", "n2")

            def make_store(self):
                return SignalStore("votes", votes_of, emits=("liked",))

    Such a store knows no scopes: a recall asks it only about what is visible.
    """

    hooks = ObservedStore.hooks | {"ids"}
    ids: ClassVar[Sequence[str]] = ()

    @contextmanager
    def subject(self) -> Iterator[tuple[Store, StoreQuery, list[str]]]:
        """The author's store and ids."""
        if not self.ids:
            pytest.fail("fill in ids: memories that the store has an answer for")
        store = self.make_store()
        try:
            yield store, home_query(), list(self.ids)
        finally:
            store.close()

    def test_store_proposes_nothing_and_keeps_nothing(self) -> None:
        """A store that proposes or keeps memories must show that it respects scopes."""
        with self.subject() as (store, query, _):
            assert list(store.propose(query, EVERYTHING)) == [], "use StoreConformance"
            assert not isinstance(store, SupportsWrite), "use StoreConformance"

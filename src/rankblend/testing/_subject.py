"""What the author of a store fills in, and how the kit asks the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.stores import Key, Observation, Reason, Record, Store, StoreQuery
from rankblend.testing._guard import Guarded
from rankblend.testing._reference import visible_records

EVERYTHING = 10_000  # a limit that cuts nothing
LEVELS = (None, 0, 1, 2, 3)


class ObservedStore(Guarded):
    """The least a kit needs: a store.

    Attributes:
        tolerance: How far evidence may differ, relatively and absolutely, where two ways of asking
            must agree. 0: bit for bit.
    """

    hooks = Guarded.hooks | {"make_store", "tolerance"}
    tolerance: ClassVar[float] = 0.0

    def make_store(self) -> Store:
        """A new store, empty if it keeps memories; called many times in one test."""
        raise NotImplementedError("fill in make_store(): return a new store")

    @contextmanager
    def subject(self) -> Iterator[tuple[Store, StoreQuery, list[str]]]:
        """A store, a question, and ids that the store can say something about."""
        raise NotImplementedError

    def assert_same(self, got: Observation, expected: Observation, where: str) -> None:
        """Two observations are the same, within the tolerance."""
        difference = same_observation(got, expected, self.tolerance)
        assert difference is None, f"{where}: {difference}"


class StoreHooks(ObservedStore):
    """The hooks of `StoreConformance`.

    Attributes:
        proposes: Set to False for a store that only observes.
        dimension: Length of the vectors of the kit's memories.
        examples: How many sequences of calls the state machine tries.
        shrink: Whether a sequence that fails is made as short as possible; that takes minutes.
    """

    hooks = ObservedStore.hooks | {
        "ask",
        "dimension",
        "erase",
        "examples",
        "expected",
        "proposes",
        "shrink",
        "strength",
        "write",
    }
    proposes: ClassVar[bool] = True
    dimension: ClassVar[int] = 8
    examples: ClassVar[int] = 12
    shrink: ClassVar[bool] = False

    def write(self, store: Store, records: Sequence[Record]) -> Sequence[Record] | None:
        """Put memories into the store, replacing those with the same key.

        Override it for a store that is filled in another way than by ``add``.

        Returns:
            The records as stored where that differs from what was given (a catalog gives serials of
            its own), in the same order; None otherwise.
        """
        if not hasattr(store, "add"):
            raise NotImplementedError(
                "the store has no add(): fill in write() and erase(), or use "
                "SignalStoreConformance for a store that keeps nothing"
            )
        store.add(records)
        return None

    def erase(self, store: Store, keys: Sequence[Key]) -> None:
        """Take memories out of the store; override it together with `write`."""
        store.remove(keys)  # type: ignore[attr-defined]

    def ask(self, query: StoreQuery) -> StoreQuery:
        """The question as this store needs it; override it to add what the kit cannot know."""
        return query

    def strength(
        self,
        query: StoreQuery,  # noqa: ARG002  (for those who override it)
        observation: Observation,
    ) -> NDArray[np.float64]:
        """By what the store ranks its proposals: float64, shape (n,), NaN for never proposed.

        Default: the first evidence it emits, higher first.
        """
        return next(iter(observation.columns.values()))

    def expected(
        self,
        query: StoreQuery,  # noqa: ARG002
        record: Record,  # noqa: ARG002
    ) -> Mapping[str, float] | None:
        """Evidence the store must observe on a visible memory, by name; NaN for absent.

        Compared to 1e-7, relatively and absolutely: vectors are float32. Default: None, nothing to
        compare with.
        """
        return None

    def assert_alike(
        self,
        got: Filled,
        expected: Filled,
        query: StoreQuery,
        *,
        asked: StoreQuery | None = None,
    ) -> None:
        """Two stores answer alike: every level, with and without a limit, and all evidence.

        Args:
            got: The store in question.
            expected: The store that is right.
            query: What both are asked.
            asked: What ``got`` is asked instead, where the two differ.
        """
        asked = query if asked is None else asked
        for level in LEVELS:
            for limit in (3, EVERYTHING):
                proposed = got.propose(asked, limit, level)
                wanted = expected.propose(query, limit, level)
                assert proposed == wanted, (
                    f"level {level}, limit {limit}: proposed {proposed}, expected {wanted}"
                )
        ids = [*expected.visible(query), "nobody"]
        self.assert_same(got.observe(asked, ids), expected.observe(query, ids), "other evidence")

    @contextmanager
    def filled(self, records: Sequence[Record] = ()) -> Iterator[Filled]:
        """A new store holding these memories, closed at the end."""
        filled = Filled(self, self.make_store())
        try:
            filled.write(records)
            yield filled
        finally:
            filled.store.close()


class Filled:
    """A store together with what was put into it, as stored."""

    def __init__(self, kit: StoreHooks, store: Store) -> None:
        self.kit = kit
        self.store = store
        self.held: dict[Key, Record] = {}
        self._serials: dict[Key, int] = {}

    def write(self, records: Sequence[Record]) -> None:
        """Put memories in; serials are given out once per key, as a catalog would."""
        if not records:
            return
        numbered = [
            evolve(record, serial=self._serials.setdefault(record.key, len(self._serials)))
            for record in records
        ]
        stored = self.kit.write(self.store, numbered)
        for record in numbered if stored is None else stored:
            self.held[record.key] = record

    def erase(self, keys: Sequence[Key]) -> None:
        """Take memories out."""
        self.kit.erase(self.store, keys)
        for key in keys:
            self.held.pop(key, None)

    def take_over(self, other: Filled) -> None:
        """The store was given what another one holds, in another way than by `write`."""
        self.held, self._serials = dict(other.held), dict(other._serials)

    def propose(self, query: StoreQuery, limit: int, level: int | None = None) -> list[str]:
        """What the store proposes."""
        return list(self.store.propose(self.kit.ask(query), limit, level=level))

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """What the store observes."""
        return self.store.observe(self.kit.ask(query), ids)

    def visible(self, query: StoreQuery, level: int | None = None) -> list[str]:
        """Ids the query may be shown, ascending; at exactly ``level`` where that is given."""
        return sorted(
            id_
            for id_, record in visible_records(self.held.values(), query).items()
            if level in (None, query.distance(record.scope))
        )

    def admitting(self, query: StoreQuery, admits: Callable[[Record], bool]) -> StoreQuery:
        """The question with a mask over the serials of what is held."""
        admitted = np.zeros(1 + max((r.serial for r in self.held.values()), default=-1), np.bool_)
        for record in self.held.values():
            assert record.serial >= 0, "write() must return the records with their serials"
            admitted[record.serial] = admits(record)
        admitted.flags.writeable = False
        return evolve(query, admitted=admitted)


def same_observation(got: Observation, expected: Observation, tolerance: float) -> str | None:
    """None when they are the same, else the first difference in words."""
    if list(got.columns) != list(expected.columns):
        return f"columns {list(got.columns)}, expected {list(expected.columns)}"
    for name, column in got.columns.items():
        other = expected.columns[name]
        if tolerance:
            same = np.isclose(column, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            same = (column == other) | (np.isnan(column) & np.isnan(other))
        if not np.all(same):
            row = int(np.argmin(same))
            return f"{name}[{row}] is {column[row]!r}, expected {other[row]!r}"
        reasons, others = got.reason(name), expected.reason(name)
        if not np.array_equal(reasons, others):
            row = int(np.argmin(reasons == others))
            return f"reason of {name}[{row}] is {_word(reasons[row])}, not {_word(others[row])}"
    return None


def _word(code: int) -> str:
    return Reason(code).words if code in list(Reason) else f"the unknown code {code}"

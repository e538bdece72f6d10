"""Tests that need nothing but a store and some ids."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.relevance import is_identifier, lookup_evidence
from rankblend.stores import Observation, Reason, Store, StoreQuery
from rankblend.testing._subject import ObservedStore
from rankblend.testing._worlds import ODD_IDS

_NOBODY = ("nobody", "no body", *ODD_IDS)


class ContractTests(ObservedStore):
    """What holds of every store, whether it keeps memories or only answers for ids."""

    def test_store_has_a_name_and_registered_evidence(self) -> None:
        """The name is an identifier; what it emits is in the vocabulary, each name once."""
        with self.subject() as (store, _, _):
            assert isinstance(store, Store), "a store has name, emits, propose, observe and close"
            assert is_identifier(store.name), f"name {store.name!r} is no identifier"
            assert store.emits, "a store emits at least one kind of evidence"
            assert len(set(store.emits)) == len(store.emits), f"emits {store.emits} repeats a name"
            unknown = [name for name in store.emits if lookup_evidence(name) is None]
            assert not unknown, f"not registered (see register_evidence): {unknown}"

    def test_store_answers_something(self) -> None:
        """Some evidence is present; every other test would be empty otherwise."""
        with self.subject() as (store, query, ids):
            seen = store.observe(query, ids)
            present = [name for name in store.emits if not np.isnan(seen.columns[name]).all()]
            assert present, "nothing was observed on memories made to be observed"

    def test_observe_gives_one_column_per_emitted_name(self) -> None:
        """Columns are exactly ``emits``, in order: float64 and int8, one value per id."""
        with self.subject() as (store, query, ids):
            for asked in (ids, ids[:1], [], ["nobody"]):
                _check_shape(store, store.observe(query, asked), len(asked))

    def test_observed_values_lie_in_the_range_of_their_evidence(self) -> None:
        """No value is outside the registered range; infinity only where that is the bound."""
        with self.subject() as (store, query, ids):
            seen = store.observe(query, ids)
            for name, column in seen.columns.items():
                evidence = lookup_evidence(name)
                assert evidence is not None
                values = column[~np.isnan(column)]
                inside = (values >= evidence.low) & (values <= evidence.high)
                assert inside.all(), (
                    f"{name}: {values[~inside][:3]} outside [{evidence.low}, {evidence.high}]"
                )

    def test_reasons_agree_with_values(self) -> None:
        """PRESENT exactly where there is a value, and every code is a `Reason`."""
        with self.subject() as (store, query, ids):
            seen = store.observe(query, [*ids, "nobody"])
            for name, column in seen.columns.items():
                reasons = seen.reason(name)
                assert set(reasons.tolist()) <= {int(reason) for reason in Reason}, name
                present = reasons == Reason.PRESENT
                assert np.array_equal(present, ~np.isnan(column)), (
                    f"{name}: a value without the reason PRESENT, or the reverse"
                )

    def test_observe_when_an_id_is_unknown_then_it_is_absent_and_unknown(self) -> None:
        """NaN and UNKNOWN in every column, however odd the id; never a zero."""
        with self.subject() as (store, query, ids):
            unknown = [id_ for id_ in _NOBODY if id_ not in ids]
            seen = store.observe(query, unknown)
            for name, column in seen.columns.items():
                assert np.isnan(column).all(), f"{name}: a value for an id nobody holds"
                assert (seen.reason(name) == Reason.UNKNOWN).all(), f"{name}: expected UNKNOWN"

    def test_observe_when_other_ids_are_asked_too_then_nothing_changes(self) -> None:
        """Alone, in part, in another order, repeated: an id always gets the same answer."""
        with self.subject() as (store, query, ids):
            every = store.observe(query, ids)
            ways: list[Sequence[str]] = [
                ids[::-1],
                ids[1::2],
                sorted(ids),
                [id_ for id_ in ids for _ in range(2)],
                [*ids[:2], "nobody", *ids[:2]],
                *[[id_] for id_ in ids],
            ]
            where = {id_: row for row, id_ in enumerate(ids)}
            for asked in ways:
                seen = store.observe(query, asked)
                known = [row for row, id_ in enumerate(asked) if id_ in where]
                self.assert_same(
                    _rows(seen, known),
                    _rows(every, [where[asked[row]] for row in known]),
                    f"asked for {len(asked)} ids instead of {len(ids)}",
                )

    def test_answers_when_asked_again_then_they_are_the_same(self) -> None:
        """Reading changes nothing: reads do not reinforce, and nothing is left to chance."""
        with self.subject() as (store, query, ids):
            first, proposed = store.observe(query, ids), list(store.propose(query, 5))
            for _ in range(3):
                self.assert_same(store.observe(query, ids), first, "asked again")
                assert list(store.propose(query, 5)) == proposed

    def test_answers_leave_their_inputs_alone(self) -> None:
        """Neither ids nor anything in the query is changed, even where it could be."""
        with self.subject() as (store, query, ids):
            given, order = _writable(query), [*ids[1::2], *ids[::-2]]  # not sorted either way
            asked = list(order)
            before = _contents(given)
            store.propose(given, 5)
            store.observe(given, asked)
            assert asked == order, "observe changed the list of ids"
            assert _contents(given) == before, "the store changed the query"

    def test_answers_when_changed_by_the_caller_then_the_store_is_not(self) -> None:
        """What a store returns is the caller's: no views of its own state."""
        with self.subject() as (store, query, ids):
            first, proposed = store.observe(query, ids), store.propose(query, 5)
            expected, again = copy.deepcopy(first), list(proposed)
            arrays: list[NDArray[Any]] = [*first.columns.values(), *first.reasons.values()]
            for array in arrays:
                if array.flags.writeable:
                    array[:] = 1
            if isinstance(proposed, list):
                proposed.clear()
            self.assert_same(store.observe(query, ids), expected, "after changing an answer")
            assert list(store.propose(query, 5)) == again

    def test_close_when_called_twice_then_nothing_happens(self) -> None:
        """Closing is harmless at any time."""
        store = self.make_store()
        store.close()
        store.close()


def _check_shape(store: Store, seen: Observation, count: int) -> None:
    assert isinstance(seen, Observation), f"observe gave {type(seen).__name__}"
    assert tuple(seen.columns) == tuple(store.emits), (
        f"columns {tuple(seen.columns)}, expected {tuple(store.emits)}"
    )
    assert set(seen.reasons) <= set(seen.columns), "reasons for what is no column"
    for name, column in seen.columns.items():
        assert isinstance(column, np.ndarray), f"{name}: no array"
        assert column.dtype == np.float64, f"{name}: {column.dtype}, expected float64"
        assert column.shape == (count,), f"{name}: shape {column.shape}, expected ({count},)"
        reasons = seen.reason(name)
        assert reasons.dtype == np.int8, f"reason of {name}: {reasons.dtype}, expected int8"
        assert reasons.shape == (count,), f"reason of {name}: shape {reasons.shape}"


def _rows(seen: Observation, rows: Sequence[int]) -> Observation:
    index = np.array(rows, dtype=np.intp)
    return Observation(
        {name: column[index] for name, column in seen.columns.items()},
        {name: seen.reason(name)[index] for name in seen.columns},
    )


def _writable(query: StoreQuery) -> StoreQuery:
    changed = copy.deepcopy(query)
    for array in (changed.vector, changed.admitted):
        if array is not None:
            array.flags.writeable = True
    return changed


def _contents(query: StoreQuery) -> object:
    arrays = [
        None if array is None else (array.tobytes(), array.shape, array.flags.writeable)
        for array in (query.vector, query.admitted)
    ]
    rest = (query.text, query.scopes, query.now, query.reach, query.statistics, query.seeds)
    return arrays, rest, copy.deepcopy(dict(query.preferred))

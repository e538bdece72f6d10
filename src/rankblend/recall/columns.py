"""What a store observed, read as one column over all candidates, whatever the store returned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import MemoryContractError
from rankblend.recall.asking import Outcome
from rankblend.recall.candidates import EvidenceColumn
from rankblend.stores.protocol import Observation, Reason, Store

__all__ = ["read_column"]


def read_column(
    store: Store, emitted: str, outcome: Outcome, positions: NDArray[np.int64] | None, n: int
) -> EvidenceColumn:
    """One evidence of one store.

    Args:
        store: Who was asked.
        emitted: Name of the evidence.
        outcome: What came of asking.
        positions: int64, shape (m,): the candidates it was asked about; None: all.
        n: How many candidates there are.

    Returns:
        Values and reasons of all n; NOT_PERMITTED where it was not asked.

    Raises:
        MemoryContractError: It returned no observation, or not one number and one reason for each
            candidate it was asked about.
    """
    if outcome.failure is not None:
        return EvidenceColumn.absent(store.name, n, outcome.failure.reason)
    observation = outcome.value
    if not isinstance(observation, Observation):
        raise MemoryContractError(
            f"store {store.name!r}: expected an Observation, got {type(observation).__name__}"
        )
    if emitted not in observation.columns:
        return EvidenceColumn.absent(store.name, n, Reason.NOT_EMITTED)
    asked = n if positions is None else positions.size
    try:
        values = np.asarray(observation.columns[emitted])
        reasons = np.asarray(observation.reason(emitted))
    except (TypeError, ValueError):
        raise _no_numbers(store, emitted) from None
    # Text that looks like a number is none: whoever stores it may mean something else by it.
    if values.size and (values.dtype.kind not in "fiu" or reasons.dtype.kind not in "iu"):
        raise _no_numbers(store, emitted)
    if not values.shape == reasons.shape == (asked,):
        raise MemoryContractError(
            f"store {store.name!r}: expected {asked} values of {emitted!r}, got {values.shape}"
        )
    # Reasons nobody gave were made from the values.
    given = reasons if emitted in observation.reasons else reasons[:0]
    if given.size and not 0 <= given.min() <= given.max() < len(Reason):
        raise MemoryContractError(f"store {store.name!r}: unknown reasons for {emitted!r}")
    if positions is None:
        return EvidenceColumn(store.name, values.astype(np.float64), reasons.astype(np.int8))
    column = EvidenceColumn.absent(store.name, n, Reason.NOT_PERMITTED)
    column.values[positions], column.reasons[positions] = values, reasons
    return column


def _no_numbers(store: Store, emitted: str) -> MemoryContractError:
    return MemoryContractError(
        f"store {store.name!r}: expected numbers for {emitted!r} and its reasons"
    )

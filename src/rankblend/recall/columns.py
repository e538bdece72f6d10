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
    store: Store, emitted: str, outcome: Outcome, positions: NDArray[np.int64], n: int
) -> EvidenceColumn:
    """One evidence of one store.

    Args:
        store: Who was asked.
        emitted: Name of the evidence.
        outcome: What came of asking.
        positions: int64, shape (m,): the candidates it was asked about.
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
    column = EvidenceColumn.absent(store.name, n, Reason.NOT_PERMITTED)
    try:
        values = np.asarray(observation.columns[emitted])
        reasons = np.asarray(observation.reason(emitted))
    except (TypeError, ValueError):
        raise _no_numbers(store, emitted) from None
    # Text that looks like a number is none: whoever stores it may mean something else by it.
    if values.size and (values.dtype.kind not in "fiu" or reasons.dtype.kind not in "iu"):
        raise _no_numbers(store, emitted)
    if not values.shape == reasons.shape == positions.shape:
        raise MemoryContractError(
            f"store {store.name!r}: expected {positions.size} values of {emitted!r}, "
            f"got {values.shape}"
        )
    if reasons.size and not 0 <= reasons.min() <= reasons.max() < len(Reason):
        raise MemoryContractError(f"store {store.name!r}: unknown reasons for {emitted!r}")
    column.values[positions], column.reasons[positions] = values, reasons
    return column


def _no_numbers(store: Store, emitted: str) -> MemoryContractError:
    return MemoryContractError(
        f"store {store.name!r}: expected numbers for {emitted!r} and its reasons"
    )

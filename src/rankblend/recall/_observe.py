"""What the stores observed, read as columns over all candidates; what the layers permit of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import MemoryContractError
from rankblend.recall._ask import Outcome
from rankblend.recall._candidates import EvidenceColumn
from rankblend.stores import LayerPolicy, Observation, Reason, Store


class Permissions:
    """Which layers may contribute which evidence; worked out once for each store.

    Args:
        layers: Policies by layer; a layer without one may contribute everything.
    """

    def __init__(self, layers: Mapping[str, LayerPolicy]) -> None:
        self._limited = {n: policy for n, policy in layers.items() if policy.permitted is not None}
        self._forbidden: dict[tuple[str, str], frozenset[str]] = {}

    def forbidden(self, store: Store, evidence: str) -> frozenset[str]:
        """The layers that may not contribute this evidence of this store."""
        place = store.name, evidence
        if place not in self._forbidden:
            self._forbidden[place] = frozenset(
                layer
                for layer, policy in self._limited.items()
                if not (policy.permits(evidence) or policy.permits(".".join(place)))
            )
        return self._forbidden[place]

    def barred(self, store: Store) -> frozenset[str]:
        """The layers that may contribute nothing a store emits: it is not asked about them."""
        if not self._limited:
            return frozenset()
        return frozenset(self._limited).intersection(
            *(self.forbidden(store, evidence) for evidence in store.emits)
        )

    def positions(self, store: Store, layers: Sequence[str]) -> NDArray[np.int64] | None:
        """int64: the candidates a store is asked about, by the layers of all; None: all."""
        barred = self.barred(store)
        if not barred:
            return None
        return np.array([i for i, layer in enumerate(layers) if layer not in barred], np.int64)

    def masked(
        self, store: Store, evidence: str, column: EvidenceColumn, layers: Sequence[str]
    ) -> EvidenceColumn:
        """A column without the values of memories whose layer may not contribute this evidence."""
        forbidden = self.forbidden(store, evidence)
        if forbidden:
            hidden = np.array([layer in forbidden for layer in layers], np.bool_)
            column.values[hidden] = np.nan
            column.reasons[hidden] = Reason.NOT_PERMITTED
        return column


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

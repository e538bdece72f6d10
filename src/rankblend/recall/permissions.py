"""What the layers of a memory permit its stores to contribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.recall.candidates import EvidenceColumn
from rankblend.stores.layers import LayerPolicy
from rankblend.stores.protocol import Reason, Store

__all__ = ["Permissions"]


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

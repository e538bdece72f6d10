"""Which nodes are memories: one slot per (scope, id), with the rows of the edges it owns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankblend.stores.graph.columns import Column

__all__ = ["MemoryTable"]

_NONE, _SEVERAL = -1, -2


class MemoryTable:
    """Memories by slot. A slot stays with its key; a removed memory's slot is dead.

    Attributes:
        node, scope: int32, shape (slots,).
        serial: int64: index into ``StoreQuery.admitted``.
        first, count: int64: the edge rows it owns are ``first … first + count − 1``.
        alive: bool.
    """

    def __init__(self) -> None:
        self.node = Column(np.int32)
        self.scope = Column(np.int32)
        self.serial = Column(np.int64)
        self.first = Column(np.int64)
        self.count = Column(np.int64)
        self.alive = Column(np.bool_)
        self._slots: dict[tuple[int, int], int] = {}
        self._holder = Column(np.int32)  # node → its slot, none, or several
        self.several: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, scope: int, node: int) -> int:
        """The slot of a living memory, or −1."""
        return self._slots.get((scope, node), -1)

    def add(self, scope: int, node: int, serial: int) -> int:
        """A slot for a memory that has none."""
        slot = len(self.node)
        for column, value in (
            (self.node, node),
            (self.scope, scope),
            (self.serial, serial),
            (self.first, 0),
            (self.count, 0),
            (self.alive, True),
        ):
            column.append(value)
        self._slots[scope, node] = slot
        self._hold(node, [*self.at(node), slot])
        return slot

    def remove(self, slot: int) -> None:
        """The memory is gone."""
        node = int(self.node.values[slot])
        del self._slots[int(self.scope.values[slot]), node]
        self.alive.values[slot] = False
        self._hold(node, [other for other in self.at(node) if other != slot])

    def own(self, slot: int, first: int, count: int) -> None:
        """Set the edge rows a memory owns."""
        self.first.values[slot], self.count.values[slot] = first, count

    def owned(self, slot: int) -> NDArray[np.int64]:
        """The edge rows a memory owns."""
        first = int(self.first.values[slot])
        return np.arange(first, first + int(self.count.values[slot]))

    def at(self, node: int) -> list[int]:
        """The slots of the memories with this id, at whatever scopes."""
        holder = int(self._holder.values[node]) if node < len(self._holder) else _NONE
        if holder == _SEVERAL:
            return self.several[node]
        return [] if holder == _NONE else [holder]

    def holders(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slot at each node, −1 for none, −2 for several; shape of ``nodes``."""
        known = nodes < len(self._holder)
        out = np.full(len(nodes), _NONE, dtype=np.int64)
        out[known] = self._holder.values[nodes[known]]
        return out

    def slots(self) -> Iterator[int]:
        """The slots of all living memories."""
        return iter(self._slots.values())

    def _hold(self, node: int, slots: list[int]) -> None:
        missing = node + 1 - len(self._holder)
        if missing > 0:
            self._holder.extend(np.full(missing, _NONE))
        self.several.pop(node, None)
        if len(slots) > 1:
            self.several[node] = slots
        self._holder.values[node] = (
            _NONE if not slots else slots[0] if len(slots) == 1 else _SEVERAL
        )

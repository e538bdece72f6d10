"""Which nodes are memories: one slot per (scope, id), with the rows of the edges it owns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from rankblend.stores.graph.columns import Column
from rankblend.stores.serial_index import SerialIndex

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
        self._by_serial = SerialIndex()
        self._holder = Column(np.int32)  # node → its slot, none, or several
        self.several: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, scope: int, node: int) -> int:
        """The slot of a living memory, or −1."""
        return self._slots.get((scope, node), -1)

    def put(self, serials: Mapping[tuple[int, int], int]) -> NDArray[np.int64]:
        """A slot for each memory, those that have one keep it; int64, in the order given.

        Args:
            serials: Scope and node of each → its serial.
        """
        self._add({place: serial for place, serial in serials.items() if place not in self._slots})
        slots = np.array([self._slots[place] for place in serials], dtype=np.int64)
        self.serial.values[slots] = list(serials.values())
        self._by_serial.enter(self.serial.values, slots)
        return slots

    def with_serials(self, serials: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of living memories by their serials ≥ 0, −1 where there is none."""
        return self._by_serial.find(serials, self.serial.values, self.alive.values)

    def _add(self, serials: Mapping[tuple[int, int], int]) -> None:
        """Slots for memories that have none."""
        places = np.array(list(serials), dtype=np.int64).reshape(-1, 2)
        slots = np.arange(len(self.node), len(self.node) + len(places))
        nothing = np.zeros(len(places), dtype=np.int64)
        self.scope.extend(places[:, 0])
        self.node.extend(places[:, 1])
        self.serial.extend(list(serials.values()))
        self.first.extend(nothing)
        self.count.extend(nothing)
        self.alive.extend(~nothing.astype(np.bool_))
        self._slots.update(zip(serials, slots.tolist(), strict=True))
        self._hold_new(places[:, 1], slots)

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

    def _hold_new(self, nodes: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Enter slots at their nodes, most of which no memory had so far."""
        missing = int(nodes.max(initial=-1)) + 1 - len(self._holder)
        if missing > 0:
            self._holder.extend(np.full(missing, _NONE))
        _, which, counts = np.unique(nodes, return_inverse=True, return_counts=True)
        alone = (counts[which] == 1) & (self._holder.values[nodes] == _NONE)
        self._holder.values[nodes[alone]] = slots[alone]
        for node, slot in zip(nodes[~alone].tolist(), slots[~alone].tolist(), strict=True):
            self._hold(node, [*self.at(node), slot])

    def _hold(self, node: int, slots: list[int]) -> None:
        self.several.pop(node, None)
        if len(slots) > 1:
            self.several[node] = slots
        self._holder.values[node] = (
            _NONE if not slots else slots[0] if len(slots) == 1 else _SEVERAL
        )

"""The last few engines "as of" a time, kept until something is written."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Set as AbstractSet

from rankblend.recall.engine import Engine
from rankblend.recall.live import LiveEngine
from rankblend.relevance.scope import Scope

__all__ = ["Snapshots"]

_KEPT = 4


class Snapshots:
    """Engines for past moments: a query "as of" a time is answered as if it had been asked then.

    Building one costs as much as opening the memories of its root scopes.
    """

    def __init__(self, engine: LiveEngine) -> None:
        self._engine = engine
        self._kept: OrderedDict[tuple[int, float, frozenset[Scope]], Engine] = OrderedDict()
        self._lock = threading.Lock()

    def at(self, as_of: float, roots: AbstractSet[Scope]) -> Engine:
        """The engine for a time in seconds since the epoch and some root scopes."""
        key = (self._engine.catalog.generation, as_of, frozenset(roots))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._engine.at(as_of, roots)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def clear(self) -> None:
        """Forget all snapshots."""
        with self._lock:
            self._kept.clear()

"""The graph of memories and entities, and how near the question's seeds a memory is in it."""

from __future__ import annotations

from rankblend.stores.graph._interop import edges_of
from rankblend.stores.graph._store import GraphStore

__all__ = ["GraphStore", "edges_of"]

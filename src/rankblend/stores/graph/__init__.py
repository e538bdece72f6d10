"""The graph store: how near a memory is to what a query is about."""

from __future__ import annotations

from rankblend.stores.graph.edges import Edge
from rankblend.stores.graph.store import GraphStore

__all__ = ["Edge", "GraphStore"]

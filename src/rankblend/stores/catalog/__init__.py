"""The durable truth about memories: one SQLite file, its columns in memory, and who may see what."""

from __future__ import annotations

from rankblend.stores.catalog.catalog import Catalog
from rankblend.stores.catalog.filters import Condition, Filters
from rankblend.stores.catalog.reading import Changes
from rankblend.stores.catalog.snapshot import Snapshot
from rankblend.stores.catalog.view import Facts, MemoryView, Seen
from rankblend.stores.protocol import Edge

__all__ = [
    "Catalog",
    "Changes",
    "Condition",
    "Edge",
    "Facts",
    "Filters",
    "MemoryView",
    "Seen",
    "Snapshot",
]

"""The durable truth about memories: one SQLite file, its columns in memory, and who may see what."""

from __future__ import annotations

from rankblend.stores._record import Edge
from rankblend.stores.catalog._catalog import Catalog
from rankblend.stores.catalog._codec import ScopeReader
from rankblend.stores.catalog._database import Compaction, Database
from rankblend.stores.catalog._facts import ActivityStore, CatalogStore
from rankblend.stores.catalog._file import MEMORY, locate_file
from rankblend.stores.catalog._filters import Condition, Filters
from rankblend.stores.catalog._protocol import CatalogProtocol, CatalogView
from rankblend.stores.catalog._reads import Changes
from rankblend.stores.catalog._schema import mark_unclean as mark_unclean
from rankblend.stores.catalog._snapshot import Snapshot
from rankblend.stores.catalog._view import Facts, MemoryView, Seen
from rankblend.stores.catalog._writes import erase as erase
from rankblend.stores.catalog._writes import next_generation as next_generation
from rankblend.stores.catalog._writes import relabel_vectors

__all__ = [
    "ActivityStore",
    "Catalog",
    "CatalogProtocol",
    "CatalogStore",
    "CatalogView",
    "Changes",
    "Compaction",
    "Condition",
    "Edge",
    "Facts",
    "Filters",
    "MemoryView",
    "Seen",
    "Snapshot",
]

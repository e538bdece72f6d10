"""Stores of procedures: the contract, one in memory, one in an SQLite file."""

from __future__ import annotations

from rankblend.reasonlets.store._in_memory import InMemoryReasonletStore
from rankblend.reasonlets.store._protocol import (
    Candidate,
    Counts,
    Draft,
    Entry,
    ReasonletStore,
    Recorded,
    Run,
    Search,
    StoredRun,
)
from rankblend.reasonlets.store.sqlite import SqliteReasonletStore

__all__ = [
    "Candidate",
    "Counts",
    "Draft",
    "Entry",
    "InMemoryReasonletStore",
    "ReasonletStore",
    "Recorded",
    "Run",
    "Search",
    "SqliteReasonletStore",
    "StoredRun",
]

"""Procedures in an SQLite file: tables, rows, and everything that reads and writes them."""

from __future__ import annotations

from rankblend.reasonlets.store.sqlite._store import SqliteReasonletStore

__all__ = ["SqliteReasonletStore"]

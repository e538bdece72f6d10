"""Memories by the direction of their embedding."""

from rankblend.stores.vectors._store import VectorStore

__all__ = ["VectorStore"]

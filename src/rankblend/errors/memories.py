"""Memories, and those who tell about them."""

from __future__ import annotations

from collections.abc import Sequence

from rankblend.errors.tree import RankblendError

__all__ = ["EmbeddingError", "MemoryContractError", "MemoryNotFoundError", "ScopeMismatchError"]


class MemoryContractError(RankblendError, ValueError):
    """A store or a caller broke a promise that keeps results right or private."""


class ScopeMismatchError(RankblendError, ValueError):
    """A write named a scope, but the memory is stored at another one visible from it."""

    def __init__(self, ids: Sequence[str], scope: str) -> None:
        self.ids: tuple[str, ...] = tuple(ids)
        super().__init__(
            f"{', '.join(map(repr, self.ids))}: visible from {scope!r} but stored at another "
            "scope; a write touches only memories stored at exactly the scope it names"
        )


class MemoryNotFoundError(RankblendError, LookupError):
    """No such memory, or it is not visible from the scope named: the same words for both."""

    def __init__(self, ids: Sequence[str], scope: str) -> None:
        self.ids: tuple[str, ...] = tuple(ids)
        super().__init__(f"{', '.join(map(repr, self.ids))}: not visible from {scope!r} or unknown")


class EmbeddingError(RankblendError, RuntimeError):
    """An embedder failed, or returned vectors that cannot be used.

    Attributes:
        embedder: The name of the embedder.
        reason: ``raised``, ``shape``, ``rows``, ``length``, ``non-finite`` or ``norm``; over HTTP
            also ``timeout``, ``connection``, ``status`` or ``response``; for a model in files also
            ``model``.
    """

    def __init__(self, embedder: str, reason: str, detail: str) -> None:
        self.embedder = embedder
        self.reason = reason
        super().__init__(f"embedder {embedder!r}: {detail}")

"""Stores and the files they are kept in."""

from __future__ import annotations

from rankblend.errors.tree import RankblendError

__all__ = [
    "CatalogBusyError",
    "CatalogCorruptError",
    "CatalogFullError",
    "CatalogReadOnlyError",
    "CatalogVersionError",
    "EmbedderMismatchError",
    "StoreClosedError",
    "StoreError",
    "StoreFailedError",
    "StoreTimeoutError",
]


class StoreError(RankblendError, RuntimeError):
    """Base of everything that goes wrong inside a store."""


class StoreFailedError(StoreError):
    """A store raised while answering a strict recall; the original is the cause.

    Attributes:
        store: The name of the store.
    """

    def __init__(self, store: str, during: str) -> None:
        self.store = store
        self.during = during
        super().__init__(
            f"store {store!r} failed during {during}; without strict=True the recall goes on "
            "without its evidence"
        )


class StoreTimeoutError(StoreError, TimeoutError):
    """A store did not answer a strict recall in time."""

    def __init__(self, store: str, seconds: float) -> None:
        self.store = store
        self.seconds = seconds
        super().__init__(
            f"store {store!r} did not answer within {seconds:g} s; raise store_timeout, or recall "
            "without strict=True to go on without its evidence"
        )


class StoreClosedError(StoreError):
    """A memory or store was used after it was closed."""


class CatalogCorruptError(StoreError):
    """The file exists but is not a readable catalog; it was left untouched."""


class CatalogVersionError(StoreError):
    """The catalog was written by a newer version of rankblend."""

    def __init__(self, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"the catalog has schema version {found}, this rankblend reads up to {supported}; "
            "upgrade rankblend to open it"
        )


class CatalogBusyError(StoreError):
    """Another writer held the catalog for longer than the busy timeout; nothing was written."""


class CatalogFullError(StoreError):
    """There is no space left for the write; nothing was changed."""


class CatalogReadOnlyError(StoreError):
    """The catalog cannot be written: read-only file or folder; nothing was changed."""


class EmbedderMismatchError(StoreError):
    """The memory was written with another embedder.

    Attributes:
        stored: Name and dimension the memory was written with.
        given: Name and dimension of the embedder it was opened with.
    """

    def __init__(self, stored: str, given: str) -> None:
        self.stored = stored
        self.given = given
        super().__init__(
            f"this memory was written with embedder {stored}, but was opened with {given}; their "
            "vectors cannot be compared. Open it with the same embedder, or write all vectors anew "
            "with: rankblend reembed --db FILE --embedder NAME"
        )

"""The catalog as a store: what writers said about a memory, and the preferences it satisfies."""

from __future__ import annotations

from collections.abc import Sequence

from rankblend.stores.catalog.view import MemoryView
from rankblend.stores.protocol import Observation, StoreQuery

__all__ = ["CatalogStore"]


class CatalogStore:
    """Salience, confidence, labels and satisfied preferences; proposes what is most salient.

    It keeps nothing itself, but reads a catalog, or a snapshot of one: what is written there is
    visible at once.

    Args:
        memories: Where to read.
    """

    name = "catalog"
    emits: tuple[str, ...] = (
        "salience",
        "confidence",
        "review",
        "maturity",
        "certainty",
        "structured",
    )

    def __init__(self, memories: MemoryView) -> None:
        self._memories = memories

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        """Visible memories by salience descending, then id; those without salience are left out."""
        return self._memories.leading(query, limit, ("salience",), level=level, present=True)

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """What was written with each memory; ``structured`` is the share of ``query.preferred``.

        A value nobody gave is NOT_APPLICABLE, and so is ``structured`` without preferences.

        Raises:
            InvalidArgumentError: Invalid preferences.
        """
        facts = self._memories.facts(query, ids, query.wants(self.emits))
        return Observation.of_known(facts.columns, facts.known)

    def close(self) -> None:
        """Nothing to release: the catalog belongs to whoever opened it."""

"""Facts about memories as stores: what writers said, and when memories were used."""

from __future__ import annotations

from collections.abc import Sequence

from rankblend.stores._protocol import Observation, StoreQuery
from rankblend.stores.catalog._protocol import CatalogView


class CatalogStore:
    """Salience, confidence, labels and satisfied preferences; proposes what is most salient.

    It keeps nothing itself, but reads a catalog, or a snapshot of one: what is written there is
    visible at once.

    Args:
        memories: Where to read.
    """

    name = "catalog"
    immediate = True
    emits: tuple[str, ...] = (
        "salience",
        "confidence",
        "review",
        "maturity",
        "certainty",
        "structured",
    )

    def __init__(self, memories: CatalogView) -> None:
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


_TIME_OF = {"age_created": "created", "age_updated": "at", "age_used": "used"}


class ActivityStore:
    """Ages in seconds and how often a memory was reinforced; proposes what is most recent.

    It keeps nothing itself, but reads a catalog, or a snapshot of one: what is written there is
    visible at once.

    Args:
        memories: Where to read.
    """

    name = "activity"
    immediate = True
    emits: tuple[str, ...] = ("age_created", "age_updated", "age_used", "uses")

    def __init__(self, memories: CatalogView) -> None:
        self._memories = memories

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        """Visible memories: the most recently used, then the most recently updated, then by id.

        Memories never used come after all that were.
        """
        return self._memories.leading(query, limit, ("used", "at"), level=level)

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """``query.now`` − time, in seconds, negative for times still to come; and uses.

        A memory never used has 0 uses, which is an observation, and no ``age_used``.
        """
        wanted = query.wants(self.emits)
        read = {name: _TIME_OF.get(name, name) for name in wanted}
        facts = self._memories.facts(query, ids, tuple(read.values()))
        columns = {
            name: query.now - facts.columns[column] if name in _TIME_OF else facts.columns[column]
            for name, column in read.items()
        }
        return Observation.of_known(columns, facts.known)

    def close(self) -> None:
        """Nothing to release: the catalog belongs to whoever opened it."""

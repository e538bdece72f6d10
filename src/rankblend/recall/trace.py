"""What happened during a recall, without any text of the query or of a memory."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from rankblend.recall.asking import Failure
from rankblend.recall.pool import PooledFrom

__all__ = ["Trace"]


@frozen
class Trace:
    """A record of one recall.

    Attributes:
        profile_hash: Hash of the recipe in effect, per-call weights included.
        scopes: The query's scopes.
        reach: ``ancestors`` or ``subtree``.
        statistics: Over which memories keyword statistics were taken.
        now: Seconds since the epoch that ages were measured from.
        as_of: Valid time asked for, or None.
        proposed: Store → how many ids it proposed in all.
        pool: How many distinct candidates were considered.
        sources: Id → who proposed it.
        failures: Stores that could not answer.
        notes: Further remarks, e.g. that a graph walk was capped.
        reranking: ``baseline``, or the reranker that ran; with the reason after a colon.
    """

    profile_hash: str
    scopes: tuple[str, ...]
    reach: str
    statistics: str
    now: float
    as_of: float | None
    proposed: Mapping[str, int] = field(hash=False)
    pool: int
    sources: Mapping[str, tuple[PooledFrom, ...]] = field(repr=False, hash=False)
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    reranking: str = "baseline"

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "profile_hash": self.profile_hash,
            "scopes": list(self.scopes),
            "reach": self.reach,
            "statistics": self.statistics,
            "now": self.now,
            "as_of": self.as_of,
            "proposed": dict(self.proposed),
            "pool": self.pool,
            "failures": [
                {"store": f.store, "during": f.during, "reason": f.reason.words, "kind": f.kind}
                for f in self.failures
            ],
            "notes": list(self.notes),
            "reranking": self.reranking,
        }

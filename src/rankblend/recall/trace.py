"""What happened during a recall, without any text of the query or of a memory."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from rankblend.recall.asking import Failure
from rankblend.recall.pool import PooledFrom
from rankblend.recall.shadow import Shadow

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
        reranking: The reranker that ran, or ``baseline`` with the reason after a colon.
        evidence: Id of the evidence the reranker was admitted by; empty if it did not run.
        shadow: What reranking would have changed, when a reranker runs in the shadow.
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
    evidence: str = ""
    shadow: Shadow | None = field(default=None, repr=False)

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
            "evidence": self.evidence,
            "shadow": None if self.shadow is None else self.shadow.plain(),
        }

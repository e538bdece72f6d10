"""What a recall returns: matches, and the recall that explains them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, overload

import numpy as np
from attrs import astuple, field, frozen

from rankblend.caches import LazyMapping, ReadOnly
from rankblend.errors import InvalidArgumentError
from rankblend.profiles import RankingProfile
from rankblend.recall._ask import Failure
from rankblend.recall._propose import PooledFrom
from rankblend.recall._rank import Ranking
from rankblend.relevance import RelevanceSignals, Scope
from rankblend.stores import FIELDS, Link, Record, StoreQuery
from rankblend.stores.catalog import CatalogView
from rankblend.values import shown

if TYPE_CHECKING:
    from rankblend.recall._compare import Comparison, Swap
    from rankblend.recall._explain import Explanation


@frozen
class Shadow:
    """What reranking would have changed.

    Attributes:
        served: Ids of the result, best first.
        reranked: Ids of the result that reranking would have given, best first.
    """

    served: tuple[str, ...]
    reranked: tuple[str, ...]

    @property
    def moves(self) -> tuple[tuple[str, int | None, int | None], ...]:
        """(id, rank served, rank reranked) of all that moved, ranks from 1, None for not shown.

        By the better of its two ranks, then by id.
        """
        here = {identifier: rank for rank, identifier in enumerate(self.served, 1)}
        there = {identifier: rank for rank, identifier in enumerate(self.reranked, 1)}
        moved = [
            (identifier, here.get(identifier), there.get(identifier))
            for identifier in here.keys() | there.keys()
            if here.get(identifier) != there.get(identifier)
        ]
        return tuple(sorted(moved, key=lambda m: (min(r for r in m[1:] if r is not None), m[0])))

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "served": list(self.served),
            "reranked": list(self.reranked),
            "moves": [
                {"id": identifier, "served": here, "reranked": there}
                for identifier, here, there in self.moves
            ],
        }


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


_NOTHING: Mapping[str, object] = ReadOnly()


def _read_only(values: Mapping[str, object]) -> Mapping[str, object]:
    return ReadOnly(values) if values else _NOTHING


@frozen
class StoredMemory:
    """A memory as it was written, with its standing.

    Attributes:
        id, scope: Its identity.
        text: What is remembered.
        layer: Its layer.
        key: What it is about, where the writer said so.
        created, at, used: When first written, valid from, last reinforced (None = never); UTC.
        uses: Times reinforced.
        salience, confidence: In [0, 1] or None.
        review, maturity, certainty: Labels or None; ranking never changes them.
        expires: From when on it is no longer shown, or None.
        links: Outgoing links.
        metadata: JSON values.
    """

    id: str
    scope: Scope
    text: str
    layer: str
    key: str | None
    created: datetime
    at: datetime
    used: datetime | None
    uses: int
    salience: float | None
    confidence: float | None
    review: str | None
    maturity: str | None
    certainty: str | None
    expires: datetime | None
    links: tuple[Link, ...]
    metadata: Mapping[str, object] = field(hash=False, converter=_read_only)

    @classmethod
    def of(cls, record: Record) -> StoredMemory:
        """The public view of a stored record."""
        shown = {each.argument: each.shown(getattr(record, each.name)) for each in FIELDS}
        return cls(record.id, record.scope, **shown)

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        values = {each.argument: each.told(getattr(self, each.argument)) for each in FIELDS}
        return {"id": self.id, "scope": str(self.scope), **values}


@frozen
class Match:
    """One returned memory and why it stands where it stands.

    Attributes:
        memory: What was found.
        rank: From 1.
        score: Composition of the present signals (less a duplicate penalty), in [0, 1]. How well
            the recipe thinks it fits, not a probability that it is true.
        rank_score: The score with the scope folded in; orders, nothing else.
        distance: Levels between the query's scope and the memory's, 0 = same scope.
        gate: The factor the scope blend applied.
        signals: The signals that were present.
        contributions: What each present signal added; with the policy's own rows they add up to
            the score for additive recipes.
    """

    memory: StoredMemory
    rank: int
    score: float
    rank_score: float
    distance: int
    gate: float
    signals: RelevanceSignals
    contributions: Mapping[str, float] = field(hash=False)

    def __reduce__(self) -> tuple[type[Match], tuple[object, ...]]:
        *values, contributions = astuple(self, recurse=False)
        return Match, (*values, dict(contributions))

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "rank": self.rank,
            "score": self.score,
            "rank_score": self.rank_score,
            "distance": self.distance,
            "gate": self.gate,
            "signals": dict(self.signals.present()),
            "contributions": dict(self.contributions),
            "memory": self.memory.plain(),
        }


def _contributions(ranking: Ranking, row: int) -> dict[str, float]:
    """What each present signal added to one memory."""
    columns = ranking.composition.contributions.items()
    added = {n: float(column[row]) for n, column in columns if not np.isnan(column[row])}
    if ranking.penalties[row]:
        added["duplicate_penalty"] = -float(ranking.penalties[row])
    return added


@frozen(eq=False)
class Visibility:
    """What a query may see, asked of the memories as they are now; a copy has nobody to ask."""

    view: CatalogView | None = None
    query: StoreQuery | None = None

    def sees(self, identifier: str) -> bool | None:
        """Whether the query sees a memory of this id; None where nobody can tell."""
        if self.view is None or self.query is None:
            return None
        return bool(self.view.serials_of(self.query, [identifier])[0] >= 0)

    def __reduce__(self) -> tuple[type[Visibility], tuple[()]]:
        return Visibility, ()


@frozen(repr=False)
class Recall:
    """The answer to one query: a sequence of matches that can explain itself.

    Recalls are equal when matches, profile and trace are. It can be pickled and copied; a copy
    knows nothing of the memory, so of a memory that was not considered it says only that.

    Attributes:
        matches: Best first.
        profile: The recipe in effect.
        trace: What happened on the way.
        ranking: All values of the pool, for tools built on a recall.
    """

    matches: tuple[Match, ...]
    profile: RankingProfile
    trace: Trace
    ranking: Ranking = field(eq=False)
    _visibility: Visibility = field(eq=False)

    @property
    def degraded(self) -> bool:
        """Whether a store could not answer; `trace.failures` says which and why."""
        return bool(self.trace.failures)

    def __len__(self) -> int:
        return len(self.matches)

    def __repr__(self) -> str:
        state = ", degraded" if self.degraded else ""
        return f"<Recall: {len(self.matches)} matches, profile={self.profile.name!r}{state}>"

    def __iter__(self) -> Iterator[Match]:
        return iter(self.matches)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Match, ...]: ...
    def __getitem__(self, index: int | slice) -> Match | tuple[Match, ...]:
        return self.matches[index]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the matches, best first."""
        return tuple(match.memory.id for match in self.matches)

    def explain(self, memory: int | str = 0) -> Explanation:
        """Why a memory stands where it stands, or why it is not there.

        Args:
            memory: Position in the result from 0, or the id of any memory.

        Returns:
            An explanation that prints as a table and has plain data. For a memory that is not in
            the result it says why: not visible to this query or unknown (the same words), not
            proposed, under which floor, out-ranked by how much, duplicate of what, cut by which
            cap.

        Raises:
            InvalidArgumentError: A position outside the result.
        """
        from rankblend.recall._explain import explain, explain_absence

        if isinstance(memory, int) and not isinstance(memory, bool):
            if not 0 <= memory < len(self.matches):
                raise InvalidArgumentError(
                    f"explain: expected a position from 0 to {len(self.matches) - 1}, got {shown(memory)}"
                    if self.matches
                    else "explain: the result is empty; name a memory by its id instead"
                )
            memory = self.matches[memory].memory.id
        if not isinstance(memory, str):
            raise InvalidArgumentError("explain: expected a position or the id of a memory")
        if memory in self.ranking.candidates.ids:
            return explain(self.ranking, memory)
        return explain_absence(self.ranking, memory, visible=self._visibility.sees(memory))

    def compare(self, other: Recall) -> Comparison:
        """How the order changes from this recall to another of the same query.

        Raises:
            InvalidArgumentError: The other is no recall, or answers for other scopes.
        """
        from rankblend.recall._compare import compare

        if not isinstance(other, Recall):
            raise InvalidArgumentError(f"compare: expected a recall, got {type(other).__name__}")
        return compare(self, other)

    def swap(self, first: str, second: str) -> Swap | None:
        """The smallest change of one weight that would put ``second`` before ``first``, or None."""
        from rankblend.recall._compare import smallest_swap

        return smallest_swap(self.ranking, first, second)

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "profile": self.profile.name,
            "profile_hash": self.profile.hash,
            "degraded": self.degraded,
            "trace": self.trace.plain(),
            "matches": [match.plain() for match in self.matches],
        }


def matches_from(ranking: Ranking, records: Sequence[Record | None]) -> tuple[Match, ...]:
    """The matches of a ranking; ``records`` holds those of the shown memories, in their order."""
    shown = ranking.shown
    positions = ranking.rows[shown]
    rows = zip(
        records,
        shown.tolist(),
        ranking.scores[shown].tolist(),
        ranking.rank_scores[shown].tolist(),
        ranking.candidates.distances[positions].tolist(),
        ranking.gates[shown].tolist(),
        ranking.derived.table.rows(positions),
        strict=True,
    )
    found: list[Match] = []
    for record, row, score, rank_score, distance, gate, signals in rows:
        if record is None:  # erased by another process a moment ago
            continue
        found.append(
            Match(
                StoredMemory.of(record),
                len(found) + 1,
                score,
                rank_score,
                distance,
                gate,
                signals,
                LazyMapping(partial(_contributions, ranking, row)),
            )
        )
    return tuple(found)

"""The contract between recall and a store.

A store *proposes* memories for a query and *observes* evidence about memories it is shown. It never
weights, never ranks across stores, never reads the clock and never changes what it is given::

    query ─► store.propose(query, limit) ─► ids ─┐
                                                 ├─ union ─► store.observe(query, ids) ─► evidence
    query ─► other.propose(query, limit) ─► ids ─┘

Only `Store` is required. What else a store can do it says by having the method: keep memories
(`SupportsWrite`), start from other stores' proposals (`SupportsSeeds`), answer many queries at once
(`SupportsBatch`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.relevance import Scope
from rankblend.stores._record import Key, Record


class Reach(StrEnum):
    """Which memories a query sees besides those at its own scopes."""

    ANCESTORS = "ancestors"
    SUBTREE = "subtree"


class Statistics(StrEnum):
    """Over which memories keyword statistics (document frequency, mean length) are taken."""

    ROOT = "root"
    VISIBLE = "visible"
    STORE = "store"


class Reason(IntEnum):
    """Why a piece of evidence is present or absent; kept beside the value, never scored."""

    PRESENT = 0
    UNKNOWN = 1  # the store does not hold this memory (or it is not visible: the same)
    NOT_APPLICABLE = 2  # the store holds it, but has nothing to measure (no vector, no uses, …)
    NOT_EMITTED = 3  # no open store emits this evidence
    NOT_PERMITTED = 4  # the memory's layer may not contribute it
    CAPPED = 5  # a walk was cut off before it could tell
    FAILED = 6  # the store raised
    TIMED_OUT = 7  # the store did not answer in time

    @property
    def words(self) -> str:
        """For people: ``not applicable``."""
        if self is Reason.UNKNOWN:
            return "not held by the store"
        return self.name.lower().replace("_", " ")


@frozen
class Seed:
    """A place to start from: a memory or entity, with a strength in (0, 1] and who named it.

    ``source`` is ``"caller"``, ``"query"`` (its name occurs in the query) or a store's name.
    """

    id: str
    weight: float = 1.0
    source: str = "caller"


def _as_tuple(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    return tuple(scopes)


@frozen(eq=False, slots=False)
class StoreQuery:
    """What a store is asked. Everything it needs is here; it reads no clock and no other store.

    Args:
        text: The query; may be blank.
        scopes: One or more scopes; the union of what they see is visible.
        now: Seconds since the epoch, UTC: "now" for every age.
        vector: float32, shape (d,), unit length; None without an embedder or for a blank query.
        reach: ``subtree`` also shows memories stored below a query's scope, at distance 0.
        statistics: Over which memories keyword statistics are taken.
        admitted: bool, shape (serials,): further limits decided by the catalog (layer policies,
            filters, expiry, shadowed keys), indexed by ``Record.serial``; serials beyond its end
            are not admitted. None: every visible memory is admitted.
        seeds: For stores that start from somewhere; empty in the first phase.
        preferred: The soft filters (``prefer``) of the call; see `rankblend.stores.catalog.Filters`.
        wanted: The evidence somebody will read, by bare names; a store may leave the rest out of
            what it observes. None: all of it.
    """

    text: str
    scopes: tuple[Scope, ...] = field(converter=_as_tuple)
    now: float = 0.0
    vector: NDArray[np.float32] | None = None
    reach: Reach = Reach.ANCESTORS
    statistics: Statistics = Statistics.ROOT
    admitted: NDArray[np.bool_] | None = None
    seeds: tuple[Seed, ...] = ()
    preferred: Mapping[str, object] = field(factory=dict)
    wanted: frozenset[str] | None = None

    @cached_property
    def path_distances(self) -> dict[str, int]:
        """Storage path of every scope on the way up → its least distance; without descendants."""
        distances: dict[str, int] = {}
        for scope in self.scopes:
            for distance, ancestor in enumerate(scope.ancestors()):
                known = distances.get(ancestor.path)
                if known is None or distance < known:
                    distances[ancestor.path] = distance
        return distances

    @cached_property
    def roots(self) -> tuple[Scope, ...]:
        """The distinct first levels of the scopes, in the order given."""
        return tuple(dict.fromkeys(scope.root for scope in self.scopes))

    def distance(self, scope: Scope) -> int:
        """Levels up to ``scope`` from the nearest of the query's scopes; −1 when not visible."""
        if self.reach is Reach.SUBTREE and any(own.contains(scope) for own in self.scopes):
            return 0
        return self.path_distances.get(scope.path, -1)

    def admits(self, record: Record) -> bool:
        """Whether a result may show this memory: visible, and admitted where that is limited."""
        if self.distance(record.scope) < 0:
            return False
        if self.admitted is None:
            return True
        # A serial beyond the mask belongs to a memory that the catalog did not count.
        return 0 <= record.serial < len(self.admitted) and bool(self.admitted[record.serial])

    def rank_of_scope(self, scope: Scope) -> tuple[int, int]:
        """Sort key for memories that share an id: nearest first, then the first-named scope's."""
        sees = [
            position
            for position, own in enumerate(self.scopes)
            if own.distance(scope) >= 0 or (self.reach is Reach.SUBTREE and own.contains(scope))
        ]
        return self.distance(scope), min(sees, default=len(self.scopes))

    def wants(self, emits: Iterable[str]) -> tuple[str, ...]:
        """Of the evidence a store can give, what is read of it."""
        return tuple(name for name in emits if self.wanted is None or name in self.wanted)

    def with_seeds(self, seeds: Iterable[Seed]) -> StoreQuery:
        """The same query for the second phase."""
        return evolve(self, seeds=tuple(seeds))


_UNKNOWN = np.int8(Reason.UNKNOWN)
_NOT_APPLICABLE = np.int8(Reason.NOT_APPLICABLE)
_PRESENT = np.int8(Reason.PRESENT)


def _reasons(column: NDArray[np.float64]) -> NDArray[np.int8]:
    return np.where(np.isnan(column), _NOT_APPLICABLE, _PRESENT)


@frozen(eq=False)
class Observation:
    """A store's evidence on the ids it was shown, in their order.

    Args:
        columns: Evidence name → float64, shape (n,); NaN where the store cannot answer.
        reasons: Evidence name → int8, shape (n,), of `Reason`; a name left out means PRESENT where
            the column has a value and NOT_APPLICABLE where it is NaN.
    """

    columns: Mapping[str, NDArray[np.float64]]
    reasons: Mapping[str, NDArray[np.int8]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        lengths = {len(column) for column in self.columns.values()}
        lengths |= {len(reason) for reason in self.reasons.values()}
        if len(lengths) > 1:
            raise InvalidArrayError("observation", "columns of one length", f"{sorted(lengths)}")

    @classmethod
    def of_known(
        cls, columns: Mapping[str, NDArray[np.float64]], known: NDArray[np.bool_]
    ) -> Observation:
        """What a store knows of some of the ids it was shown; the others have the reason UNKNOWN.

        Args:
            columns: Evidence name → float64, one value for each known id, NaN where there is none.
            known: bool, shape (n,): which ids are known.
        """
        count = int(np.count_nonzero(known))
        if any(len(column) != count for column in columns.values()):
            raise InvalidArrayError("observation", f"a value for each of {count} known", "others")
        if count == len(known):
            return cls(columns)
        spread = {}
        for name, column in columns.items():
            spread[name] = np.full(len(known), np.nan)
            spread[name][known] = column
        reasons = {name: np.where(known, _reasons(c), _UNKNOWN) for name, c in spread.items()}
        return cls(spread, reasons)

    def reason(self, name: str) -> NDArray[np.int8]:
        """The reasons of one column, filled in where the store gave none."""
        given = self.reasons.get(name)
        if given is not None:
            return given
        return _reasons(self.columns[name])


@runtime_checkable
class Store(Protocol):
    """What every store can do.

    Attributes:
        name: An identifier, unique among the stores of one memory.
        emits: Names of the evidence it can give; registered in the evidence vocabulary.
    """

    name: str
    emits: tuple[str, ...]

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        """Ids worth considering, best first, at most ``limit``, without duplicates.

        Visibility and ``query.admitted`` apply *before* the limit, and ties at the boundary are
        resolved by id ascending, so that the same data gives the same proposals.

        Args:
            query: The question.
            limit: ≥ 0.
            level: Only memories exactly this many levels up; None for all visible ones.

        Edge cases: a store with nothing to go by (no vector, blank text) proposes nothing. Of
        several visible memories with one id only the nearest is proposed.
        """
        ...

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """Evidence on each id, one column per name in ``emits``.

        What is said about one id never depends on which other ids are asked in the same call.
        Unknown and invisible ids get NaN with reason UNKNOWN, both alike.
        """
        ...

    def close(self) -> None:
        """Release what the store holds; closing twice is harmless."""
        ...


@runtime_checkable
class SupportsWrite(Protocol):
    """A store that keeps memories itself."""

    def add(self, records: Sequence[Record]) -> None:
        """Add memories, replacing those with the same key; visible to the very next question."""
        ...

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop memories from every answer at once; unknown keys are ignored."""
        ...

    def __len__(self) -> int:
        """How many memories it holds."""
        ...


@runtime_checkable
class SupportsSeeds(Protocol):
    """A store that starts from seeds: asked after the others, with their proposals as seeds."""

    seeded: bool


@runtime_checkable
class SupportsBatch(Protocol):
    """A store that answers many queries at once, exactly as it answers them one by one."""

    def propose_many(
        self, queries: Sequence[StoreQuery], limit: int, *, level: int | None = None
    ) -> list[Sequence[str]]:
        """`Store.propose` for each query."""
        ...

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        """`Store.observe` for each query."""
        ...

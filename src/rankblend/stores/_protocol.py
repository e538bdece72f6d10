"""The contract between recall and a store.

A store *proposes* memories for a query and *observes* evidence about memories it is shown. It never
weights, never ranks across stores, never reads the clock and never changes what it is given::

    query ─► store.propose(query, limit) ─► ids ─┐
                                                 ├─ union ─► store.observe(query, ids) ─► evidence
    query ─► other.propose(query, limit) ─► ids ─┘

Only `Store` is required. What else a store can do it says by having the methods, never by its class,
so that a store of yours is served as ours are:

==================  ================================================================================
`SupportsWrite`     keeps memories itself
`SupportsSeeds`     starts from other stores' proposals
`SupportsBatch`     answers many queries at once
`SupportsEdges`     keeps links that were written apart from memories
`SupportsLoad`      is filled in one call, from `Contents`
`SupportsRebuild`   can be made anew: for recalls as of a time, and when too much changed elsewhere
`SupportsCache`     keeps what is slow to rebuild in the catalog's file
`SupportsVectors`   gives vectors: for the duplicate penalty, and for diversity
`SupportsWalk`      says how it walked, and shows its links as networkx
==================  ================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.relevance import Scope
from rankblend.stores._record import Edge, Key, Record

if TYPE_CHECKING:
    import networkx as nx

    from rankblend.stores._rows import ScopedRows


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

    A class that says ``immediate = True`` answers from memory: it is asked under the memory's lock, so
    that nothing is written between its answers. Any other may take its time: it holds up no write, and
    what is erased while it is asked is dropped from what it proposed.
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


@runtime_checkable
class SupportsEdges(Protocol):
    """A store that keeps links which were written apart from memories (``memory.link``)."""

    def add_edges(self, edges: Sequence[Edge]) -> None:
        """Add links, replacing those of the same scope, source, target and kind."""
        ...

    def remove_edges(self, edges: Sequence[Edge]) -> None:
        """Drop links; unknown ones are ignored."""
        ...

    def edges(self) -> Iterable[Edge]:
        """The links that are held; only what identifies them need be right."""
        ...


class Contents(Protocol):
    """All that a memory holds now, read when it is asked for. A catalog is one.

    `iter_records` and `iter_edges` are enough for a store of yours. The others are what our own
    stores read: rows that several indexes share, and only the columns that are needed.
    """

    def iter_records(self) -> Iterator[Record]:
        """All memories with their vectors, by scope path and id."""
        ...

    def iter_edges(self) -> Iterator[Edge]:
        """All links that were written apart from memories."""
        ...

    def rows(self) -> ScopedRows:
        """All memories as the rows of an index, sorted; the caller's own."""
        ...

    def linked(self) -> Sequence[Record]:
        """The memories that have links: of each only key, serial and links."""
        ...

    def load_vectors(
        self, serials: NDArray[np.int64], room: Callable[[int], NDArray[np.float32]]
    ) -> NDArray[np.bool_]:
        """Read the vectors of some rows into a matrix that ``room`` makes for their dimension.

        Returns:
            bool, shape (rows,): which rows have a vector.
        """
        ...


@runtime_checkable
class SupportsLoad(SupportsWrite, Protocol):
    """A store that is filled in one call, when a memory is opened, instead of many of ``add``."""

    def load_contents(self, contents: Contents) -> None:
        """Take in everything; called on a store that is empty.

        Afterwards it answers as if `add` had been called with everything, and
        `SupportsEdges.add_edges` where it has that.
        """
        ...


@runtime_checkable
class SupportsRebuild(SupportsWrite, Protocol):
    """A store that follows from the catalog alone and can be made anew.

    A recall as of a time asks such a store made for that time, so that nothing later has any
    influence; any other store answers it from the present.
    """

    def fresh(self) -> Self:
        """An empty store with the same settings; it need not be closed."""
        ...


@runtime_checkable
class SupportsCache(SupportsWrite, Protocol):
    """A store that keeps what is slow to rebuild in the catalog's file, between two openings."""

    def snapshot(self) -> bytes:
        """Everything that is held now, as bytes; nothing of memories that were removed."""
        ...

    def restore(self, data: bytes, *, rows: ScopedRows | None = None) -> bool:
        """Replace everything by a `snapshot`.

        Args:
            data: As it was given; the catalog knows when the bytes are damaged, and tells what was
                written since by ``add`` and ``remove``.
            rows: The memories that must be in it, where nothing was written since; for a store that
                shares them with the catalog.

        Returns:
            False, with nothing changed, when it is of no use (another format, other settings): then
            the store is filled from the memories.
        """
        ...


@runtime_checkable
class SupportsVectors(Protocol):
    """A store whose vectors tell near duplicates apart (duplicate penalty, diversity)."""

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while there is none."""
        ...

    def vectors_of(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (n, d): unit vectors; rows of NaN for what has none or is not visible."""
        ...


@runtime_checkable
class SupportsWalk(Protocol):
    """A store that walks along links and can show them."""

    def trace(self, query: StoreQuery) -> Mapping[str, Any]:
        """How the walk for a query went: under ``capped`` what cut it short, e.g. ``("hops",)``."""
        ...

    def to_networkx(self, query: StoreQuery | None = None) -> nx.MultiDiGraph:
        """What a query sees as networkx; None: everything, for whoever runs it."""
        ...

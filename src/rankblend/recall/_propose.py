"""Which memories are considered: proposals of all stores, joined without favouring any."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from attrs import frozen

from rankblend.stores import Seed, Store, StoreQuery

SEEDS_PER_STORE = 10
T = TypeVar("T", bound=Hashable)

# One store's proposals: level → ids, best first. Level None means all levels at once.
Proposals = Mapping[int | None, Sequence[str]]


@frozen(eq=False)
class StoreProposals:
    """What one store proposes: by level, and its best whatever their level."""

    levels: Proposals
    overall: Sequence[str]


def propose(
    store: Store, query: StoreQuery, size: int, *, levels: Sequence[int] | None, seeds: int = 0
) -> StoreProposals:
    """Ask a store for its proposals.

    Args:
        store: Whom.
        query: What.
        size: At most so many, of each level.
        levels: The levels that are asked one by one; None asks for all at once.
        seeds: How many of the overall best are wanted as seeds for others.
    """
    if levels is None:
        everything = store.propose(query, max(size, seeds))
        best = everything if len(everything) <= size else everything[:size]
        return StoreProposals({None: best}, everything[:SEEDS_PER_STORE])
    by_level: dict[int | None, Sequence[str]] = {
        level: store.propose(query, size, level=level) for level in levels
    }
    return StoreProposals(by_level, store.propose(query, seeds) if seeds else ())


@frozen
class PooledFrom:
    """Who proposed a candidate: store name, level asked (None = all) and rank from 1."""

    store: str
    level: int | None
    rank: int


@frozen(eq=False, repr=False, slots=False)
class Sources(Mapping[str, tuple[PooledFrom, ...]]):
    """Id → who proposed it, in pool order; worked out when somebody asks for one.

    Args:
        pool: The ids.
        lists: Level, store and ids of all proposals.
    """

    pool: tuple[str, ...]
    lists: Sequence[tuple[int | None, str, Sequence[str]]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.pool)

    def __len__(self) -> int:
        return len(self.pool)

    def __getitem__(self, identifier: str) -> tuple[PooledFrom, ...]:
        return self._found[identifier]

    def __repr__(self) -> str:
        return repr(self._found)

    @cached_property
    def _found(self) -> dict[str, tuple[PooledFrom, ...]]:
        found: dict[str, list[PooledFrom]] = {identifier: [] for identifier in self.pool}
        for level, store, ids in self.lists:
            for rank, identifier in enumerate(ids, start=1):
                if identifier in found:
                    found[identifier].append(PooledFrom(store, level, rank))
        return {identifier: tuple(sources) for identifier, sources in found.items()}


def join_proposals(proposals: Mapping[str, Proposals], limit: int) -> Sources:
    """The union of all proposals, cut at ``limit``, with who proposed each.

    One at a time in turn: over the levels, nearest first, and within a level over the stores by
    name, each giving its best id that is not in the pool yet. So no store and no crowded ancestor
    can push the others out.
    """
    lists = [
        (level, store, ids)
        for store, levels in sorted(proposals.items())
        for level, ids in levels.items()
    ]
    lists.sort(key=lambda entry: (entry[0] is not None, entry[0] or 0, entry[1]))
    return Sources(tuple(taken_in_turn([ids for _, _, ids in lists], limit)), lists)


def taken_in_turn(lists: Iterable[Iterable[T]], limit: int) -> dict[T, None]:
    """What several lists propose, each giving in turn its best that is not taken yet."""
    taken: dict[T, None] = {}
    waiting = [iter(proposed) for proposed in lists]
    while waiting and len(taken) < limit:
        for proposed in tuple(waiting):
            for one in proposed:
                if one not in taken:
                    taken[one] = None
                    break
            else:
                waiting.remove(proposed)
            if len(taken) == limit:
                break
    return taken


def seeds_from(store: str, ids: Sequence[str]) -> list[Seed]:
    """A store's overall best proposals as seeds for stores that start from somewhere.

    The weight of the proposal at rank r is 1/r: proposals carry no scores, and a rank is the one
    strength that means the same for every store.
    """
    return [
        Seed(identifier, 1.0 / rank, store)
        for rank, identifier in enumerate(ids[:SEEDS_PER_STORE], start=1)
    ]

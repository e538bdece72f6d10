"""Which memories are considered: proposals of all stores, joined without favouring any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from rankblend.stores.protocol import Seed

__all__ = ["SEEDS_PER_STORE", "PooledFrom", "Proposals", "join_proposals", "seeds_from"]

SEEDS_PER_STORE = 10

# One store's proposals: level → ids, best first. Level None means all levels at once.
Proposals = Mapping[int | None, Sequence[str]]


@frozen
class PooledFrom:
    """Who proposed a candidate: store name, level asked (None = all) and rank from 1."""

    store: str
    level: int | None
    rank: int


def join_proposals(
    proposals: Mapping[str, Proposals], limit: int
) -> dict[str, tuple[PooledFrom, ...]]:
    """The union of all proposals, cut at ``limit``, with who proposed each.

    One at a time in turn: over the levels, nearest first, and within a level over the stores by
    name, each giving its best id that is not in the pool yet. So no store and no crowded ancestor
    can push the others out.

    Returns:
        Id → who proposed it, in pool order.
    """
    lists = [
        (level, store, ids)
        for store, levels in sorted(proposals.items())
        for level, ids in levels.items()
    ]
    lists.sort(key=lambda entry: (entry[0] is not None, entry[0] or 0, entry[1]))
    pool: dict[str, None] = {}
    cursors = [iter(ids) for _, _, ids in lists]
    open_lists = list(range(len(lists)))
    while open_lists and len(pool) < limit:
        for which in tuple(open_lists):
            fresh = next((i for i in cursors[which] if i not in pool), None)
            if fresh is None:
                open_lists.remove(which)
            elif len(pool) < limit:
                pool[fresh] = None
    sources: dict[str, list[PooledFrom]] = {identifier: [] for identifier in pool}
    for level, store, ids in lists:
        for rank, identifier in enumerate(ids, start=1):
            if identifier in sources:
                sources[identifier].append(PooledFrom(store, level, rank))
    return {identifier: tuple(found) for identifier, found in sources.items()}


def seeds_from(store: str, ids: Sequence[str]) -> list[Seed]:
    """A store's overall best proposals as seeds for stores that start from somewhere.

    The weight of the proposal at rank r is 1/r: proposals carry no scores, and a rank is the one
    strength that means the same for every store.
    """
    return [
        Seed(identifier, 1.0 / rank, store)
        for rank, identifier in enumerate(ids[:SEEDS_PER_STORE], start=1)
    ]

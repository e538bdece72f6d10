"""Which of several records count when they are written together."""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt

from rankblend.stores.record import Record

__all__ = ["latest"]


def latest(records: Sequence[Record], *, ordered: bool) -> list[int]:
    """Positions of the records that count: of those with one key the last.

    Args:
        records: Any.
        ordered: By scope path and id, so that an empty index is sorted as soon as it is filled;
            else in the order in which their keys came.
    """
    ids = [record.key.id for record in records]
    paths = [record.key.scope.path for record in records]
    # Hashing a key hashes its scope through Python; two texts are hashed four times as fast.
    places = list(zip(paths, ids, strict=True))
    if ordered and all(map(lt, places, places[1:])):  # each store is given what is ordered already
        return list(range(len(places)))
    found = list(dict(zip(places, range(len(places)), strict=True)).values())
    if ordered:  # two stable sorts of texts are twice as fast as one of pairs
        found.sort(key=ids.__getitem__)
        found.sort(key=paths.__getitem__)
    return found

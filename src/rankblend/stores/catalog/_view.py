"""What recall and stores ask about the memories of one moment, answered from the columns.

In this order, each step among those that are left: what is out by itself (expired, or of a layer
that is not seen from there); of memories with one id the nearest; of shadowing memories with one
slot the nearest; the filters of the call. A memory that is not shown therefore hides nothing,
except that a filter lifts no shadow: filters narrow a view, they do not change it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend.forks import guard
from rankblend.kernels.select import leading
from rankblend.stores._layers import DEFAULT_LAYERS, LayerPolicy, LayerVisibility, layer_policy
from rankblend.stores._protocol import Reach, StoreQuery
from rankblend.stores._record import Key, Keys, Record
from rankblend.stores._rows import NumberedIds
from rankblend.stores.catalog._columns import Columns
from rankblend.stores.catalog._filter_fields import MetadataSource, RowFields
from rankblend.stores.catalog._filters import Filters


def admitted(
    columns: Columns,
    query: StoreQuery,
    metadata: MetadataSource,
    *,
    layers: Mapping[str, LayerPolicy],
    filters: Filters,
    include_expired: bool,
) -> NDArray[np.bool_] | None:
    """What may be shown, by serial; see `MemoryView.admit`."""
    tip_only = _codes_with(columns, layers, LayerVisibility.TIP_ONLY)
    shadow = _codes_with(columns, layers, LayerVisibility.SHADOW)
    expiring = not include_expired and columns.first_expiry <= query.now
    if not (tip_only or shadow or expiring or filters or columns.rows.any_shared):
        return None
    query = evolve(query, admitted=None)
    # Of tip-only and shadowing layers a query sees nothing below its scopes, whatever its reach.
    upward = evolve(query, reach=Reach.ANCESTORS)
    sight = columns.rows.in_sight(query)
    rows = sight
    if expiring:
        rows = rows[~(columns.array("expires")[rows] <= query.now)]
    if tip_only:
        rows = _without(rows, columns, upward, tip_only, farthest=0)
    if shadow and query.reach is Reach.SUBTREE:
        rows = _without(rows, columns, upward, shadow, farthest=None)
    if columns.rows.any_shared:
        rows = columns.rows.visible(evolve(query, admitted=_mask(columns, rows)))
    if shadow:
        rows = rows[~_overshadowed(rows, columns, upward, shadow)]
    if filters and len(rows):
        rows = rows[filters.matches(RowFields(columns, rows, metadata), len(rows))]
    return None if len(rows) == len(sight) else _mask(columns, rows)


def _mask(columns: Columns, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(columns.serial_limit, dtype=np.bool_)
    mask[columns.rows.serials[rows]] = True
    return mask


def _codes_with(
    columns: Columns, layers: Mapping[str, LayerPolicy], visibility: LayerVisibility
) -> list[int]:
    return [
        code
        for code, name in enumerate(columns.layers)
        if layer_policy(layers, name).visibility is visibility
    ]


def _of_layers(rows: NDArray[np.int64], columns: Columns, codes: list[int]) -> NDArray[np.int64]:
    """Positions in ``rows`` of the memories of some layers."""
    held = columns.array("layer")[rows]
    found = held == codes[0]
    for code in codes[1:]:
        found |= held == code
    return np.flatnonzero(found)


def _without(
    rows: NDArray[np.int64],
    columns: Columns,
    upward: StoreQuery,
    codes: list[int],
    *,
    farthest: int | None,
) -> NDArray[np.int64]:
    """Drop memories of some layers that are below the query's scopes, or farther up than allowed."""
    positions = _of_layers(rows, columns, codes)
    distances = columns.rows.distances(upward, rows[positions])
    out = distances < 0
    if farthest is not None:
        out |= distances > farthest
    return np.delete(rows, positions[out])


def _overshadowed(
    rows: NDArray[np.int64], columns: Columns, upward: StoreQuery, codes: list[int]
) -> NDArray[np.bool_]:
    """Which memories have one with the same layer and slot at a nearer scope."""
    hidden = np.zeros(len(rows), dtype=np.bool_)
    positions = _of_layers(rows, columns, codes)
    positions = positions[columns.array("slot")[rows[positions]] >= 0]
    if not len(positions):
        return hidden
    held = rows[positions]
    layer, slot = columns.array("layer")[held], columns.array("slot")[held]
    distances = columns.rows.distances(upward, held)
    order = np.lexsort((distances, slot, layer))
    layer, slot, distances = layer[order], slot[order], distances[order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (layer[1:] != layer[:-1]) | (slot[1:] != slot[:-1])
    nearest = distances[starts][np.cumsum(starts) - 1]
    hidden[positions[order[distances > nearest]]] = True
    return hidden


@frozen(eq=False)
class Facts:
    """What the columns say about some ids, in their order.

    Args:
        known: bool, shape (n,): whether the query sees such a memory.
        columns: Name → float64, one value for each known id; NaN = absent.
    """

    known: NDArray[np.bool_]
    columns: Mapping[str, NDArray[np.float64]]


@frozen(eq=False)
class Seen:
    """Memories a query sees, n of them.

    Args:
        ids: Their ids and serials.
        keys: Their keys.
        distances: int64, shape (n,): levels up to the scope of each.
        layers: The layer of each.
        digests: int64, shape (n,): of their normalized texts.
    """

    ids: NumberedIds
    keys: Keys
    distances: NDArray[np.int64]
    layers: tuple[str, ...]
    digests: NDArray[np.int64]


class MemoryView:
    """Visibility decisions and small facts, over columns that are replaced or kept up to date.

    The present is `Catalog`, a past moment is `Snapshot`. Safe to use from several threads.
    """

    def __init__(self, columns: Columns, metadata: MetadataSource) -> None:
        self._columns = columns
        self._metadata = metadata
        self._columns_lock = threading.RLock()
        guard(self, "_columns_lock")

    def _reading(self) -> AbstractContextManager[object]:
        """While it is held the columns do not change."""
        return self._columns_lock

    def __len__(self) -> int:
        """How many memories there are."""
        with self._reading():
            return len(self._columns)

    def records(self, keys: Iterable[Key]) -> list[Record | None]:
        """The record of each key, None where there is none."""
        raise NotImplementedError

    def contents(self, serials: NDArray[np.int64]) -> list[Record | None]:
        """The record of each serial, None where there is none; its vector may be left out."""
        raise NotImplementedError

    def iter_records(self) -> Iterator[Record]:
        """All records."""
        raise NotImplementedError

    def is_current(self) -> bool:
        """Whether this is all there is to see; a view of the past always is."""
        return True

    def admit(
        self,
        query: StoreQuery,
        *,
        layers: Mapping[str, LayerPolicy] = DEFAULT_LAYERS,
        filters: Filters | Mapping[str, object] | None = None,
        include_expired: bool = False,
    ) -> NDArray[np.bool_] | None:
        """The limits for ``StoreQuery.admitted``: which visible memories may be shown.

        Out are: memories expired at ``query.now``; those of ``tip_only`` layers that are not at
        exactly one of the query's scopes; those of ``shadow`` layers below the query's scopes, or
        with the slot of one at a nearer scope; of several with one id all but the nearest; and
        those that fail a filter. A memory that is out hides no other, but a filter lifts no shadow.

        Args:
            query: Scopes, reach and ``now``; its ``admitted`` is ignored.
            layers: Policy of each layer; a layer without one inherits.
            filters: Hard conditions, parsed or not.
            include_expired: Keep expired memories.

        Returns:
            bool, shape (serials,), indexed by `Record.serial`; None when nothing that the scopes
            let the query see is out.

        Raises:
            InvalidArgumentError: Invalid filters; every problem at once.
        """
        parsed = Filters.parse(filters)
        with self._reading():
            return admitted(
                self._columns,
                query,
                self._metadata,
                layers=layers,
                filters=parsed,
                include_expired=include_expired,
            )

    def locate(self, query: StoreQuery, ids: Sequence[str]) -> list[Key | None]:
        """The memory each id names for this query, None when it sees none.

        Of several visible and admitted memories with one id it is the nearest, then the
        first-named scope's, then the one with the least scope path.
        """
        with self._reading():
            rows = self._columns.rows
            return [rows.key(row) if row >= 0 else None for row in rows.locate(query, ids).tolist()]

    def serials_of(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.int64]:
        """int64, shape (n,): the serial of the memory each id names, −1 where `locate` says None."""
        with self._reading():
            rows = self._columns.rows.locate(query, ids)
            found = rows >= 0
            rows[found] = self._columns.rows.serials[rows[found]]
            return rows

    def seen(self, query: StoreQuery, ids: Sequence[str]) -> Seen:
        """The memories some ids name for this query, without those it does not see."""
        with self._reading():
            held, names = self._columns.rows, self._columns.layers
            rows = held.locate(query, ids)
            rows = rows[rows >= 0]
            layers = self._columns.array("layer")[rows].tolist()
            ids = held.named(rows)
            return Seen(
                ids,
                Keys(held.scopes, held.scope_codes[rows].tolist(), ids),
                held.distances(query, rows),
                tuple([names[code] for code in layers]),
                self._columns.array("digest")[rows],
            )

    def facts(self, query: StoreQuery, ids: Sequence[str], names: Sequence[str]) -> Facts:
        """Columns by name for some ids, as the query sees them.

        Args:
            query: The question.
            ids: Any ids.
            names: Of ``created``, ``at``, ``used``, ``expires`` (seconds), ``uses`` (count),
                ``salience``, ``confidence``, ``review``, ``maturity``, ``certainty`` (in [0, 1]) and
                ``structured``, the satisfied share of ``query.preferred``.
        """
        preferred = Filters.parse(query.preferred) if "structured" in names else Filters()
        with self._reading():
            located = self._columns.rows.locate(query, ids)
            known = located >= 0
            rows = located if known.all() else located[known]
            columns = {
                name: preferred.share(RowFields(self._columns, rows, self._metadata), len(rows))
                if name == "structured"
                else self._columns.values(name, rows)
                for name in names
            }
        return Facts(known, columns)

    def digests(self, query: StoreQuery, ids: Sequence[str]) -> list[int | None]:
        """64-bit digest of each memory's normalized text; None for an id the query does not see."""
        with self._reading():
            rows = self._columns.rows.locate(query, ids)
            digests = self._columns.array("digest")
            return [int(digests[row]) if row >= 0 else None for row in rows.tolist()]

    def leading(
        self,
        query: StoreQuery,
        limit: int,
        by: Sequence[str],
        *,
        level: int | None = None,
        present: bool = False,
    ) -> NumberedIds:
        """Ids of the visible memories with the greatest values, best first.

        Args:
            query: The question.
            limit: At most so many, ≥ 0.
            by: Columns, the first one first; ties go to the next, then to the least id.
            level: Only memories exactly this many levels up; None for all.
            present: Leave out memories whose first column is absent; else absent is last.

        Raises:
            InvalidArgumentError: A negative limit.
        """
        with self._reading():
            known = self._columns.rows
            rows = known.visible(query, level)
            values = [self._columns.values(name, rows) for name in by]
            ranks = lambda: known.id_ranks  # noqa: E731
            best = leading(rows, values, limit, known.ids, ranks=ranks, present=present)
            return known.named(best)

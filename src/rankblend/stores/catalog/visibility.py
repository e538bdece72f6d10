"""Which memories a query may be shown, beyond whose scope they belong to.

In this order, each step among those that are left: what is out by itself (expired, or of a layer
that is not seen from there); of memories with one id the nearest; of shadowing memories with one
slot the nearest; the filters of the call. A memory that is not shown therefore hides nothing,
except that a filter lifts no shadow: filters narrow a view, they do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.stores.catalog.columns import Columns
from rankblend.stores.catalog.fields import MetadataSource, RowFields
from rankblend.stores.catalog.filters import Filters
from rankblend.stores.layers import LayerPolicy, LayerVisibility, layer_policy
from rankblend.stores.protocol import Reach, StoreQuery

__all__ = ["admitted"]


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

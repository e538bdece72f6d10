"""The visible subgraph as a CSR matrix of our own making, kept from one question to the next.

It is built from the edge columns (converting a networkx graph takes 3 s for a million edges) and
found again by what is visible in it: the mask over edge rows. When rows were only added since,
their half-edges are put into their places and everything else is copied as it is; anything else
builds it anew. Rows and columns are in the order of the nodes' names and parallel edges in that of
their weights, so that sums run in one order however the edges came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.kernels.spread import concat_ranges
from rankblend.stores.graph._tables import GraphTables
from rankblend.stores.graph._view import View

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_KEPT = 4

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@frozen(eq=False)
class Snapshot:
    """The visible subgraph as a symmetric matrix.

    Attributes:
        mask: bool, shape (edge rows when it was made,): which rows are in it.
        nodes: int64, shape (n,): node numbers in the order of their names.
        row_of: int32, shape (nodes when it was made,): the row of a node, −1 for none.
        matrix: CSR, n × n; parallel edges stay apart and add up in products.
        strength: float64, shape (n,): row sums.
    """

    mask: NDArray[np.bool_]
    nodes: Ints
    row_of: NDArray[np.int32]
    matrix: csr_array[np.float64]
    strength: Floats

    def times(self, vector: Floats) -> Floats:
        """The matrix times a vector, shape (n,)."""
        product: Floats = np.asarray(self.matrix @ vector)
        return product

    def rows(self, nodes: Ints) -> Ints:
        """The row of each node, −1 for a node that is not in it."""
        known = nodes < len(self.row_of)
        out = np.full(len(nodes), -1, dtype=np.int64)
        out[known] = self.row_of[nodes[known]]
        return out

    @classmethod
    def build(cls, tables: GraphTables, mask: NDArray[np.bool_]) -> Snapshot:
        """From all visible edge rows."""
        edges = np.flatnonzero(mask)
        source, target = tables.edges.source.values[edges], tables.edges.target.values[edges]
        used = np.zeros(len(tables.nodes), dtype=np.bool_)
        used[source] = used[target] = True
        nodes = np.flatnonzero(used)
        nodes = nodes[np.argsort(tables.nodes.ranks()[nodes])]
        row_of = _places(nodes, len(tables.nodes))
        row, column, weight = _half_edges(tables, edges, row_of)
        bounds = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=len(nodes)), out=bounds[1:])
        matrix = _csr(weight, column.astype(np.int32), bounds)
        return cls(mask, nodes, row_of, matrix, np.asarray(matrix @ np.ones(len(nodes))))

    def extended(self, tables: GraphTables, mask: NDArray[np.bool_]) -> Snapshot:
        """With the visible ones of the rows added since; the earlier rows must not have changed."""
        edges = len(self.mask) + np.flatnonzero(mask[len(self.mask) :])
        grown = self._with_nodes(
            tables,
            np.unique([tables.edges.source.values[edges], tables.edges.target.values[edges]]),
        )
        row, column, weight = _half_edges(tables, edges, grown.row_of)
        old = grown.matrix
        bounds = old.indptr.astype(np.int64)
        touched = np.unique(row)
        # Where each goes among the half-edges its row has: sorted together with just these.
        there, owner = concat_ranges(bounds[touched], bounds[touched + 1])
        order = np.lexsort(
            (
                np.concatenate([old.data[there], weight]),
                np.concatenate([old.indices[there], column]),
                np.concatenate([touched[owner], row]),
            )
        )
        fresh = order >= len(there)
        behind = np.cumsum(~fresh)[fresh]  # how many of the old ones come before, over all touched
        before = np.cumsum(bounds[touched + 1] - bounds[touched])
        place = np.searchsorted(touched, row)
        skipped = np.where(place > 0, before[place - 1], 0)
        at = bounds[row] + behind - skipped
        added = np.bincount(row, minlength=len(grown.nodes))
        bounds[1:] += np.cumsum(added)
        matrix = _csr(
            np.insert(old.data, at, weight),
            np.insert(old.indices, at, column.astype(np.int32)),
            bounds,
        )
        strength = grown.strength
        strength[touched] = np.asarray(matrix[touched] @ np.ones(len(grown.nodes)))
        return Snapshot(mask, grown.nodes, grown.row_of, matrix, strength)

    def _with_nodes(self, tables: GraphTables, nodes: Ints) -> Snapshot:
        """With an empty row for each of the nodes that has none; its strength may be written to."""
        fresh = nodes[self.rows(nodes) < 0]
        ranks = tables.nodes.ranks()
        fresh = fresh[np.argsort(ranks[fresh])]
        places = np.searchsorted(ranks[self.nodes], ranks[fresh])
        names = np.insert(self.nodes, places, fresh)
        row_of = _places(names, len(tables.nodes))
        indices, bounds = self.matrix.indices, self.matrix.indptr
        if len(fresh):
            indices = row_of[self.nodes].take(indices)
            bounds = np.insert(bounds, places, bounds[places])
        matrix = _csr(self.matrix.data, indices, bounds)
        return Snapshot(self.mask, names, row_of, matrix, np.insert(self.strength, places, 0.0))


def _places(nodes: Ints, size: int) -> NDArray[np.int32]:
    row_of = np.full(size, -1, dtype=np.int32)
    row_of[nodes] = np.arange(len(nodes), dtype=np.int32)
    return row_of


def _half_edges(
    tables: GraphTables, edges: Ints, row_of: NDArray[np.int32]
) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and weights of some edges, from both ends, sorted by all three."""
    source = row_of[tables.edges.source.values[edges]].astype(np.int64)
    target = row_of[tables.edges.target.values[edges]].astype(np.int64)
    key = np.concatenate([source << 32 | target, target << 32 | source])
    weight = np.tile(tables.edges.weight.values[edges], 2)
    order = np.argsort(key)
    key, weight = key[order], weight[order]
    same = key[1:] == key[:-1]
    if same.any():  # parallel edges: lightest first, whatever order they came in
        run = np.flatnonzero(np.append(same, False) | np.append(False, same))
        weight[run] = weight[run][np.lexsort((weight[run], key[run]))]
    return key >> 32, key & 0xFFFFFFFF, weight


def _csr(data: Floats, indices: NDArray[np.int32], bounds: NDArray[np.integer]) -> csr_array:
    from scipy.sparse import csr_array  # 35 MB and a slow import: only for PageRank

    size = len(bounds) - 1
    return csr_array((data, indices, bounds.astype(np.int32)), shape=(size, size))


class SnapshotCache:
    """The latest few snapshots of one graph.

    Attributes:
        built, merged: How often one was built anew, or extended.
    """

    def __init__(self) -> None:
        self._epoch = -1
        self._snapshots: list[Snapshot] = []
        self.built = 0
        self.merged = 0

    def snapshot(self, view: View) -> Snapshot:
        """The matrix of what the view shows."""
        tables, mask = view.tables, view.edge_mask()
        if self._epoch != tables.epoch:
            self._snapshots, self._epoch = [], tables.epoch
        found = next((old for old in self._snapshots if _covers(old, mask)), None)
        if found is not None:
            self._snapshots.remove(found)
        if found is None:
            found = Snapshot.build(tables, mask)
            self.built += 1
        elif mask[len(found.mask) :].any():
            found = found.extended(tables, mask)
            self.merged += 1
        self._snapshots = [found, *self._snapshots[: _KEPT - 1]]
        return found


def _covers(old: Snapshot, mask: NDArray[np.bool_]) -> bool:
    """Whether the snapshot holds exactly the visible ones of the rows it knew."""
    known = len(old.mask)
    return known <= len(mask) and np.array_equal(old.mask, mask[:known])

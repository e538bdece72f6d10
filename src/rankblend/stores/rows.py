"""The row space of one index: rows sorted by scope and id, a tail, tombstones, visibility.

::

    row   0 ................ sorted_rows ........ size
          sorted by scope path, id │ in order of arrival (the tail)

The rows of one scope are one range of the sorted part, and so is a whole subtree, because every
path that starts with ``scope.path`` is a neighbour of the others (the path ends in ``/``). What a
query sees is therefore a few ranges, found without looking at any row. New rows go to the tail, a
removed row becomes a tombstone; `ScopedRows.compact` clears both away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.stores.protocol import Key, StoreQuery
from rankblend.stores.sight import RowBlocks, ScopeTable, Sight, admits

__all__ = ["RowBlocks", "ScopedRows"]

# Compaction moves every row, so it waits until an eighth of them would move anyway.
_LEAST_SLACK = 1024
_SLACK_SHARE = 8
# An id held at more scopes than this is looked up scope by scope, not by listing its rows.
_MANY_SCOPES = 64
_NO_ROWS = np.empty(0, dtype=np.int64)


class ScopedRows:
    """The rows of one index and who may see them; the index keeps its own data per row.

    Example:
        >>> from rankblend.relevance.scope import Scope
        >>> tenant = Scope.parse("tenant:acme")
        >>> rows = ScopedRows()
        >>> rows.add([Key(tenant, "a"), Key(tenant / "user:7", "b")], [0, 1]).tolist()
        [0, 1]
        >>> rows.visible(StoreQuery("", [tenant])).tolist()
        [0]
    """

    def __init__(self) -> None:
        self.sorted_rows = 0
        self._table = ScopeTable()
        self._ids: list[str] = []
        self._codes = np.empty(0, dtype=np.int32)  # scope of each row
        self._serials = np.empty(0, dtype=np.int64)
        self._alive = np.empty(0, dtype=np.bool_)
        self._groups = np.empty(0, dtype=np.int32)  # > 0: rows of one id at several scopes
        self._row_of: dict[str, int | list[int]] = {}  # a list is ascending and has ≥ 2 rows
        self._shared = 0  # how many ids have a list
        self._last_group = 0

    def __len__(self) -> int:
        """How many rows are alive."""
        return int(np.count_nonzero(self.alive))

    @property
    def size(self) -> int:
        """All rows, removed ones included."""
        return len(self._ids)

    @property
    def ids(self) -> Sequence[str]:
        """The id of each row."""
        return self._ids

    @property
    def serials(self) -> NDArray[np.int64]:
        """int64, shape (size,): `Record.serial` of each row."""
        return self._serials[: self.size]

    @property
    def alive(self) -> NDArray[np.bool_]:
        """bool, shape (size,): False for removed rows."""
        return self._alive[: self.size]

    def key(self, row: int) -> Key:
        """The key of a row."""
        return Key(self._table.scopes[self._codes[row]], self._ids[row])

    def row(self, key: Key) -> int | None:
        """The row that holds a key, or None."""
        code = self._table.code(key.scope.path)
        held = self._row_of.get(key.id)
        return None if code is None or held is None else self._row_at(held, code)

    def add(self, keys: Sequence[Key], serials: Sequence[int]) -> NDArray[np.int64]:
        """Add rows; ascending keys added to an empty instance become its sorted part directly.

        Args:
            keys: None of them held.
            serials: `Record.serial` of each.

        Returns:
            int64, shape (n,): the new rows, in the order of the keys: ``size``, ``size + 1``, ….

        Raises:
            InvalidArgumentError: A key is held already or occurs twice; nothing was added.
        """
        if len(serials) != len(keys):
            raise InvalidArgumentError(
                f"serials: expected one per key ({len(keys)}), got {len(serials)}"
            )
        ids = [key.id for key in keys]
        paths = [key.scope.path for key in keys]
        first, size = self.size, self.size + len(keys)
        ascending = first == 0 and all(a < b for a, b in pairwise(zip(paths, ids, strict=True)))
        if not ascending:
            self._refuse_held(keys)
        self._reserve(size)
        self._codes[first:size] = self._table.codes(keys, paths)
        self._serials[first:size] = serials
        self._alive[first:size] = True
        self._groups[first:size] = 0
        self._ids += ids
        self._index(first)
        if ascending:
            self._settle()
        return np.arange(first, size, dtype=np.int64)

    def remove(self, keys: Iterable[Key]) -> NDArray[np.int64]:
        """Turn rows into tombstones; unknown keys are skipped.

        Returns:
            int64: the rows freed.
        """
        freed = []
        for key in keys:
            row = self.row(key)
            if row is None:
                continue
            freed.append(row)
            self._alive[row] = False
            held = self._row_of[key.id]
            if isinstance(held, int):
                del self._row_of[key.id]
                continue
            held.remove(row)
            if len(held) == 1:
                self._row_of[key.id] = held[0]
                self._shared -= 1
        return np.array(freed, dtype=np.int64)

    def renumber(self, rows: NDArray[np.int64], serials: Sequence[int]) -> None:
        """Give rows other serials."""
        self._serials[rows] = serials

    @property
    def needs_compaction(self) -> bool:
        """Whether so many rows are unsorted or dead that `compact` pays."""
        living = int(np.count_nonzero(self._alive[: self.sorted_rows]))
        return self.size - living > max(_LEAST_SLACK, living // _SLACK_SHARE)

    def compact(self) -> NDArray[np.int64]:
        """Drop the dead rows and sort the others; a ``copy.copy`` made before stays as it was.

        Returns:
            int64, shape (len(self),): ``order``; new row i was row ``order[i]``.
        """
        old = np.flatnonzero(self.alive)
        used = sorted(np.unique(self._codes[old]).tolist(), key=self._table.paths.__getitem__)
        renamed = np.zeros(len(self._table), dtype=np.int32)
        renamed[used] = np.arange(len(used), dtype=np.int32)
        codes = renamed[self._codes[old]]
        by_scope = np.argsort(codes, kind="stable")
        order, codes = old[by_scope], codes[by_scope]
        ends = np.cumsum(np.bincount(codes, minlength=len(used))).tolist()
        for start, stop in pairwise([0, *ends]):
            if order[stop - 1] >= self.sorted_rows:  # else no tail row came in: still sorted
                order[start:stop] = sorted(order[start:stop].tolist(), key=self._ids.__getitem__)
        table = ScopeTable()
        for code in used:
            table.enter(self._table.scopes[code])
        self._table = table
        self._ids = [self._ids[row] for row in order.tolist()]
        self._codes, self._serials = codes, self._serials[order]
        self._alive = np.ones(len(order), dtype=np.bool_)
        self._groups = np.zeros(len(order), dtype=np.int32)
        self._index(0)
        self._settle()
        return order

    def blocks(self, query: StoreQuery, level: int | None = None) -> RowBlocks:
        """What a query sees, as ranges; see `visible`."""
        sight = self._table.sight(query)
        distances = sight.distances(self._codes[self.sorted_rows : self.size])
        tail = np.flatnonzero((distances >= 0) & self._shown(query, self.sorted_rows, self.size))
        hidden = self._hidden(query, self._table.ranges(sight), tail + self.sorted_rows)
        if level is not None:
            tail = tail[distances[tail] == level]
        tail += self.sorted_rows
        ranges = self._table.ranges(sight, level)
        excluded = []
        for start, stop in ranges:
            shown = self._shown(query, start, stop)
            shown[hidden[(hidden >= start) & (hidden < stop)] - start] = False
            excluded.append(np.flatnonzero(~shown) + start)
        if len(hidden):
            tail = tail[~np.isin(tail, hidden)]
        return RowBlocks(tuple(ranges), np.concatenate([_NO_ROWS, *excluded]), tail)

    def visible(self, query: StoreQuery, level: int | None = None) -> NDArray[np.int64]:
        """The rows a query may be shown.

        Of several visible and admitted rows with one id it is shown the nearest only, then the
        first-named scope's, then the one with the least scope path.

        Args:
            query: Its scopes, reach and admitted serials.
            level: Only rows exactly this many levels up; None for all. An id held nearer hides the
                farther rows at every level.

        Returns:
            int64, ascending.
        """
        return self.blocks(query, level).rows()

    def locate(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each id as the query sees it.

        Returns:
            int64, shape (n,): −1 for an id that is not held, not visible or not admitted; of
            several rows with one id the one `visible` shows.
        """
        sight = self._table.sight(query)
        held = [self._row_of.get(identifier, -1) for identifier in ids]
        rows = np.array(
            [row if isinstance(row, int) else self._nearest(query, sight, row) for row in held],
            dtype=np.int64,
        )
        known = np.flatnonzero(rows >= 0)
        rows[known[~self._seen(query, sight, rows[known])]] = -1
        return rows

    def distances(self, query: StoreQuery, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, shape (n,): levels up to each row's scope; −1 where not visible."""
        return self._table.sight(query).distances(self._codes[rows])

    def root_rows(self, query: StoreQuery) -> NDArray[np.int64]:
        """int64, ascending: the rows alive under the query's roots, visible to it or not."""
        sight = self._table.under(query.roots)
        tail = np.flatnonzero(sight.distances(self._codes[self.sorted_rows : self.size]) >= 0)
        ranges = tuple(self._table.ranges(sight))
        rows = RowBlocks(ranges, _NO_ROWS, tail + self.sorted_rows).rows()
        return rows[self._alive[rows]]

    def _reserve(self, size: int) -> None:
        if size <= len(self._serials):
            return
        # Exact when first filled (a bulk load stays tight), then doubled.
        capacity = max(size, 2 * self.size)
        for name in ("_codes", "_serials", "_alive", "_groups"):
            old = getattr(self, name)
            new = np.empty(capacity, dtype=old.dtype)
            new[: self.size] = old[: self.size]
            setattr(self, name, new)

    def _refuse_held(self, keys: Sequence[Key]) -> None:
        seen: set[tuple[str, str]] = set()
        problems = []
        for key in keys:
            held = (key.scope.path, key.id)
            if held in seen or self.row(key) is not None:
                problems.append(f"keys: {key.id!r} at {key.scope} is held already")
            seen.add(held)
        if problems:
            raise InvalidArgumentError(problems)

    def _index(self, first: int) -> None:
        """Enter the rows from ``first`` on into the map from id to row."""
        ids = self._ids
        if first == 0:
            self._shared = self._last_group = 0
            self._row_of = dict(zip(ids, range(len(ids)), strict=True))
            if len(self._row_of) == len(ids):
                return
            self._row_of = {}
        for row in range(first, len(ids)):
            held = self._row_of.setdefault(ids[row], row)
            if isinstance(held, list):
                self._groups[row] = self._groups[held[0]]
                held.append(row)
            elif held != row:
                self._last_group += 1
                self._shared += 1
                self._groups[[held, row]] = self._last_group
                self._row_of[ids[row]] = [held, row]

    def _settle(self) -> None:
        self._table.settle(self._codes[: self.size])
        self.sorted_rows = self.size

    def _row_at(self, held: int | list[int], code: int) -> int | None:
        """Of the rows with one id, the one at a scope."""
        if isinstance(held, int):
            return held if self._codes[held] == code else None
        if code < self._table.settled:
            start, stop = self._table.bounds[code : code + 2].tolist()
            position = bisect_left(held, start)
            if position < len(held) and held[position] < stop:
                return held[position]
        tail = held[bisect_left(held, self.sorted_rows) :]
        return next((row for row in tail if self._codes[row] == code), None)

    def _shown(self, query: StoreQuery, start: int, stop: int) -> NDArray[np.bool_]:
        """Which rows of a range are alive and admitted."""
        if query.admitted is None:
            return self._alive[start:stop].copy()
        return self._alive[start:stop] & admits(query, self._serials[start:stop])

    def _seen(self, query: StoreQuery, sight: Sight, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which living rows are visible and admitted."""
        return (sight.distances(self._codes[rows]) >= 0) & admits(query, self._serials[rows])

    def _hidden(
        self, query: StoreQuery, ranges: Sequence[tuple[int, int]], tail: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The rows behind a nearer one with the same id."""
        if not self._shared:
            return _NO_ROWS
        found = [tail[self._groups[tail] > 0]]
        for start, stop in ranges:
            shared = (self._groups[start:stop] > 0) & self._shown(query, start, stop)
            found.append(np.flatnonzero(shared) + start)
        rows = np.concatenate(found)
        groups = self._groups[rows]
        order = np.lexsort((self._table.ranks(query, self._codes[rows]), groups))
        rows, groups = rows[order], groups[order]
        return np.compress(groups[1:] == groups[:-1], rows[1:])

    def _nearest(self, query: StoreQuery, sight: Sight, held: list[int]) -> int:
        """Of the rows with one id, the one the query sees; −1 when it sees none."""
        if len(held) > _MANY_SCOPES:
            few = held[bisect_left(held, self.sorted_rows) :]
            for start, stop in self._table.ranges(sight):
                few += held[bisect_left(held, start) : bisect_left(held, stop)]
            held = few
        rows = np.array(held, dtype=np.int64)
        rows = rows[self._seen(query, sight, rows)]
        ranks = self._table.ranks(query, self._codes[rows])
        return int(rows[np.argmin(ranks)]) if len(rows) else -1

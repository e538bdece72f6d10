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

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from operator import lt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores._arrays import Growing, grown
from rankblend.stores._protocol import StoreQuery
from rankblend.stores._record import Key, Record
from rankblend.stores._scopes import RowBlocks, ScopeTable, Sight, admits


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


class NumberedIds(list[str]):
    """What the stores of one memory tell each other: ids, each with the serial of its memory.

    To whoever knows no serials it is a list of ids like any other. A store that keeps serials finds
    its rows by them in a few microseconds, where looking up ids takes some for each of them. Not to
    be changed after it was made.

    Args:
        ids: n ids.
        serials: int64, shape (n,): `Record.serial` of each; a negative one says nothing.

    Attributes:
        numbered: Whether every serial says something.
    """

    __slots__ = ("numbered", "serials")

    def __init__(self, ids: Iterable[str], serials: NDArray[np.int64]) -> None:
        super().__init__(ids)
        self.serials = serials
        self.numbered = bool(serials.min(initial=0) >= 0)

    @classmethod
    def joined(cls, lists: Iterable[NumberedIds]) -> NumberedIds:
        """Several lists as one, repeats included."""
        parts = list(lists)
        none = np.empty(0, dtype=np.int64)
        return cls(chain.from_iterable(parts), np.concatenate([none, *(p.serials for p in parts)]))

    def take(self, positions: NDArray[np.int64]) -> NumberedIds:
        """Those at some positions."""
        return NumberedIds([self[at] for at in positions.tolist()], self.serials[positions])


class SerialIndex:
    """Serial → row, brought up to date when it is asked; an index nobody asks costs nothing."""

    def __init__(self) -> None:
        self._rows = Growing(np.empty(0, dtype=np.int32))
        self._entered = 0

    def enter(self, serials: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Note the serials of rows, ``serials`` being those of all rows."""
        found = serials[rows]
        most = int(found.max(initial=-1))
        self._rows.room(max(most + 1 - len(self._rows), 0))[...] = -1
        numbered = found >= 0
        self._rows.values[found[numbered]] = rows[numbered]

    def find(
        self, asked: NDArray[np.int64], serials: NDArray[np.int64], alive: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """int64, shape (n,): the living row of each serial, −1 where there is none.

        Args:
            asked: Serials ≥ 0, shape (n,).
            serials: Those of all rows; a living one occurs once.
            alive: bool, of all rows.
        """
        if self._entered < len(serials):
            self.enter(serials, np.arange(self._entered, len(serials)))
            self._entered = len(serials)
        if not len(self._rows):
            return np.full(len(asked), -1, dtype=np.int64)
        rows = self._rows.values.take(asked, mode="clip").astype(np.int64)
        # Where there is none, −1 is the last row, which holds another serial, or is dead.
        held = (serials[rows] == asked) & alive[rows]
        return rows if held.all() else np.where(held, rows, -1)


class HeldIds:
    """The living rows of each id: one, or several where it is held at several scopes.

    Attributes:
        rows: Id → its row, or an ascending list of at least two.
        several: How many ids have a list.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int | list[int]] = {}
        self.several = 0
        self._groups = Growing(np.empty(0, dtype=np.int32))
        self._last_group = 0

    @property
    def groups(self) -> NDArray[np.integer]:
        """int32, shape (rows,): the same number > 0 for rows that have, or had, an id in common."""
        return self._groups.values

    def enter(self, ids: Sequence[str]) -> None:
        """Add rows behind those entered already, by their ids; when anything stops it, none."""
        first = len(self._groups)
        self._groups.extend(np.zeros(len(ids), dtype=np.int32))
        entered = 0
        try:
            if first == 0:
                self.rows = dict(zip(ids, range(len(ids)), strict=True))
                if len(self.rows) == len(ids):
                    return
                self.rows = {}
            for entered, identifier in enumerate(ids):
                self._enter(identifier, first + entered)
        except BaseException:
            for row, identifier in enumerate(ids[:entered], first):
                self.drop(identifier, row)
            self._groups.cut(first)
            raise

    def _enter(self, identifier: str, row: int) -> None:
        held = self.rows.setdefault(identifier, row)
        if isinstance(held, list):
            self.groups[row] = self.groups[held[0]]
            held.append(row)
        elif held != row:
            self._last_group += 1
            self.several += 1
            self.groups[[held, row]] = self._last_group
            self.rows[identifier] = [held, row]

    def drop(self, identifier: str, row: int) -> None:
        """A row of an id is gone."""
        held = self.rows[identifier]
        if isinstance(held, int):
            del self.rows[identifier]
            return
        held.remove(row)
        if len(held) == 1:
            self.rows[identifier] = held[0]
            self.several -= 1

    def copy(self) -> HeldIds:
        """The same, with nothing in common that changes."""
        other = HeldIds()
        other.rows = self.rows.copy()
        if self.several:
            other.rows.update({i: h.copy() for i, h in self.rows.items() if isinstance(h, list)})
        other.several, other._last_group = self.several, self._last_group
        other._groups = Growing(self.groups.copy())
        return other


def refuse_held(keys: Sequence[Key], row: Callable[[Key], int | None]) -> None:
    """See that none of some keys has a row already, and that each comes once.

    Raises:
        InvalidArgumentError: Otherwise; names them all.
    """
    places = [(key.scope.path, key.id) for key in keys]
    first = dict(zip(reversed(places), range(len(keys) - 1, -1, -1), strict=True))
    problems = [
        f"keys: {key.id!r} at {key.scope} is held already"
        for at, (key, place) in enumerate(zip(keys, places, strict=True))
        if first[place] < at or row(key) is not None
    ]
    if problems:
        raise InvalidArgumentError(problems)


# Compaction moves every row, so it waits until an eighth of them would move anyway.
_LEAST_SLACK = 1024
_SLACK_SHARE = 8
# An id held at more scopes than this is looked up scope by scope, not by listing its rows.
_MANY_SCOPES = 64
_NO_ROWS = np.empty(0, dtype=np.int64)
_PER_ROW = ("_codes", "_serials", "_alive")


class ScopedRows:
    """The rows of one index and who may see them; the index keeps its own data per row.

    Example:
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
        self._dead = 0  # removed rows in the sorted part
        self._held = HeldIds()
        self._by_serial = SerialIndex()
        self._lent = False  # whether another instance uses the same lists and arrays

    @classmethod
    def restored(
        cls,
        scopes: Sequence[Scope],
        codes: NDArray[np.int32],
        ids: list[str],
        serials: NDArray[np.int64],
    ) -> Self:
        """Rows that are sorted already.

        Args:
            scopes: By path, each of at least one row.
            codes: int32: position in ``scopes`` of the scope of each row, ascending.
            ids: Of the rows, ascending within a scope.
            serials: Of the rows.
        """
        rows = cls()
        for scope in scopes:
            rows._table.enter(scope)
        rows._ids, rows._codes, rows._serials = ids, codes, serials
        rows._alive = np.ones(len(ids), dtype=np.bool_)
        rows._held.enter(ids)
        rows._settle()
        return rows

    def shared(self) -> Self:
        """The same rows once more; nothing is copied until one of them is changed."""
        self._lent = True
        return copy.copy(self)

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
    def scopes(self) -> Sequence[Scope]:
        """The scope of each scope code."""
        return self._table.scopes

    @property
    def scope_codes(self) -> NDArray[np.int32]:
        """int32, shape (size,): the scope of each row."""
        return self._codes[: self.size]

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
        held = self._held.rows.get(key.id)
        return None if code is None or held is None else self._row_at(held, code)

    def add(self, keys: Sequence[Key], serials: Sequence[int]) -> NDArray[np.int64]:
        """Add rows; ascending keys added to an empty instance become its sorted part directly.

        Args:
            keys: None of them held.
            serials: `Record.serial` of each.

        Returns:
            int64, shape (n,): the new rows, in the order of the keys.

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
            refuse_held(keys, self.row)
        self._own()
        self._reserve(size)
        self._codes[first:size] = self._table.codes(keys, paths)
        self._serials[first:size] = serials
        self._alive[first:size] = True
        self._held.enter(ids)
        self._ids += ids
        if ascending:
            self._settle()
        return np.arange(first, size, dtype=np.int64)

    def remove(self, keys: Iterable[Key]) -> NDArray[np.int64]:
        """Turn rows into tombstones and return them, int64; unknown keys are skipped."""
        freed = []
        for key in keys:
            row = self.row(key)
            if row is not None:
                self._own()
                self._alive[row] = False
                self._dead += row < self.sorted_rows
                self._held.drop(key.id, row)
                freed.append(row)
        return np.array(freed, dtype=np.int64)

    def renumber(self, rows: NDArray[np.int64], serials: Sequence[int]) -> None:
        """Give rows other serials."""
        self._own()
        self._serials[rows] = serials
        self._by_serial.enter(self.serials, rows)

    @property
    def needs_compaction(self) -> bool:
        """Whether so many rows are unsorted or dead that `compact` pays."""
        living = self.sorted_rows - self._dead
        return self.size - living > max(_LEAST_SLACK, living // _SLACK_SHARE)

    def compact(self) -> NDArray[np.int64]:
        """Drop the dead rows, sort the others, return which row each was; copies stay as they are."""
        old = np.flatnonzero(self.alive)
        self._table, by_scope, codes = self._table.sorted(self._codes[old])
        order = old[by_scope]
        ends = np.cumsum(np.bincount(codes, minlength=len(self._table))).tolist()
        for start, stop in pairwise([0, *ends]):
            if order[stop - 1] >= self.sorted_rows:  # else no tail row came in: still sorted
                order[start:stop] = sorted(order[start:stop].tolist(), key=self._ids.__getitem__)
        self._ids = [self._ids[row] for row in order.tolist()]
        self._codes, self._serials = codes, self._serials[order]
        self._alive = np.ones(len(order), dtype=np.bool_)
        self._held, self._by_serial, self._lent = HeldIds(), SerialIndex(), False
        self._held.enter(self._ids)
        self._settle()
        return order

    def blocks(self, query: StoreQuery, level: int | None = None) -> RowBlocks:
        """What a query sees, as ranges; see `visible`."""
        sight = self._table.sight(query)
        hiding = query.admitted is not None or self._dead or self._held.several
        if self.size == self.sorted_rows and not hiding:
            return RowBlocks(tuple(self._table.ranges(sight, level)), _NO_ROWS, _NO_ROWS)
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
        """The rows a query may be shown, int64, ascending.

        Of several visible and admitted rows with one id it is shown the nearest only, then the
        first-named scope's, then the one with the least scope path.

        Args:
            query: Its scopes, reach and admitted serials.
            level: Only rows exactly this many levels up; None for all. An id held nearer hides the
                farther rows at every level.
        """
        return self.blocks(query, level).rows()

    def locate(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each id as the query sees it; of ids that carry serials, these decide.

        Returns:
            int64, shape (n,): −1 for an id that is not held, not visible or not admitted; of
            several rows with one id the one `visible` shows.
        """
        sight = self._table.sight(query)
        if isinstance(ids, NumberedIds) and ids.numbered:
            rows = self._by_serial.find(ids.serials, self.serials, self.alive)
        else:
            held = [self._held.rows.get(identifier, -1) for identifier in ids]
            if self._held.several:
                held = [r if isinstance(r, int) else self._nearest(query, sight, r) for r in held]
            rows = np.array(held, dtype=np.int64)
        # −1 is looked up as the last row and stays what it is.
        return np.where(self._seen(query, sight, rows), rows, -1) if self.size else rows

    def named(self, rows: NDArray[np.int64]) -> NumberedIds:
        """The ids of some rows, with their serials."""
        return NumberedIds(map(self._ids.__getitem__, rows.tolist()), self._serials[rows])

    def distances(self, query: StoreQuery, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, shape (n,): levels up to each row's scope; −1 where not visible."""
        return self._table.sight(query).distances(self._codes[rows])

    def _reserve(self, size: int) -> None:
        if size <= len(self._serials):
            return
        capacity = max(size, 2 * self.size)  # exact when first filled, so a bulk load stays tight
        for name in _PER_ROW:
            setattr(self, name, grown(getattr(self, name)[: self.size], capacity))

    def _own(self) -> None:
        """Before a change: leave what is shared to the others."""
        if not self._lent:
            return
        self._table, self._held, self._ids = self._table.copy(), self._held.copy(), [*self._ids]
        self._by_serial = SerialIndex()
        for name in _PER_ROW:
            setattr(self, name, getattr(self, name).copy())
        self._lent = False

    def _settle(self) -> None:
        self._table.settle(self._codes[: self.size])
        self.sorted_rows = self.size
        self._dead = 0

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
        return self._alive[start:stop] & admits(query, self._serials[start:stop])

    def _seen(self, query: StoreQuery, sight: Sight, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which living rows are visible and admitted."""
        sees = sight.distances(self._codes[rows]) >= 0
        return sees if query.admitted is None else sees & admits(query, self._serials[rows])

    def _hidden(
        self, query: StoreQuery, ranges: Sequence[tuple[int, int]], tail: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The rows behind a nearer one with the same id."""
        if not self._held.several:
            return _NO_ROWS
        groups = self._held.groups
        found = [tail[groups[tail] > 0]]
        for start, stop in ranges:
            shared = (groups[start:stop] > 0) & self._shown(query, start, stop)
            found.append(np.flatnonzero(shared) + start)
        rows = np.concatenate(found)
        groups = groups[rows]
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

"""Which scopes of an index a query sees, as small integers and ranges instead of paths."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores._protocol import Reach, StoreQuery
from rankblend.stores._record import Key


@frozen(eq=False)
class Sight:
    """The scopes a query sees, by code.

    Args:
        near: ``(code, distance)`` of single scopes.
        spans: ``[low, high)`` of sorted codes, all at distance 0, disjoint, ascending.
        loose: int32: further codes at distance 0, of scopes that are not sorted yet.
    """

    near: Sequence[tuple[int, int]]
    spans: Sequence[tuple[int, int]]
    loose: NDArray[np.int32]

    def distances(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """int64, shape (n,): levels up to the scope of each code, −1 where not visible."""
        found = np.full(len(codes), -1, dtype=np.int64)
        for code, distance in self.near:
            found[codes == code] = distance
        for low, high in self.spans:
            found[(codes >= low) & (codes < high)] = 0
        if len(self.loose):
            found[np.isin(codes, self.loose)] = 0
        return found


@frozen(eq=False)
class RowBlocks:
    """What a query sees of an index, as ranges, so that nothing is listed row by row.

    Args:
        ranges: Disjoint ``(start, stop)`` of the sorted part, ascending, none empty.
        excluded: int64, ascending: rows inside the ranges that must not be shown (removed, not
            admitted, or hidden by a nearer memory with the same id).
        tail: int64, ascending: the rows behind the sorted part that may be shown.
    """

    ranges: tuple[tuple[int, int], ...]
    excluded: NDArray[np.int64]
    tail: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many rows may be shown."""
        spanned = sum(stop - start for start, stop in self.ranges)
        return spanned - len(self.excluded) + len(self.tail)

    def excluded_in(self, start: int, stop: int) -> NDArray[np.int64]:
        """int64, ascending: the excluded rows of one range."""
        low, high = np.searchsorted(self.excluded, (start, stop))
        return self.excluded[low:high]

    def rows(self) -> NDArray[np.int64]:
        """int64, ascending: every row that may be shown."""
        spanned = [np.arange(start, stop, dtype=np.int64) for start, stop in self.ranges]
        rows = np.concatenate([*spanned, self.tail])
        if not len(self.excluded):
            return rows
        keep = np.ones(len(rows), dtype=np.bool_)
        keep[np.searchsorted(rows, self.excluded)] = False
        return rows[keep]


class ScopeTable:
    """The scopes of one index, numbered; the sorted ones come first, in the order of their paths.

    The rows of a sorted scope with code c are ``bounds[c]`` to ``bounds[c + 1]``, so a subtree is
    one span of codes and one range of rows. Scopes that arrived later have codes, but no range.
    """

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.paths: list[str] = []
        self.bounds = np.zeros(1, dtype=np.int64)
        self._code_of: dict[str, int] = {}
        self._last: tuple[tuple[object, ...], Sight] | None = None
        self._unsettled: list[tuple[str, int]] = []  # path and code, by path; see _loose

    def __len__(self) -> int:
        """How many scopes have a code."""
        return len(self.scopes)

    def copy(self) -> ScopeTable:
        """The same, with nothing in common that changes."""
        other = ScopeTable()
        other.scopes, other.paths = [*self.scopes], [*self.paths]
        other.bounds, other._code_of = self.bounds, dict(self._code_of)
        return other

    @property
    def settled(self) -> int:
        """How many of them, the first ones, are sorted."""
        return len(self.bounds) - 1

    def code(self, path: str) -> int | None:
        """The code of a path, or None."""
        return self._code_of.get(path)

    def enter(self, scope: Scope) -> int:
        """The code of a scope, a new one if it has none."""
        code = self._code_of.setdefault(scope.path, len(self.scopes))
        if code == len(self.scopes):
            self.scopes.append(scope)
            self.paths.append(scope.path)
        return code

    def codes(self, keys: Sequence[Key], paths: Sequence[str]) -> list[int]:
        """The code of each key's scope, whose path is given; new ones where needed."""
        known = self._code_of
        return [
            known[path] if path in known else self.enter(key.scope)
            for key, path in zip(keys, paths, strict=True)
        ]

    def sorted(
        self, codes: NDArray[np.int32]
    ) -> tuple[ScopeTable, NDArray[np.int64], NDArray[np.int32]]:
        """A table of the scopes that rows use, by path.

        Returns:
            It; int64: the order that sorts the rows by path, rows of one scope as they were; int32:
            the codes of the rows in that order and table.
        """
        used = sorted(np.unique(codes).tolist(), key=self.paths.__getitem__)
        renamed = np.zeros(len(self), dtype=np.int32)
        renamed[used] = np.arange(len(used), dtype=np.int32)
        table = ScopeTable()
        for code in used:
            table.enter(self.scopes[code])
        codes = renamed[codes]
        order = np.argsort(codes, kind="stable")
        return table, order, codes[order]

    def settle(self, codes: NDArray[np.int32]) -> None:
        """Every row is sorted now: note where each scope begins.

        Args:
            codes: int32, shape (rows,), ascending; the paths of the codes ascend too.
        """
        counts = np.bincount(codes, minlength=len(self.scopes))
        self.bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._unsettled = []

    def sight(self, query: StoreQuery) -> Sight:
        """What a query sees; remembered, for one query is asked for it many times."""
        asked = query.scopes, query.reach, len(self.paths), self.settled
        if self._last is None or self._last[0] != asked:
            self._last = asked, self._seen(query)
        return self._last[1]

    def _seen(self, query: StoreQuery) -> Sight:
        near = [
            (code, distance)
            for path, distance in query.path_distances.items()
            if (code := self._code_of.get(path)) is not None
        ]
        if query.reach is not Reach.SUBTREE:
            return Sight(near, (), np.empty(0, dtype=np.int32))
        below = tuple(scope.path for scope in query.scopes)
        near = [(code, d) for code, d in near if not self.paths[code].startswith(below)]
        spans, loose = self._under(below)
        return Sight(near, spans, loose)

    def distances(self, query: StoreQuery) -> NDArray[np.int16]:
        """int16, shape (scopes,): levels up to each scope by code, −1 where not visible."""
        sight = self.sight(query)
        found = np.full(len(self), -1, dtype=np.int16)
        for code, distance in sight.near:
            found[code] = distance
        for low, high in sight.spans:
            found[low:high] = 0
        found[sight.loose] = 0
        return found

    def ranges(self, sight: Sight, level: int | None = None) -> list[tuple[int, int]]:
        """The sorted rows of the scopes seen, at exactly ``level`` where that is given."""
        spans = [
            (code, code + 1)
            for code, distance in sight.near
            if code < self.settled and level in (None, distance)
        ]
        if level in (None, 0):
            spans += sight.spans
        return merged_ranges((int(self.bounds[low]), int(self.bounds[high])) for low, high in spans)

    def ranks(self, query: StoreQuery, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Where the scope of each code stands among theirs for memories that share an id.

        Returns:
            int64, shape (n,): 0 for the nearest, then by first-named scope, then by path.
        """
        distinct, which = np.unique(codes, return_inverse=True)
        keys = [
            (query.rank_of_scope(self.scopes[code]), self.paths[code]) for code in distinct.tolist()
        ]
        ranks = np.empty(len(keys), dtype=np.int64)
        ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return ranks[which]

    def _under(self, paths: tuple[str, ...]) -> tuple[list[tuple[int, int]], NDArray[np.int32]]:
        unsettled = self._loose()
        spans = []
        loose: list[int] = []
        for path in paths:
            first, behind = subtree(path)
            low, high = (bisect_left(self.paths, p, 0, self.settled) for p in (first, behind))
            spans.append((low, high))
            low, high = (bisect_left(unsettled, (p, -1)) for p in (first, behind))
            loose += [code for _, code in unsettled[low:high]]
        return merged_ranges(spans), np.array(loose, dtype=np.int32)

    def _loose(self) -> list[tuple[str, int]]:
        """The scopes that have no range, by path; kept, for a graph's never have one."""
        loose = self._unsettled
        known = self.settled + len(loose)
        if known < len(self.paths):  # a new list: another thread may be reading the old one
            fresh = ((self.paths[code], code) for code in range(known, len(self.paths)))
            loose = self._unsettled = sorted(chain(loose, fresh))
        return loose


def subtree(path: str) -> tuple[str, str]:
    """The paths of a scope and of all below it, and no others, are ≥ the first and < the second.

    They start with ``path``, which ends in "/", and "0" follows "/" in code point order.
    """
    return path, path[:-1] + "0"


def merged_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges as ascending, disjoint ones, none empty; neighbours joined."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if start == stop:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def admits(query: StoreQuery, serials: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool, shape (n,): whether the query's mask admits each serial; outside of it: no."""
    if query.admitted is None:
        return np.ones(len(serials), dtype=np.bool_)
    if not len(query.admitted):
        return np.zeros(len(serials), dtype=np.bool_)
    inside = (serials >= 0) & (serials < len(query.admitted))
    return query.admitted.take(serials, mode="clip") & inside

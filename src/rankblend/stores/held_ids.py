"""Which rows of an index hold each id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.stores.growing import Growing
from rankblend.stores.record import Key

__all__ = ["HeldIds", "refuse_held"]


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

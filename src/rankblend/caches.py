"""Mappings worked out when they are looked into or not written to; the last few values by key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import Any, Generic, NoReturn, TypeVar

from attrs import frozen

from rankblend.forks import guard

__all__ = ["LazyMapping", "Lru", "ReadOnly"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Values by key, those asked for last; safe to use from several threads.

    Args:
        most: How many are kept, ≥ 1; beyond it the one that was not asked for longest goes.
        once: Threads that ask for a missing value wait for the one that makes it, whichever its
            key, instead of making it, too: for values that cost seconds.

    Attributes:
        hits, misses: How often `get` had a value, and how often it had none.
    """

    def __init__(self, most: int, *, once: bool = False) -> None:
        self.most = most
        self.hits = 0
        self.misses = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.RLock() if once else nullcontext()
        guard(self, "_lock", *(["_making"] if once else []))

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made and kept when there is none; nothing is kept when that fails.

        Several threads may make one value at a time (unless ``once``); all get the same one.
        """
        try:
            return self._look(key)
        except KeyError:
            self.misses += 1
        with self._making:
            try:
                return self._look(key)  # made while this thread waited
            except KeyError:
                pass
            return self._enter(key, make())

    def peek(self, key: K) -> V | None:
        """The value of a key, or None; its age stays what it was."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value as the newest, in place of an earlier one of this key."""
        with self._lock:
            self._values.pop(key, None)
        self._enter(key, value)

    def pop(self, key: K) -> V | None:
        """Forget the value of a key and return it, or None."""
        with self._lock:
            return self._values.pop(key, None)

    def clear(self) -> None:
        """Forget all values; what was counted stays."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """The keys, the one not asked for longest first."""
        with self._lock:
            return iter(tuple(self._values))

    def _look(self, key: K) -> V:
        with self._lock:
            self._values.move_to_end(key)  # KeyError where there is none
            self.hits += 1
            return self._values[key]

    def _enter(self, key: K, value: V) -> V:
        with self._lock:
            value = self._values.setdefault(key, value)
            while len(self._values) > self.most:
                self._values.popitem(last=False)
            return value


@frozen(eq=False, repr=False, slots=False)
class LazyMapping(Mapping[str, V], Generic[V]):
    """A read-only mapping from names.

    Args:
        make: Gives its contents; called once at most. A `functools.partial` of a function keeps
            the mapping picklable.
    """

    make: Callable[[], Mapping[str, V]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, name: str) -> V:
        return self._made[name]

    def __repr__(self) -> str:
        return repr(dict(self._made))

    @cached_property
    def _made(self) -> Mapping[str, V]:
        return self.make()


class ReadOnly(dict[K, V]):
    """A mapping that is not written to; other than a `types.MappingProxyType` it can be copied."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping is read-only")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[ReadOnly[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

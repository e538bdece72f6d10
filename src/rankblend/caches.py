"""A mapping that is worked out when somebody first looks into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from attrs import frozen

__all__ = ["LazyMapping"]

V = TypeVar("V")


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

"""How values with read-only mappings in them are pickled and copied."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Self

from attrs import fields

__all__ = ["PicklesByFields"]


class PicklesByFields:
    """A frozen attrs class that is made anew of its fields; its converters seal mappings again."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...]]:
        """Its class and its fields, in the order of the arguments."""
        values = (getattr(self, each.name) for each in fields(type(self)))  # type: ignore[arg-type]
        return type(self), tuple(
            dict(value) if isinstance(value, MappingProxyType) else value for value in values
        )

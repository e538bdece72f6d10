"""A part that is there, or that a factory makes when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from rankblend.reasonlets.capture import Capture
from rankblend.reasonlets.reasonlet import ReasonletMatch, Receipt
from rankblend.relevance.scope import Scope

__all__ = ["Provided", "SupportsOffer", "SupportsRecall", "SupportsRemember"]


@runtime_checkable
class SupportsRecall(Protocol):
    """A memory that recalls procedures, e.g. a `ReasonletMemory`."""

    async def recall(
        self,
        question: str,
        *,
        scope: Scope | str,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> Sequence[ReasonletMatch]:
        """The procedures most worth trying, best first."""
        ...


@runtime_checkable
class SupportsRemember(Protocol):
    """A memory that remembers captures, e.g. a `ReasonletMemory`."""

    async def remember(self, capture: Capture) -> Receipt:
        """Remember an answered question."""
        ...


@runtime_checkable
class SupportsOffer(Protocol):
    """What takes captures without waiting, e.g. a `CaptureQueue`."""

    def offer(self, capture: Capture) -> bool:
        """Take it; False when it was dropped."""
        ...


T_co = TypeVar("T_co", covariant=True)


class Provided(Generic[T_co]):
    """A part, or the factory that makes it once; a failure of the factory is not kept.

    Args:
        name: What it is called in an error.
        part: The part itself, or a callable without arguments that returns it.
        kind: The protocol it must satisfy.
        like: A class that does, for the error.
    """

    def __init__(
        self, name: str, part: T_co | Callable[[], T_co], kind: type[Any], *, like: str
    ) -> None:
        self._name = name
        self._kind = kind
        self._like = like
        self._part = part
        self._lock = threading.RLock()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it can be neither the part nor its factory; empty when it can."""
        if self._is_there(self._part) or callable(self._part):
            return ()
        kind = type(self._part).__name__
        return (f"{self._name}: expected a {self._like} or a factory of one, got {kind}",)

    def get(self) -> T_co:
        """The part.

        Raises:
            TypeError: The factory made something else.
            Exception: Whatever the factory raises.
        """
        with self._lock:
            if not self._is_there(self._part):
                assert callable(self._part)
                made = self._part()
                if not self._is_there(made):
                    kind = type(made).__name__
                    raise TypeError(f"the factory of the {self._name} made a {kind}")
                self._part = made
            part: T_co = self._part  # type: ignore[assignment]
            return part

    def _is_there(self, value: object) -> bool:
        return isinstance(value, self._kind) and not isinstance(value, type)

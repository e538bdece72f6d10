"""Many recalls at once, or one write: never both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from rankblend.errors import MemoryContractError

__all__ = ["SharedLock", "asked_by"]

T = TypeVar("T")
_ASKING: ContextVar[tuple[SharedLock, ...]] = ContextVar("rankblend_asking", default=())


class SharedLock:
    """A lock that readers share and a writer holds alone.

    Reading may nest, inside writing too: a store's function may recall from the same memory.
    """

    def __init__(self) -> None:
        self._state = threading.Condition()
        # Who holds it: an object for each block → its thread.
        self._readers: dict[object, int] = {}
        self._writers: dict[object, int] = {}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        holder, own = object(), threading.get_ident()
        try:
            with self._state:
                self._state.wait_for(lambda: all(who == own for who in self._writers.values()))
                self._readers[holder] = own
            yield
        finally:
            with self._state:
                self._readers.pop(holder, None)
                self._state.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone.

        Raises:
            MemoryContractError: From inside a store that is being asked, or shown a write: it would
                wait for itself.
        """
        if self in _ASKING.get():
            raise MemoryContractError(
                "a store may not write to the memory that is asking it; write when it is done"
            )
        holder, own = object(), threading.get_ident()
        try:
            with self._state:
                # This thread is in no block, so what it still holds was left behind by a Ctrl-C.
                for held in (self._readers, self._writers):
                    for left in [block for block, who in held.items() if who == own]:
                        del held[left]
                self._state.wait_for(lambda: not self._writers and not self._readers)
                self._writers[holder] = own
            yield
        finally:
            with self._state:
                self._writers.pop(holder, None)
                self._state.notify_all()


def asked_by(lock: SharedLock, call: Callable[[], T]) -> Callable[[], T]:
    """The call of a store, marked as made during a recall or write, in whichever thread it runs."""

    def marked() -> T:
        context = copy_context()
        context.run(_ASKING.set, (*_ASKING.get(), lock))
        return context.run(call)

    return marked

"""Forking a process that has memories open: the child starts afresh and waits for nobody's thread.

A child has a copy of every lock, but only the thread that forked: a lock that another thread held
would be held for ever, and what it protects could be half-written. So before a fork every guarded
lock is taken, which waits until the other threads are between two steps; afterwards parent and
child let go. A lock that could not be had in time is a new one in the child, and its owner is told
that what it protects is not to be trusted.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - asyncio imports it when first busy, perhaps in a fork
import os
import sys
import threading
import weakref
from collections.abc import Callable
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

from attrs import field, frozen

__all__ = ["guard"]

_STEP = 0.02  # seconds one lock is waited for while the others are held
_ROUNDS = 50  # all together a second: a write of many memories may take longer


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As of `threading.Lock`."""
        ...

    def release(self) -> None:
        """As of `threading.Lock`."""
        ...


@frozen(eq=False)
class _Guard:
    owner: weakref.ref[Any]
    locks: tuple[str, ...]
    taken: list[tuple[str, _Lock]] = field(factory=list)


_guards: list[_Guard] = []


def guard(owner: Any, *locks: str) -> None:
    """Have an object's locks let go of in the child of a fork.

    Args:
        owner: The object; it is not kept alive. If it has a method ``after_fork``, that is called in
            the child, with ``quiet=False`` where a lock could not be had.
        locks: Names of its attributes that hold locks or conditions.
    """
    # Objects that are gone leave when as many are there again: no lock, a list only grows here.
    if len(_guards) > 64 and not len(_guards) & (len(_guards) - 1):
        _guards[:] = [each for each in _guards if each.owner() is not None]
    _guards.append(_Guard(weakref.ref(owner), locks))


def _before() -> None:
    # All or none, again and again: whatever the order in which other threads take them.
    for _ in range(_ROUNDS):
        if _take_all():
            return
        _let_go()
    _take_all()


def _take_all() -> bool:
    whole = True
    for each in _guards:
        owner = each.owner()
        for name in each.locks if owner is not None else ():
            lock = getattr(owner, name)
            if lock.acquire(timeout=_STEP if whole else 0.0):
                each.taken.append((name, lock))
            else:
                whole = False
    return whole


def _let_go() -> None:
    for each in reversed(_guards):
        while each.taken:
            each.taken.pop()[1].release()


def _in_child() -> None:
    told = [(each.owner(), each, {name for name, _ in each.taken}) for each in _guards]
    _let_go()
    _renew_properties()
    for owner, each, taken in told:
        if owner is None:
            continue
        for name in set(each.locks) - taken:
            setattr(owner, name, _like(getattr(owner, name)))
        after = getattr(owner, "after_fork", None)
        if after is not None:
            after(quiet=len(taken) == len(each.locks))


def _renew_properties() -> None:
    """Up to Python 3.11 every `cached_property` has a lock, which its computation holds."""
    modules = [module for name, module in sys.modules.items() if name.startswith("rankblend")]
    classes = {
        each for module in modules for each in vars(module).values() if isinstance(each, type)
    }
    for each in chain.from_iterable(vars(each).values() for each in classes):
        if isinstance(each, cached_property) and hasattr(each, "lock"):
            each.lock = threading.RLock()


def _like(lock: _Lock) -> object:
    """A new one of the same kind."""
    kinds: tuple[Callable[[], object], ...] = (threading.Lock, threading.RLock, threading.Condition)
    return next(made for made in (kind() for kind in kinds) if isinstance(lock, type(made)))


if hasattr(os, "register_at_fork"):  # where there is no fork there is nothing to do
    os.register_at_fork(before=_before, after_in_parent=_let_go, after_in_child=_in_child)

"""Asking something that may fail, hang or refuse to be cancelled, and keeping none of its words."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from attrs import frozen

from rankblend.reasonlets.errors import code_of
from rankblend.recall.asking import away

__all__ = ["Down", "Refused", "Said", "consult"]

T = TypeVar("T")


@frozen(eq=False)
class Said(Generic[T]):
    """It answered."""

    value: T


@frozen
class Down:
    """It threw, timed out, or said that it is unavailable.

    Attributes:
        kind: Class name of what it threw; None when it said so itself.
    """

    kind: str | None


@frozen
class Refused:
    """It answered with one of our codes.

    Attributes:
        code: Another one than ``unavailable``.
        detector: Of a ``blocked``; None otherwise.
    """

    code: str
    detector: str | None = None


async def consult(
    call: Callable[..., Any], *arguments: Any, timeout: timedelta | None = None
) -> Said[Any] | Down | Refused:
    """Call a dependency; whatever happens inside is a value, only the caller's cancellation raises.

    It runs in a task of its own. So a cancellation that the dependency raises itself (a time-out of
    its client, say) is told apart from the caller's, and neither the caller's cancellation nor the
    time-out waits for a dependency that ignores being cancelled.

    Args:
        call: A function, run in a thread of its own, or an ``async`` callable.
        *arguments: What it is given.
        timeout: How long it is waited for; None: no limit.
    """
    task = asyncio.ensure_future(_outcome(call, arguments))
    seconds = None if timeout is None else timeout.total_seconds()
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        return Down("TimeoutError")
    return Down("CancelledError") if task.cancelled() else task.result()


async def _outcome(
    call: Callable[..., Any], arguments: tuple[Any, ...]
) -> Said[Any] | Down | Refused:
    """Never raises an exception, so that none is logged by the event loop when nobody waits."""
    try:
        if _is_async(call):
            answer = call(*arguments)
        else:
            answer = await away(lambda _: call(*arguments))
        return Said(await answer if inspect.isawaitable(answer) else answer)
    except asyncio.CancelledError:
        return Down("CancelledError")
    except Exception as error:
        code = code_of(error)
        if code is None:
            return Down(type(error).__name__)
        if code == "unavailable":
            return Down(None)
        return Refused(code, getattr(error, "detector", None))


def _is_async(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004
    )

"""Asking something that may fail, hang or refuse to be cancelled, and keeping none of its words."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextvars import copy_context
from datetime import timedelta
from typing import Any, Generic, TypeVar

from attrs import frozen

from rankblend.reasonlets.errors import code_of
from rankblend.recall.asking import away

__all__ = ["Down", "Refused", "Said", "answer_of", "consult", "is_async"]

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
        timed_out: Whether it is our own time-out that ended the waiting.
    """

    kind: str | None
    timed_out: bool = False


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
        return Down("TimeoutError", timed_out=True)
    return Down("CancelledError") if task.cancelled() else task.result()


async def answer_of(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call, and wait without blocking the event loop; an ordinary function runs in a thread.

    There it sees the caller's context variables.

    Raises:
        Exception: Whatever it raises.
    """
    if is_async(call):
        answer = call(*arguments, **keywords)
    else:
        context = copy_context()
        answer = await away(lambda _: context.run(call, *arguments, **keywords))
    return await answer if inspect.isawaitable(answer) else answer


async def _outcome(
    call: Callable[..., Any], arguments: tuple[Any, ...]
) -> Said[Any] | Down | Refused:
    """Never raises an exception, so that none is logged by the event loop when nobody waits."""
    try:
        return Said(await answer_of(call, *arguments))
    except asyncio.CancelledError:
        return Down("CancelledError")
    except Exception as error:
        code = code_of(error)
        if code is None:
            return Down(type(error).__name__)
        if code == "unavailable":
            return Down(None)
        return Refused(code, getattr(error, "detector", None))


def is_async(call: object) -> bool:
    """Whether it is an ``async`` function, or an object that is called like one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004
    )

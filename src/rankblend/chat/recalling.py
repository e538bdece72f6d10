"""Asking a memory for procedures on behalf of a chat: it may fail or hang, and says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rankblend.chat.provided import SupportsRecall
from rankblend.reasonlets.dependency import Down, Refused, Said, consult
from rankblend.reasonlets.reasonlet import ReasonletMatch
from rankblend.relevance.scope import Scope

__all__ = ["ask"]


async def ask(
    memory: SupportsRecall,
    question: str,
    *,
    scope: Scope,
    top: int | None,
    min_similarity: float | None,
    timeout: timedelta,
) -> Said[Sequence[ReasonletMatch]] | Down | Refused:
    """Recall, waiting no longer than the time-out even for a memory that ignores it.

    Args:
        memory: Whom to ask.
        question: About what.
        scope: Where.
        top: At most how many matches; None: as the memory says.
        min_similarity: The cut-off; None: the memory's own.
        timeout: How long it is waited for.

    Returns:
        The matches, or what went wrong; only the caller's own cancellation raises.
    """

    async def recall() -> Any:
        matches = await memory.recall(question, scope=scope, top=top, min_similarity=min_similarity)
        if not all(isinstance(match, ReasonletMatch) for match in matches):
            raise TypeError("expected matches")
        return tuple(matches)

    return await consult(recall, timeout=timeout)

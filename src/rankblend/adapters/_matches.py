"""Matches as the documents and nodes of other libraries: a text, and everything else beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.recall import Match, Memory, Recall, ScopeLike


@frozen
class MemoryQuestions:
    """How a retriever asks a memory: the same way for every query.

    Args:
        memory: Whom to ask; it stays the caller's to close.
        arguments: Of `Memory.recall`, all but the query.

    Raises:
        InvalidArgumentError: No memory, or arguments that are a query or no scope.
    """

    memory: Memory
    arguments: Mapping[str, Any] = field(converter=dict)

    @classmethod
    def of(
        cls, memory: Memory, scope: ScopeLike, top: int | None, arguments: Mapping[str, Any]
    ) -> MemoryQuestions:
        """From what both retrievers take."""
        problems = []
        if not isinstance(memory, Memory):
            problems.append(f"memory: expected a Memory, got {type(memory).__name__}")
        if isinstance(arguments, Mapping):
            twice = {"query", "scope", "top"} & arguments.keys()
            problems += [f"arguments: {name} has a place of its own" for name in sorted(twice)]
        else:
            problems.append(f"arguments: expected a mapping, got {type(arguments).__name__}")
        if problems:
            raise InvalidArgumentError(problems)
        return cls(memory, {**arguments, "scope": scope, "top": top})

    def ask(self, query: str) -> Recall:
        """Recall; raises as `Memory.recall`."""
        return self.memory.recall(query, **self.arguments)

    async def aask(self, query: str) -> Recall:
        """Recall without blocking the event loop."""
        return await self.memory.arecall(query, **self.arguments)


def metadata_of(match: Match, recall: Recall) -> dict[str, object]:
    """Everything about a match but its text, JSON-ready.

    Rank, score, signals and contributions as in `Match`, the memory's own fields as in
    `StoredMemory` (what its writer attached is under ``metadata``), and whether the recall was
    ``degraded`` by a store that could not answer.
    """
    plain = match.plain()
    memory = plain.pop("memory")
    assert isinstance(memory, dict)
    del memory["text"]
    return {**plain, **memory, "degraded": recall.degraded}

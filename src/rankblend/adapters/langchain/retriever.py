"""A memory as a retriever of LangChain."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from rankblend.adapters.matches import MemoryQuestions, metadata_of
from rankblend.recall import Memory, Recall

__all__ = ["MemoryRetriever"]


class MemoryRetriever(BaseRetriever):
    """Retrieves memories as documents, best first; sync and async.

    A document's id is the memory's, and its metadata is everything else about the match: score,
    signals, contributions and the memory's own fields (`metadata_of`).

    Args:
        memory: Whom to ask; it stays yours to close.
        scope: One scope or several, for every query.
        top: At most this many; None for the profile's number.
        arguments: More arguments of `Memory.recall`, e.g. ``{"profile": "hindsight"}``.

    Raises:
        ValidationError: Pydantic's, which is a ValueError: something else than a memory, or an
            argument given twice. It repeats no value.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, hide_input_in_errors=True)

    memory: Memory = Field(repr=False)
    scope: Any
    top: int | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    _questions: MemoryQuestions = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check what was given."""
        super().model_post_init(context)
        self._questions = MemoryQuestions.of(self.memory, self.scope, self.top, self.arguments)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return _documents(self._questions.ask(query))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return _documents(await self._questions.aask(query))


def _documents(recall: Recall) -> list[Document]:
    return [
        Document(match.memory.text, id=match.memory.id, metadata=metadata_of(match, recall))
        for match in recall
    ]

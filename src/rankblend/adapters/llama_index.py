"""LlamaIndex: a memory as a retriever.

>>> from rankblend import Memory
>>> from rankblend.adapters.llama_index import MemoryRetriever
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Refunds over 500 need approval", scope="tenant:acme")
...     nodes = MemoryRetriever(memory, scope="tenant:acme").retrieve("refund approval")
>>> nodes[0].node.get_content()
'Refunds over 500 need approval'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rankblend.adapters._matches import MemoryQuestions, metadata_of
from rankblend.errors import MissingDependencyError
from rankblend.recall import Memory, Recall, ScopeLike

try:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError:
    raise MissingDependencyError(
        "llama-index-core", "llama-index", "the LlamaIndex retriever"
    ) from None

__all__ = ["MemoryRetriever"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class MemoryRetriever(BaseRetriever):
    """Retrieves memories as nodes, best first; sync and async.

    A node's score is the rank score, so that whoever sorts by it keeps the order; the score itself,
    the signals and the rest are in the metadata (`metadata_of`), none of which is shown to a model
    or embedded.

    Args:
        memory: Whom to ask; it stays yours to close.
        scope: One scope or several, for every query.
        top: At most this many; None for the profile's number.
        arguments: More arguments of `Memory.recall`, e.g. ``{"profile": "hindsight"}``.
        callback_manager: As in every retriever of LlamaIndex.

    Raises:
        InvalidArgumentError: Something else than a memory, or an argument given twice.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        scope: ScopeLike,
        top: int | None = None,
        arguments: Mapping[str, Any] = _NOTHING,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._questions = MemoryQuestions.of(memory, scope, top, arguments)
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._questions.ask(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._questions.aask(query_bundle.query_str))


def _nodes(recall: Recall) -> list[NodeWithScore]:
    nodes = []
    for match in recall:
        metadata = metadata_of(match, recall)
        node = TextNode(
            id_=match.memory.id,
            text=match.memory.text,
            metadata=metadata,
            excluded_llm_metadata_keys=list(metadata),
            excluded_embed_metadata_keys=list(metadata),
        )
        nodes.append(NodeWithScore(node=node, score=match.rank_score))
    return nodes

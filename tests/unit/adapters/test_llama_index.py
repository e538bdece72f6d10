"""A memory as a retriever of LlamaIndex, by itself and in its query engine with its mock model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from rankblend import Memory
from rankblend.adapters.llama_index import MemoryRetriever
from rankblend.errors import InvalidArgumentError

SCOPE = "tenant:acme"
WHERE = f"{SCOPE}/user:7"


@pytest.fixture
def notes() -> Iterator[Memory]:
    with Memory.open(":memory:") as memory:
        memory.remember("Refunds over 500 need approval", scope=SCOPE, id="policy", salience=0.9,
                        metadata={"page": 3})  # fmt: skip
        memory.remember("Ana wants a refund by transfer", scope=WHERE, id="ana")
        memory.remember("Other tenants refund nothing", scope="tenant:other", id="other")
        yield memory


@pytest.mark.parametrize("asynchronous", [False, True])
def test_retriever_when_asked_then_nodes_are_the_matches_in_their_order(
    notes: Memory, asynchronous: bool
) -> None:
    gated = {"profile": "mw-memory"}
    retriever = MemoryRetriever(notes, scope=WHERE, top=5, arguments=gated)
    query = QueryBundle("refund approval")
    nodes: list[NodeWithScore] = (
        asyncio.run(retriever.aretrieve(query)) if asynchronous else retriever.retrieve(query)
    )
    recall = notes.recall("refund approval", scope=WHERE, top=5, **gated)
    assert [each.node_id for each in nodes] == list(recall.ids)
    assert {"policy", "ana"} == set(recall.ids)
    assert [each.score for each in nodes] == pytest.approx([m.rank_score for m in recall])
    by_score = sorted(nodes, key=lambda node: -node.get_score())
    assert [each.node_id for each in by_score] == list(recall.ids)
    metadata = nodes[0].metadata
    assert metadata["score"] == pytest.approx(recall[0].score)
    assert metadata["signals"].keys() == dict(recall[0].signals.present()).keys()


def test_nodes_when_shown_to_a_model_or_embedded_then_they_are_the_text_alone(
    notes: Memory,
) -> None:
    (node,) = MemoryRetriever(notes, scope=SCOPE).retrieve("refund approval")
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert node.node.get_content(mode) == "Refunds over 500 need approval"
    assert node.metadata["metadata"] == {"page": 3}


def test_retriever_when_in_a_query_engine_then_the_model_gets_what_it_found(notes: Memory) -> None:
    engine = RetrieverQueryEngine.from_args(
        MemoryRetriever(notes, scope=SCOPE),
        llm=MockLLM(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.01)],
    )
    response: Any = engine.query("refund approval")
    assert [each.node_id for each in response.source_nodes] == ["policy"]
    # The mock model answers with its prompt.
    assert "Refunds over 500 need approval" in str(response)
    assert "Other tenants" not in str(response)


def test_retriever_when_misconfigured_then_it_fails_at_construction(notes: Memory) -> None:
    assert isinstance(MemoryRetriever(notes, scope=SCOPE), BaseRetriever)
    with pytest.raises(InvalidArgumentError, match="memory: expected a Memory, got str"):
        MemoryRetriever("memory.db", scope=SCOPE)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="arguments: scope has a place of its own"):
        MemoryRetriever(notes, scope=SCOPE, arguments={"scope": "tenant:other"})

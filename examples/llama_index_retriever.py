"""A memory as the retriever of a query engine of LlamaIndex, with its mock model.

python examples/llama_index_retriever.py
"""

from __future__ import annotations

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

import rankblend as rb
from rankblend.adapters.llama_index import MemoryRetriever


def main() -> None:
    with rb.Memory.open(":memory:") as memory:
        memory.remember("Refunds over 500 need approval", scope="tenant:acme", id="policy")
        memory.remember("Ana wants refunds by transfer", scope="tenant:acme/user:7", id="ana")
        memory.remember("Another tenant refunds nothing", scope="tenant:other", id="other")
        retriever = MemoryRetriever(memory, scope="tenant:acme/user:7", top=3)
        engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        response = engine.query("How does Ana get a refund?")
        for node in response.source_nodes:
            print(node.node_id, node.score, node.metadata["contributions"])
        print(response)


if __name__ == "__main__":
    main()

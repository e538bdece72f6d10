"""LangChain: procedures for an agent (`ProcedureMiddleware`), memories for a chain (`MemoryRetriever`).

>>> from rankblend import Memory
>>> from rankblend.adapters.langchain import MemoryRetriever
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Refunds over 500 need approval", scope="tenant:acme")
...     documents = MemoryRetriever(memory=memory, scope="tenant:acme").invoke("refund approval")
>>> documents[0].page_content
'Refunds over 500 need approval'
"""

from __future__ import annotations

from rankblend.errors import MissingDependencyError

try:
    import langchain.agents.middleware  # noqa: F401
    import langchain_core.retrievers  # noqa: F401
except ImportError:
    raise MissingDependencyError("langchain", "langchain", "the LangChain adapter") from None

from rankblend.adapters.langchain.middleware import ProcedureMiddleware
from rankblend.adapters.langchain.retriever import MemoryRetriever
from rankblend.adapters.langchain.tool import find_procedure_tool

__all__ = ["MemoryRetriever", "ProcedureMiddleware", "find_procedure_tool"]

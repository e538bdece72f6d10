"""Procedural memory: procedures that answered questions, ranked by what they are worth trying.

>>> import asyncio
>>> from rankblend.reasonlets import Capture, Graph, Node, Outcome, Provenance, ReasonletMemory
>>> capture = Capture(
...     "tenant:acme", "How do I refund an order?", Graph([Node("refund", "tool")]),
...     Outcome(success=True), Provenance("support agent"),
... )
>>> async def main() -> str:
...     async with ReasonletMemory(lambda texts: [[1.0, 0.0] for _ in texts]) as memory:
...         await memory.remember(capture)
...         matches = await memory.recall("refund an order", scope="tenant:acme")
...         return matches[0].reasonlet.name
>>> asyncio.run(main())
'How do I refund an order?'
"""

from __future__ import annotations

from rankblend.reasonlets.capture import Capture, Outcome, Provenance
from rankblend.reasonlets.drawing import draw_graph, mermaid_text
from rankblend.reasonlets.errors import (
    CaptureBlockedError,
    ReasonletAdapterError,
    ReasonletConflictError,
    ReasonletError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    ReasonletValidationError,
)
from rankblend.reasonlets.graph import Edge, Graph, Node, graph_schema
from rankblend.reasonlets.memory import ReasonletMemory
from rankblend.reasonlets.options import ReasonletOptions
from rankblend.reasonlets.procedures import ProcedureStore
from rankblend.reasonlets.protocols import (
    CaptureGuard,
    ExtractedIntent,
    GuardVerdict,
    IntentExtractor,
    Judgement,
    RunEvaluator,
)
from rankblend.reasonlets.reasonlet import (
    Erased,
    Feedback,
    Metrics,
    Produced,
    Reasonlet,
    ReasonletEvidence,
    ReasonletMatch,
    ReasonletScore,
    ReasonletStatistics,
    Receipt,
    Status,
    VerdictSource,
)
from rankblend.reasonlets.store import (
    InMemoryReasonletStore,
    ReasonletStore,
    SqliteReasonletStore,
)
from rankblend.reasonlets.sync import SyncReasonletMemory

__all__ = [
    "Capture",
    "CaptureBlockedError",
    "CaptureGuard",
    "Edge",
    "Erased",
    "ExtractedIntent",
    "Feedback",
    "Graph",
    "GuardVerdict",
    "InMemoryReasonletStore",
    "IntentExtractor",
    "Judgement",
    "Metrics",
    "Node",
    "Outcome",
    "ProcedureStore",
    "Produced",
    "Provenance",
    "Reasonlet",
    "ReasonletAdapterError",
    "ReasonletConflictError",
    "ReasonletError",
    "ReasonletEvidence",
    "ReasonletMatch",
    "ReasonletMemory",
    "ReasonletNotFoundError",
    "ReasonletOptions",
    "ReasonletScore",
    "ReasonletStatistics",
    "ReasonletStore",
    "ReasonletUnavailableError",
    "ReasonletValidationError",
    "Receipt",
    "RunEvaluator",
    "SqliteReasonletStore",
    "Status",
    "SyncReasonletMemory",
    "VerdictSource",
    "draw_graph",
    "graph_schema",
    "mermaid_text",
]

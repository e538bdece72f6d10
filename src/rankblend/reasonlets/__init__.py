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

from rankblend.errors import (
    CaptureBlockedError,
    ReasonletAdapterError,
    ReasonletConflictError,
    ReasonletError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    ReasonletValidationError,
    raise_invalid,
)
from rankblend.reasonlets._advisors import (
    CaptureGuard,
    Down,
    ExtractedIntent,
    GuardVerdict,
    IntentExtractor,
    Judgement,
    Refused,
    RunEvaluator,
    Said,
    answer_of,
    consult,
    is_async,
)
from rankblend.reasonlets._drawing import draw_graph, mermaid_text
from rankblend.reasonlets._memory import ReasonletMemory
from rankblend.reasonlets._options import ReasonletOptions
from rankblend.reasonlets._portable import read_entries
from rankblend.reasonlets._procedures import ProcedureStore
from rankblend.reasonlets._sync import LoopThread, SyncReasonletMemory
from rankblend.stores.procedures import (
    MAX_NAME,
    MAX_REFERENCE,
    Capture,
    Checked,
    Checks,
    Counts,
    Draft,
    Edge,
    Entry,
    Erased,
    Feedback,
    Graph,
    InMemoryReasonletStore,
    Metrics,
    Node,
    Outcome,
    Produced,
    Provenance,
    Reasonlet,
    ReasonletEvidence,
    ReasonletMatch,
    ReasonletScore,
    ReasonletStatistics,
    ReasonletStore,
    Receipt,
    Run,
    Search,
    SqliteReasonletStore,
    Status,
    VerdictSource,
    graph_schema,
    read_duration,
    read_scope,
)

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

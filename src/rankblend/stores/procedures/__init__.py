"""Procedures and their runs: values, the contract of a store, and the store in a catalog's file.

A procedure lies in the same file as memories, in tables of its own, with counters of its own: a run
wakes nothing that is about memories. What may happen to one is written in `_rules` and nowhere
else; recall, export and the re-embedding of a file work on what is here without knowing how
procedures are judged or ranked (`rankblend.reasonlets`).
"""

from __future__ import annotations

from rankblend.stores.procedures._capture import (
    UNSPECIFIED,
    Capture,
    Outcome,
    Provenance,
    judged_answer,
    named_after,
)
from rankblend.stores.procedures._checks import (
    MAX_INTENT,
    MAX_NAME,
    MAX_REFERENCE,
    Checked,
    Checks,
    read_duration,
    read_scope,
)
from rankblend.stores.procedures._graph import (
    MAX_EDGES,
    MAX_NODES,
    Edge,
    Graph,
    Node,
    graph_schema,
)
from rankblend.stores.procedures._lines import (
    KINDS,
    ProcedureLines,
    procedure_lines,
)
from rankblend.stores.procedures._protocol import (
    LAYER,
    Candidate,
    Counts,
    Draft,
    Entry,
    ReasonletStore,
    Recorded,
    Run,
    Search,
    StoredRun,
    is_sound,
)
from rankblend.stores.procedures._reasonlet import (
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
from rankblend.stores.procedures._rules import (
    load,
    questions,
    relabel,
    replace_vectors,
)
from rankblend.stores.procedures._store import (
    InMemoryReasonletStore,
    SqliteReasonletStore,
    entries_of,
)

__all__ = [
    "Candidate",
    "Counts",
    "Draft",
    "Entry",
    "InMemoryReasonletStore",
    "ReasonletStore",
    "Recorded",
    "Run",
    "Search",
    "SqliteReasonletStore",
    "StoredRun",
]

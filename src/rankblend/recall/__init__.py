"""Recall: a memory's facade, and one query from proposals to an explained ranking."""

from __future__ import annotations

from rankblend.recall._arguments import system_clock
from rankblend.recall._ask import away, in_thread
from rankblend.recall._candidates import Candidates, EvidenceColumn, group_equivalents
from rankblend.recall._compare import Comparison, Move, Swap
from rankblend.recall._derive import RANGE_SLACK, Derived, collapse, derive
from rankblend.recall._embedding import stored_embedder
from rankblend.recall._engine import CATALOG_STORES, default_stores
from rankblend.recall._explain import Explanation, ExplanationRow
from rankblend.recall._inquiry import reads
from rankblend.recall._items import read_edges, read_items
from rankblend.recall._memory import Memory, ScopeLike
from rankblend.recall._portable import read_batch, read_lines, write_lines
from rankblend.recall._propose import Proposals, join_proposals, taken_in_turn
from rankblend.recall._question import Reranker, Serving
from rankblend.recall._rank import (
    FLOOR_TOLERANCE,
    Fate,
    Ranking,
    Verdict,
    below_floor,
    parts_of,
    rank_candidates,
)
from rankblend.recall._result import Match, Recall, StoredMemory, Trace
from rankblend.recall._write import Batch

__all__ = [
    "Candidates",
    "Comparison",
    "EvidenceColumn",
    "Explanation",
    "ExplanationRow",
    "Fate",
    "Match",
    "Memory",
    "Move",
    "Ranking",
    "Recall",
    "Reranker",
    "Serving",
    "StoredMemory",
    "Swap",
    "Trace",
    "Verdict",
    "default_stores",
    "group_equivalents",
    "rank_candidates",
    "read_lines",
    "stored_embedder",
]

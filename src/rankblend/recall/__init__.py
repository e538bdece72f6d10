"""Recall: a memory's facade, and one query from proposals to an explained ranking."""

from __future__ import annotations

from rankblend.recall.candidates import Candidates, EvidenceColumn, group_equivalents
from rankblend.recall.compare import Comparison, Move, Swap
from rankblend.recall.embedding import stored_embedder
from rankblend.recall.engine import default_stores
from rankblend.recall.explain import Explanation, ExplanationRow
from rankblend.recall.match import Match, Recall, StoredMemory
from rankblend.recall.memory import Memory
from rankblend.recall.portable import read_lines
from rankblend.recall.question import Reranker, Serving
from rankblend.recall.ranking import Fate, Ranking, Verdict, rank_candidates
from rankblend.recall.trace import Trace

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

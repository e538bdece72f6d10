"""Reranking by relevance, only while evidence admits it."""

from __future__ import annotations

from rankblend.rerank.admission import (
    Admission,
    AdmissionDecision,
    AdmissionRequest,
    StaticAdmission,
)
from rankblend.rerank.evidence import EvidencePolicy, FamilyEffect, ReleaseEvidence
from rankblend.rerank.ledger import EvidenceAdmission, EvidenceLedger, LedgerEntry
from rankblend.rerank.reranker import RERANKER, RelevanceReranker, admission_request

__all__ = [
    "RERANKER",
    "Admission",
    "AdmissionDecision",
    "AdmissionRequest",
    "EvidenceAdmission",
    "EvidenceLedger",
    "EvidencePolicy",
    "FamilyEffect",
    "LedgerEntry",
    "ReleaseEvidence",
    "RelevanceReranker",
    "StaticAdmission",
    "admission_request",
]

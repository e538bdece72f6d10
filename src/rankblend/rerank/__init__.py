"""Reranking by relevance, only while evidence admits it."""

from __future__ import annotations

from rankblend.rerank._admission import (
    Admission,
    AdmissionDecision,
    AdmissionRequest,
    StaticAdmission,
)
from rankblend.rerank._releases import EvidenceAdmission, EvidenceLedger, LedgerEntry
from rankblend.rerank._reranker import RERANKER, RelevanceReranker, admission_request
from rankblend.rerank._trial import EvidencePolicy, FamilyEffect, ReleaseEvidence

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

"""What commands that replay profiles share: rerank scores for evaluation, and remarks on arms."""

from __future__ import annotations

from rich.text import Text

from rankblend.cli.console import errors
from rankblend.experiment.results import Results
from rankblend.rerank import RelevanceReranker, StaticAdmission

__all__ = ["evaluation_reranker", "print_notes"]


def evaluation_reranker(wanted: bool) -> RelevanceReranker | None:
    """A reranker that is always admitted, for measuring; None to measure baselines."""
    return RelevanceReranker(StaticAdmission(True)) if wanted else None


def print_notes(results: Results) -> None:
    """What is remarkable about the arms that ran, on standard error."""
    for arm, remarks in results.manifest.get("notes", {}).items():
        for remark in remarks:
            errors.print(Text(f"{arm}: {remark}", "yellow"), soft_wrap=True)

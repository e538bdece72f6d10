"""How a recording is laid out: one row a query, one list column per thing known of its candidates.

==========================  =====================================================================
column                      holds
==========================  =====================================================================
id, scope, family, cluster  text
now                         seconds since the epoch that ages were measured to
blank                       the query has no words
judged, grades              ids with a judgment, and their grades
candidates                  references to memories, ids ascending by code point
distance                    scope distance of each candidate
verified                    pairs of candidates joined by a verified link, one after the other
proposed:<list>             positions among the candidates, best first
value:<column>              evidence, NaN where absent
reason:<column>             why it is present or absent (`Reason`), or that it was not recorded
==========================  =====================================================================

``<list>`` is ``store`` for all levels at once or ``store@level``; ``<column>`` is
``store.evidence``; of seeded stores both end in ``#seeding``. A memory stands once in the file,
however many queries found it: scope, id, layer, digest, tokens, vector, times, links.
"""

from __future__ import annotations

from collections.abc import Iterator

from rankblend.experiment.recording.manifest import Manifest, RecordedStore

__all__ = [
    "NOT_RECORDED",
    "evidence_column",
    "evidence_columns",
    "proposal_column",
    "proposal_columns",
]

NOT_RECORDED = -1
"""In place of a `Reason`: nobody asked the store about this candidate from this seeding."""


def proposal_column(store: RecordedStore, *, level: int | None, seeding: int) -> str:
    """The name of one list of proposals."""
    at = "" if level is None else f"@{level}"
    return f"proposed:{store.name}{at}{_suffix(store, seeding)}"


def evidence_column(store: RecordedStore, evidence: str, *, seeding: int) -> str:
    """The name of one column of evidence, to be put behind ``value:`` or ``reason:``."""
    return f"{store.name}.{evidence}{_suffix(store, seeding)}"


def proposal_columns(manifest: Manifest) -> Iterator[str]:
    """All lists of proposals."""
    for store in manifest.stores:
        for seeding in _seedings(store, manifest):
            for level in (None, *range(manifest.levels)):
                yield proposal_column(store, level=level, seeding=seeding)


def evidence_columns(manifest: Manifest) -> Iterator[str]:
    """All columns of evidence."""
    for store in manifest.stores:
        for seeding in _seedings(store, manifest):
            for evidence in store.recorded:
                yield evidence_column(store, evidence, seeding=seeding)


def _seedings(store: RecordedStore, manifest: Manifest) -> range:
    return range(len(manifest.seedings) if store.seeded else 1)


def _suffix(store: RecordedStore, seeding: int) -> str:
    return f"#{seeding}" if store.seeded else ""

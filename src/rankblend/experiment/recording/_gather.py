"""How a recording is laid out, and one query of it from the recalls that asked everything.

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

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.experiment.datasets import JudgedQuery
from rankblend.experiment.recording._manifest import Manifest, RecordedStore
from rankblend.kernels.text import tokens as words
from rankblend.recall import Recall
from rankblend.stores import Key

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


@frozen(eq=False)
class Round:
    """One recall that asked everything.

    Args:
        seeding: Which seeding it had.
        recall: What came of it.
    """

    seeding: int
    recall: Recall


@frozen(eq=False)
class MemoryRow:
    """What holds of a memory whatever is asked.

    Attributes:
        key: Which memory.
        layer, digest, tokens, vector: As ranking reads them; the vector is float32, shape (d,), of
            NaN where it has none, d = 0 where nothing has one.
    """

    key: Key
    layer: str
    digest: int
    tokens: int
    vector: NDArray[np.float32]


@frozen(eq=False)
class Row:
    """One query as it is recorded.

    Attributes:
        query: The query.
        now: When it was asked, seconds since the epoch.
        memories: The candidates, ids ascending.
        distance: int32, shape (n,).
        verified: int32, pairs of positions one after the other.
        proposed: Column → int32, positions best first.
        values: Column → float64, shape (n,), NaN absent.
        reasons: Column → int8, shape (n,).
    """

    query: JudgedQuery
    now: float
    memories: tuple[MemoryRow, ...]
    distance: NDArray[np.int32]
    verified: NDArray[np.int32]
    proposed: dict[str, NDArray[np.int32]] = field(repr=False)
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    reasons: dict[str, NDArray[np.int8]] = field(repr=False)

    @property
    def blank(self) -> bool:
        """The query has no words."""
        return not words(self.query.text)


def gather(query: JudgedQuery, now: float, asked: Sequence[Round], manifest: Manifest) -> Row:
    """Join what several recalls of one query know.

    What a store says about a memory does not depend on what else it is asked about, so the recalls
    agree wherever they overlap; seeded stores are kept apart by seeding.
    """
    memories: dict[str, MemoryRow] = {}
    distances: dict[str, int] = {}
    pairs: dict[tuple[str, str], None] = {}
    for each in asked:
        found = each.recall.ranking.candidates
        for at, key in enumerate(found.keys):
            if key.id in memories:
                continue
            memories[key.id] = MemoryRow(
                key,
                found.layers[at],
                0 if found.digests is None else int(found.digests[at]),
                0 if found.tokens is None else int(found.tokens[at]),
                np.empty(0, np.float32) if found.vectors is None else found.vectors[at],
            )
            distances[key.id] = int(found.distances[at])
        pairs |= dict.fromkeys(found.verified)
    ids = sorted(memories)
    place = {identifier: position for position, identifier in enumerate(ids)}
    row = Row(
        query,
        now,
        tuple(memories[identifier] for identifier in ids),
        np.array([distances[identifier] for identifier in ids], np.int32),
        np.array([place[end] for pair in pairs for end in pair], np.int32),
        {name: np.empty(0, np.int32) for name in proposal_columns(manifest)},
        {name: np.full(len(ids), np.nan) for name in evidence_columns(manifest)},
        {name: np.full(len(ids), NOT_RECORDED, np.int8) for name in evidence_columns(manifest)},
    )
    for each in asked:
        _put_proposals(row, each, manifest, place)
        _put_evidence(row, each, manifest, place)
    return row


def _put_proposals(row: Row, asked: Round, manifest: Manifest, place: dict[str, int]) -> None:
    stores = {store.name: store for store in manifest.stores}
    lists: dict[str, list[tuple[int, int]]] = {}
    for identifier, sources in asked.recall.trace.sources.items():
        for source in sources:
            name = proposal_column(stores[source.store], level=source.level, seeding=asked.seeding)
            lists.setdefault(name, []).append((source.rank, place[identifier]))
    for name, ranked in lists.items():
        row.proposed[name] = np.array([position for _, position in sorted(ranked)], np.int32)


def _put_evidence(row: Row, asked: Round, manifest: Manifest, place: dict[str, int]) -> None:
    candidates = asked.recall.ranking.candidates
    where = np.array([place[identifier] for identifier in candidates.ids], np.int64)
    for store in manifest.stores:
        for evidence in store.recorded:
            name = evidence_column(store, evidence, seeding=asked.seeding)
            for column in candidates.evidence.get(evidence, ()):
                if column.store == store.name:
                    row.values[name][where] = column.values
                    row.reasons[name][where] = column.reasons

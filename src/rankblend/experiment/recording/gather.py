"""One query of a recording, from the recalls that asked everything about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.experiment.datasets import JudgedQuery
from rankblend.experiment.recording.columns import (
    NOT_RECORDED,
    evidence_column,
    evidence_columns,
    proposal_column,
    proposal_columns,
)
from rankblend.experiment.recording.manifest import Manifest
from rankblend.kernels.text import tokens as words
from rankblend.recall import Recall
from rankblend.stores.protocol import Key

__all__ = ["Asked", "Row", "Standing", "gather"]


@frozen(eq=False)
class Asked:
    """One recall that asked everything.

    Args:
        seeding: Which seeding it had.
        recall: What came of it.
    """

    seeding: int
    recall: Recall


@frozen(eq=False)
class Standing:
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
    memories: tuple[Standing, ...]
    distance: NDArray[np.int32]
    verified: NDArray[np.int32]
    proposed: dict[str, NDArray[np.int32]] = field(repr=False)
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    reasons: dict[str, NDArray[np.int8]] = field(repr=False)

    @property
    def blank(self) -> bool:
        """The query has no words."""
        return not words(self.query.text)


def gather(query: JudgedQuery, now: float, asked: Sequence[Asked], manifest: Manifest) -> Row:
    """Join what several recalls of one query know.

    What a store says about a memory does not depend on what else it is asked about, so the recalls
    agree wherever they overlap; seeded stores are kept apart by seeding.
    """
    memories: dict[str, Standing] = {}
    distances: dict[str, int] = {}
    pairs: dict[tuple[str, str], None] = {}
    for each in asked:
        found = each.recall.ranking.candidates
        for at, key in enumerate(found.keys):
            if key.id in memories:
                continue
            memories[key.id] = Standing(
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


def _put_proposals(row: Row, asked: Asked, manifest: Manifest, place: dict[str, int]) -> None:
    stores = {store.name: store for store in manifest.stores}
    lists: dict[str, list[tuple[int, int]]] = {}
    for identifier, sources in asked.recall.trace.sources.items():
        for source in sources:
            name = proposal_column(stores[source.store], level=source.level, seeding=asked.seeding)
            lists.setdefault(name, []).append((source.rank, place[identifier]))
    for name, ranked in lists.items():
        row.proposed[name] = np.array([position for _, position in sorted(ranked)], np.int32)


def _put_evidence(row: Row, asked: Asked, manifest: Manifest, place: dict[str, int]) -> None:
    candidates = asked.recall.ranking.candidates
    where = np.array([place[identifier] for identifier in candidates.ids], np.int64)
    for store in manifest.stores:
        for evidence in store.recorded:
            name = evidence_column(store, evidence, seeding=asked.seeding)
            for column in candidates.evidence.get(evidence, ()):
                if column.store == store.name:
                    row.values[name][where] = column.values
                    row.reasons[name][where] = column.reasons

"""Hierarchies made of flat data sets: some sessions stay with their conversation, others are shared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from rankblend.experiment.datasets import Dataset
from rankblend.relevance import Scope

__all__ = ["CONSTRUCTIONS", "placed", "whereabouts"]

CONSTRUCTIONS = {
    "half shared": 0.5,
    "all near": 0.0,
    "all shared": 1.0,
}
"""Name → share of each conversation's sessions that are stored at the root."""

_CONVERSATION = 2  # levels of a conversation's scope


def placed(dataset: Dataset, share: float, *, seed: int = 0) -> Dataset:
    """The data set with every session moved up: to its conversation, or to the root all share.

    Args:
        dataset: Memories lie at root/conversation/session, queries at root/conversation.
        share: Share of each conversation's sessions, rounded down, that go to the root.
        seed: Which they are.

    Queries are asked at their conversation with reach ``ancestors``: they see their own
    conversation's memories there at distance 0, and everything shared at distance 1, that of other
    conversations too.
    """
    sessions: dict[Scope, dict[Scope, None]] = {}
    for memory in dataset.memories:
        scope = Scope.of(memory["scope"])
        sessions.setdefault(_conversation(scope), {})[scope] = None
    shared: set[Scope] = set()
    for found in sessions.values():
        drawn = sorted(found, key=lambda scope: _draw(seed, scope))
        shared.update(drawn[: int(share * len(drawn))])

    def moved(memory: Mapping[str, Any]) -> Mapping[str, Any]:
        scope = Scope.of(memory["scope"])
        return {**memory, "scope": scope.root if scope in shared else _conversation(scope)}

    return evolve(dataset, memories=tuple(map(moved, dataset.memories)), reach="ancestors")


def whereabouts(dataset: Dataset) -> Sequence[str]:
    """Of each query where its relevant memories lie: ``near``, ``shared`` or ``both``."""
    depth = {str(memory["id"]): len(Scope.of(memory["scope"])) for memory in dataset.memories}
    labels = []
    for query in dataset.queries:
        found = {depth[identifier] for identifier in query.relevant}
        labels.append("both" if len(found) > 1 else "near" if _CONVERSATION in found else "shared")
    return labels


def _conversation(scope: Scope) -> Scope:
    return scope.ancestors()[-_CONVERSATION]


def _draw(seed: int, scope: Scope) -> bytes:
    return hashlib.sha256(f"{seed}|{scope}".encode()).digest()

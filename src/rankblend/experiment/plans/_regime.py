"""Regimes of absence: what the stores would have known had they held less.

A regime is a stated, seeded transformation of a recording. It acts twice: on a store's proposals,
because a store that does not hold a memory does not propose it, and on the evidence observed. Which
memories a store lacks depends on the seed and the memory's id alone, so that it lacks the same ones
for every query and every arm. Evidence that started from another store's proposals (the graph's
seeds) stays as recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend import limits
from rankblend.errors import InvalidArgumentError
from rankblend.recall import Candidates, EvidenceColumn
from rankblend.stores import Reason

_VECTOR_STORE = "vectors"


@runtime_checkable
class Regime(Protocol):
    """Which memories a store holds; everything else follows from it.

    ``name`` says it in words and is unique for what it does: plans compare regimes by it.
    """

    @property
    def name(self) -> str:
        """What the regime does, with its numbers and its seed."""
        ...

    def holds(self, store: str, ids: Sequence[str]) -> NDArray[np.bool_]:
        """bool, shape (n,): whether the store holds each memory."""
        ...


@frozen
class AllObserved:
    """Every store holds what it held when it was recorded."""

    @property
    def name(self) -> str:
        """``all observed``."""
        return "all observed"

    def holds(self, store: str, ids: Sequence[str]) -> NDArray[np.bool_]:  # noqa: ARG002
        """True throughout."""
        return np.ones(len(ids), np.bool_)


@frozen
class Unheld:
    """A store lacks a share of the memories, e.g. those without a vector.

    Args:
        store: Name of the store.
        share: Share of the memories it lacks, in [0, 1].
        seed: Another seed lacks others.
    """

    store: str
    share: float
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        problems = limits.beyond(seed=self.seed)
        if not 0.0 <= self.share <= 1.0:
            problems.append(f"share: expected a number in [0, 1], got {self.share!r}")
        if problems:
            raise InvalidArgumentError(problems)

    @property
    def name(self) -> str:
        """``vectors lacks 30 % (seed 0)``."""
        return f"{self.store} lacks {self.share * 100:g} % (seed {self.seed})"

    def holds(self, store: str, ids: Sequence[str]) -> NDArray[np.bool_]:
        """False for the chosen memories of this store."""
        if store != self.store:
            return np.ones(len(ids), np.bool_)
        kept: NDArray[np.bool_] = _draws(f"{self.seed}|{store}", ids) >= self.share
        return kept


@frozen
class Disjoint:
    """Each memory is held by exactly one of the named stores; others hold what they held.

    Args:
        stores: Two or more distinct names; each gets an equal share.
        seed: Another seed divides differently.
    """

    stores: tuple[str, ...]
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        problems = limits.beyond(seed=self.seed)
        if len(set(self.stores)) != len(self.stores) or len(self.stores) < 2:
            problems.append("stores: expected two or more distinct names")
        if problems:
            raise InvalidArgumentError(problems)

    @property
    def name(self) -> str:
        """``disjoint keywords, vectors (seed 0)``."""
        return f"disjoint {', '.join(self.stores)} (seed {self.seed})"

    def holds(self, store: str, ids: Sequence[str]) -> NDArray[np.bool_]:
        """True where the memory fell to this store, or the store is none of the divided."""
        if store not in self.stores:
            return np.ones(len(ids), np.bool_)
        owner = (_draws(f"{self.seed}|disjoint", ids) * len(self.stores)).astype(np.int64)
        mine: NDArray[np.bool_] = owner == self.stores.index(store)
        return mine


@frozen
class Combined:
    """Several regimes at once: a store holds what all of them leave it."""

    parts: tuple[Regime, ...]

    @property
    def name(self) -> str:
        """The names of the parts."""
        return " and ".join(part.name for part in self.parts) or AllObserved().name

    def holds(self, store: str, ids: Sequence[str]) -> NDArray[np.bool_]:
        """True where all parts say so."""
        held = np.ones(len(ids), np.bool_)
        for part in self.parts:
            held &= part.holds(store, ids)
        return held


def keep_proposed(regime: Regime, store: str, ids: Sequence[str]) -> list[str]:
    """The proposals that the store would still have made, in their order."""
    if isinstance(regime, AllObserved):
        return list(ids)
    return [
        identifier for identifier, held in zip(ids, regime.holds(store, ids), strict=True) if held
    ]


def mask_evidence(regime: Regime, candidates: Candidates) -> Candidates:
    """The candidates as the stores would have observed them.

    Evidence on a memory that its store does not hold is absent with reason UNKNOWN, and a memory
    without a vector has none for similarities between candidates either. Nothing given is changed.
    """
    if isinstance(regime, AllObserved):
        return candidates
    held: dict[str, NDArray[np.bool_]] = {}

    def holds(store: str) -> NDArray[np.bool_]:
        if store not in held:
            held[store] = regime.holds(store, candidates.ids)
        return held[store]

    def masked(column: EvidenceColumn) -> EvidenceColumn:
        kept = holds(column.store)
        if kept.all():
            return column
        return EvidenceColumn(
            column.store,
            np.where(kept, column.values, np.nan),
            np.where(kept, column.reasons, np.int8(Reason.UNKNOWN)).astype(np.int8),
        )

    evidence = {name: tuple(map(masked, columns)) for name, columns in candidates.evidence.items()}
    vectors = candidates.vectors
    if vectors is not None and not holds(_VECTOR_STORE).all():
        vectors = np.where(holds(_VECTOR_STORE)[:, None], vectors, np.float32("nan"))
    return evolve(candidates, evidence=evidence, vectors=vectors)


def _draws(key: str, ids: Sequence[str]) -> NDArray[np.float64]:
    """float64, shape (n,), in [0, 1): one number an id, always the same one for this key."""
    return np.array([_draw(key, identifier) for identifier in ids], np.float64)


@lru_cache(maxsize=2**17)  # every query of a recording meets the same memories
def _draw(key: str, identifier: str) -> float:
    digest = hashlib.blake2b(identifier.encode(), digest_size=8, key=key.encode()[:64]).digest()
    return float((int.from_bytes(digest) >> 11) / 2.0**53)

"""Who is asked for what: visibility, limits and layer permissions of one recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.errors import MemoryContractError
from rankblend.recall.candidates import EvidenceColumn
from rankblend.recall.engine import CATALOG_STORES, Engine
from rankblend.recall.question import Question
from rankblend.relevance.blend import ScopeBlendMode
from rankblend.stores.layers import LayerPolicy
from rankblend.stores.protocol import Key, Reason, Seed, Store, StoreQuery

__all__ = ["Asked", "barred_layers", "masked", "permitted_positions", "reads"]


class Asked:
    """What the stores are asked: who is asked for what, and with which limits on what they see."""

    def __init__(self, engine: Engine, question: Question, query: StoreQuery) -> None:
        self.engine = engine
        self.question = question
        self._unlimited = query
        self._limited: dict[frozenset[str], StoreQuery] = {}
        self.seeded: dict[str, StoreQuery] = {}
        self.query = self._without(frozenset())
        needed, scored = question.profile.evidence_needed, question.profile.evidence_scored
        working = {n: s for n, s in engine.stores.items() if n not in engine.behind}
        self.observers = {n: store for n, store in working.items() if reads(needed, n, store.emits)}
        self.proposers = {
            name: store
            for name, store in working.items()
            if (name in CATALOG_STORES if question.blank else reads(scored, name, store.emits))
        }

    def query_for(self, store: Store) -> StoreQuery:
        """The query, without memories of layers that may contribute nothing this store emits."""
        return self._without(barred_layers(self.engine, store))

    def seeded_query_for(self, store: Store, seeds: tuple[Seed, ...]) -> StoreQuery:
        """The query with seeds, one object for both phases: a graph keeps its walk by query."""
        if store.name not in self.seeded:
            self.seeded[store.name] = self.query_for(store).with_seeds(seeds)
        return self.seeded[store.name]

    def _without(self, layers: frozenset[str]) -> StoreQuery:
        if layers not in self._limited:
            self._limited[layers] = self.engine.admit(
                self._unlimited,
                filters=self.question.filters,
                include_expired=self.question.include_expired,
                without_layers=layers,
            )
        return self._limited[layers]

    def levels(self) -> Sequence[int] | None:
        """The distances to ask one by one, or None to ask for all at once."""
        if self.question.profile.scope.mode is ScopeBlendMode.OFF:
            return None
        return range(max(len(scope) for scope in self.question.scopes))

    def checked(self, store: str, ids: Sequence[str]) -> list[str]:
        """A store's proposals; what it may not propose is an error, whatever else holds.

        A store of the user's answers a query "as of" a time from the present: what this query sees
        now and did not see then is left out.

        Raises:
            MemoryContractError: Something else than ids, or an id that is not visible to this query
                or unknown: the same words for both, so that neither tells that it exists.
        """
        if not all(isinstance(identifier, str) for identifier in ids):
            raise MemoryContractError(f"store {store!r}: expected ids as text from propose")
        found = self.engine.view.locate(self.query, ids)
        missing = [i for i, key in zip(ids, found, strict=True) if key is None]
        if missing and self.engine.present is not None:
            present = self.engine.present.locate(evolve(self.query, admitted=None), missing)
            missing = [i for i, key in zip(missing, present, strict=True) if key is None]
        if missing:
            raise MemoryContractError(
                f"store {store!r} proposed a memory that is not visible to this query or unknown; "
                "a store applies visibility and query.admitted before the limit, and drops what "
                "was removed"
            )
        return [i for i, key in zip(ids, found, strict=True) if key is not None]

    def keys(self, ids: Sequence[str]) -> tuple[Key, ...]:
        """The memory behind each checked id."""
        return tuple(key for key in self.engine.view.locate(self.query, ids) if key is not None)

    def sees(self, identifier: str) -> bool:
        """Whether the query may see a memory of this id, now."""
        return self.engine.view.locate(self.query, [identifier])[0] is not None


def barred_layers(engine: Engine, store: Store) -> frozenset[str]:
    """Layers whose policy permits nothing that a store emits: it is not asked about them."""
    return frozenset(
        layer
        for layer, policy in engine.layers.items()
        if not any(_permits(policy, store, name) for name in store.emits)
    )


def _permits(policy: LayerPolicy, store: Store, evidence: str) -> bool:
    return policy.permits(evidence) or policy.permits(f"{store.name}.{evidence}")


def reads(evidence: Iterable[str], store: str, emits: Sequence[str]) -> bool:
    """Whether a store gives any of this evidence, named ``cosine`` or ``store.cosine``.

    A profile asks a store to propose when its score reads it, and to observe when anything does.
    """
    return any(
        bare in emits and qualifier in ("", store)
        for qualifier, _, bare in (name.rpartition(".") for name in evidence)
    )


def permitted_positions(engine: Engine, store: Store, layers: Sequence[str]) -> NDArray[np.int64]:
    """Candidates a store is asked about: nothing is read that a layer may not contribute."""
    barred = barred_layers(engine, store)
    if not barred:
        return np.arange(len(layers))
    return np.array([i for i, layer in enumerate(layers) if layer not in barred], np.int64)


def masked(
    engine: Engine, store: Store, column: EvidenceColumn, emitted: str, layers: Sequence[str]
) -> EvidenceColumn:
    """A column without the values of memories whose layer may not contribute this evidence."""
    forbidden = {
        layer for layer, policy in engine.layers.items() if not _permits(policy, store, emitted)
    }
    if forbidden:
        hidden = np.array([layer in forbidden for layer in layers], np.bool_)
        column.values[hidden] = np.nan
        column.reasons[hidden] = Reason.NOT_PERMITTED
    return column

"""Who is asked for what: visibility, limits and layer permissions of one recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import evolve

from rankblend.errors import MemoryContractError
from rankblend.profiles import RankingProfile
from rankblend.recall.engine import CATALOG_STORES, Engine
from rankblend.recall.pool import Proposals
from rankblend.recall.question import Question
from rankblend.relevance.blend import ScopeBlendMode
from rankblend.stores.numbered import NumberedIds
from rankblend.stores.protocol import Seed, Store, StoreQuery

__all__ = ["Asked", "reads"]


class Asked:
    """What the stores are asked: who is asked for what, and with which limits on what they see."""

    def __init__(self, engine: Engine, question: Question, query: StoreQuery) -> None:
        self.engine = engine
        self.question = question
        self._unlimited = query
        self._limited: dict[frozenset[str], StoreQuery] = {}
        self.seeded: dict[str, StoreQuery] = {}
        self.query = self._without(frozenset())
        observers, proposers = asked_stores(question.profile, engine.emits)
        working = {n: store for n, store in engine.stores.items() if n not in engine.behind}
        self.observers = {n: store for n, store in working.items() if n in observers}
        if question.blank:
            proposers = frozenset(CATALOG_STORES)
        self.proposers = {n: store for n, store in working.items() if n in proposers}

    def query_for(self, store: Store) -> StoreQuery:
        """The query, without memories of layers that may contribute nothing this store emits."""
        return self._without(self.engine.permissions.barred(store))

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

    def known(
        self, proposals: Mapping[str, Proposals]
    ) -> tuple[Mapping[str, Proposals], dict[str, int]]:
        """What the stores propose; what one may not propose is an error, whatever else holds.

        A store of the user's answers a query "as of" a time from the present: what this query sees
        now and did not see then is left out.

        Returns:
            The proposals, and the serial of each memory among them.

        Raises:
            MemoryContractError: Something else than ids, or an id that is not visible to this query
                or unknown: the same words for both, so that neither tells that it exists.
        """
        lists = [(name, ids) for name, levels in proposals.items() for ids in levels.values()]
        if all(isinstance(ids, NumberedIds) for _, ids in lists):
            everything: Sequence[str] = NumberedIds.joined(ids for _, ids in lists)  # type: ignore[misc]
        else:
            everything = [i for name, ids in lists for i in _texts(name, ids)]
        serials = self.engine.view.serials_of(self.query, everything)
        serial_of = dict(zip(everything, serials.tolist(), strict=True))
        if serials.min(initial=0) >= 0:
            return proposals, serial_of
        known = {
            name: {level: self._without_late(name, ids, serial_of) for level, ids in levels.items()}
            for name, levels in proposals.items()
        }
        return known, serial_of

    def _without_late(
        self, store: str, ids: Sequence[str], serial_of: Mapping[str, int]
    ) -> Sequence[str]:
        missing = [identifier for identifier in ids if serial_of[identifier] < 0]
        if missing and self.engine.present is not None:
            query = evolve(self.query, admitted=None)
            now = self.engine.present.serials_of(query, missing)
            missing = [i for i, serial in zip(missing, now.tolist(), strict=True) if serial < 0]
        if missing:
            raise MemoryContractError(
                f"store {store!r} proposed a memory that is not visible to this query or unknown; "
                "a store applies visibility and query.admitted before the limit, and drops what "
                "was removed"
            )
        return [identifier for identifier in ids if serial_of[identifier] >= 0]

    def sees(self, identifier: str) -> bool:
        """Whether the query may see a memory of this id, now."""
        return bool(self.engine.view.serials_of(self.query, [identifier])[0] >= 0)


def _texts(store: str, ids: Sequence[object]) -> list[str]:
    texts = [each for each in ids if isinstance(each, str)]
    if len(texts) < len(ids):
        raise MemoryContractError(f"store {store!r}: expected ids as text from propose")
    return texts


@lru_cache(maxsize=256)
def asked_stores(
    profile: RankingProfile, emits: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the stores a profile has observe, and propose."""
    return (
        frozenset(name for name, given in emits if reads(profile.evidence_needed, name, given)),
        frozenset(name for name, given in emits if reads(profile.evidence_scored, name, given)),
    )


def reads(evidence: Iterable[str], store: str, emits: Sequence[str]) -> bool:
    """Whether a store gives any of this evidence, named ``cosine`` or ``store.cosine``.

    A profile asks a store to propose when its score reads it, and to observe when anything does.
    """
    return any(
        bare in emits and qualifier in ("", store)
        for qualifier, _, bare in (name.rpartition(".") for name in evidence)
    )

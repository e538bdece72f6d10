"""One recorded query: the candidates that a live recall with a profile would have had."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import RecordingError
from rankblend.experiment.plans import AllObserved, Regime, keep_proposed, mask_evidence
from rankblend.experiment.recording._block import Block
from rankblend.experiment.recording._gather import NOT_RECORDED
from rankblend.experiment.recording._pools import Demand, demand_of
from rankblend.profiles import RankingProfile
from rankblend.recall import (
    Candidates,
    EvidenceColumn,
    Proposals,
    group_equivalents,
    join_proposals,
)
from rankblend.stores import Reason

_AS_RECORDED = AllObserved()


@frozen(eq=False)
class RecordedQuery:
    """A query of a recording.

    Attributes:
        block: Where it lies.
        number: Its position there.
    """

    block: Block
    number: int

    @property
    def id(self) -> str:
        """Its id in the data set."""
        return self.block.ids[self.number]

    @property
    def family(self) -> str:
        """Kind of question."""
        return self.block.texts("family")[self.number]

    @property
    def cluster(self) -> str:
        """What it shares with other queries."""
        return self.block.texts("cluster")[self.number]

    @property
    def grades(self) -> Mapping[str, float]:
        """Id of a judged memory → its grade."""
        return self.block.judgments.grades[self.number]

    @property
    def blank(self) -> bool:
        """It has no words: only the catalog proposes, and nothing reranks."""
        return bool(self.block.blank[self.number])

    def candidates(
        self,
        profile: RankingProfile,
        *,
        without_stores: Collection[str] = (),
        observe: bool = True,
        regime: Regime = _AS_RECORDED,
    ) -> Candidates:
        """Exactly the candidates of a recall with this profile, in pool order.

        Args:
            profile: The recipe.
            without_stores: Stores that neither propose nor observe.
            observe: False keeps the evidence of a store that proposes only on what it proposed
                itself.
            regime: What the stores hold.

        Raises:
            RecordingError: The recording does not hold what the profile asks.
        """
        demand = demand_of(profile, self.block.manifest, without_stores=without_stores)
        return self.pool(demand, profile, observe=observe, regime=regime)

    def pool(
        self,
        demand: Demand,
        profile: RankingProfile,
        *,
        observe: bool = True,
        regime: Regime = _AS_RECORDED,
    ) -> Candidates:
        """`candidates` for a demand that is known already."""
        block, memories = self.block, self.block.memories
        numbers = block.candidates.of(self.number)
        ids = [memories.ids[number] for number in numbers.tolist()]
        proposals = self._proposals(demand, regime, ids)
        pooled = list(join_proposals(proposals, demand.most))
        place = {identifier: position for position, identifier in enumerate(ids)}
        rows = np.array([place[identifier] for identifier in pooled], np.int64)
        evidence: dict[str, list[EvidenceColumn]] = {name: [] for name in demand.evidence}
        for store in demand.observers:
            own = None
            if not observe and store in proposals:
                own = _named(rows, place, proposals[store])
            for name in block.store(store).emits:
                if name in evidence:
                    evidence[name].append(self._column(store, name, demand, rows, own))
        select = profile.select
        digests = memories.digests[numbers[rows]]
        verified = self._verified(ids, frozenset(pooled))
        return mask_evidence(
            regime,
            Candidates(
                tuple(memories.key(number) for number in numbers[rows].tolist()),
                block.lists("distance").of(self.number)[rows].astype(np.int64),
                tuple(memories.layers[number] for number in numbers[rows].tolist()),
                {name: tuple(columns) for name, columns in evidence.items()},
                group_equivalents(pooled, digests, verified),
                self._vectors(demand, numbers[rows])
                if select.duplicate_penalty > 0 or select.diversity > 0
                else None,
                memories.tokens[numbers[rows]] if select.max_tokens is not None else None,
                digests,
                verified,
            ),
        )

    def _proposals(
        self, demand: Demand, regime: Regime, ids: Sequence[str]
    ) -> dict[str, Proposals]:
        block = self.block
        found: dict[str, Proposals] = {}
        for store in demand.blank_proposers if self.blank else demand.proposers:
            levels: dict[int | None, Sequence[str]] = {}
            for level in block.levels(demand):
                positions = block.proposals(store, demand, level=level).of(self.number)
                held = keep_proposed(regime, store, [ids[at] for at in positions.tolist()])
                levels[level] = held[: demand.size]
            found[store] = levels
        return found

    def _column(
        self,
        store: str,
        name: str,
        demand: Demand,
        rows: NDArray[np.int64],
        own: NDArray[np.bool_] | None,
    ) -> EvidenceColumn:
        lists, why = self.block.evidence(store, name, demand)
        values, reasons = lists.of(self.number)[rows], why.of(self.number)[rows]
        if bool((reasons == NOT_RECORDED).any()):
            raise RecordingError(
                f"query {self.id!r}: {store}.{name} was not recorded for all candidates of this "
                "profile; record with this profile among the profiles"
            )
        if own is not None:
            values = np.where(own, values, np.nan)
            reasons = np.where(own, reasons, np.int8(Reason.UNKNOWN)).astype(np.int8)
        return EvidenceColumn(store, values, reasons)

    def _vectors(self, demand: Demand, numbers: NDArray[np.int32]) -> NDArray[np.float32] | None:
        holder = [store.name for store in self.block.manifest.stores if store.holds_vectors]
        if not holder or holder[0] in demand.without_stores:
            return None
        return self.block.memories.vectors[numbers]

    def _verified(self, ids: Sequence[str], pooled: frozenset[str]) -> tuple[tuple[str, str], ...]:
        ends = self.block.lists("verified").of(self.number).tolist()
        pairs = [(ids[a], ids[b]) for a, b in zip(ends[::2], ends[1::2], strict=True)]
        return tuple((a, b) for a, b in pairs if a in pooled and b in pooled)


def _named(
    rows: NDArray[np.int64], place: Mapping[str, int], proposals: Proposals
) -> NDArray[np.bool_]:
    """Which rows are among some proposals."""
    own = [place[identifier] for ids in proposals.values() for identifier in ids]
    return np.isin(rows, np.array(own, np.int64))

"""Recorded queries: the candidates that live recalls with a profile would have had."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend.errors import RecordingError
from rankblend.experiment.plans import AllObserved, Regime, mask_evidence
from rankblend.experiment.recording._block import Block
from rankblend.experiment.recording._gather import NOT_RECORDED
from rankblend.experiment.recording._pools import Demand, demand_of
from rankblend.profiles import RankingProfile
from rankblend.recall import Candidates, EvidenceColumn, group_equivalents, taken_in_turn
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
        only = np.arange(len(self.block)) == self.number
        pools = pools_of(
            self.block, demand, profile, only, observe=observe, regime=regime, ordered=True
        )
        return evolve(pools.candidates, offsets=None)


@frozen(eq=False)
class Pools:
    """The candidates of some queries of a block.

    Attributes:
        candidates: Theirs, one query behind the other.
        rows: int64, shape (n,): where each stands among all candidates of the block.
    """

    candidates: Candidates
    rows: NDArray[np.int64]


def pools_of(
    block: Block,
    demand: Demand,
    profile: RankingProfile,
    wanted: NDArray[np.bool_],
    *,
    observe: bool = True,
    regime: Regime = _AS_RECORDED,
    ordered: bool = False,
) -> Pools:
    """The candidates of several queries under one demand.

    Args:
        block: Theirs.
        demand: What is asked of the recording.
        profile: Whose ranking reads them.
        wanted: bool, shape (q,): which queries of the block.
        observe: False keeps the evidence of a store that proposes only on what it proposed itself.
        regime: What the stores hold.
        ordered: In pool order; else in the order of their ids, which is faster to make.

    Raises:
        RecordingError: The recording does not hold what is asked.
    """
    view = _View(block, demand, regime)
    own: Mapping[str, NDArray[np.bool_]] = {}
    if not (ordered and observe):
        member, own = view.marks(wanted)
    starts, chosen = block.candidates.offsets.tolist(), np.flatnonzero(wanted).tolist()
    found = []
    for query in chosen:
        first = starts[query]
        here = None if ordered else first + np.flatnonzero(member[first : starts[query + 1]])
        if here is None or here.size > demand.most:
            here = view.joined(query)
        found.append(here if ordered else np.sort(here))
    ends = np.cumsum([0, *map(len, found)])
    rows = np.concatenate(found)
    numbers = block.candidates.values[rows]
    keys, digests = block.memories.keys(numbers), block.memories.digests[numbers]
    groups = np.empty(len(rows), np.int64)
    verified: list[tuple[str, str]] = []
    for query, (start, end) in zip(chosen, pairwise(ends.tolist()), strict=True):
        ids = keys.ids[start:end]
        pairs = view.verified(query, frozenset(ids)) if block.has_verified else []
        groups[start:end] = start + group_equivalents(ids, digests[start:end], pairs)
        verified += pairs
    select = profile.select
    candidates = Candidates(
        keys,
        block.lists("distance").values[rows].astype(np.int64),
        block.memories.layers_of(numbers),
        view.evidence(rows, {} if observe else own),
        groups,
        view.vectors(numbers) if select.duplicate_penalty > 0 or select.diversity > 0 else None,
        block.memories.tokens[numbers] if select.max_tokens is not None else None,
        digests,
        tuple(verified),
        ends,
    )
    return Pools(mask_evidence(regime, candidates), rows)


class _View:
    """What a demand has of a block under a regime."""

    def __init__(self, block: Block, demand: Demand, regime: Regime) -> None:
        self._block, self._demand, self._regime = block, demand, regime

    def marks(
        self, wanted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], Mapping[str, NDArray[np.bool_]]]:
        """Which candidates of the block are proposed for some queries, and by whom.

        Returns:
            bool, shape (n,), the candidates; and by store those that it proposed, or that belong to
            a query for which it was not asked to propose.
        """
        block, demand = self._block, self._demand
        starts = block.candidates.offsets[:-1]
        lengths = np.diff(block.candidates.offsets)
        member = np.zeros(len(block.candidates.values), np.bool_)
        own: dict[str, NDArray[np.bool_]] = {}
        for blank, proposers in ((False, demand.proposers), (True, demand.blank_proposers)):
            asked = wanted & (block.blank == blank)
            for store in proposers if asked.any() else ():
                mine, held = np.zeros(len(member), np.bool_), self._held(store)
                for level in block.levels(demand):
                    lists = block.proposals(store, demand, level=level)
                    counts = np.diff(lists.offsets)
                    rows = lists.values + np.repeat(starts, counts)
                    before = np.append(0, np.cumsum(held[rows]))
                    rank = before[1:] - np.repeat(before[lists.offsets[:-1]], counts)
                    taken = held[rows] & (rank <= demand.size) & np.repeat(asked, counts)
                    mine[rows[taken]] = True
                member |= mine
                known = own.setdefault(store, np.ones(len(member), np.bool_))
                known &= mine | ~np.repeat(asked, lengths)
        return member, own

    def joined(self, query: int) -> NDArray[np.int64]:
        """The pool of one query in its order, rows of the block."""
        block, demand = self._block, self._demand
        start = int(block.candidates.offsets[query])
        lists = []
        for level in block.levels(demand):
            for store in sorted(demand.blank_proposers if block.blank[query] else demand.proposers):
                rows = start + block.proposals(store, demand, level=level).of(query)
                lists.append(rows[self._held(store)[rows]][: demand.size].tolist())
        return np.array(list(taken_in_turn(lists, demand.most)), np.int64)

    def evidence(
        self, rows: NDArray[np.int64], own: Mapping[str, NDArray[np.bool_]]
    ) -> dict[str, tuple[EvidenceColumn, ...]]:
        """The columns of all observers.

        Args:
            rows: Of the block.
            own: Store → the only rows on which its evidence counts.
        """
        block, demand = self._block, self._demand
        found: dict[str, list[EvidenceColumn]] = {name: [] for name in demand.evidence}
        for store in demand.observers:
            for name in block.store(store).emits:
                if name not in found:
                    continue
                lists, why = block.evidence(store, name, demand)
                values, reasons = lists.values[rows], why.values[rows]
                if (missing := reasons == NOT_RECORDED).any():
                    row = rows[int(missing.argmax())]
                    query = int(np.searchsorted(block.candidates.offsets, row, side="right")) - 1
                    raise RecordingError(
                        f"query {block.ids[query]!r}: {store}.{name} was not recorded for all "
                        "candidates of this profile; record with this profile among the profiles"
                    )
                if store in own:
                    values = np.where(own[store][rows], values, np.nan)
                    reasons = np.where(own[store][rows], reasons, np.int8(Reason.UNKNOWN))
                found[name].append(EvidenceColumn(store, values, reasons.astype(np.int8)))
        return {name: tuple(columns) for name, columns in found.items()}

    def vectors(self, numbers: NDArray[np.int32]) -> NDArray[np.float32] | None:
        holder = [store.name for store in self._block.manifest.stores if store.holds_vectors]
        if not holder or holder[0] in self._demand.without_stores:
            return None
        return self._block.memories.vectors[numbers]

    def verified(self, query: int, pooled: Collection[str]) -> list[tuple[str, str]]:
        """The verified links between memories of one pool."""
        ids = self._block.memories.keys(self._block.candidates.of(query)).ids
        ends = self._block.lists("verified").of(query).tolist()
        pairs = [(ids[a], ids[b]) for a, b in zip(ends[::2], ends[1::2], strict=True)]
        return [(a, b) for a, b in pairs if a in pooled and b in pooled]

    def _held(self, store: str) -> NDArray[np.bool_]:
        """bool, shape (n,): which candidates of the block a store holds."""
        candidates = self._block.candidates.values
        if isinstance(self._regime, AllObserved):
            return np.ones(len(candidates), np.bool_)
        return self._regime.holds(store, self._block.memories.keys(candidates).ids)

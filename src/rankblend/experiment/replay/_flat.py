"""The tables of a whole block at once, on arrays in which its queries lie end to end.

The same tables as `tables.query_table` makes one by one: curves and nodes that look at one memory
at a time are applied to all of them together, those that look at the pool to each query's part.
Queries with equivalents among their candidates, or with more proposals than the pool holds, are
made one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError
from rankblend.experiment.plans import AllObserved
from rankblend.experiment.recording import NOT_RECORDED, Block, Demand, Kept, Lists, RecordedQuery
from rankblend.experiment.replay._arms import Run
from rankblend.experiment.replay._batches import WeightBatch
from rankblend.experiment.replay._stacks import Stack, stacked
from rankblend.experiment.replay._tables import QueryTable, fills_of, query_table, survivors
from rankblend.profiles import RankingProfile
from rankblend.relevance import (
    COMPOSERS,
    Node,
    ScopeBlendMode,
    apply_curve,
    compose_table,
    is_batch_relative,
    node_inputs,
)

# Kept of each block for the next batch or the next replay.
_KEPT_POOLS, _KEPT_SIGNALS, _KEPT_STACKS = 8, 32, 2

FloatArray = NDArray[np.float64]


@frozen(eq=False)
class _Pool:
    """The pools of a block's queries under one demand.

    Attributes:
        rows: int64, shape (n,): candidates of the block, query by query, ids ascending.
        offsets: int64, shape (q + 1,).
        alone: Queries that are made one by one; their pool here is empty.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    alone: frozenset[int]

    def parts(self) -> Sequence[slice]:
        """Where each query's rows are."""
        return [slice(a, b) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


class FlatBlock:
    """A block with what has been worked out on it: pools by demand, signals by recipe.

    Args:
        block: The block.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self._pools: Kept[_Pool] = Kept(_KEPT_POOLS)
        self._signals: Kept[FloatArray] = Kept(_KEPT_SIGNALS)
        self._stacks: Kept[list[Stack]] = Kept(_KEPT_STACKS)

    @classmethod
    def of(cls, block: Block) -> FlatBlock:
        """The one of a block, with what earlier replays worked out."""
        known = block.memo.get("flat")
        if not isinstance(known, cls):
            known = block.memo["flat"] = cls(block)
        return known

    def stacks(self, batch: WeightBatch) -> list[Stack]:
        """The tables of all queries, stacked.

        Raises:
            RankblendError: As `query_table`.
        """
        return self._stacks.get(batch.recipe, lambda: stacked(self._all(batch.run), batch))

    def _all(self, run: Run) -> list[QueryTable]:
        queries = [RecordedQuery(self.block, number) for number in range(len(self.block))]
        if not _is_plain(run):
            return [query_table(query, run) for query in queries]
        pool = self._pool(run.demand)
        try:
            made = self._made(run, pool)
        except InvalidArrayError:  # a curve that cannot take what was recorded: told by query
            return [query_table(query, run) for query in queries]
        return [
            query_table(query, run) if number in pool.alone else made[number]
            for number, query in enumerate(queries)
        ]

    def _made(self, run: Run, pool: _Pool) -> list[QueryTable]:
        profile = run.profile
        signals = {name: self._signal(profile, name, run.demand) for name in profile.signals_needed}
        columns = _inputs(run, signals, pool)
        here = ~np.isnan(columns)
        fills, counts = fills_of(run.root)
        n = len(pool.rows)
        absent = np.full(n, np.nan)
        alive = survivors(run, lambda name: signals.get(name, absent), columns)
        kept = np.flatnonzero(alive)
        number = np.repeat(np.arange(len(self.block)), np.diff(pool.offsets))
        distances = self.block.lists("distance").values[pool.rows].astype(np.int64)
        keys: list[NDArray[np.generic]] = []
        for name in reversed(profile.ties):
            tie = signals[name][kept]
            keys.append(np.where(np.isnan(tie), np.inf, -tie))
        if profile.scope.mode is not ScopeBlendMode.OFF:
            keys.append(distances[kept])
        order = kept[np.lexsort([*keys, number[kept]])] if keys else kept
        values = np.where(here, columns, fills[:, None])[:, order]
        present = (here | counts[:, None])[:, order]
        ends = np.searchsorted(number[order], np.arange(len(self.block) + 1))
        judged, grades = self._judged(pool.rows[order], ends)
        observed = np.add.reduceat(
            np.concatenate([here, np.zeros((len(here), 1), np.bool_)], axis=1),
            np.minimum(pool.offsets[:-1], n), axis=1, dtype=np.int64,
        )  # fmt: skip
        sizes = np.diff(pool.offsets)
        coverage = np.where(sizes > 0, observed, 0) / np.maximum(sizes, 1)
        return [
            QueryTable(
                values[:, part], present[:, part], distances[order[part]],
                judged[at], grades[at], coverage[:, at],
            )
            for at, part in enumerate(slice(a, b) for a, b in pairwise(ends.tolist()))
        ]  # fmt: skip

    def _judged(
        self, rows: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[list[NDArray[np.int64]], list[FloatArray]]:
        """Per query which of its rows are judged, and the grades."""
        grades = np.full(len(self.block.candidates.values), np.nan)
        at, given = self.block.judged_rows
        grades[at] = given
        found = grades[rows]
        where = np.flatnonzero(~np.isnan(found))
        cut = np.searchsorted(where, ends)
        parts = [where[a:b] for a, b in pairwise(cut.tolist())]
        return (
            [part - start for part, start in zip(parts, ends[:-1], strict=True)],
            [found[part] for part in parts],
        )

    def _pool(self, demand: Demand) -> _Pool:
        return self._pools.get(demand, lambda: self._make_pool(demand))

    def _make_pool(self, demand: Demand) -> _Pool:
        block, offsets = self.block, self.block.candidates.offsets
        member = np.zeros(len(block.candidates.values), np.bool_)
        for blank, proposers in ((False, demand.proposers), (True, demand.blank_proposers)):
            asked = block.blank == blank
            if asked.any():
                for store in proposers:
                    for level in block.levels(demand):
                        lists = block.proposals(store, demand, level=level)
                        _mark(member, lists, offsets, asked, demand.size)
        sizes = np.add.reduceat(np.append(member, False), offsets[:-1], dtype=np.int64)
        sizes[np.diff(offsets) == 0] = 0
        alone = set(np.flatnonzero(sizes > demand.most).tolist()) | self._with_equivalents(member)
        for query in alone:
            member[offsets[query] : offsets[query + 1]] = False
            sizes[query] = 0
        return _Pool(
            np.flatnonzero(member), np.concatenate([[0], np.cumsum(sizes)]), frozenset(alone)
        )

    def _with_equivalents(self, member: NDArray[np.bool_]) -> set[int]:
        """Queries in whose pools two memories have one text, or are joined by a verified link."""
        block, offsets = self.block, self.block.candidates.offsets
        rows = np.flatnonzero(member)
        query = np.searchsorted(offsets, rows, side="right") - 1
        digests = block.memories.digests[block.candidates.values[rows]]
        order = np.lexsort([digests, query])
        digests, query = digests[order], query[order]
        same = (digests[1:] == digests[:-1]) & (query[1:] == query[:-1])
        found = set(query[1:][same].tolist())
        verified = block.lists("verified").offsets
        return found | set(np.flatnonzero(np.diff(verified)).tolist())

    def _signal(self, profile: RankingProfile, name: str, demand: Demand) -> FloatArray:
        key = (demand, profile.kinds(name), _recipe(profile, name))
        return self._signals.get(key, lambda: self._make_signal(profile, name, demand))

    def _make_signal(self, profile: RankingProfile, name: str, demand: Demand) -> FloatArray:
        recipe, pool = profile.signals[name], self._pool(demand)
        meanings = profile.kinds(name)

        def curved(columns: Sequence[FloatArray]) -> FloatArray:
            def apply(part: slice) -> FloatArray:
                return apply_curve(recipe.curve, [column[part] for column in columns], meanings)

            return _by_query(apply, pool, relative=is_batch_relative(recipe.curve))

        if recipe.of:
            return curved([self._signal(profile, part, demand) for part in recipe.of])
        value = np.full(len(pool.rows), np.nan)
        for store in self._emitting(recipe.evidence[0], demand):
            columns = [self._column(store, one, demand, pool) for one in recipe.evidence]
            value = np.fmax(value, curved(columns))
        return value

    def _emitting(self, evidence: str, demand: Demand) -> list[str]:
        """The observing stores that give a kind of evidence."""
        qualifier, _, bare = evidence.rpartition(".")
        return [
            store
            for store in demand.observers
            if qualifier in ("", store) and bare in self.block.store(store).emits
        ]

    def _column(self, store: str, evidence: str, demand: Demand, pool: _Pool) -> FloatArray:
        """What one store observed; NaN throughout if it is not one of its kinds."""
        if store not in self._emitting(evidence, demand):
            return np.full(len(pool.rows), np.nan)
        values, reasons = self.block.evidence(store, evidence.rpartition(".")[2], demand)
        if bool((reasons.values[pool.rows] == NOT_RECORDED).any()):
            raise InvalidArrayError("evidence", "to be recorded", "not recorded")
        found: FloatArray = values.values[pool.rows]
        return found


def _recipe(profile: RankingProfile, name: str) -> tuple[object, ...]:
    """How a signal comes about, whatever it and the signals it is made of are called."""
    recipe = profile.signals[name]
    parts = tuple(_recipe(profile, part) for part in recipe.of)
    return (recipe.evidence, recipe.curve, parts)


def _is_plain(run: Run) -> bool:
    """Whether the recording is taken as it is, and stores that disagree are no error."""
    profile = run.profile
    return (
        run.arm.observe
        and isinstance(run.arm.regime, AllObserved)
        and all(profile.signals[name].merge != "error" for name in profile.signals_needed)
    )


def _inputs(run: Run, signals: dict[str, FloatArray], pool: _Pool) -> FloatArray:
    """float64, shape (s, n): the inputs of the score, nodes evaluated, NaN absent."""
    nodes, root = run.profile.nodes, run.root
    names = tuple(signals)
    matrix = np.column_stack([signals[name] for name in names])
    columns = np.full((len(root.weights), len(pool.rows)), np.nan)
    for column, (name, _) in zip(columns, root.weights, strict=True):
        if name in nodes:
            node = nodes[name]

            def evaluate(part: slice, node: Node = node) -> FloatArray:
                made = compose_table(node, nodes, (names, matrix[part]), contributions=False)
                return np.where(made.present, made.scores, np.nan)

            column[:] = _by_query(evaluate, pool, relative=not _is_pointwise(node, run.profile))
        elif name in signals:
            column[:] = signals[name]
    return columns


def _is_pointwise(node: Node, profile: RankingProfile) -> bool:
    """Whether neither a node nor any below it looks at the pool."""
    return COMPOSERS[node.compose].pointwise and all(
        _is_pointwise(profile.nodes[name], profile)
        for name in node_inputs(node)
        if name in profile.nodes
    )


def _by_query(
    evaluate: Callable[[slice], FloatArray], pool: _Pool, *, relative: bool
) -> FloatArray:
    """Evaluate all rows at once, or each query's by themselves."""
    if not relative:
        return evaluate(slice(0, len(pool.rows)))
    parts = [evaluate(part) for part in pool.parts()]
    return np.concatenate([np.empty(0), *parts])


def _mark(
    member: NDArray[np.bool_],
    lists: Lists,
    candidates: NDArray[np.int64],
    asked: NDArray[np.bool_],
    size: int,
) -> None:
    """Mark the first ``size`` of each list of the queries asked."""
    lengths = np.diff(lists.offsets)
    rank = np.arange(len(lists.values)) - np.repeat(lists.offsets[:-1], lengths)
    taken = (rank < size) & np.repeat(asked, lengths)
    member[(lists.values + np.repeat(candidates[:-1], lengths))[taken]] = True

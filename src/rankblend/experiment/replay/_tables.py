"""What the scores of a block's queries are made of, padded to one length: what is computed on at once.

The signals are made by the functions a recall uses, on all queries of a block together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.caches import Lru
from rankblend.experiment.recording import Block, Pools, pools_of
from rankblend.experiment.replay._arms import Run
from rankblend.experiment.replay._batches import PATTERN_BITS, WeightBatch
from rankblend.recall import Derived, below_floor, collapse, derive, parts_of
from rankblend.relevance import ScopeBlendMode, SignalTable, compose_table, node_plan, rank_order

_POOLS, _SIGNALS, _STACKS = 4, 8, 2  # of each block, for the next arms or the next replay
_CELLS = 8_192  # of a stack, as long as a single query does not need more
_WORD = 8  # padded lengths are a multiple of it: marks are counted a word at a time
# Added to every present weight of the quotients, which are compared first: 0 / 0 becomes 0.
_LEAST = 2.0**-100

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]


@frozen(eq=False)
class BlockTable:
    """The m candidates of q queries that can be ranked, and the s inputs of their score.

    Queries lie one behind the other. Rows of each are in the order in which equal scores are
    ordered: by distance where the profile blends, then by its tie-breaks, then by id.
    Representatives only; what a floor on a signal or a required input drops is not among them.

    Attributes:
        offsets: int64, shape (q + 1,): where the rows of each query begin.
        values: float64, shape (s, m): what each input adds up as, fills included, 0 where it adds
            nothing.
        present: bool, shape (s, m): whether it counts as present.
        distances: int64, shape (m,): where the profile blends, ascending within a query.
        grades: float64, shape (m,): what was judged, NaN where nothing was.
        coverage: float64, shape (s, q): share of the pool for which each input was observed.
    """

    offsets: NDArray[np.int64]
    values: NDArray[np.float64]
    present: NDArray[np.bool_]
    distances: NDArray[np.int64]
    grades: NDArray[np.float64]
    coverage: NDArray[np.float64]


@frozen(eq=False)
class Stack:
    """G queries with at most M candidates and s inputs each; see `BlockTable`.

    Attributes:
        queries: int64, shape (G,): their numbers in the block.
        sizes: int64, shape (G,): how many of the M rows are candidates; the others are padding.
        padding: bool, shape (G, M).
        values: float64, shape (s, G, M), 0 in the padding.
        present: bool, shape (s, G, M).
        patterns: int64, shape (G, M): presence as one number a row, for up to 8 inputs.
        complete: Every input of every candidate counts as present.
        distances: int64, shape (G, M).
        one_distance: The candidates of each query are all at one distance.
        judged_queries: int64, shape (r,), ascending: positions in the stack.
        judged_rows: int64, shape (r,): which of the query's rows are judged.
        grades: float64, shape (r,).
        coverage: float64, shape (s, G).
        above: float32, shape (t, G·M): what the terms of a batch are multiplied with to make the
            numerators of scores; −1 in the padding.
        below: float32, shape (t, G·M): the same for the denominators.
    """

    queries: IntArray
    sizes: IntArray
    padding: NDArray[np.bool_]
    values: FloatArray
    present: NDArray[np.bool_]
    patterns: IntArray
    complete: bool
    distances: IntArray
    one_distance: bool
    judged_queries: IntArray
    judged_rows: IntArray
    grades: FloatArray
    coverage: FloatArray
    above: Float32Array
    below: Float32Array

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def width(self) -> int:
        """M."""
        return int(self.padding.shape[1])

    @property
    def judged_counts(self) -> IntArray:
        """int64, shape (G,)."""
        return np.bincount(self.judged_queries, minlength=len(self))


def stacked(table: BlockTable, batch: WeightBatch) -> list[Stack]:
    """The queries of a block, those of similar length together."""
    sizes = np.diff(table.offsets)
    return [
        _stack(table, numbers, batch) for numbers in _cut(np.argsort(sizes, kind="stable"), sizes)
    ]


def _cut(order: IntArray, sizes: IntArray) -> Iterator[IntArray]:
    """Parts of the queries in ascending order of size, few enough for the cells of a stack."""
    start = 0
    for stop in range(1, len(order) + 1):
        following = order[stop] if stop < len(order) else None
        if following is None or (stop - start + 1) * _padded(int(sizes[following])) > _CELLS:
            yield order[start:stop]
            start = stop


def _padded(size: int) -> int:
    return max(-(-size // _WORD), 1) * _WORD


def _stack(table: BlockTable, numbers: IntArray, batch: WeightBatch) -> Stack:
    starts, sizes = table.offsets[numbers], np.diff(table.offsets)[numbers]
    here = np.arange(_padded(int(sizes.max()))) < sizes[:, None]
    # Where each row goes, query by query, and where it comes from.
    to = np.flatnonzero(here)
    at, within = np.divmod(to, here.shape[1])
    source = starts[at] + within

    def padded(column: NDArray[Any]) -> NDArray[Any]:
        made = np.zeros((*column.shape[:-1], here.size), column.dtype)
        made[..., to] = column[..., source]
        return made.reshape(*column.shape[:-1], *here.shape)

    values, present, distances = map(padded, (table.values, table.present, table.distances))
    judged = np.flatnonzero(~np.isnan(table.grades[source]))
    above, below = _parts(values, present, ~here, batch)
    return Stack(
        queries=numbers,
        sizes=sizes,
        padding=~here,
        values=values,
        present=present,
        patterns=_patterns(present),
        complete=bool((present | ~here).all()),
        distances=distances,
        one_distance=bool((np.where(here, distances, distances[:, :1]) == distances[:, :1]).all()),
        judged_queries=at[judged],
        judged_rows=within[judged],
        grades=table.grades[source[judged]],
        coverage=table.coverage[:, numbers],
        above=above,
        below=below,
    )


def _parts(
    values: FloatArray, present: NDArray[np.bool_], padding: NDArray[np.bool_], batch: WeightBatch
) -> tuple[Float32Array, Float32Array]:
    """What the terms of the batch meet above and below the line: inputs, prior, and constants."""
    here = ~padding
    pulled = [] if batch.prior is None else [batch.prior * here]
    above = np.stack([*values, *pulled, np.where(padding, -1.0, 0.0)])
    below = np.stack([
        *(np.broadcast_to(here, present.shape) if batch.by_all else present),
        *(here for _ in pulled),
        np.where(padding, 1.0, _LEAST),
    ])  # fmt: skip
    return (
        above.reshape(len(above), -1).astype(np.float32),
        below.reshape(len(below), -1).astype(np.float32),
    )


def _patterns(present: NDArray[np.bool_]) -> IntArray:
    """Which inputs are present, shape (s, G, M), as one number a row; 0 beyond 8 inputs."""
    if len(present) > PATTERN_BITS:
        return np.zeros(present.shape[1:], np.int64)
    return np.tensordot(1 << np.arange(len(present)), present, axes=1)


class BlockTables:
    """A block with what has been worked out on it: pools by demand, signals by recipe.

    Args:
        block: The block.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self._pools: Lru[Hashable, Pools] = Lru(_POOLS)
        self._stacks: Lru[Hashable, list[Stack]] = Lru(_STACKS)
        self._signals: Lru[Hashable, tuple[Derived, NDArray[np.int64]]] = Lru(_SIGNALS)

    @classmethod
    def of(cls, block: Block) -> BlockTables:
        """The one of a block, with what earlier replays worked out."""
        known = block.memo.get("prepared")
        if not isinstance(known, cls):
            known = block.memo["prepared"] = cls(block)
        return known

    def stacks(self, batch: WeightBatch) -> list[Stack]:
        """The table of all queries, stacked.

        Raises:
            RankblendError: As `table`.
        """
        return self._stacks.get(batch.recipe, lambda: stacked(self.table(batch.run), batch))

    def table(self, run: Run) -> BlockTable:
        """The table of all queries, by the functions that a recall uses.

        Raises:
            RankblendError: The recording does not hold what the profile asks, or its merge rule
                finds two stores that disagree.
        """
        profile, root = run.profile, run.root
        asked = (run.demand, run.arm.observe, run.arm.regime.name)
        pools = self._pools.get(asked, partial(self._make_pools, run))
        candidates = pools.candidates
        recipes = tuple((name, profile.signals[name], profile.kinds(name))
                        for name in profile.signals_needed)  # fmt: skip
        raised, rows = self._signals.get((asked, recipes), partial(_derived, run, pools))
        parts = parts_of(candidates, rows) or []
        table = raised.table if rows.size == len(candidates) else raised.table.take(rows)

        columns = np.empty((len(root.weights), rows.size))
        for column, (name, _) in zip(columns, root.weights, strict=True):
            column[:] = input_column(run, table, name, parts)
        here, plan = ~np.isnan(columns), node_plan(root)
        alive = np.ones(rows.size, np.bool_)
        for name in plan.required:
            alive &= here[plan.names.index(name)]
        for name, floor in profile.floors.signals.items():
            alive &= ~below_floor(floor, table.column(name))

        distances = candidates.distances[rows]
        left = np.flatnonzero(alive)
        query = np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts])[left]
        equal = np.zeros(left.size)
        order = left[rank_order(
            -query.astype(np.float64), distances[left], equal, [table.column(name)[left] for name in profile.ties],
            None, blend=profile.scope.mode is not ScopeBlendMode.OFF,
        )]  # fmt: skip
        sizes = np.array([part.stop - part.start for part in parts])
        observed = np.stack([np.count_nonzero(here[:, part], axis=1) for part in parts], axis=1)
        return BlockTable(
            np.searchsorted(query, np.arange(len(parts) + 1)),
            np.where(here, columns, np.nan_to_num(plan.fills)[:, None])[:, order],
            (here | plan.counts[:, None])[:, order],
            distances[order],
            self._grades[pools.rows[rows[order]]],
            observed / np.maximum(sizes, 1),
        )

    def _make_pools(self, run: Run) -> Pools:
        return pools_of(
            self.block, run.demand, run.profile, np.ones(len(self.block), np.bool_),
            observe=run.arm.observe, regime=run.arm.regime,
        )  # fmt: skip

    @property
    def _grades(self) -> NDArray[np.float64]:
        grades = np.full(len(self.block.candidates.values), np.nan)
        at, given = self.block.judged_rows
        grades[at] = given
        return grades


def _derived(run: Run, pools: Pools) -> tuple[Derived, NDArray[np.int64]]:
    derived, rows, _ = collapse(
        run.profile, pools.candidates, derive(run.profile, pools.candidates)
    )
    return derived, rows


def input_column(
    run: Run, table: SignalTable, name: str, parts: list[slice]
) -> NDArray[np.float64]:
    """float64, shape (n,): an input of the score, evaluated if it is a node, NaN absent."""
    nodes = run.profile.nodes
    if name not in nodes:
        return table.column(name)
    made = compose_table(nodes[name], nodes, table, contributions=False, parts=parts)
    return np.where(made.present, made.scores, np.nan)

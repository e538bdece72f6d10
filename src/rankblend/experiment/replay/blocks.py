"""One block of queries under all arms: what a worker does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import RankblendError
from rankblend.experiment.measures import Measure, measure_rankings
from rankblend.experiment.recording import RecordedQuery
from rankblend.experiment.recording.block import Block
from rankblend.experiment.replay.arms import Run
from rankblend.experiment.replay.batches import WeightBatch
from rankblend.experiment.replay.flat import FlatBlock
from rankblend.experiment.replay.ranks import place_judged
from rankblend.experiment.replay.scores import Workspace
from rankblend.experiment.replay.stacks import Stack
from rankblend.recall import Ranking, rank_candidates

__all__ = ["BlockResult", "Work", "run_block"]

_ARMS = 256  # whose grades are in memory at once


@frozen(eq=False)
class Work:
    """What is to be done with every block.

    Attributes:
        arms: How many rows the results have.
        batches: Arms run together.
        others: Arms run one by one.
        measures: What is measured.
        top: Depth of each result.
    """

    arms: int
    batches: tuple[WeightBatch, ...]
    others: tuple[Run, ...]
    measures: tuple[Measure, ...]
    top: int

    @property
    def depth(self) -> int:
        """Ranks that the measures look at."""
        return max(min(m.cutoff or self.top, self.top) for m in self.measures)


@frozen(eq=False)
class BlockResult:
    """What came of one block of q queries; see `Results`.

    Attributes:
        values: Measure → float64, shape (a, q).
        empty: bool, shape (a, q).
        coverage: float64, shape (a, q).
        failed: Row of an arm → why it could not be run.
    """

    values: dict[str, NDArray[np.float64]]
    empty: NDArray[np.bool_]
    coverage: NDArray[np.float64]
    failed: dict[int, str] = field(factory=dict)


def run_block(block: Block, work: Work) -> BlockResult:
    """Measure all arms on the queries of a block."""
    shape = (work.arms, len(block))
    result = BlockResult(
        {measure.name: np.full(shape, np.nan) for measure in work.measures},
        np.zeros(shape, np.bool_),
        np.full(shape, np.nan),
    )
    flat = FlatBlock.of(block)
    for batch in work.batches:
        try:
            stacks = flat.stacks(batch)
        except RankblendError as error:
            result.failed.update(dict.fromkeys(batch.numbers.tolist(), str(error)))
            continue
        with np.errstate(all="ignore"):  # an underflow is no error
            _run_batch(block, work, batch, stacks, result)
    for run in work.others:
        try:
            rankings = _run_one(block, work, run, result)
        except RankblendError as error:
            result.failed[run.number] = str(error)
            continue
        for name, values in measure_rankings(work.measures, rankings, block.judgments).items():
            result.values[name][run.number] = values
    return result


def _run_batch(
    block: Block,
    work: Work,
    batch: WeightBatch,
    stacks: Sequence[Stack],
    result: BlockResult,
) -> None:
    workspace, depth = Workspace(), work.depth
    returned = np.zeros((len(batch), len(block)), np.int64)
    for start in range(0, len(batch), _ARMS):
        part = slice(start, min(start + _ARMS, len(batch)))
        # Rank by rank, as the measures go through them.
        placed = np.full((depth, part.stop - start, len(block)), np.nan)
        for stack in stacks:
            found = place_judged(stack, batch, part, depth, workspace)
            query = stack.queries[stack.judged_queries[found.judged]]
            placed[found.ranks - 1, found.arms, query] = stack.grades[found.judged]
            returned[part, stack.queries] = np.minimum(found.ranked, work.top)
        for measure in work.measures:
            result.values[measure.name][batch.numbers[part]] = measure.of_grades(
                np.moveaxis(placed, 0, -1), block.judgments, returned=returned[part]
            )
    result.empty[batch.numbers] = returned == 0
    observed = np.empty((len(batch.weights), len(block)))
    for stack in stacks:
        observed[:, stack.queries] = stack.coverage
    result.coverage[batch.numbers] = _shares(batch.weights, observed)


def _shares(weights: NDArray[np.float64], observed: NDArray[np.float64]) -> NDArray[np.float64]:
    """(s, K) weights and (s, q) shares observed to (K, q): the share of the weight observed."""
    whole = weights.sum(axis=0)[:, None]
    found: NDArray[np.float64] = weights.T @ observed
    shares: NDArray[np.float64] = np.divide(
        found, whole, out=np.zeros_like(found), where=whole > 0.0
    )
    return shares


def _run_one(block: Block, work: Work, run: Run, result: BlockResult) -> list[tuple[str, ...]]:
    """What an arm returns for each query."""
    rankings: list[tuple[str, ...]] = []
    for number in range(len(block)):
        query = RecordedQuery(block, number)
        candidates = query.pool(
            run.demand, run.profile, observe=run.arm.observe, regime=run.arm.regime
        )
        node = "score" if query.blank else run.node
        ranking = rank_candidates(run.profile, candidates, top=work.top, node=node)
        rankings.append(tuple(candidates.ids[int(ranking.rows[row])] for row in ranking.shown))
        result.empty[run.number, number] = not rankings[-1]
        result.coverage[run.number, number] = _coverage(ranking, run)
    return rankings


def _coverage(ranking: Ranking, run: Run) -> float:
    table = ranking.derived.table
    observed = [
        ranking.composition.children[name].present
        if name in ranking.composition.children
        else ~np.isnan(table.column(name)[ranking.rows])
        for name, _ in run.root.weights
    ]
    if not ranking.rows.size:
        return 0.0
    weights = np.array([[weight] for _, weight in run.root.weights])
    return float(_shares(weights, np.array(observed).mean(axis=1)[:, None])[0, 0])

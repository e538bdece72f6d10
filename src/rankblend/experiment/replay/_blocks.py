"""One block of queries under all arms: scores, ranks of judged memories, measures.

A measure looks at where the judged memories stand, down to its cutoff. Most of them stand below it
under most weightings: a lower bound of the score at the cutoff tells. Of the others the ranks are
the number of memories that come before, which are counted.

Comparisons are made between scores in single precision first. Those closer than what rounding can
have done are decided by scores made as a recall makes them, with the same bits, and by the same
tie-breaks; so nothing is left to a tolerance.

Source: the filter is that of exact geometric predicates: Shewchuk, Adaptive precision
floating-point arithmetic and fast robust geometric predicates, 1997.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import RankblendError
from rankblend.experiment.measures import Measure, measure_rankings
from rankblend.experiment.recording import Block, pools_of
from rankblend.experiment.replay._arms import Run
from rankblend.experiment.replay._batches import WeightBatch
from rankblend.experiment.replay._tables import BlockTables, Stack
from rankblend.kernels.blend import BELOW_TIPS
from rankblend.recall import FLOOR_TOLERANCE, Ranking, parts_of, rank_candidates
from rankblend.relevance import COVERAGE_TOLERANCE, Require, ScopeBlendMode

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TINY = math.ulp(0.0)
_TRIED, _WORTH = 1_000, 0.3  # pairs after which the filter is judged; share it may leave open


class Workspace:
    """Memory for the scores of some queries, used again for the next.

    Arrays of this size come from the system page by page whenever they are asked for; that took
    more time than filling them.

    Attributes:
        filters: Whether comparing near scores first is worth it: where many scores tie, as with few
            distinct values, it decides little.
    """

    def __init__(self) -> None:
        self._arrays = [np.empty(0, np.uint8) for _ in range(3)]
        self._unsure = self._tried = 0
        self.filters = True

    def note(self, unsure: int, tried: int) -> None:
        """Tell how many pairs of a query and an arm the filter could not decide."""
        self._unsure, self._tried = self._unsure + unsure, self._tried + tried
        self.filters = self._tried < _TRIED or self._unsure < _WORTH * self._tried

    def matrix(
        self, number: int, rows: int, columns: int, dtype: type[Any] = np.float64
    ) -> NDArray[Any]:
        """One of three arrays, shape (rows, columns), with whatever is in it."""
        size = rows * columns * np.dtype(dtype).itemsize
        if self._arrays[number].size < size:
            self._arrays[number] = np.empty(2 * size, np.uint8)
        found: NDArray[Any] = self._arrays[number][:size].view(dtype)
        return found.reshape(rows, columns)


def exact_scores(
    stack: Stack, batch: WeightBatch, queries: IntArray, arms: IntArray, work: Workspace
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The scores that a recall would have, to the bit.

    The operations are those of `kernels.compose`, in the same order.

    Args:
        stack: The queries.
        batch: The arms.
        queries: int64, shape (p,): positions in the stack.
        arms: int64, shape (p,): the arm of each, its position in the batch.
        work: Memory to work in.

    Returns:
        Shape (p, M); and bool, shape (p, M), which of them are dropped, padding among them.
    """
    scores = work.matrix(0, len(queries), stack.width)
    other = work.matrix(1, len(queries), stack.width)
    out = scores
    for values, weights in zip(stack.values, batch.weights, strict=True):
        np.take(values, queries, axis=0, out=out, mode="clip")
        np.multiply(out, weights[arms, None], out=out)
        if out is other:
            np.add(scores, other, out=scores)
        out = other
    whole, pull = batch.whole[arms, None], batch.pull[arms, None]
    if batch.prior is not None:
        np.add(scores, pull * batch.prior, out=scores)
    policy = batch.run.root.missing
    needed = not batch.by_all or batch.standing is not None or isinstance(policy, Require)
    present = whole
    if needed and not stack.complete:
        present = _present_weight(stack, batch, queries, arms)
    divisor = whole if batch.by_all else present
    if batch.prior is not None:
        divisor = divisor + pull
    # The least double in place of 0: nothing was added above it, so the quotient is 0.
    np.divide(scores, np.fmax(divisor, _TINY), out=scores)
    if batch.standing is not None:
        scores[np.broadcast_to(present == 0.0, scores.shape)] = batch.standing
    dropped = stack.padding[queries]
    if isinstance(policy, Require):
        covered = np.where(whole > 0.0, present / whole, present)
        lacking = np.broadcast_to(covered < policy.coverage - COVERAGE_TOLERANCE, scores.shape)
        scores[lacking] = 0.0
        dropped |= lacking
    least = batch.run.profile.floors.min_score
    if least is not None:
        dropped |= scores < least - FLOOR_TOLERANCE
    return scores, dropped


def _present_weight(
    stack: Stack, batch: WeightBatch, queries: IntArray, arms: IntArray
) -> FloatArray:
    """The weight of what is present, shape (p, M)."""
    if batch.pattern_weights is not None:
        places = stack.patterns[queries]
        places += (arms * batch.pattern_weights.shape[1])[:, None]
        return np.take(batch.pattern_weights, places, mode="clip")
    present = np.zeros((len(queries), stack.width))
    for here, weights in zip(stack.present, batch.weights, strict=True):
        present += np.multiply(here[queries], weights[arms, None])
    return present


def quotients(stack: Stack, terms: NDArray[np.float32], work: Workspace) -> NDArray[np.float32]:
    """Nearly the scores of all queries under k arms, by single precision; −1 in the padding.

    Args:
        stack: The queries.
        terms: Of the arms, shape (k, t).
        work: Memory to work in.

    Returns:
        float32, shape (k·G, M): arm by arm, query by query.
    """
    size = len(terms), stack.padding.size
    scores = work.matrix(0, *size, np.float32)
    weights = work.matrix(1, *size, np.float32)
    np.dot(terms, stack.above, out=scores)
    np.dot(terms, stack.below, out=weights)
    np.divide(scores, weights, out=scores)
    return scores.reshape(-1, stack.width)


def error_bound(terms: int) -> np.float32:
    """By how much more than this two `quotients` must differ to be ordered as the exact scores.

    Let u = 2⁻²⁴ and t the number of ``terms``. A sum of t products of numbers ≥ 0, in any order, with
    fused operations or without, lies within a factor (1 ± u)ᵗ of the true one; rounding its factors
    to single precision adds two. Below the line the products are exact, so that it is t + 1 there;
    one more is left for the constant that is added, which is less than 2⁻³⁹ of the weight, and one
    for the division. So the quotient, at most 1, is within (2t + 5)u of the true one, and within
    (2t + 6)u of the score in double precision, whose own error is some 2⁻²⁹ of that. Products too
    small for normal numbers, which a library may take as 0, are less than 2⁻¹²⁶, which is 2⁻⁶⁵ of
    any weight there is (`WeightBatch.terms`). Two scores have twice the error; the rest of the
    bound is room for adding it in single precision, and for products of errors.
    """
    return np.float32((4 * terms + 20) * 2.0**-24)


_CELLS = 131_072  # scores of single precision made at once: two such arrays fit into a cache
_GROUPS = 3  # groups of memories per rank, at least, from whose maxima the bound is taken
_DROPPED = -1.0  # in place of the score of what no order has
_BYTE = 255  # marks are counted in bytes, up to here without overflow
_PAIRS = np.uint64(0x00FF00FF00FF00FF)  # every second byte of a word
_SUM = np.uint64(0x0001000100010001)  # times this, the highest two bytes are the sum of all pairs
_EIGHT, _LAST = np.uint64(8), np.uint64(48)


class Placed(NamedTuple):
    """Judged memories that stand at the cutoff or above.

    Attributes:
        judged: int64, shape (p,): which of the judged memories of the stack.
        arms: int64, shape (p,): under which of the K weightings.
        ranks: int64, shape (p,): from 1.
        ranked: int64, shape (K, G): how many memories each weighting ranks at all.
    """

    judged: IntArray
    arms: IntArray
    ranks: IntArray
    ranked: IntArray


class _Found(NamedTuple):
    """Ranks of judged memories, shape (p,) each; a pair is ``arm · G + query``."""

    pairs: IntArray
    judged: IntArray
    ranks: IntArray


def place_judged(
    stack: Stack, batch: WeightBatch, part: slice, depth: int, work: Workspace
) -> Placed:
    """Where the judged memories of some queries stand.

    Args:
        stack: The queries.
        batch: The arms.
        part: Which K of them.
        depth: The last rank of interest, ≥ 1.
        work: Memory to work in.
    """
    size = (part.stop - part.start) * len(stack)
    ranked = np.tile(stack.sizes, part.stop - part.start)
    found: list[_Found] = []
    left = np.arange(size)
    if work.filters and batch.terms is not None and _by_score(stack, batch):
        found, left = _filtered(stack, batch.terms[part], depth, work)
        work.note(len(left), size)
    step = max(_CELLS // (2 * stack.width), 1)  # of double precision
    for start in range(0, len(left), step):
        pairs = left[start : start + step]
        exact, ranked[pairs] = _exactly(stack, batch, part.start, pairs, depth, work)
        found.append(exact)
    pairs, judged, ranks = (np.concatenate(each) for each in zip(*found, strict=True))
    return Placed(judged, pairs // len(stack), ranks, ranked.reshape(-1, len(stack)))


def _by_score(stack: Stack, batch: WeightBatch) -> bool:
    """Whether the score alone orders."""
    return stack.one_distance or batch.run.profile.scope.mode is ScopeBlendMode.OFF


def _filtered(
    stack: Stack, terms: NDArray[np.float32], depth: int, work: Workspace
) -> tuple[list[_Found], IntArray]:
    """Ranks by single precision; and the pairs for which it cannot tell."""
    found: list[_Found] = []
    unsure = np.zeros(len(terms) * len(stack), np.bool_)
    step = max(_CELLS // stack.padding.size, 1)
    for start in range(0, len(terms), step):
        near, too_near = _compared(stack, terms[start : start + step], depth, work)
        near = near._replace(pairs=near.pairs + start * len(stack))
        unsure[near.pairs[too_near]] = True
        found.append(near)
    if unsure.any():
        for number, each in enumerate(found):
            sure = ~unsure[each.pairs]
            found[number] = _Found(*(column[sure] for column in each))
    return found, np.flatnonzero(unsure)


def _compared(
    stack: Stack, terms: NDArray[np.float32], depth: int, work: Workspace
) -> tuple[_Found, NDArray[np.bool_]]:
    """The ranks to ``depth`` that `quotients` give; and where another score is too near."""
    scores, margin = quotients(stack, terms, work), error_bound(terms.shape[1])
    queries = stack.judged_queries
    bound = (_bound(scores, depth, work) - margin).reshape(len(terms), -1)
    cells = queries * stack.width + stack.judged_rows
    own = np.take(scores.reshape(len(terms), -1), cells, axis=1, mode="clip")
    at = np.flatnonzero(own >= np.take(bound, queries, axis=1, mode="clip"))
    arms, judged = np.divmod(at, max(len(queries), 1))
    pairs, value = arms * len(stack) + queries[judged], own.ravel()[at]
    ranks, within = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
    step = max(_CELLS // stack.width, 1)
    for start in range(0, len(at), step):
        piece = slice(start, start + step)
        mine = value[piece, None]
        rows = work.matrix(1, len(mine), stack.width, np.float32)
        marks = work.matrix(2, len(mine), stack.width, np.bool_)
        np.take(scores, pairs[piece], axis=0, out=rows, mode="clip")
        ranks[piece] = _count(np.greater(rows, mine + margin, out=marks)) + 1
        within[piece] = _count(np.greater_equal(rows, mine - margin, out=marks))
    near = ranks <= depth
    return _Found(pairs[near], judged[near], ranks[near]), (within > ranks)[near]


def _exactly(
    stack: Stack, batch: WeightBatch, first_arm: int, pairs: IntArray, depth: int, work: Workspace
) -> tuple[_Found, IntArray]:
    """Ranks by the scores of a recall; and how many memories each pair ranks at all."""
    arms, queries = np.divmod(pairs, len(stack))
    scores, dropped = exact_scores(stack, batch, queries, arms + first_arm, work)
    scores[dropped] = _DROPPED
    ranked = stack.width - np.count_nonzero(dropped, axis=1)
    folded = _folded(stack, batch, queries, scores)
    ordering = scores if folded is None else folded
    at, judged = _judged_of(stack, queries)
    rows = stack.judged_rows[judged]
    near = ordering[at, rows] >= np.maximum(_bound(ordering, depth, work), 0.0)[at]
    at, judged, rows = at[near], judged[near], rows[near]
    ranks = np.empty(len(at), np.int64)
    step = max(_CELLS // (2 * stack.width), 1)
    for start in range(0, len(at), step):
        piece = slice(start, start + step)
        ranks[piece] = _ranks(scores, folded, stack.distances[queries[at[piece]]],
                              at[piece], rows[piece])  # fmt: skip
    near = ranks <= depth
    return _Found(pairs[at[near]], judged[near], ranks[near]), ranked


def _judged_of(stack: Stack, queries: IntArray) -> tuple[IntArray, IntArray]:
    """All judged memories of some queries: at which of ``queries``, and which ones."""
    counts = stack.judged_counts
    starts, lengths = (np.cumsum(counts) - counts)[queries], counts[queries]
    at = np.repeat(np.arange(len(queries)), lengths)
    within = np.arange(len(at)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return at, starts[at] + within


def _folded(
    stack: Stack, batch: WeightBatch, queries: IntArray, scores: FloatArray
) -> FloatArray | None:
    """Rank scores, or None where the score alone orders; what is dropped stays below all."""
    if _by_score(stack, batch):
        return None
    scope = batch.run.profile.scope
    gates = scope.gates(stack.distances.ravel()).reshape(stack.distances.shape)
    folded = scores * gates[queries] + 0.0
    if scope.mode is ScopeBlendMode.BACKFILL:
        tips = stack.distances[queries] == 0
        folded = np.where(tips, 0.5 + 0.5 * folded, np.minimum(0.5 * folded, BELOW_TIPS))
    folded[scores < 0.0] = _DROPPED
    return folded


def _bound(scores: NDArray[Any], depth: int, work: Workspace) -> NDArray[Any]:
    """What is less has ``depth`` memories of its row before it: shape (p,), −1 for no telling.

    Of the maxima of disjoint groups of memories, ``depth`` reach the depth-th greatest of them.
    """
    rows, width = scores.shape
    if width <= depth:
        return np.full(rows, _DROPPED, scores.dtype)
    maxima = work.matrix(1, rows, width // 2, scores.dtype.type)
    source, half = scores, width // 2
    while half >= _GROUPS * depth:  # the first with those half-way on; of an odd number but one
        source = np.maximum(source[:, :half], source[:, half : 2 * half], out=maxima[:, :half])
        width, half = half, half // 2
    if source is scores:
        source = scores.copy()
    source.partition(width - depth, axis=1)
    bound: NDArray[Any] = source[:, width - depth].copy()
    return bound


def _ranks(
    scores: FloatArray, folded: FloatArray | None, distances: IntArray, at: IntArray, rows: IntArray
) -> IntArray:
    """Rank of candidate ``rows[i]`` among the scores ``at[i]``, shape (p,).

    Args:
        scores: Shape (n, M).
        folded: What orders in their place, if anything.
        distances: Shape (p, M).
        at: Shape (p,).
        rows: Shape (p,).
    """
    ordering = scores if folded is None else folded
    others, own = ordering[at], ordering[at, rows, None]
    ranks = 1 + _count(others > own)
    equal = others == own
    if np.count_nonzero(equal) > len(rows):
        tied = np.flatnonzero(_count(equal) > 1)
        at, rows = at[tied], rows[tied]
        before = np.arange(scores.shape[1]) < rows[:, None]  # rows are in the order of ties
        if folded is not None:
            # Nearer ones come first. Of one distance the score decides: a gate does not reverse
            # two scores, but may round them to one rank score.
            far = distances[tied]
            same = far == np.take_along_axis(far, rows[:, None], axis=1)
            mine, theirs = scores[at, rows, None], scores[at]
            before = np.where(same, (theirs > mine) | ((theirs == mine) & before), before)
        ranks[tied] += _count(equal[tied] & before)
    return ranks


def _count(marks: NDArray[np.bool_]) -> IntArray:
    """How many of each row, shape (p, M), M a multiple of eight, to int64 (p,): a word at a time."""
    words, found = marks.view(np.uint64), np.zeros(len(marks), np.int64)
    for start in range(0, words.shape[1], _BYTE):
        sums = np.add.reduce(words[:, start : start + _BYTE], axis=1)
        sums = (sums & _PAIRS) + ((sums >> _EIGHT) & _PAIRS)
        found += ((sums * _SUM) >> _LAST).view(np.int64)
    return found


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
    prepared = BlockTables.of(block)
    for batch in work.batches:
        try:
            stacks = prepared.stacks(batch)
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
    workspace = Workspace()
    depth = min(work.depth, max(stack.width for stack in stacks))  # nothing stands below
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
    """What an arm returns for each query; one without words has the baseline's score."""
    rankings: list[tuple[str, ...]] = [()] * len(block)
    select = run.profile.select
    for node, wanted in _by_node(block, run):
        pools = pools_of(
            block, run.demand, run.profile, wanted, observe=run.arm.observe,
            regime=run.arm.regime, ordered=select.duplicate_penalty > 0 or select.diversity > 0,
        )  # fmt: skip
        ranking = rank_candidates(run.profile, pools.candidates, top=work.top, node=node)
        for query, ids in zip(np.flatnonzero(wanted).tolist(), ranking.shown_by_query, strict=True):
            rankings[query] = ids
        result.coverage[run.number, wanted] = _coverage(ranking, run)
    result.empty[run.number] = [not ranking for ranking in rankings]
    return rankings


def _by_node(block: Block, run: Run) -> list[tuple[str, NDArray[np.bool_]]]:
    """Which queries are scored by which node."""
    if run.node == "score" or not block.blank.any():
        return [(run.node, np.ones(len(block), np.bool_))]
    return [(node, wanted) for node, wanted in (("score", block.blank), (run.node, ~block.blank))
            if wanted.any()]  # fmt: skip


def _coverage(ranking: Ranking, run: Run) -> NDArray[np.float64]:
    """float64, shape (q,)."""
    table, children = ranking.derived.table, ranking.composition.children
    observed = np.array([
        children[name].present if name in children else ~np.isnan(table.column(name)[ranking.rows])
        for name, _ in run.root.weights
    ])  # fmt: skip
    weights = np.array([[weight] for _, weight in run.root.weights])
    shares = [
        _shares(weights, observed[:, part].mean(axis=1)[:, None])[0, 0]
        if part.stop > part.start else 0.0
        for part in parts_of(ranking.candidates, ranking.rows) or ()
    ]  # fmt: skip
    return np.array(shares)

"""From candidates to an order: derive, collapse, compose, floors, penalty, blend, caps.

This is the whole ranking, without a store in sight: a live recall and the replay of a recording
call the same function on the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.select import duplicate_penalties, mmr
from rankblend.kernels.similarity import pairwise_cosines
from rankblend.profiles import Floor, RankingProfile
from rankblend.recall._candidates import Candidates
from rankblend.recall._derive import Derived, collapse, derive
from rankblend.relevance import Composition, SignalTable, compose_table, rank_order

FLOOR_TOLERANCE = 1e-12
DEFAULT_TOP = 10


class Fate(Enum):
    """What became of a candidate."""

    SHOWN = "shown"
    OUTRANKED = "out-ranked"
    TOKEN_CAP = "token cap"  # noqa: S105 - not a password
    FLOOR = "floor"
    DROPPED = "dropped"
    DUPLICATE = "duplicate"


@frozen
class Verdict:
    """What became of a candidate, and by what.

    Args:
        fate: See `Fate`.
        by: The floor, policy or representative responsible; empty otherwise.
        value: The value that was held against a floor, if any.
        limit: That floor.
    """

    fate: Fate
    by: str = ""
    value: float | None = None
    limit: float | None = None


@frozen(eq=False)
class Ruling:
    """One verdict over several candidates, as arrays until somebody asks.

    Args:
        fate: What became of them.
        positions: int64, shape (k,): pool positions.
        by: See `Verdict`; for duplicates, the pool position of each one's representative.
        values: float64, shape (k,), NaN for none; None: no values at all.
        limits: The floor, or float64, shape (k,).
    """

    fate: Fate
    positions: NDArray[np.int64]
    by: str | NDArray[np.int64] = ""
    values: NDArray[np.float64] | None = None
    limits: float | NDArray[np.float64] | None = None

    def verdicts(self, ids: tuple[str, ...]) -> list[tuple[int, Verdict]]:
        """Pool position and verdict of each."""
        n = len(self.positions)
        by = [self.by] * n if isinstance(self.by, str) else [ids[at] for at in self.by.tolist()]
        values = [None] * n if self.values is None else self.values.tolist()
        limits = self.limits.tolist() if isinstance(self.limits, np.ndarray) else [self.limits] * n
        return [
            (at, Verdict(self.fate, why, None if value != value else value, limit))
            for at, why, value, limit in zip(
                self.positions.tolist(), by, values, limits, strict=True
            )
        ]


@frozen(eq=False, slots=False)
class Ranking:
    """The result of ranking one pool under one profile.

    n candidates, m representatives (one for each group of equivalents).

    Attributes:
        profile: The recipe.
        node: Which part of it scored: ``score`` or ``rerank``.
        candidates: The pool.
        derived: Signals of all candidates, representatives carrying their group's strongest.
        rows: int64, shape (m,): pool position of each representative.
        stands_for: int64, shape (n,): pool position of each candidate's representative.
        composition: Composition of the representatives' signals, with contributions.
        scores: float64, shape (m,): composed score after the duplicate penalty, in [0, 1].
        penalties: float64, shape (m,): what the penalty took from the composed score.
        gates: float64, shape (m,): scope gate of each.
        rank_scores: float64, shape (m,): score with the scope folded in; only for ordering.
        order: int64: rows of the survivors of all floors, best first.
        shown: int64: rows of those returned, best first.
        rulings: What became of whom, each candidate in one of them.
    """

    profile: RankingProfile
    node: str
    candidates: Candidates
    derived: Derived
    rows: NDArray[np.int64]
    stands_for: NDArray[np.int64]
    composition: Composition
    scores: NDArray[np.float64]
    penalties: NDArray[np.float64]
    gates: NDArray[np.float64]
    rank_scores: NDArray[np.float64]
    order: NDArray[np.int64]
    shown: NDArray[np.int64]
    rulings: tuple[Ruling, ...]

    @property
    def shown_ids(self) -> tuple[str, ...]:
        """Ids of those returned, best first."""
        return tuple(self.candidates.ids[int(self.rows[row])] for row in self.shown)

    @property
    def shown_by_query(self) -> list[tuple[str, ...]]:
        """`shown_ids` of each query."""
        ids, offsets = self.shown_ids, self.candidates.offsets
        if offsets is None:
            return [ids]
        query = np.searchsorted(offsets[1:], self.rows[self.shown], side="right")
        ends = np.searchsorted(query, np.arange(offsets.size)).tolist()
        return [ids[start:stop] for start, stop in pairwise(ends)]

    @cached_property
    def verdicts(self) -> Mapping[int, Verdict]:
        """Pool position → verdict, for every candidate."""
        ids = self.candidates.ids
        return dict(pair for ruling in self.rulings for pair in ruling.verdicts(ids))


def rank_candidates(
    profile: RankingProfile,
    candidates: Candidates,
    *,
    top: int | None = None,
    node: str = "score",
) -> Ranking:
    """Rank a pool; or those of several queries, each by itself.

    Whatever looks at one memory at a time is done for all of them at once; what looks at the pool
    (some curves and composers, duplicates, order, caps) query by query, so that each has the same
    bits alone and among others.

    Args:
        profile: The recipe.
        candidates: The pool, n ≥ 0, or several.
        top: At most this many are shown; None for the profile's own number; 0 shows nothing.
        node: ``score``, or ``rerank`` when a reranker was admitted.

    Raises:
        InvalidArgumentError: The profile has no such node.

    Edge cases: an empty pool gives an empty ranking; nothing passing the floors is a success.
    """
    raised, rows, stands_for = collapse(profile, candidates, derive(profile, candidates))
    table = _restrict(raised.table, rows)
    root = {"score": profile.score, "rerank": profile.rerank}.get(node)
    if root is None:
        raise InvalidArgumentError(f"node: profile {profile.name!r} has no {node!r} to rank with")
    composition = compose_table(
        root, profile.nodes, table,
        contributions=candidates.offsets is None, parts=parts_of(candidates, rows),
    )  # fmt: skip

    rulings = []
    if rows.size < len(candidates):
        others = np.flatnonzero(stands_for != np.arange(len(candidates)))
        rulings.append(Ruling(Fate.DUPLICATE, others, stands_for[others]))
    alive = _apply_floors(profile, table, composition, rows, rulings)

    scores = composition.scores.copy()
    vectors = None if candidates.vectors is None else candidates.vectors[rows]
    parts = parts_of(candidates, rows) or [slice(0, rows.size)]
    survivors = [part.start + np.flatnonzero(alive[part]) for part in parts]
    if profile.select.duplicate_penalty > 0 and vectors is not None:
        for alone in survivors:
            if alone.size:
                scores[alone] *= duplicate_penalties(
                    scores[alone], pairwise_cosines(vectors[alone]),
                    profile.select.duplicate_penalty,
                )  # fmt: skip
    penalties = composition.scores - scores

    distances = candidates.distances[rows]
    gates = profile.scope.gates(distances)
    rank_scores = profile.scope.rank_scores(scores, distances, gates=gates)
    orders = [
        alone[
            rank_order(
                rank_scores[alone],
                distances[alone],
                scores[alone],
                [table.column(name)[alone] for name in profile.ties],
                [candidates.ids[at] for at in rows[alone].tolist()],
                blend=profile.scope.mode != "off",
            )
        ]
        for alone in survivors
    ]
    select = partial(_select, profile, rank_scores, vectors, candidates, rows, top, rulings)
    order, shown = np.concatenate(orders), np.concatenate([select(each) for each in orders])
    return Ranking(
        profile, node, candidates, raised, rows, stands_for, composition, scores, penalties,
        gates, rank_scores, order, shown, tuple(rulings),
    )  # fmt: skip


def parts_of(candidates: Candidates, rows: NDArray[np.int64]) -> list[slice] | None:
    """Which of some rows, ascending, are of each query; None for one query."""
    if candidates.offsets is None:
        return None
    ends = np.searchsorted(rows, candidates.offsets).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def below_floor(floor: Floor, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """bool, shape (n,): which values of a signal the floor drops."""
    below = values < floor.min - FLOOR_TOLERANCE
    return below | np.isnan(values) if floor.absent == "drop" else below


def _restrict(table: SignalTable, rows: NDArray[np.int64]) -> SignalTable:
    return table if rows.size == len(table.ids) else table.take(rows)


def _apply_floors(
    profile: RankingProfile,
    table: SignalTable,
    composition: Composition,
    rows: NDArray[np.int64],
    rulings: list[Ruling],
) -> NDArray[np.bool_]:
    """Floors act before the scope is folded in, so that they mean the same at every distance."""
    alive = np.ones(rows.size, np.bool_)

    def drop(fails: NDArray[np.bool_], fate: Fate, by: str, values: NDArray[np.float64] | None,
             limit: float | None) -> None:  # fmt: skip
        hit = np.flatnonzero(fails & alive)
        held = None if values is None else values[hit]
        rulings.append(Ruling(fate, rows[hit], by, held, limit))
        alive[hit] = False

    for reason, dropped in composition.dropped.items():
        drop(np.asarray(dropped), Fate.DROPPED, reason, None, None)
    for name, floor in profile.floors.signals.items():
        values = table.column(name)
        drop(below_floor(floor, values), Fate.FLOOR, name, values, floor.min)
    if profile.floors.min_score is not None:
        below = composition.scores < profile.floors.min_score - FLOOR_TOLERANCE
        drop(below, Fate.FLOOR, "score", composition.scores, profile.floors.min_score)
    return alive


def _select(
    profile: RankingProfile,
    rank_scores: NDArray[np.float64],
    vectors: NDArray[np.float32] | None,
    candidates: Candidates,
    rows: NDArray[np.int64],
    top: int | None,
    rulings: list[Ruling],
    order: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Diversity, then the token cap, then the item cap; whole memories only."""
    limit = next(n for n in (top, profile.select.top, DEFAULT_TOP) if n is not None)
    sequence = order
    if profile.select.diversity > 0 and vectors is not None and order.size and limit:
        relevance_share = 1.0 - profile.select.diversity
        picked = mmr(rank_scores[order], pairwise_cosines(vectors[order]), limit, relevance_share)
        rest = np.setdiff1d(np.arange(order.size), picked)
        sequence = order[np.concatenate([picked, rest])]

    if profile.select.max_tokens is None or candidates.tokens is None:
        shown, outranked = sequence[:limit], sequence[limit:]
    else:
        lengths = candidates.tokens[rows[sequence]]
        fits, left, end = _fitting(lengths, profile.select.max_tokens, limit)
        shown, outranked = sequence[:end][fits], sequence[end:]
        long = sequence[:end][~fits]
        rulings.append(
            Ruling(
                Fate.TOKEN_CAP, rows[long], values=lengths[:end][~fits].astype(np.float64),
                limits=left[~fits],
            )
        )  # fmt: skip
    rulings.append(Ruling(Fate.SHOWN, rows[shown]))
    rulings.append(Ruling(Fate.OUTRANKED, rows[outranked]))
    return shown


def _fitting(
    lengths: NDArray[np.int64], tokens: int, limit: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64], int]:
    """Which of the memories fit, best first, until ``limit`` do.

    A memory that does not fit into what is left of the tokens is passed over, so that one long
    memory does not empty the result.

    Returns:
        For each memory looked at whether it fits, and the tokens that were left for it; how many
        were looked at.
    """
    fits, left, count = [], [], 0
    for length in lengths.tolist():
        if count == limit:
            break
        left.append(float(tokens))
        fits.append(length <= tokens)
        if fits[-1]:
            count += 1
            tokens -= length
    return np.array(fits, np.bool_), np.array(left, np.float64), len(fits)

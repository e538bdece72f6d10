"""From candidates to an order: derive, collapse, compose, floors, penalty, blend, caps.

This is the whole ranking, without a store in sight: a live recall and the replay of a recording
call the same function on the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.select import duplicate_penalties, mmr
from rankblend.kernels.similarity import pairwise_cosines
from rankblend.profiles import RankingProfile
from rankblend.recall.candidates import Candidates
from rankblend.recall.derive import Derived, collapse, derive
from rankblend.relevance.composers import Composition, compose_table
from rankblend.relevance.order import rank_order
from rankblend.relevance.signals import SignalTable

__all__ = ["DEFAULT_TOP", "FLOOR_TOLERANCE", "Fate", "Ranking", "Verdict", "rank_candidates"]

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
        verdicts: Pool position → verdict, for every candidate.
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
    verdicts: Mapping[int, Verdict]


def rank_candidates(
    profile: RankingProfile,
    candidates: Candidates,
    *,
    top: int | None = None,
    node: str = "score",
) -> Ranking:
    """Rank a pool.

    Args:
        profile: The recipe.
        candidates: The pool, n ≥ 0.
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
    composition = compose_table(root, profile.nodes, table)

    verdicts: dict[int, Verdict] = {
        i: Verdict(Fate.DUPLICATE, candidates.ids[int(stands_for[i])])
        for i in np.flatnonzero(stands_for != np.arange(len(candidates))).tolist()
    }
    alive = _apply_floors(profile, table, composition, rows, verdicts)

    scores = composition.scores.copy()
    vectors = None if candidates.vectors is None else candidates.vectors[rows]
    if profile.select.duplicate_penalty > 0 and vectors is not None and alive.any():
        factors = duplicate_penalties(
            scores[alive], pairwise_cosines(vectors[alive]), profile.select.duplicate_penalty
        )
        scores[alive] = scores[alive] * factors
    penalties = composition.scores - scores

    distances = candidates.distances[rows]
    gates = profile.scope.gates(distances)
    rank_scores = profile.scope.rank_scores(scores, distances)
    survivors = np.flatnonzero(alive)
    order = survivors[
        rank_order(
            rank_scores[survivors],
            distances[survivors],
            scores[survivors],
            [table.column(name)[survivors] for name in profile.ties],
            [candidates.ids[int(rows[i])] for i in survivors],
            blend=profile.scope.mode != "off",
        )
    ]
    shown = _select(profile, order, rank_scores, vectors, candidates, rows, top, verdicts)
    return Ranking(
        profile, node, candidates, raised, rows, stands_for, composition, scores, penalties,
        gates, rank_scores, order, shown, verdicts,
    )  # fmt: skip


def _restrict(table: SignalTable, rows: NDArray[np.int64]) -> SignalTable:
    if rows.size == len(table.ids):
        return table
    return SignalTable([table.ids[int(i)] for i in rows], table.names, table.values[rows])


def _apply_floors(
    profile: RankingProfile,
    table: SignalTable,
    composition: Composition,
    rows: NDArray[np.int64],
    verdicts: dict[int, Verdict],
) -> NDArray[np.bool_]:
    """Floors act before the scope is folded in, so that they mean the same at every distance."""
    alive = np.ones(rows.size, np.bool_)

    def drop(fails: NDArray[np.bool_], fate: Fate, by: str, values: NDArray[np.float64] | None,
             limit: float | None) -> None:  # fmt: skip
        for i in np.flatnonzero(fails & alive):
            value = None if values is None or np.isnan(values[i]) else float(values[i])
            verdicts[int(rows[i])] = Verdict(fate, by, value, limit)
        alive[fails] = False

    for reason, dropped in composition.dropped.items():
        drop(np.asarray(dropped), Fate.DROPPED, reason, None, None)
    for name, floor in profile.floors.signals.items():
        values = table.column(name)
        below = values < floor.min - FLOOR_TOLERANCE
        if floor.absent == "drop":
            below = below | np.isnan(values)
        drop(below, Fate.FLOOR, name, values, floor.min)
    if profile.floors.min_score is not None:
        below = composition.scores < profile.floors.min_score - FLOOR_TOLERANCE
        drop(below, Fate.FLOOR, "score", composition.scores, profile.floors.min_score)
    return alive


def _select(
    profile: RankingProfile,
    order: NDArray[np.int64],
    rank_scores: NDArray[np.float64],
    vectors: NDArray[np.float32] | None,
    candidates: Candidates,
    rows: NDArray[np.int64],
    top: int | None,
    verdicts: dict[int, Verdict],
) -> NDArray[np.int64]:
    """Diversity, then the token cap, then the item cap; whole memories only.

    A memory that does not fit into what is left of the tokens is passed over, so that one long
    memory does not empty the result.
    """
    limit = next(n for n in (top, profile.select.top, DEFAULT_TOP) if n is not None)
    sequence = order
    if profile.select.diversity > 0 and vectors is not None and order.size and limit:
        relevance_share = 1.0 - profile.select.diversity
        picked = mmr(rank_scores[order], pairwise_cosines(vectors[order]), limit, relevance_share)
        rest = np.setdiff1d(np.arange(order.size), picked)
        sequence = order[np.concatenate([picked, rest])]

    shown: list[int] = []
    tokens_left = profile.select.max_tokens
    for i in sequence:
        position = int(rows[i])
        if len(shown) >= limit:
            verdicts[position] = Verdict(Fate.OUTRANKED)
        elif (
            tokens_left is not None
            and candidates.tokens is not None
            and (candidates.tokens[position] > tokens_left)
        ):
            verdicts[position] = Verdict(
                Fate.TOKEN_CAP, value=float(candidates.tokens[position]), limit=float(tokens_left)
            )
        else:
            verdicts[position] = Verdict(Fate.SHOWN)
            shown.append(int(i))
            if tokens_left is not None and candidates.tokens is not None:
                tokens_left -= int(candidates.tokens[position])
    return np.array(shown, np.int64)

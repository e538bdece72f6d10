"""What the scores of one query are made of, its rows in the order in which ties are decided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.experiment.recording import RecordedQuery
from rankblend.experiment.replay._arms import Run
from rankblend.recall import FLOOR_TOLERANCE, collapse, derive
from rankblend.relevance import (
    Neutral,
    Node,
    Required,
    ScopeBlendMode,
    SignalTable,
    Zero,
    compose_table,
)


@frozen(eq=False)
class QueryTable:
    """The m candidates of one query that can be ranked, and the s inputs of their score.

    Rows are in the order in which equal scores are ordered: by distance where the profile blends,
    then by its tie-breaks, then by id. Representatives only; what a floor on a signal or a required
    input drops is not among them.

    Attributes:
        values: float64, shape (s, m): what each input adds up as, fills included, 0 where it adds
            nothing.
        present: bool, shape (s, m): whether it counts as present.
        distances: int64, shape (m,): where the profile blends, ascending.
        judged: int64, shape (r,): rows that have a judgment.
        grades: float64, shape (r,): what it says.
        coverage: float64, shape (s,): share of the pool for which each input was observed.
    """

    values: NDArray[np.float64]
    present: NDArray[np.bool_]
    distances: NDArray[np.int64]
    judged: NDArray[np.int64]
    grades: NDArray[np.float64]
    coverage: NDArray[np.float64]


def query_table(query: RecordedQuery, run: Run) -> QueryTable:
    """The table of one query, by the functions that a recall uses.

    Raises:
        RankblendError: The recording does not hold what the profile asks, or its merge rule finds
            two stores that disagree.
    """
    profile, root = run.profile, run.root
    candidates = query.pool(run.demand, profile, observe=run.arm.observe, regime=run.arm.regime)
    raised, rows, _ = collapse(profile, candidates, derive(profile, candidates))
    table = raised.table
    if rows.size < len(candidates):
        ids = [candidates.ids[row] for row in rows.tolist()]
        table = SignalTable(ids, table.names, table.values[rows])
    columns = input_columns(run, table)
    here = ~np.isnan(columns)
    fills, counts = fills_of(root)
    alive = survivors(run, table.column, columns)
    kept = np.flatnonzero(alive)
    distances = candidates.distances[rows]
    places = np.argsort(np.argsort(np.array(table.ids, object), kind="stable"))
    keys = [places[kept]]
    for name in reversed(profile.ties):
        tie = table.column(name)[kept]
        keys.append(np.where(np.isnan(tie), np.inf, -tie))
    if profile.scope.mode is not ScopeBlendMode.OFF:
        keys.append(distances[kept])
    order = kept[np.lexsort(keys)]
    grades = query.grades
    found = [(at, grades[table.ids[row]]) for at, row in enumerate(order.tolist())
             if table.ids[row] in grades]  # fmt: skip
    return QueryTable(
        np.where(here, columns, fills[:, None])[:, order],
        (here | counts[:, None])[:, order],
        distances[order],
        np.array([at for at, _ in found], np.int64),
        np.array([grade for _, grade in found], np.float64),
        here.mean(axis=1) if len(table) else np.zeros(len(columns)),
    )


def input_columns(run: Run, table: SignalTable) -> NDArray[np.float64]:
    """float64, shape (s, n): the inputs of the score, nodes evaluated, NaN absent."""
    nodes = run.profile.nodes
    columns = np.empty((len(run.root.weights), len(table)))
    for row, (name, _) in zip(columns, run.root.weights, strict=True):
        if name in nodes:
            made = compose_table(nodes[name], nodes, table, contributions=False)
            row[:] = np.where(made.present, made.scores, np.nan)
        else:
            row[:] = table.column(name)
    return columns


def fills_of(root: Node) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Per input what an absent one adds up as, and whether it counts as present then."""
    overrides = dict(root.absent)
    standing = root.missing.value if isinstance(root.missing, Neutral) else 0.0
    fills = np.full(len(root.weights), standing)
    counts = np.zeros(len(fills), np.bool_)
    for at, (name, _) in enumerate(root.weights):
        match overrides.get(name):
            case Required():
                fills[at] = 0.0
            case Zero():
                fills[at], counts[at] = 0.0, True
            case Neutral(value=value):
                fills[at], counts[at] = value, True
    return fills, counts


def survivors(
    run: Run, signal: Callable[[str], NDArray[np.float64]], columns: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """bool, shape (n,): what no floor on a signal and no required input drops.

    Args:
        run: Whose floors and overrides.
        signal: The column of a signal, shape (n,).
        columns: Inputs of the score, shape (s, n).
    """
    alive = np.ones(columns.shape[1], np.bool_)
    overrides = dict(run.root.absent)
    for column, (name, _) in zip(columns, run.root.weights, strict=True):
        if isinstance(overrides.get(name), Required):
            alive &= ~np.isnan(column)
    for name, floor in run.profile.floors.signals.items():
        values = signal(name)
        below = values < floor.min - FLOOR_TOLERANCE
        alive &= ~(below | np.isnan(values) if floor.absent == "drop" else below)
    return alive

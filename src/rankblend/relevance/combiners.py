"""The composers that come with rankblend: how each turns the inputs of a node into one score.

What each computes, and its source, is told in `composers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rankblend.kernels import compose as kernels
from rankblend.kernels.fuse import reciprocal_rank_votes
from rankblend.relevance.rules import (
    COMPOSERS,
    Composer,
    Inputs,
    Option,
    Outcome,
    register_composer,
)

__all__ = ["COMPOSERS"]

FloatArray = NDArray[np.float64]


def _rows(
    inputs: Inputs,
    amount: Callable[[int, FloatArray], FloatArray],
    columns: tuple[FloatArray, ...] | None = None,
) -> dict[str, FloatArray]:
    """A row per input and one per filled input; ``amount`` of a NaN is NaN."""
    if not inputs.explain:
        return {}
    rows, filled = {}, {}
    for at, (name, column) in enumerate(zip(inputs.names, columns or inputs.columns, strict=True)):
        if inputs.weights[at] == 0.0:
            rows[name] = np.full(len(column), np.nan)
            continue
        rows[name] = amount(at, column)
        absent = np.isnan(column)
        if not math.isnan(inputs.fills[at]) and absent.any():
            filled[f"filled:{name}"] = amount(at, np.where(absent, inputs.fills[at], np.nan))
    return rows | filled


def _weighted(
    inputs: Inputs,
    *,
    by_all: bool = False,
    factor: FloatArray | None = None,
    votes: tuple[FloatArray, ...] | None = None,
) -> Outcome:
    columns = votes or inputs.columns
    weights = kernels.scaled_weights(inputs.weights, strength=inputs.strength)
    whole = kernels.total_weight(weights)
    by_all = by_all or inputs.all_filled
    pull, prior = inputs.strength * whole, inputs.prior or 0.0
    scores, present = kernels.weighted_scores(
        columns,
        weights,
        fills=inputs.fills,
        counts=inputs.counts,
        by_all=by_all,
        factor=factor,
        pull=pull,
        prior=prior,
    )
    rows: dict[str, FloatArray] = {}
    if inputs.explain:
        divisor = (np.full(len(scores), whole) if by_all else present) + pull
        divisor = np.fmax(divisor, math.ulp(0.0))
        share = 1.0 if factor is None else factor
        rows = _rows(inputs, lambda at, values: weights[at] * values * share / divisor, columns)
        if inputs.prior is not None:
            rows["prior"] = pull * prior / divisor
    return Outcome(scores, present, whole, present > 0.0, rows)


def _weighted_mean(inputs: Inputs) -> Outcome:
    return _weighted(inputs)


def _weighted_sum(inputs: Inputs) -> Outcome:
    return _weighted(inputs, by_all=True)


def _comb_mnz(inputs: Inputs) -> Outcome:
    share = kernels.hit_share(inputs.columns, inputs.weights, fills=inputs.fills)
    return _weighted(inputs, by_all=True, factor=share)


def _reciprocal_rank_fusion(inputs: Inputs) -> Outcome:
    k, members = cast("float", inputs.options["k"]), inputs.options["members"]
    chosen = dict(members) if isinstance(members, tuple) else {}
    votes, lists = [], []
    anything = np.zeros(len(inputs.columns[0]), dtype=np.bool_)
    for at, (name, column) in enumerate(zip(inputs.names, inputs.columns, strict=True)):
        rule = chosen.get(name, members if isinstance(members, str) else "positive")
        here = ~np.isnan(column)
        if rule == "present":
            listed = here
        else:
            listed = here & ((column if rule == "positive" else inputs.gates[rule]) > 0.0)
        # Present but not on the list is an observation: no vote, and nothing for a policy to fill.
        votes.append(np.where(here, reciprocal_rank_votes(column, listed, k=k), np.nan))
        lists.append(listed)
        if inputs.weights[at] > 0.0:
            anything |= listed | (~here & inputs.counts[at])
    made = _weighted(inputs, by_all=True, votes=tuple(votes))
    if inputs.explain:
        for name, listed in zip(inputs.names, lists, strict=True):
            made.rows[name][~listed] = np.nan
    return Outcome(made.scores, made.present, made.whole, anything, made.rows)


def _unweighted(inputs: Inputs, scores: FloatArray, rows: dict[str, FloatArray]) -> Outcome:
    weights = kernels.scaled_weights(inputs.weights)
    present = kernels.present_weight(inputs.columns, weights, counts=inputs.counts)
    return Outcome(scores, present, kernels.total_weight(weights), present > 0.0, rows)


def _strongest(inputs: Inputs) -> Outcome:
    scores, winners = kernels.strongest(inputs.columns, inputs.weights, fills=inputs.fills)
    rows = _rows(inputs, lambda at, values: np.where(winners == at, values, np.nan))
    return _unweighted(inputs, scores, rows)


def _geometric_mean(inputs: Inputs) -> Outcome:
    weights = kernels.scaled_weights(inputs.weights)
    scores, total = kernels.geometric_mean(inputs.columns, weights, fills=inputs.fills)
    divisor = np.fmax(total, math.ulp(0.0))
    with np.errstate(divide="ignore"):
        rows = _rows(inputs, lambda at, values: weights[at] * np.log(values) / divisor)
    return _unweighted(inputs, scores, rows)


def _boosted(inputs: Inputs) -> Outcome:
    base = inputs.names.index(str(inputs.options["base"]))
    scores = kernels.boosted(inputs.columns, inputs.weights, base=base, fills=inputs.fills)
    # A base that only the policy fills is nothing to boost: the policy's own value stands then.
    anything = ~np.isnan(inputs.columns[base]) | inputs.counts[base]
    bound = 1.0
    for at, strength in enumerate(inputs.weights):
        bound *= 1.0 if at == base else 1.0 + float(strength) / 2.0

    def factor(at: int, values: FloatArray) -> FloatArray:
        return values / bound if at == base else 1.0 + inputs.weights[at] * (values - 0.5)

    rows = _rows(inputs, factor)
    for row in rows.values():
        row[~anything] = np.nan
    made = _unweighted(inputs, scores, rows)
    return Outcome(scores, made.present, made.whole, anything, rows)


def _boost_problems(weights: Mapping[str, float], options: Mapping[str, object]) -> list[str]:
    base = str(options["base"])
    problems = [
        f"weights.{name}: expected a boost below 2, got {weight!r}"
        for name, weight in weights.items()
        if name != base and weight >= 2.0
    ]
    if weights[base] == 0.0:
        problems.append(f"weights.{base}: expected the base to have a weight above 0")
    return problems


for _composer in (
    Composer(
        "weighted_mean",
        _weighted_mean,
        additive=True,
        shrink=True,
        meaning="Σwv / Σw over the present",
    ),
    Composer(
        "weighted_sum",
        _weighted_sum,
        additive=True,
        shrink=True,
        meaning="Σwv over the present / all weight",
    ),
    Composer(
        "comb_mnz",
        _comb_mnz,
        additive=True,
        shrink=True,
        meaning="weighted_sum × the share of inputs above 0",
    ),
    Composer("strongest", _strongest, label="winner", meaning="the greatest present value"),
    Composer(
        "geometric_mean",
        _geometric_mean,
        label="log share",
        meaning="Πv^w, its Σw-th root; one 0 makes it 0",
    ),
    Composer(
        "boosted",
        _boosted,
        label="factor",
        options=(Option("base", "input"),),
        check=_boost_problems,
        meaning="base × Π(1 + a(v − ½)) / Π(1 + a/2)",
    ),
    Composer(
        "reciprocal_rank_fusion",
        _reciprocal_rank_fusion,
        additive=True,
        shrink=True,
        pointwise=False,
        meaning="Σw / (k + rank), divided by its greatest possible value",
        options=(Option("k", "number", 60.0), Option("members", "members", "positive")),
    ),
):
    register_composer(_composer)

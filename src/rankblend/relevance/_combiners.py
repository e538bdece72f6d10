"""Composers: what one is, and those that come with rankblend.

`Composer.evaluate` gets the inputs of one node over one pool and returns scores, present weight
and, when asked, one row of contributions per input. Missing policies, nesting and the root are not
its business (see `composers`). Those that come with rankblend are in `combiners`.

What each computes, and its source, is told in `composers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.checks import Problems
from rankblend.kernels import compose as kernels
from rankblend.kernels.fuse import reciprocal_rank_votes
from rankblend.values import is_identifier, shown

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@frozen(eq=False)
class Inputs:
    """The s inputs of one node over a pool of n memories.

    Args:
        names: The inputs, in the order of the weights.
        columns: s arrays (n,), values in [0, 1], NaN absent.
        weights: Shape (s,), finite, ≥ 0, with a finite sum.
        fills: Shape (s,); what an absent input counts as, NaN to leave it absent.
        counts: Shape (s,); the fills that stem from an override, which make the input present.
        all_filled: The policy fills every absent input, so that all weight counts.
        strength: Of the pull toward ``prior``, as a multiple of all weight.
        prior: In [0, 1], or None without a pull.
        options: The node's options, defaults filled in.
        gates: Columns named by options, NaN absent.
        explain: Whether rows are wanted.
    """

    names: tuple[str, ...]
    columns: tuple[FloatArray, ...]
    weights: FloatArray
    fills: FloatArray
    counts: BoolArray
    all_filled: bool = False
    strength: float = 0.0
    prior: float | None = None
    options: Mapping[str, object] = field(factory=dict)
    gates: Mapping[str, FloatArray] = field(factory=dict)
    explain: bool = True


@frozen(eq=False)
class Outcome:
    """What a composer made of its inputs.

    Args:
        scores: Shape (n,), in [0, 1].
        present: Shape (n,), the weight of the inputs that are present or filled by an override.
        whole: All weight, in the same unit.
        anything: Shape (n,), whether there was something to compose, policy fills aside.
        rows: Row name → contribution (n,), NaN where it adds nothing; empty unless asked for.
    """

    scores: FloatArray
    present: FloatArray
    whole: float
    anything: BoolArray
    rows: dict[str, FloatArray]


@frozen
class Option:
    """One option of a composer.

    Args:
        name: Its key in a profile.
        kind: ``number`` (finite, > 0), ``input`` (the name of one of the node's inputs) or
            ``members`` (``"positive"``, ``"present"``, or a table giving for inputs one of these or
            the name of a node or signal that must be above 0).
        default: None when the option must be given.
    """

    name: str
    kind: str
    default: object = None

    def read(self, value: object, inputs: tuple[str, ...]) -> tuple[object, list[str]]:
        """The value in canonical, hashable form, and what is wrong with it."""
        problems = Problems(show=shown)
        pairs = tuple(value.items()) if isinstance(value, Mapping) else value
        if self.kind == "number":
            value = problems.number(self.name, value, above=0.0)
        elif self.kind == "input" and value not in inputs:
            expected = f"one of the inputs: {', '.join(inputs)}"
            problems.add(self.name, f"expected {expected}; got {shown(value)}")
        elif (
            self.kind == "members"
            and isinstance(pairs, tuple)
            and all(
                isinstance(pair, tuple)
                and len(pair) == 2
                and pair[0] in inputs
                and is_identifier(pair[1])
                for pair in pairs
            )
        ):
            chosen = dict(pairs)
            value = tuple((name, chosen[name]) for name in inputs if name in chosen)
        elif self.kind == "members" and not (
            isinstance(value, str) and value in ("positive", "present")
        ):
            problems.add(
                self.name,
                'expected "positive", "present" or a table from inputs to one of these or to the '
                "name of a node or signal",
            )
        return value, problems.lines


@frozen
class Composer:
    """One way to compose, registered by name.

    Args:
        name: As in a profile.
        evaluate: The composer itself.
        additive: The rows sum to the score within 1e-12.
        label: What a row is.
        shrink: Whether it takes the policy ``Shrink`` (additive ones only).
        pointwise: A memory's score depends on its own inputs alone, not on the rest of the pool.
        options: What else a profile may say.
        check: What is wrong with these weights and (valid) options, beyond what always holds.
        meaning: One phrase.
    """

    name: str
    evaluate: Callable[[Inputs], Outcome]
    additive: bool = False
    label: str = "share"
    shrink: bool = False
    pointwise: bool = True
    options: tuple[Option, ...] = ()
    check: Callable[[Mapping[str, float], Mapping[str, object]], list[str]] | None = None
    meaning: str = field(default="", eq=False)


_REGISTRY: dict[str, Composer] = {}
COMPOSERS: Mapping[str, Composer] = MappingProxyType(_REGISTRY)


def register_composer(composer: Composer) -> Composer:
    """Add a composer; registering the same one twice is harmless.

    Raises:
        InvalidArgumentError: The name is taken by another, or is no identifier, or a composer that
            is not additive takes ``Shrink``.
    """
    problems, where = Problems(), f"composer {composer.name!r}"
    if not is_identifier(composer.name):
        problems.add("composer name", "expected ASCII letters, digits and _")
    if composer.shrink and not composer.additive:
        problems.add(where, "shrink needs an additive composer")
    if problems.clean and _REGISTRY.setdefault(composer.name, composer) != composer:
        problems.add("", f"{where} is already registered")
    problems.raise_if_any()
    return composer


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

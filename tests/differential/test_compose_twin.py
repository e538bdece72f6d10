"""Composition against slow, readable twins: plain Python loops over dictionaries.

The twin of a whole tree follows the words of the specification, one memory and one input after the
other, and must give the same bits, for every composer, policy, override and nesting. Two further
twins leave floating point altogether: the weighted mean in exact fractions, and reciprocal rank
fusion by its textbook formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import geometric_mean

import numpy as np
import pytest
from attrs import field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from rankblend.kernels import compose as kernels
from rankblend.kernels.fuse import best_ranks
from rankblend.relevance import (
    COMPOSERS,
    Composition,
    Neutral,
    Node,
    RelevanceSignals,
    RelevanceWeights,
    Renormalize,
    Require,
    Required,
    Shrink,
    SignalTable,
    Zero,
    compose_table,
)

Row = Mapping[str, float]
Pool = Sequence[Row]


@frozen
class Verdict:
    """What the twin says about one memory at one node."""

    score: float = 0.0
    present: bool = False
    dropped: tuple[str, ...] = ()
    rows: dict[str, float] = field(factory=dict)


def ln(value: float) -> float:
    """numpy's logarithm: math.log may round otherwise, and bits are compared."""
    return float(np.log(np.array([value]))[0]) if value > 0.0 else -math.inf


def exp(value: float) -> float:
    return float(np.exp(np.array([value]))[0])


def twin(node: Node, nodes: Mapping[str, Node], pool: Pool) -> list[Verdict]:
    values: list[dict[str, float | None]] = [{} for _ in pool]
    names = [name for name, _ in node.weights]
    options = dict(node.options)
    members = options.get("members", "positive")
    gates = [rule for _, rule in members] if isinstance(members, tuple) else []
    for name in [*names, *gates]:
        if name in nodes:
            for row, verdict in zip(values, twin(nodes[name], nodes, pool), strict=True):
                row[name] = verdict.score if verdict.present else None
        else:
            for row, signals in zip(values, pool, strict=True):
                row[name] = signals.get(name)
    votes: list[dict[str, float]] = [{} for _ in pool]
    if node.compose == "reciprocal_rank_fusion":
        for name in names:
            rule = members if isinstance(members, str) else dict(members).get(name, "positive")
            listed = []
            for at, row in enumerate(values):
                value = row[name]
                if value is None:
                    continue
                gate = {"present": 1.0, "positive": value}.get(rule, row.get(rule))
                if gate is not None and gate > 0.0:
                    listed.append((at, value))
            for at, value in listed:
                rank = 1 + sum(other > value for _, other in listed)
                votes[at][name] = (options["k"] + 1.0) / (options["k"] + rank)
    return [judge(node, row, vote) for row, vote in zip(values, votes, strict=True)]


def judge(node: Node, values: Mapping[str, float | None], votes: Row) -> Verdict:
    policy, overrides, options = node.missing, dict(node.absent), dict(node.options)
    fusion, base = node.compose == "reciprocal_rank_fusion", options.get("base")
    dropped = []
    filled: dict[str, float] = {}
    present_weight = whole_weight = 0.0
    anything = False
    for name, weight in node.weights:
        whole_weight += weight
        override = overrides.get(name)
        observed = values[name] is not None
        if not observed and isinstance(override, Required):
            dropped.append(f"required: {name}")
        if not observed and isinstance(override, Neutral | Zero):
            filled[name] = override.value if isinstance(override, Neutral) else 0.0
        counted = weight > 0.0 and (observed or name in filled)
        present_weight += weight if counted else 0.0
        if fusion:
            counted = weight > 0.0 and (name in votes or name in filled)
        if base is not None:
            counted = counted and name == base
        anything = anything or counted
    if isinstance(policy, Require):
        coverage = present_weight / whole_weight if whole_weight > 0.0 else 0.0
        if coverage < policy.coverage - 1e-12:
            dropped.append("require: coverage")
    if dropped:
        return Verdict(dropped=tuple(dropped))
    if isinstance(policy, Neutral | Zero):
        for name, _ in node.weights:
            if values[name] is None and name != base:
                filled.setdefault(name, policy.value if isinstance(policy, Neutral) else 0.0)

    used = []  # name of the row, weight, value
    for name, weight in node.weights:
        value = values[name]
        if weight > 0.0 and value is not None:
            used.append((name, weight, votes.get(name, 0.0) if fusion else value))
        elif weight > 0.0 and name in filled:
            used.append((f"filled:{name}", weight, filled[name]))

    pull = prior = 0.0
    if isinstance(policy, Shrink):
        pull, prior = policy.strength * whole_weight, policy.prior
    score, rows = combine(node, used, present_weight, whole_weight, pull, prior)
    if fusion:
        rows = {
            name: part
            for name, part in rows.items()
            if name in votes or ":" in name or name == "divisor"
        }
    if isinstance(policy, Shrink):
        rows["prior"] = pull * prior / max(rows.pop("divisor"), 5e-324)
    rows.pop("divisor", None)

    spoken = None
    if not anything and isinstance(policy, Neutral):
        if base is not None:
            return Verdict(policy.value, present=True, rows={"prior": policy.value})
        if present_weight == 0.0:
            spoken = policy.value
        elif present_weight < whole_weight:  # on no list, but what is unknown counts as v
            anything = True
    if not anything and isinstance(policy, Shrink):
        spoken = policy.prior if present_weight == 0.0 else None
        anything = spoken is None
    if spoken is not None:
        if not any(name.startswith("filled") for name in rows):
            rows["prior"] = ln(spoken) if node.compose == "geometric_mean" else spoken
        return Verdict(spoken, present=True, rows=rows)
    return Verdict(score, present=True, rows=rows) if anything else Verdict()


def combine(
    node: Node,
    used: list[tuple[str, float, float]],
    present_weight: float,
    whole_weight: float,
    pull: float,
    prior: float,
) -> tuple[float, dict[str, float]]:
    if node.compose == "strongest":
        best = max((value for _, _, value in used), default=0.0)
        # Inputs in order, observed or filled alike: the first that has it wins.
        winner = next((name for name, _, value in used if value == best), None)
        return best, {winner: best} if winner else {}
    if node.compose == "geometric_mean":
        logs = total = 0.0
        for _, weight, value in used:
            logs += ln(value) * weight
            total += weight
        if not used:
            return 0.0, {}
        least = min(value for _, _, value in used)
        greatest = max(value for _, _, value in used)
        rows = {name: weight * ln(value) / total for name, weight, value in used}
        return min(max(exp(logs / total), least), greatest), rows
    if node.compose == "boosted":
        base = dict(node.options)["base"]
        score, bound, rows = 0.0, 1.0, {}
        for name, _, value in used:
            if name in (base, f"filled:{base}"):
                score = value
        boosts = {name.removeprefix("filled:"): (name, value) for name, _, value in used}
        for name, strength in node.weights:
            if name != base and strength > 0.0:
                factor = 1.0
                if name in boosts:
                    factor = 1.0 + strength * (boosts[name][1] - 0.5)
                    rows[boosts[name][0]] = factor
                score = score * factor / (1.0 + strength / 2.0)
            if name != base:
                bound *= 1.0 + strength / 2.0
        for name, _, value in used:
            if name in (base, f"filled:{base}"):
                rows[name] = value / bound
        return min(score, 1.0), rows
    total = 0.0
    for _, weight, value in used:
        total += weight * value
    factor = 1.0
    if node.compose == "comb_mnz":
        lists = sum(weight > 0.0 for _, weight in node.weights)
        factor = sum(value > 0.0 for _, _, value in used) / max(lists, 1)
        total *= factor
    divisor = whole_weight
    if node.compose == "weighted_mean" and not isinstance(node.missing, Neutral | Zero):
        divisor = present_weight
    divisor += pull
    rows = {name: weight * value * factor / divisor for name, weight, value in used}
    rows["divisor"] = divisor
    score = (total + pull * prior) / divisor if divisor > 0.0 else 0.0
    return min(score, 1.0), rows


def same(made: Composition, expected: list[Verdict]) -> None:
    assert made.scores.tolist() == [one.score for one in expected]
    assert made.present.tolist() == [one.present for one in expected]
    for at, one in enumerate(expected):
        assert [why for why, mask in made.dropped.items() if mask[at]] == list(one.dropped)
        rows = {name: float(row[at]) for name, row in made.contributions.items()}
        assert {name: part for name, part in rows.items() if not math.isnan(part)} == one.rows


SIGNALS = [f"s{at}" for at in range(6)]
NODES = ["n0", "n1", "n2"]
units = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(1e-9, 1.0))
policies = st.one_of(
    st.just(Renormalize()),
    st.just(Zero()),
    st.builds(Neutral, units),
    st.builds(Shrink, units, st.one_of(st.just(0.0), st.floats(1e-3, 1e3))),
    st.builds(Require, units),
)
overrides = st.one_of(st.just(Zero()), st.just(Required()), st.builds(Neutral, units))


@st.composite
def nodes(draw: st.DrawFn, readable: Sequence[str]) -> Node:
    compose = draw(st.sampled_from(sorted(COMPOSERS)))
    names = draw(st.lists(st.sampled_from(readable), min_size=1, max_size=5, unique=True))
    high = 1.9 if compose == "boosted" else 1e3
    amounts = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-3, high))
    weights = {name: draw(amounts) for name in names}
    options: dict[str, object] = {}
    if compose == "boosted":
        options["base"] = base = draw(st.sampled_from(names))
        weights[base] = draw(st.floats(1e-3, 1e3))
    if compose == "reciprocal_rank_fusion":
        rules = st.sampled_from(["positive", "present", *readable])
        options["members"] = draw(
            st.one_of(
                st.sampled_from(["positive", "present"]),
                st.dictionaries(st.sampled_from(names), rules),
            )
        )
        options["k"] = draw(st.sampled_from([1.0, 60.0]))
    missing = draw(policies)
    if isinstance(missing, Shrink) and not COMPOSERS[compose].shrink:
        missing = Renormalize()
    overridden = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    absent = {name: draw(overrides) for name in overridden}
    return Node(compose, weights, missing=missing, absent=absent, options=options)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Node, dict[str, Node]]:
    """A root over three nodes, each of which may read those before it."""
    made: dict[str, Node] = {}
    for name in NODES:
        made[name] = draw(nodes([*made, *SIGNALS]))
    return draw(nodes([*NODES, *SIGNALS])), made


pools = st.lists(st.dictionaries(st.sampled_from(SIGNALS), units), min_size=1, max_size=6)


def table_of(pool: Pool) -> SignalTable:
    return SignalTable.from_signals(
        (str(at), RelevanceSignals(**row)) for at, row in enumerate(pool)
    )


def node_has_the_bits_of_its_twin(node: Node, pool: Pool) -> None:
    same(compose_table(node, {}, table_of(pool)), twin(node, {}, pool))


def tree_has_the_bits_of_its_twin(tree: tuple[Node, dict[str, Node]], pool: Pool) -> None:
    root, below = tree
    made = compose_table(root, below, table_of(pool))
    same(made, twin(root, below, pool))
    for name, child in made.children.items():
        same(child, twin(below[name], below, pool))


AMOUNTS = [pytest.param(50, id="some"), pytest.param(1000, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("amount", AMOUNTS)
def test_node_when_evaluated_then_has_the_bits_of_its_twin(amount: int) -> None:
    check = given(nodes(SIGNALS), pools)(node_has_the_bits_of_its_twin)
    settings(max_examples=amount)(check)()


@pytest.mark.parametrize("amount", AMOUNTS)
def test_tree_when_evaluated_then_every_node_has_the_bits_of_its_twin(amount: int) -> None:
    check = given(trees(), pools)(tree_has_the_bits_of_its_twin)
    settings(max_examples=amount // 2)(check)()


@given(st.dictionaries(st.sampled_from(SIGNALS), st.floats(1e-6, 1e6), min_size=1), pools)
def test_weights_when_composed_then_are_near_the_mean_in_exact_fractions(
    weights: dict[str, float], pool: Pool
) -> None:
    scores = RelevanceWeights.only(weights).compose_table(table_of(pool))
    for got, row in zip(scores.tolist(), pool, strict=True):
        used = [name for name in weights if name in row]
        if not used:
            assert got == 0.0
            continue
        total = sum(Fraction(weights[name]) * Fraction(row[name]) for name in used)
        exact = total / sum(Fraction(weights[name]) for name in used)
        ulps = abs(Fraction(got) - exact) / Fraction(math.ulp(float(exact)))
        assert ulps <= 2 * len(used)


def test_geometric_mean_when_unweighted_then_is_the_standard_librarys(
    rng: np.random.Generator,
) -> None:
    values = rng.random((200, 5))
    made = compose_table(Node.of("geometric_mean", *"abcde"), {}, ("abcde", values))
    expected = [geometric_mean(row) for row in values.tolist()]
    assert made.scores.tolist() == pytest.approx(expected, rel=1e-14)


def test_fusion_when_compared_with_the_textbook_then_differs_only_by_its_maximum(
    rng: np.random.Generator,
) -> None:
    values = rng.permutation(np.linspace(0.01, 1.0, 100)).reshape(50, 2)
    made = compose_table(Node.of("reciprocal_rank_fusion", "a", "b"), {}, ("ab", values))
    plain = np.zeros(50)
    for column in values.T:
        for rank, row in enumerate(sorted(range(50), key=lambda at: -column[at]), start=1):
            plain[row] += 1 / (60 + rank)
    assert made.scores == pytest.approx(plain / (2 / 61), rel=1e-14)
    assert np.argsort(-made.scores, kind="stable").tolist() == (
        np.argsort(-plain, kind="stable").tolist()
    )


@given(st.lists(units, max_size=12), st.data())
def test_best_ranks_when_given_then_count_the_greater_members(
    values: list[float], data: st.DataObject
) -> None:
    members = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    ranks = best_ranks(np.array(values, dtype=np.float64), np.array(members, dtype=np.bool_))
    for at, (value, member) in enumerate(zip(values, members, strict=True)):
        greater = [
            other for other, listed in zip(values, members, strict=True) if listed and other > value
        ]
        assert ranks[at] == (1 + len(greater) if member else 0)


@pytest.mark.parametrize("inputs", [1, 3, 8, 9, 12])
def test_weighted_scores_when_patterns_are_looked_up_then_has_the_bits_of_the_plain_sum(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, inputs: int
) -> None:
    values = rng.random((2_000, inputs))
    values[rng.random(values.shape) < 0.4] = np.nan
    columns, weights = list(values.T), rng.random(inputs)
    weights[rng.random(inputs) < 0.2] = 0.0
    fills = np.where(rng.random(inputs) < 0.3, 0.25, np.nan)
    counts = rng.random(inputs) < 0.5
    results = []
    for bits in (8, 0):
        for cells in (65_536, 1):
            monkeypatch.setattr(kernels, "_PATTERN_BITS", bits)
            monkeypatch.setattr(kernels, "_BLOCK_CELLS", cells)
            results.append(
                kernels.weighted_scores(columns, weights, fills=fills, counts=counts, pull=0.1)
            )
    for scores, present in results[1:]:
        assert np.array_equal(scores, results[0][0])
        assert np.array_equal(present, results[0][1])
    expected = kernels.present_weight(columns, weights, counts=counts & ~np.isnan(fills))
    assert np.array_equal(results[0][1], expected)

"""The values and functions of `rankblend.relevance` given anything: refused in our words, or right."""

# ruff: noqa: B023 - every function made in a loop is called there

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankblend import relevance as rl
from rankblend.relevance import COMPOSERS, CURVES

sys.path.insert(0, str(Path(__file__).parent))
from strategies import anything, mappings, numbers, refused, texts, units

NAMES = ("cue", "salience", "recency", "frequency", "proximity", "similarity", "stars")
names = st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), texts())
values = st.one_of(units(), st.none(), numbers(), anything())
matrices = st.one_of(
    st.lists(st.lists(st.one_of(units(), st.just(math.nan)), min_size=2, max_size=2), max_size=4),
    st.lists(st.lists(numbers(), max_size=3), max_size=3),
    anything(),
)
columns = st.one_of(
    st.lists(st.one_of(st.floats(), st.just(math.nan)), max_size=5).map(np.array),
    st.lists(numbers(), max_size=4),
    anything(),
)
weightings = st.one_of(
    st.dictionaries(names, st.one_of(st.floats(0, 1e308), units(), numbers()), max_size=5),
    st.lists(st.tuples(names, numbers()), max_size=3),
    st.lists(st.tuples(anything(), numbers()), max_size=2),
)
steps = st.one_of(
    st.sampled_from(sorted(CURVES)),
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(CURVES)), texts()),
        st.one_of(
            st.dictionaries(
                st.sampled_from(("days", "hours", "seconds", "floor", "n_max", "k", "m", "c", "p",
                                 "prior_weight", "agent_verdict_weight")),
                numbers(), max_size=2,
            ),
            mappings(),
        ),
        min_size=1, max_size=1,
    ),
)  # fmt: skip
curves = st.one_of(steps, st.lists(steps, max_size=3), anything())
policies = st.one_of(
    st.sampled_from(("renormalize", "zero", "required", "nothing")),
    st.builds(lambda v: {"neutral": v}, numbers()),
    st.builds(lambda p, s: {"shrink": {"prior": p, "strength": s}}, numbers(), numbers()),
    st.builds(lambda c: {"require": {"coverage": c}}, numbers()),
    anything(),
)
evidence = st.sampled_from(sorted(rl.EVIDENCE)).map(lambda name: rl.EVIDENCE[name])

# Made once: making a strategy takes longer than drawing from it.
ANY = anything()
NUMBER = numbers()
NUMBERS = mappings(NUMBER)
SIGNALS = st.dictionaries(names, values, max_size=4)
PRESENT = st.dictionaries(st.sampled_from(NAMES), units())
PAIRS = st.one_of(mappings(), st.lists(st.tuples(names, ANY), max_size=2))
MAYBE = st.one_of(st.none(), ANY)
WEIGHTS = st.dictionaries(names, NUMBER, max_size=3)
PART = st.one_of(st.text(st.characters(), max_size=4), ANY)
LEVELS = st.one_of(
    st.lists(
        st.one_of(st.tuples(PART, PART), st.builds(rl.ScopeLevel, PART, PART), PART), max_size=4
    ),
    ANY,
)
TEXT_OR = st.one_of(texts(largest=40), texts(largest=40), ANY)
MODES = st.one_of(st.sampled_from(("off", "blend", "backfill")), ANY)
DISTANCES = st.one_of(st.integers(0, 70), NUMBER, ANY)
SCORES = st.one_of(units(), NUMBER, ANY)
KINDS = st.lists(evidence, min_size=1, max_size=8)
COMPOSER_NAMES = st.one_of(st.sampled_from(sorted(COMPOSERS)), ANY)
OPTIONS = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {}, optional={"k": NUMBER, "base": names, "members": st.one_of(mappings(names), names)}
    ),
    ANY,
)
ZERO_OR = st.one_of(st.just(rl.Zero()), ANY)
NOTHING_OR = st.one_of(st.just({}), ANY)
ROWS = st.lists(
    st.lists(st.one_of(units(), st.just(math.nan)), min_size=len(NAMES), max_size=len(NAMES)),
    max_size=4,
)

fuzzed = settings(suppress_health_check=list(HealthCheck))


def made(call: Callable[[], Any]) -> list[Any]:
    """What the call gives, in a list; an empty one when it was refused."""
    found: list[Any] = []
    refused(lambda: found.append(call()))
    return found


def made_of_anything(call: Callable[[], Any]) -> list[Any]:
    """As `made`, where what is no container at all may be Python's TypeError, as is documented."""
    try:
        return made(call)
    except TypeError:
        return []


def check_signals(data: st.DataObject) -> None:
    given = data.draw(SIGNALS)
    for signals in made(lambda: rl.RelevanceSignals(**given)):
        present = dict(signals.present())
        assert {name for name, value in given.items() if value is not None} == set(present)
        assert all(type(v) is float and 0.0 <= v <= 1.0 for v in present.values())
        assert hash(signals) == hash(rl.RelevanceSignals(**present))
    for table in made_of_anything(
        lambda: rl.SignalTable(data.draw(ANY), NAMES[:2], data.draw(matrices))
    ):
        check_table(table)
    for table in made_of_anything(
        lambda: rl.SignalTable(["a", "b"], data.draw(ANY), data.draw(matrices))
    ):
        check_table(table)
    pairs = data.draw(PAIRS)
    columns = data.draw(MAYBE)
    for table in made_of_anything(lambda: rl.SignalTable.from_signals(pairs, names=columns)):
        check_table(table)


def check_table(table: rl.SignalTable) -> None:
    seen = table.values[~np.isnan(table.values)]
    assert ((seen >= 0.0) & (seen <= 1.0)).all()
    assert not table.values.flags.writeable
    assert rl.SignalTable.from_signals(list(table), names=table.names) == table


def check_weights(data: st.DataObject) -> None:
    signals = rl.RelevanceSignals(**data.draw(PRESENT))
    for weights in made(lambda: rl.RelevanceWeights.only(data.draw(weightings))):
        score = weights.compose(signals)
        assert 0.0 <= score <= 1.0
        present = [
            (w, v) for name, w in weights.items() if (v := signals.present().get(name)) is not None
        ]
        whole = sum(Fraction(w) for w, _ in present)
        if whole:
            exact = float(sum(Fraction(w) * Fraction(v) for w, v in present) / whole)
            # Weights far below the greatest count as nothing: a double cannot hold both.
            assert score == pytest.approx(exact, rel=1e-9, abs=1e-9)
        else:
            assert score == 0.0
        for scores in made(lambda: weights.compose_table((NAMES[:2], data.draw(matrices)))):
            assert ((scores >= 0.0) & (scores <= 1.0)).all()
        made_of_anything(lambda: weights.compose_table((data.draw(ANY), [[0.5]])))
        made(lambda: weights.compose(data.draw(ANY)))
    made(lambda: rl.RelevanceWeights(**data.draw(WEIGHTS)))


def check_scopes(data: st.DataObject) -> None:
    for call in (
        lambda: rl.Scope.parse(data.draw(TEXT_OR)),
        lambda: rl.Scope(data.draw(LEVELS)),
        lambda: rl.Scope.of(data.draw(ANY)),
    ):
        for scope in made(call):
            assert rl.Scope.parse(str(scope)) == scope
            assert scope.distance(scope) == 0
            assert [scope.distance(up) for up in scope.ancestors()] == list(range(len(scope)))
            other = data.draw(TEXT_OR)
            for distance in made(lambda: scope.distance(other)):
                assert (
                    distance == -1
                    or scope.levels[: len(scope) - distance] == rl.Scope.of(other).levels
                )
            made(lambda: scope.contains(other))
            made(lambda: scope / other)


def check_blend(data: st.DataObject) -> None:
    mode = data.draw(MODES)
    for blend in made(lambda: rl.ScopeBlend(mode, data.draw(NUMBER), data.draw(NUMBER))):
        for gate in made(lambda: blend.gate(data.draw(DISTANCES))):
            assert 0.0 <= gate <= 1.0
        score, distance = data.draw(SCORES), data.draw(DISTANCES)
        for rank in made(lambda: blend.rank_score(score, distance)):
            assert 0.0 <= rank <= 1.0
            if blend.mode is rl.ScopeBlendMode.BACKFILL:
                assert (rank >= 0.5) == (distance == 0)
        made(lambda: blend.rank_scores(data.draw(columns), data.draw(columns)))
        made(lambda: blend.gates(data.draw(columns)))


def check_cue(data: st.DataObject) -> None:
    cue, text = (data.draw(TEXT_OR) for _ in range(2))
    for share in made(lambda: rl.cue_overlap(cue, text)):
        assert 0.0 <= share <= 1.0
        assert rl.cue_overlap(cue, cue) == 1.0
        assert isinstance(text, str)
        assert rl.cue_overlap(cue, text + " " + cue) == 1.0
        if share == 1.0:
            assert rl.cue_overlap("", text) == 1.0


def check_curves(data: st.DataObject) -> None:
    described = data.draw(curves)
    for chain in made(lambda: rl.parse_curve(described)):
        assert rl.parse_curve(rl.plain_curve(chain)) == chain
        rl.is_batch_relative(chain)
        kinds = data.draw(KINDS)
        given = [data.draw(columns) for _ in kinds]
        wrong = rl.check_curve(chain, kinds)
        for signal in made(lambda: rl.apply_curve(chain, given, kinds)):
            seen = signal[~np.isnan(signal)]
            assert ((seen >= 0.0) & (seen <= 1.0)).all()
        if not wrong and len({kind.name for kind in kinds}) == len(kinds):
            inside = [
                np.clip(np.array([0.5, math.nan, kind.low, 3.0]), kind.low, kind.high)
                for kind in kinds
            ]
            # What the check lets pass gives a signal for all evidence within its range.
            if chain[0].name != "smoothed_rate":
                assert len(made(lambda: rl.apply_curve(chain, inside, kinds))) == 1
    made(lambda: rl.CurveStep(data.draw(names), data.draw(NUMBERS)))
    made(lambda: rl.lookup_evidence(data.draw(texts())))
    for kind in made(
        lambda: rl.Evidence(
            data.draw(names), data.draw(names), data.draw(NUMBER), data.draw(NUMBER)
        )
    ):
        assert -math.inf < kind.low < kind.high


def check_missing(data: st.DataObject) -> None:
    described = data.draw(policies)
    for parse in (rl.parse_missing, rl.parse_override):
        for policy in made(lambda: parse(described)):
            assert parse(rl.plain_missing(policy)) == policy
    for kind in (rl.Neutral, rl.Require):
        made(lambda: kind(data.draw(NUMBER)))
    made(lambda: rl.Shrink(data.draw(NUMBER), data.draw(ANY)))


def check_nodes(data: st.DataObject) -> None:
    def node() -> list[rl.Node]:
        policy = made(lambda: rl.parse_missing(data.draw(policies)))
        override = made(lambda: rl.parse_override(data.draw(policies)))
        return made(
            lambda: rl.Node(
                data.draw(COMPOSER_NAMES),
                data.draw(weightings),
                missing=policy[0] if policy else data.draw(ZERO_OR),
                absent={data.draw(names): override[0]} if override else data.draw(NOTHING_OR),
                options=data.draw(OPTIONS),
            )
        )  # fmt: skip

    below = {f"n{at}": one for at in range(2) for one in node()}
    matrix = data.draw(ROWS)
    for root in [*node(), *below.values()]:
        table = (NAMES, np.array(matrix).reshape(-1, len(NAMES)))
        for found in made(lambda: rl.compose_table(root, below, table)):
            assert ((found.scores >= 0.0) & (found.scores <= 1.0)).all()
            assert (found.scores[~found.present] == 0.0).all()
            if found.additive and found.contributions:
                added = np.nansum(np.array(list(found.contributions.values())), axis=0)
                assert added == pytest.approx(found.scores, abs=1e-12)
        made(lambda: rl.compose_table(root, below, (NAMES[:2], data.draw(matrices))))


def check_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 4))
    scores, ties = (
        np.array(data.draw(st.lists(units(), min_size=n, max_size=n))) for _ in range(2)
    )
    distances = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    ids = data.draw(st.lists(texts(), min_size=n, max_size=n))
    order = rl.rank_order(scores, distances, scores, [ties], ids, blend=data.draw(st.booleans()))
    assert sorted(order.tolist()) == list(range(n))
    assert scores[order].tolist() == sorted(scores.tolist(), reverse=True)
    odd = data.draw(columns)
    for position in range(3):
        given: list[Any] = [scores, distances, scores]
        given[position] = odd
        made(lambda: rl.rank_order(given[0], given[1], given[2], [odd], ids, blend=True))
    made(lambda: rl.rank_order(scores, distances, scores, [], ids, blend=data.draw(ANY)))


CHECKS = {
    "signals": check_signals, "weights": check_weights, "scopes": check_scopes,
    "blend": check_blend, "cue": check_cue, "curves": check_curves, "missing": check_missing,
    "nodes": check_nodes, "order": check_order,
}  # fmt: skip


@pytest.mark.parametrize("part", CHECKS)
@settings(fuzzed, max_examples=15)
@given(st.data())
def test_relevance_when_given_anything_then_refused_or_right(
    part: str, data: st.DataObject
) -> None:
    CHECKS[part](data)


@pytest.mark.slow
@pytest.mark.parametrize("part", CHECKS)
@settings(fuzzed, max_examples=600)
@given(st.data())
def test_relevance_when_given_anything_very_often_then_refused_or_right(
    part: str, data: st.DataObject
) -> None:
    CHECKS[part](data)

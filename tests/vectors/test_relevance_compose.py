"""The shared expected values of `compose`, through the scalar and the table form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rankblend.relevance import Node, RelevanceSignals, RelevanceWeights, SignalTable, compose_table


@pytest.fixture
def cases(vectors: Callable[[str], Any]) -> list[dict[str, Any]]:
    found = vectors("relevance")["compose"]
    assert len(found) >= 12
    return found


def weights_of(case: dict[str, Any]) -> RelevanceWeights:
    return RelevanceWeights.only(case["weights"]) if case["weights"] else RelevanceWeights()


def ulps(case: dict[str, Any]) -> float:
    """The tolerance of the specification: 4(n + 1) units in the last place."""
    return 4 * (len(case["signals"]) + 1) * float(np.spacing(case["score"] or 1.0))


def test_compose_when_given_every_shared_case_then_gives_its_score(
    cases: list[dict[str, Any]],
) -> None:
    for case in cases:
        score = weights_of(case).compose(RelevanceSignals(**case["signals"]))
        assert abs(score - case["score"]) <= ulps(case), case["name"]


def test_compose_table_when_given_every_shared_case_then_gives_the_bits_of_the_scalar(
    cases: list[dict[str, Any]],
) -> None:
    everyone = SignalTable.from_signals(
        (str(at), RelevanceSignals(**case["signals"])) for at, case in enumerate(cases)
    )
    for at, case in enumerate(cases):
        weights = weights_of(case)
        scores = weights.compose_table(everyone)
        assert abs(scores[at] - case["score"]) <= ulps(case), case["name"]
        assert scores[at] == weights.compose(everyone.signals(at)), case["name"]


def test_root_node_when_given_every_shared_case_then_gives_the_bits_of_the_weights(
    cases: list[dict[str, Any]],
) -> None:
    for case in cases:
        weights = weights_of(case)
        table = SignalTable.from_signals({"a": RelevanceSignals(**case["signals"])})
        made = compose_table(Node("weighted_mean", weights), {}, table)
        assert made.scores[0] == weights.compose(table.signals(0)), case["name"]

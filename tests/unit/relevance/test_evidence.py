from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import (
    CERTAINTY_LEVELS,
    EVIDENCE,
    MATURITY_LEVELS,
    REVIEW_LEVELS,
    Evidence,
    evidence_names,
    is_identifier,
    lookup_evidence,
    register_evidence,
)
from rankblend.relevance import _evidence as module


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Put the registry back as it was."""
    before = dict(module._REGISTRY)
    yield
    module._REGISTRY.clear()
    module._REGISTRY.update(before)


@pytest.mark.parametrize(
    ("name", "low", "high", "natural_zero"),
    [
        ("cosine", -1.0, 1.0, False),
        ("bm25", 0.0, math.inf, True),
        ("coverage", 0.0, 1.0, True),
        ("hops", 0.0, math.inf, False),
        ("ppr", 0.0, 1.0, True),
        ("uses", 0.0, math.inf, True),
        ("runs", 0.0, math.inf, True),
        ("salience", 0.0, 1.0, False),
    ],
)
def test_vocabulary_when_asked_then_range_and_natural_zero(
    name: str, low: float, high: float, natural_zero: bool
) -> None:
    kind = EVIDENCE[name]
    assert (kind.low, kind.high, kind.natural_zero) == (low, high, natural_zero)


def test_vocabulary_when_ages_then_seconds_and_the_future_is_allowed() -> None:
    for name in ("age_created", "age_updated", "age_used", "age_last_run"):
        assert EVIDENCE[name].unit == "seconds"
        assert EVIDENCE[name].low < 0 < EVIDENCE[name].high


def test_vocabulary_when_read_then_cannot_be_written_and_is_named_like_its_keys() -> None:
    with pytest.raises(TypeError):
        EVIDENCE["cosine"] = EVIDENCE["bm25"]  # type: ignore[index]
    assert all(name == kind.name for name, kind in EVIDENCE.items())
    assert evidence_names() == tuple(sorted(EVIDENCE))


def test_vocabulary_when_it_speaks_of_the_query_then_marked_as_relevance() -> None:
    relevance = {name for name, kind in EVIDENCE.items() if kind.relevance}
    assert {"cosine", "bm25", "coverage", "structured", "hops", "ppr"} <= relevance
    assert not relevance & {"salience", "confidence", "review", "uses", "age_used", "runs"}


@pytest.mark.parametrize("levels", [REVIEW_LEVELS, MATURITY_LEVELS, CERTAINTY_LEVELS])
def test_labels_when_listed_then_numbers_in_the_unit_interval_best_first(levels: Any) -> None:
    values = list(levels.values())
    assert values == sorted(values, reverse=True)
    assert all(0.0 < value <= 1.0 for value in values)
    with pytest.raises(TypeError):
        levels["other"] = 1.0


@pytest.mark.parametrize("name", ["a", "_", "age_used", "X9"])
def test_is_identifier_when_letters_digits_and_underscores_then_true(name: str) -> None:
    assert is_identifier(name)


@pytest.mark.parametrize("name", ["", "9a", "a b", "a.b", "ä", "a\n", "a-b", None, 3])
def test_is_identifier_when_anything_else_then_false(name: object) -> None:
    assert not is_identifier(name)


def test_evidence_when_only_named_then_a_ready_signal() -> None:
    kind = Evidence("taste")
    assert (kind.unit, kind.low, kind.high, kind.natural_zero) == ("signal", 0.0, 1.0, False)
    with pytest.raises(FrozenInstanceError):
        kind.low = 1.0


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.0), (1.0, 0.0), (-math.inf, 0.0), (math.nan, 1.0), (0.0, math.nan)]
)
def test_evidence_when_the_range_is_empty_or_without_a_low_end_then_refused(
    low: float, high: float
) -> None:
    with pytest.raises(InvalidArgumentError):
        Evidence("taste", low=low, high=high)


def test_evidence_when_name_and_range_are_wrong_then_both_are_told() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Evidence("two words", low=1.0, high=0.0)
    assert len(caught.value.problems) == 2


def test_register_evidence_when_new_then_found_also_by_its_store() -> None:
    kind = register_evidence(Evidence("taste", "score", 0.0, math.inf))
    assert lookup_evidence("taste") is kind
    assert lookup_evidence("kitchen.taste") is kind
    assert "taste" in evidence_names()


def test_register_evidence_when_the_same_again_then_harmless() -> None:
    first = register_evidence(Evidence("taste", meaning="one phrase"))
    assert register_evidence(Evidence("taste", meaning="another phrase")) is first


def test_register_evidence_when_the_name_means_something_else_then_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        register_evidence(Evidence("cosine", "ratio", 0.0, 1.0))
    assert EVIDENCE["cosine"].low == -1.0


def test_lookup_evidence_when_unknown_then_none() -> None:
    assert lookup_evidence("nothing") is None
    assert lookup_evidence("vectors.nothing") is None


@pytest.mark.parametrize(
    "wrong", [{"unit": "days"}, {"low": "0"}, {"high": None}, {"low": True, "high": 2.0}]
)
def test_evidence_when_unit_or_range_are_no_such_thing_then_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        Evidence("taste", **wrong)

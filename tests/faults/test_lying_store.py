"""A store that breaks its promises is named, strict or not, and nothing of it is believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from bad_parts import Own, raising, why
from scenario import TENANT, USER

import rankblend as rb
from rankblend.errors import StoreFailedError
from rankblend.stores import Observation


def column(value: Any) -> Callable[[Sequence[str]], Observation]:
    return lambda ids: Observation({"cosine": np.full(len(ids), value)})


BROKEN: dict[str, Callable[[Sequence[str]], Any]] = {
    "expected 2 values of 'cosine', got (3,)": lambda ids: Observation(
        {"cosine": np.ones(len(ids) + 1)}
    ),
    "expected 2 values of 'cosine', got (0,)": lambda ids: Observation({"cosine": np.ones(0)}),
    "expected 2 values of 'cosine', got (2, 1)": lambda ids: Observation(
        {"cosine": np.ones((len(ids), 1))}
    ),
    "expected an Observation, got dict": lambda ids: {"cosine": np.ones(len(ids))},
    "expected an Observation, got NoneType": lambda ids: None,
    "expected numbers for 'cosine'": lambda ids: Observation({"cosine": ["high"] * len(ids)}),  # type: ignore[dict-item]
    "unknown reasons for 'cosine'": lambda ids: Observation(
        {"cosine": np.full(len(ids), np.nan)}, {"cosine": np.full(len(ids), 99, np.int8)}
    ),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("broken", BROKEN)
def test_recall_when_an_observation_is_malformed_then_the_store_is_named_strict_or_not(
    opened: Callable[..., rb.Memory], broken: str, strict: bool
) -> None:
    with pytest.raises(rb.MemoryContractError) as refused:
        opened(Own(says=BROKEN[broken])).recall("refund", scope=USER, strict=strict)
    assert str(refused.value).startswith(f"store 'own': {broken}")


def test_recall_when_a_store_itself_finds_a_promise_broken_then_only_it_has_failed(
    opened: Callable[..., rb.Memory],
) -> None:
    votes = rb.SignalStore("own", lambda ids: {i: {"liked": 1.0} for i in ids}, emits=("salience",))
    memory = opened(votes)
    result = memory.recall("refund", scope=USER)
    assert [failure.kind for failure in result.trace.failures] == ["MemoryContractError"]
    with pytest.raises(StoreFailedError) as failed:
        memory.recall("refund", scope=USER, strict=True)
    assert "emits salience, but gave liked" in str(failed.value.__cause__)


@pytest.mark.parametrize("value", [-1.0, 1.5, np.inf, -np.inf])
def test_recall_when_evidence_is_out_of_range_then_store_and_signal_are_named(
    opened: Callable[..., rb.Memory], value: float
) -> None:
    store = Own(
        proposes=["a"], says=lambda ids: Observation({"salience": np.full(len(ids), value)})
    )
    store.emits = ("salience",)
    with pytest.raises(rb.MemoryContractError, match=r"store 'own': .*salience"):
        opened(store).recall("refund", scope=USER)


def test_recall_when_a_store_answers_nan_then_it_is_absent(
    opened: Callable[..., rb.Memory],
) -> None:
    result = opened(Own(says=column(np.nan))).recall("refund", scope=USER, strict=True)
    assert why(result, "a", "similarity") == "not applicable"
    lying = Own(
        says=lambda ids: Observation(
            {"cosine": np.full(len(ids), np.nan)}, {"cosine": np.zeros(len(ids), np.int8)}
        )
    )
    assert why(opened(lying).recall("refund", scope=USER), "a", "similarity") == "not applicable"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("broken_too", [False, True])
def test_recall_when_a_store_proposes_the_invisible_then_it_is_refused_always(
    opened: Callable[..., rb.Memory], strict: bool, broken_too: bool
) -> None:
    memory = opened(Own(proposes=["a", "secret"], says=raising if broken_too else None))
    with pytest.raises(
        rb.MemoryContractError, match="not visible to this query or unknown"
    ) as refused:
        memory.recall("refund", scope=USER, strict=strict)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("limit", ["filters", "expired", "tip_only"])
def test_recall_when_a_store_ignores_what_is_admitted_then_it_is_refused(
    opened: Callable[..., rb.Memory], limit: str
) -> None:
    memory = opened(Own(proposes=["x"]))
    options: dict[str, Any] = {
        "filters": {}, "expired": {"expires": "2026-01-01T00:00:00+00:00"}, "tip_only": {"layer": "working"},
    }[limit]  # fmt: skip
    memory.remember("hidden", scope=TENANT, id="x", **options)
    filters = {"lang": "en"} if limit == "filters" else None
    with pytest.raises(rb.MemoryContractError, match=r"query\.admitted before the limit"):
        memory.recall("refund", scope=USER, filters=filters)


def test_recall_when_a_store_proposes_the_unknown_then_it_is_refused_like_the_invisible(
    opened: Callable[..., rb.Memory],
) -> None:
    told = []
    for proposed in ("ghost", "secret"):
        with pytest.raises(rb.MemoryContractError) as refused:
            opened(Own(proposes=["a", proposed])).recall("refund", scope=USER)
        told.append(str(refused.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("proposes", [[5], [None], [["a"]], [b"a"]])
def test_recall_when_a_store_proposes_what_is_no_id_then_it_is_refused(
    opened: Callable[..., rb.Memory], proposes: Any
) -> None:
    with pytest.raises(rb.MemoryContractError, match="store 'own': expected ids as text"):
        opened(Own(proposes=proposes)).recall("refund", scope=USER)


@pytest.mark.parametrize("proposes", [None, 5])
def test_recall_when_a_store_proposes_no_sequence_then_it_has_failed(
    opened: Callable[..., rb.Memory], proposes: Any
) -> None:
    result = opened(Own(proposes=lambda: proposes)).recall("refund", scope=USER)
    assert [(f.store, f.during) for f in result.trace.failures] == [("own", "propose")]


def test_recall_when_a_store_proposes_the_same_again_and_again_then_it_is_one_candidate(
    opened: Callable[..., rb.Memory],
) -> None:
    result = opened(Own(proposes=["a"] * 1000)).recall("refund", scope=USER)
    assert sorted(result.ids) == ["a", "b"]
    assert result.trace.pool == 2

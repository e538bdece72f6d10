"""Regimes of absence: who holds what, the same for every query, nothing changed in place."""

from __future__ import annotations

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.plans import (
    AllObserved,
    Combined,
    Disjoint,
    Unheld,
    keep_proposed,
    mask_evidence,
)
from rankblend.recall import Candidates, EvidenceColumn
from rankblend.relevance import Scope
from rankblend.stores import Key, Reason

IDS = [f"m{i}" for i in range(4_000)]


def make_candidates(n: int = 50) -> Candidates:
    present = np.zeros(n, np.int8)
    return Candidates(
        tuple(Key(Scope.parse("user:1"), f"m{i}") for i in range(n)),
        np.zeros(n, np.int64),
        ("semantic",) * n,
        {
            "cosine": (EvidenceColumn("vectors", np.linspace(-1, 1, n), present),),
            "bm25": (EvidenceColumn("keywords", np.linspace(0, 9, n), present),),
        },
        np.arange(n),
        vectors=np.ones((n, 4), np.float32) / 2,
    )


def test_unheld_when_a_share_is_lacking_then_about_that_many_and_only_of_that_store():
    regime = Unheld("vectors", 0.3)
    held = regime.holds("vectors", IDS)
    assert held.mean() == pytest.approx(0.7, abs=3 * np.sqrt(0.21 / 4_000))
    assert regime.holds("keywords", IDS).all()


def test_unheld_when_asked_in_another_order_or_company_then_the_same_memories():
    regime = Unheld("vectors", 0.3)
    whole = dict(zip(IDS, regime.holds("vectors", IDS).tolist(), strict=True))
    some = IDS[100:50:-7]
    assert regime.holds("vectors", some).tolist() == [whole[i] for i in some]
    assert Unheld("vectors", 0.3, seed=1).holds("vectors", IDS).tolist() != list(whole.values())


def test_unheld_when_the_share_grows_then_nothing_comes_back():
    less, more = (Unheld("vectors", share).holds("vectors", IDS) for share in (0.2, 0.6))
    assert (less | ~more).all()
    assert Unheld("vectors", 0.0).holds("vectors", IDS).all()
    assert not Unheld("vectors", 1.0).holds("vectors", IDS).any()


def test_disjoint_when_stores_divide_then_each_memory_is_held_by_exactly_one():
    regime = Disjoint(("vectors", "keywords", "graph"))
    held = [regime.holds(store, IDS) for store in regime.stores]
    assert (np.sum(held, axis=0) == 1).all()
    assert all(abs(one.mean() - 1 / 3) < 0.03 for one in held)
    assert regime.holds("catalog", IDS).all()


def test_combined_when_parts_agree_then_only_what_all_leave():
    parts = (Unheld("vectors", 0.5), Disjoint(("vectors", "keywords")))
    both = Combined(parts).holds("vectors", IDS)
    assert (
        both.tolist() == (parts[0].holds("vectors", IDS) & parts[1].holds("vectors", IDS)).tolist()
    )
    assert "50 %" in Combined(parts).name


def test_mask_when_a_store_lacks_memories_then_absent_with_the_reason_and_not_zero():
    candidates, regime = make_candidates(), Unheld("vectors", 0.4)
    held = regime.holds("vectors", candidates.ids)
    masked = mask_evidence(regime, candidates)
    (cosine,), (bm25,) = masked.evidence["cosine"], masked.evidence["bm25"]
    assert np.isnan(cosine.values).tolist() == (~held).tolist()
    assert set(cosine.reasons[~held]) == {Reason.UNKNOWN}
    assert bm25 is candidates.evidence["bm25"][0]
    assert np.isnan(masked.vectors).any(axis=1).tolist() == (~held).tolist()
    assert not np.isnan(candidates.evidence["cosine"][0].values).any()
    assert mask_evidence(AllObserved(), candidates) is candidates


def test_proposals_when_a_store_lacks_memories_then_it_does_not_propose_them():
    regime = Unheld("vectors", 0.4)
    kept = keep_proposed(regime, "vectors", IDS)
    assert kept == [i for i, held in zip(IDS, regime.holds("vectors", IDS), strict=True) if held]
    assert keep_proposed(AllObserved(), "vectors", IDS) == IDS


def test_regimes_when_their_numbers_make_no_sense_then_refused():
    with pytest.raises(InvalidArgumentError):
        Unheld("vectors", 1.5)
    with pytest.raises(InvalidArgumentError):
        Disjoint(("vectors",))

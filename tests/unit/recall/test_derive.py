"""From evidence to signals and to an order, on columns made by hand; no store is asked."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankblend.errors import InvalidArgumentError, MemoryContractError
from rankblend.profiles import RankingProfile, load_profile, read_profile
from rankblend.recall import Candidates, EvidenceColumn, rank_candidates
from rankblend.recall._derive import derive
from rankblend.relevance import Scope
from rankblend.stores import Key, Reason

TENANT = Scope.parse("tenant:acme")


def candidates(evidence: str, *values: float) -> Candidates:
    """One store's column over as many candidates."""
    column = np.array(values)
    why = np.where(np.isnan(column), Reason.NOT_APPLICABLE, Reason.PRESENT).astype(np.int8)
    n = len(values)
    return Candidates(
        keys=tuple(Key(TENANT, f"m{at}") for at in range(n)),
        distances=np.zeros(n, np.int64),
        layers=("facts",) * n,
        evidence={evidence: (EvidenceColumn("hand", column, why),)},
        groups=np.arange(n),
    )


@pytest.fixture
def clipped() -> RankingProfile:
    return read_profile(
        '[signals.near]\nevidence = "cosine"\ncurve = "clip"\n[score]\nof = ["near"]'
    )


@pytest.mark.parametrize("value", [2.0, -1.5, math.inf, -math.inf])
def test_derive_when_a_store_gives_a_distance_as_cosine_then_refused_though_clip_would_take_it(
    clipped: RankingProfile, value: float
) -> None:
    with pytest.raises(MemoryContractError, match=r"'hand': expected cosine in \[-1, 1\].*'m1'"):
        derive(clipped, candidates("cosine", 0.5, value))


def test_derive_when_a_cosine_is_off_by_rounding_then_clipped(clipped: RankingProfile) -> None:
    table = derive(clipped, candidates("cosine", 1.0 + 5e-4, -1.0 - 5e-4, math.nan)).table
    assert table.column("near")[:2].tolist() == [1.0, 0.0]
    assert math.isnan(table.column("near")[2])


def test_derive_when_a_range_has_no_end_then_infinity_is_in_it() -> None:
    # Infinitely many hops: the store did answer, and nothing reached it.
    table = derive(load_profile("symfonic"), candidates("hops", math.inf, 1.0)).table
    assert table.column("proximity").tolist() == [0.0, 0.5]


@pytest.mark.parametrize("node", ["rerank", "other"])
def test_rank_candidates_when_the_profile_lacks_the_node_then_refused(
    clipped: RankingProfile, node: str
) -> None:
    pool = candidates("cosine", 0.5)
    assert rank_candidates(clipped, pool).node == "score"
    with pytest.raises(InvalidArgumentError, match="has no"):
        rank_candidates(clipped, pool, node=node)

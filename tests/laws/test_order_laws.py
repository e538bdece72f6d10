"""What holds for every order."""

from __future__ import annotations

import math
from functools import cmp_to_key
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.relevance import rank_order

# Few values, so that everything ties often.
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ties = shares | st.just(math.nan)
row = st.tuples(shares, st.integers(0, 2), shares, ties, ties)
ids = st.text(max_size=2) | st.sampled_from(["a", "b", "B", "10", "9", "\U0001f600", "\uffff"])
tables = st.dictionaries(ids, row, max_size=9)


def order(table: dict[str, Any], *, blend: bool) -> list[str]:
    columns = list(zip(*table.values(), strict=True)) if table else [()] * 5
    rank_scores, distances, scores, *tied = (np.array(column, np.float64) for column in columns)
    names = list(table)
    places = rank_order(rank_scores, distances.astype(np.int64), scores, tied, names, blend=blend)
    assert sorted(places.tolist()) == list(range(len(table)))
    return [names[place] for place in places]


@given(table=tables, blend=st.booleans(), data=st.data())
def test_order_when_candidates_come_in_another_order_then_the_same(
    table: dict[str, Any], blend: bool, data: st.DataObject
) -> None:
    shuffled = {name: table[name] for name in data.draw(st.permutations(list(table)))}
    assert order(shuffled, blend=blend) == order(table, blend=blend)


@given(table=tables, blend=st.booleans())
def test_order_when_compared_pair_by_pair_then_as_the_rule_reads(
    table: dict[str, Any], blend: bool
) -> None:
    def compare(one: str, other: str) -> int:
        (a_rank, a_level, a_score, *a_ties), (b_rank, b_level, b_score, *b_ties) = (
            table[one],
            table[other],
        )
        if a_rank != b_rank:
            return -1 if a_rank > b_rank else 1
        if blend and a_level != b_level:
            return -1 if a_level < b_level else 1
        for a, b in zip([a_score, *a_ties], [b_score, *b_ties], strict=True):
            if math.isnan(a) != math.isnan(b):
                return 1 if math.isnan(a) else -1
            if a != b and not math.isnan(a):
                return -1 if a > b else 1
        return -1 if [*map(ord, one)] < [*map(ord, other)] else 1

    assert order(table, blend=blend) == sorted(table, key=cmp_to_key(compare))


@given(table=tables, blend=st.booleans(), data=st.data())
def test_order_when_one_candidate_goes_then_the_others_stay_in_order(
    table: dict[str, Any], blend: bool, data: st.DataObject
) -> None:
    if not table:
        return
    gone = data.draw(st.sampled_from(list(table)))
    before = [name for name in order(table, blend=blend) if name != gone]
    assert order({k: v for k, v in table.items() if k != gone}, blend=blend) == before

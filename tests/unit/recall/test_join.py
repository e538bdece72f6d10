"""The pool: proposals of all stores joined, nearest level first, every store in its turn."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rankblend.recall._propose import PooledFrom, join_proposals, seeds_from
from rankblend.stores import Seed


def test_join_when_levels_and_stores_take_turns_then_nearest_first_and_stores_by_name() -> None:
    proposals = {
        "vectors": {1: ["v1a", "v1b"], 0: ["v0"]},
        "keywords": {0: ["k0", "v0"], 1: ["k1"]},
    }
    # A round: level 0 keywords, level 0 vectors, level 1 keywords, level 1 vectors; then the next.
    assert list(join_proposals(proposals, 99)) == ["k0", "v0", "k1", "v1a", "v1b"]
    assert list(join_proposals(proposals, 3)) == ["k0", "v0", "k1"]
    assert join_proposals(proposals, 0) == {}


def test_join_when_several_propose_the_same_then_all_of_them_are_named() -> None:
    joined = join_proposals({"b": {None: ["x", "y"]}, "a": {None: ["y"]}}, 99)
    assert joined == {
        "y": (PooledFrom("a", None, 1), PooledFrom("b", None, 2)),
        "x": (PooledFrom("b", None, 1),),
    }


def test_join_when_a_list_gives_what_is_there_already_then_it_gives_its_next() -> None:
    assert list(join_proposals({"a": {None: ["x", "y"]}, "b": {None: ["x", "z"]}}, 2)) == ["x", "z"]


lists = st.dictionaries(
    st.sampled_from(("a", "b", "c")),
    st.dictionaries(
        st.integers(0, 2),
        st.lists(st.sampled_from("stuvwxyz"), max_size=5, unique=True),
        max_size=3,
    ),
    max_size=3,
)


@settings(max_examples=100)
@given(lists, st.integers(0, 9))
def test_join_when_compared_with_turns_played_out_then_the_same(
    proposals: dict[str, dict[int, list[str]]], limit: int
) -> None:
    hands = [
        list(ids)
        for _, _, ids in sorted(
            (level, store, ids)
            for store, levels in proposals.items()
            for level, ids in levels.items()
        )
    ]
    pool: list[str] = []
    while any(hands):
        for hand in hands:
            while hand and hand[0] in pool:
                hand.pop(0)
            if hand:
                pool.append(hand.pop(0))
    assert list(join_proposals(proposals, limit)) == pool[:limit]


def test_seeds_when_taken_from_proposals_then_ten_at_most_and_weaker_by_rank() -> None:
    seeds = seeds_from("keywords", [f"m{n}" for n in range(20)])
    assert len(seeds) == 10
    assert seeds[0] == Seed("m0", 1.0, "keywords")
    assert seeds[3] == Seed("m3", 0.25, "keywords")

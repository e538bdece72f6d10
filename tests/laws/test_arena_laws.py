"""VectorArena against a plain array, through any history of growing, cutting and moving."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankblend.stores.vectors._arena import VectorArena

counts = st.integers(0, 40)
histories = st.lists(
    st.one_of(
        st.tuples(st.just("room"), counts),
        st.tuples(st.just("cut"), counts),
        st.tuples(st.just("keep"), st.integers(0, 2**32)),
        st.tuples(st.just("reorder"), st.integers(0, 2**32)),
    ),
    max_size=12,
)


@given(histories, st.sampled_from([1, 2, 5]))
def test_rows_are_those_of_a_plain_array_and_room_is_always_zero(history, dimension) -> None:
    arena, twin, made = VectorArena(dimension), np.empty((0, dimension), np.float32), 0
    for what, number in history:
        if what == "room":
            before, known = arena.matrix, twin.copy()
            room = arena.room(number)
            assert room.shape == (number, dimension)
            assert not room.any()
            room[:] = np.arange(made + 1, made + number + 1)[:, None]
            made += number
            twin = np.concatenate([twin, room])
            assert (before == known).all()  # a view from before still says what it said
        elif what == "cut":
            arena.cut(number)
            twin = twin[:number]
        elif what == "keep":
            kept = np.random.default_rng(number).random(len(twin)) < 0.7
            arena.keep(kept)
            twin = twin[kept]
        else:
            order = np.random.default_rng(number).permutation(len(twin))
            arena, twin = arena.reordered(order), twin[order]
        assert len(arena) == len(twin)
        assert np.array_equal(arena.matrix, twin)
        # FAISS is given the address: the rows must lie one after the other.
        assert arena.matrix.flags.c_contiguous

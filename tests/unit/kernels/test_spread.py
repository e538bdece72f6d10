"""The walk kernels, on graphs small enough to work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankblend.kernels.spread import (
    best_paths,
    concat_ranges,
    nearest_hops,
    ordered_sums,
    own_returns,
    personalized_pagerank,
    spread_step,
)


def both_ways(*edges: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    source = np.array([a for a, b in edges] + [b for a, b in edges], dtype=np.int64)
    target = np.array([b for a, b in edges] + [a for a, b in edges], dtype=np.int64)
    return source, target


def csr(size: int, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(source, kind="stable")
    return np.searchsorted(source[order], np.arange(size + 1)), order


PATH = both_ways((0, 1), (1, 2), (2, 3), (3, 4))


def test_concat_ranges_when_some_are_empty_then_they_give_nothing() -> None:
    positions, owners = concat_ranges(np.array([7, 3, 5]), np.array([7, 6, 4]))
    assert positions.tolist() == [3, 4, 5]
    assert owners.tolist() == [1, 1, 1]


def test_concat_ranges_when_there_are_none_then_both_are_empty() -> None:
    positions, owners = concat_ranges(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    assert positions.shape == owners.shape == (0,)


def test_ordered_sums_when_values_are_shuffled_then_the_bits_stay(
    rng: np.random.Generator,
) -> None:
    groups, values = rng.integers(0, 5, 400), rng.random(400) * 10.0 ** rng.integers(-9, 9, 400)
    expected = ordered_sums(groups, values, 6)
    shuffled = rng.permutation(400)
    assert ordered_sums(groups[shuffled], values[shuffled], 6).tobytes() == expected.tobytes()
    assert expected[5] == 0.0


def test_ordered_sums_when_empty_then_zeros() -> None:
    empty = np.array([], dtype=np.int64)
    assert ordered_sums(empty, empty.astype(float), 3).tolist() == [0.0, 0.0, 0.0]


def test_spread_step_when_a_node_has_two_neighbours_then_each_gets_its_share() -> None:
    source, target = both_ways((0, 1), (0, 2))
    share = np.array([0.3, 0.2, 1.0, 1.0])  # 0→1, 0→2, 1→0, 2→0
    out = spread_step(source, target, share, np.array([2.0, 0.0, 1.0]))
    assert out.tolist() == [1.0, 0.6, 0.4]  # 1 · 1.0; 2 · .3; 2 · .2


def test_nearest_hops_when_a_seed_is_measured_from_others_then_not_from_itself() -> None:
    source, target = PATH
    seeds = np.array([0, 3])
    assert nearest_hops(source, target, 5, seeds, max_hops=3, others=True).tolist() == [
        3, 1, 1, 3, 1,
    ]  # fmt: skip
    assert nearest_hops(source, target, 5, seeds, max_hops=3, others=False).tolist() == [
        0, 1, 1, 0, 1,
    ]  # fmt: skip


def test_nearest_hops_when_there_is_one_seed_then_it_has_no_other() -> None:
    source, target = PATH
    out = nearest_hops(source, target, 5, np.array([0]), max_hops=2, others=True)
    assert out.tolist() == [math.inf, 1, 2, math.inf, math.inf]


def test_nearest_hops_when_there_are_more_seeds_than_bits_in_a_word_then_all_count() -> None:
    # 130 leaves around node 0, all seeds: each is two hops from the next, 0 is one from all
    source, target = both_ways(*((0, leaf) for leaf in range(1, 131)))
    out = nearest_hops(source, target, 131, np.arange(1, 131), max_hops=3, others=True)
    assert out.tolist() == [1.0] + [2.0] * 130


@pytest.mark.parametrize("others", [True, False])
def test_nearest_hops_when_there_are_no_seeds_or_edges_then_nothing_is_reached(
    *, others: bool
) -> None:
    source, target = PATH
    none = np.array([], dtype=np.int64)
    assert np.isinf(nearest_hops(source, target, 5, none, max_hops=3, others=others)).all()
    assert np.isinf(nearest_hops(none, none, 2, none, max_hops=3, others=others)).all()


def test_best_paths_when_a_detour_is_stronger_then_it_wins() -> None:
    source, target = both_ways((0, 1), (0, 2), (2, 1))
    weight = np.array([0.25, 0.9, 0.5] * 2)
    out = best_paths(source, target, weight, 3, np.array([0]), np.array([0.8]), max_hops=2)
    # 1: direct .8 · .25 = .2; over 2: .8 · .9 · .5 = .36. The only seed has no other.
    assert out.tolist() == pytest.approx([0.0, 0.36, 0.72])


def test_best_paths_when_hops_are_few_then_the_detour_is_too_long() -> None:
    source, target = both_ways((0, 1), (0, 2), (2, 1))
    weight = np.array([0.25, 0.9, 0.5] * 2)
    out = best_paths(source, target, weight, 3, np.array([0]), np.array([0.8]), max_hops=1)
    assert out.tolist() == pytest.approx([0.0, 0.2, 0.72])


def test_best_paths_when_seeds_are_neighbours_then_each_takes_the_other_ones_value() -> None:
    source, target = both_ways((0, 1), (1, 2))
    out = best_paths(
        source, target, np.full(4, 0.5), 3, np.array([0, 1]), np.array([1.0, 0.4]), max_hops=3
    )
    # 0 from 1: .4 · .5; 1 from 0: 1 · .5; 2 from 0 over 1: .25 beats .2 from 1
    assert out.tolist() == pytest.approx([0.2, 0.5, 0.25])


def test_best_paths_when_the_second_seed_must_pass_a_stronger_one_then_it_is_not_lost() -> None:
    source, target = PATH
    out = best_paths(
        source, target, np.full(8, 1.0), 5, np.array([1, 2]), np.array([1.0, 0.3]), max_hops=4
    )
    # seed 1 hears only of seed 2, although everything around it is filled by its own 1.0
    assert out.tolist() == pytest.approx([1.0, 0.3, 1.0, 1.0, 1.0])


def test_own_returns_when_walked_by_hand_then_equal_to_the_closed_walks() -> None:
    # a triangle with a tail: two closed walks of length 2 and two of length 3 at node 0
    source, target = both_ways((0, 1), (1, 2), (2, 0), (2, 3))
    indptr, order = csr(4, source, target)
    share = np.full(len(source), 0.5)
    out = own_returns(indptr, target[order], share, np.array([0, 3]), steps=3)
    # node 0: 2 · .25 + 2 · .125 = .75; node 3: 3→2→3 .25
    assert out.tolist() == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize("steps", range(7))
def test_own_returns_when_compared_with_matrix_powers_then_equal(
    steps: int, rng: np.random.Generator
) -> None:
    size = 12
    pairs = [(a, b) for a in range(size) for b in range(a) if rng.random() < 0.25]
    source, target = both_ways(*pairs)
    indptr, order = csr(size, source, target)
    share = rng.random(len(source))
    dense = np.zeros((size, size))
    dense[target[order], source[order]] = share
    power, expected = np.eye(size), np.zeros(size)
    for _ in range(steps):
        power = dense @ power
        expected += np.diag(power)
    out = own_returns(indptr, target[order], share, np.arange(size), steps=steps)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


def test_personalized_pagerank_when_two_nodes_then_the_closed_form() -> None:
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    out = personalized_pagerank(
        lambda vector: matrix @ vector, np.ones(2), np.array([1.0, 0.0]), damping=0.5
    )
    # p0 = .5 + .5 p1, p1 = .5 p0 → p0 = 2/3
    assert out.tolist() == pytest.approx([2 / 3, 1 / 3])


def test_personalized_pagerank_when_damping_is_zero_then_the_restart() -> None:
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    out = personalized_pagerank(
        lambda vector: matrix @ vector, np.ones(2), np.array([0.25, 0.75]), damping=0.0
    )
    assert out.tolist() == pytest.approx([0.25, 0.75])


def test_personalized_pagerank_when_a_component_has_no_restart_then_exactly_zero_there() -> None:
    matrix = np.kron(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]))
    out = personalized_pagerank(
        lambda vector: matrix @ vector, np.ones(4), np.array([0.5, 0.5, 0, 0]), damping=0.9
    )
    assert out[2:].tolist() == [0.0, 0.0]
    assert out.sum() == pytest.approx(1.0)


def test_personalized_pagerank_when_stopped_early_then_still_a_non_negative_answer() -> None:
    matrix = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    out = personalized_pagerank(
        lambda vector: matrix @ vector, np.array([1.0, 2.0, 1.0]), np.array([1.0, 0.0, 0.0]),
        damping=0.9, max_iterations=1,
    )  # fmt: skip
    assert (out >= 0).all()


def test_personalized_pagerank_when_several_restarts_stand_side_by_side_then_as_one_by_one(
    rng: np.random.Generator,
) -> None:
    matrix = np.triu(rng.random((30, 30)) < 0.2, 1).astype(float)
    matrix += matrix.T + np.eye(30, k=1) + np.eye(30, k=-1)
    strength = matrix.sum(axis=0) + 0.5  # some of every walk leaves
    restarts = np.eye(30)[:, [3, 17, 3]]
    restarts[:, 2] = 1 / 30

    def solve(restart: np.ndarray) -> np.ndarray:
        return personalized_pagerank(
            lambda vector: matrix @ vector, strength, restart, damping=0.85, tolerance=1e-13
        )

    together = solve(restarts)
    for at in range(3):
        assert together[:, at] == pytest.approx(solve(restarts[:, at]), rel=1e-11)
        exact = np.linalg.solve(np.eye(30) - 0.85 * matrix / strength, 0.15 * restarts[:, at])
        assert together[:, at] == pytest.approx(exact, rel=1e-10)


def test_personalized_pagerank_when_one_of_several_is_solved_at_once_then_no_division_by_zero() -> (
    None
):
    matrix = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    out = personalized_pagerank(
        lambda vector: matrix @ vector, np.ones(3), np.eye(3)[:, [2, 0]], damping=0.5
    )
    assert out[:, 0].tolist() == [0.0, 0.0, 0.5]  # nothing comes back
    assert out[:, 1].tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])

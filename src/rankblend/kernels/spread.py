"""Pure array functions for walks on a graph: hops, best paths, spreading activation, PageRank.

A graph is given as half-edges: every undirected edge appears twice, once from each end, as
``source[i] → target[i]`` with nodes 0 … n − 1. Sums run in an order that depends on the values
alone, so that the same graph gives the same bits however its edges were inserted, and nodes with
the same surroundings get exactly equal values.

Sources: spreading activation after Collins & Loftus 1975 and Anderson 1983 (the fan effect);
personalised PageRank after Haveliwala 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "best_paths",
    "concat_ranges",
    "nearest_hops",
    "ordered_sums",
    "own_returns",
    "personalized_pagerank",
    "spread_step",
]

_TINY = math.ulp(0.0)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def concat_ranges(starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """The positions of several ranges one after another, and which range each belongs to.

    Args:
        starts: int64, shape (r,).
        stops: int64, shape (r,); a range with stop ≤ start is empty.

    Returns:
        ``positions`` and ``owners``, both int64, shape (Σ lengths,).

    Example:
        >>> [a.tolist() for a in concat_ranges(np.array([4, 0]), np.array([6, 1]))]
        [[4, 5, 0], [0, 0, 1]]
    """
    lengths = np.maximum(stops - starts, 0)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    positions = np.arange(len(owners)) + np.repeat(starts - before, lengths)
    return positions, owners


def ordered_sums(groups: Ints, values: Floats, size: int) -> Floats:
    """Sum ``values`` by group, smallest value first, so that the order given does not matter.

    Floating-point sums depend on their order in the last bit; that bit decides between memories
    that should tie.

    Args:
        groups: Integers in [0, size), shape (m,).
        values: float64, shape (m,), finite.
        size: Number of groups.

    Returns:
        float64, shape (size,); 0.0 for a group without values.
    """
    if len(values) and values.min() != values.max():  # equal ones may be added in any order
        order = np.argsort(values)
        groups, values = groups[order], values[order]
    sums = np.bincount(groups, weights=values, minlength=size)
    return sums.astype(np.float64, copy=False)  # bincount of nothing gives integers


def spread_step(source: Ints, target: Ints, share: Floats, mass: Floats) -> Floats:
    """Let every node pass on its mass once: ``out[y] = Σ mass[x] · share[x → y]``.

    Args:
        source: Half-edges' origins, shape (m,).
        target: Half-edges' ends, shape (m,).
        share: float64, shape (m,), ≥ 0: what part of its mass the origin sends along.
        mass: float64, shape (n,), ≥ 0.

    Returns:
        float64, shape (n,): the mass that arrives; what was there before is not kept.
    """
    return ordered_sums(target, mass[source] * share, len(mass))


def nearest_hops(
    source: Ints, target: Ints, size: int, seeds: Ints, *, max_hops: int, others: bool
) -> Floats:
    """Least number of steps from a seed to every node, in at most ``max_hops`` steps.

    Args:
        source: Half-edges' origins, shape (m,).
        target: Half-edges' ends, shape (m,).
        size: Number of nodes n.
        seeds: Distinct nodes, shape (s,).
        max_hops: Steps at most, ≥ 0.
        others: A seed is measured from the nearest *other* seed; else it is at 0.

    Returns:
        float64, shape (n,): whole numbers, inf where no seed reaches.

    Edge cases: no seeds → all inf; one seed with ``others`` → inf at that seed.
    """
    # one bit per seed: which seeds have a walk of at most h steps to this node
    words = max(1, -(-len(seeds) // 64))
    own = np.zeros((size, words), dtype=np.uint64)
    which = np.arange(len(seeds))
    own[seeds, which // 64] = np.uint64(1) << (which % 64).astype(np.uint64)
    foreign = ~own if others else np.full_like(own, ~np.uint64(0))
    hops = np.where((own & foreign).any(axis=1), 0.0, np.inf)
    if not len(source):
        return hops
    order = np.argsort(target)
    ordered = target[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends, origins = ordered[starts], source[order]
    reached = own.copy()
    for hop in range(1, max_hops + 1):
        arriving = np.bitwise_or.reduceat(reached[origins], starts, axis=0)
        reached[ends] |= arriving
        new = np.isinf(hops) & (reached & foreign).any(axis=1)
        hops[new] = hop
    return hops


def best_paths(
    source: Ints,
    target: Ints,
    weight: Floats,
    size: int,
    seeds: Ints,
    strengths: Floats,
    *,
    max_hops: int,
) -> Floats:
    """The greatest ``strength · Π weights`` over paths from a seed, of at most ``max_hops`` edges.

    A seed takes its value from the *other* seeds only.

    Args:
        source: Half-edges' origins, shape (m,).
        target: Half-edges' ends, shape (m,).
        weight: float64, shape (m,), in (0, 1].
        size: Number of nodes n.
        seeds: Distinct nodes, shape (s,).
        strengths: float64, shape (s,), in (0, 1].
        max_hops: Edges at most, ≥ 0.

    Returns:
        float64, shape (n,), in [0, 1]; 0.0 where no (other) seed reaches.
    """
    # the best value and the best one from a different seed: enough to leave one seed out
    best = np.zeros((2, size))
    origin = np.full((2, size), -1)
    best[0, seeds], origin[0, seeds] = strengths, np.arange(len(seeds))
    for _ in range(max_hops):
        value = np.concatenate([best[0, source] * weight, best[1, source] * weight])
        whose = np.concatenate([origin[0, source], origin[1, source]])
        where = np.concatenate([target, target])
        useful = value > best[1, where]
        if not useful.any():
            break
        where = np.concatenate([where[useful], np.arange(size), np.arange(size)])
        value = np.concatenate([value[useful], best[0], best[1]])
        whose = np.concatenate([whose[useful], origin[0], origin[1]])
        order = np.lexsort((whose, -value, where))
        where, value, whose = where[order], value[order], whose[order]
        first = np.flatnonzero(np.r_[True, where[1:] != where[:-1]])
        winner = whose[first]
        before = best.copy()
        best[0], origin[0] = value[first], winner
        rest = np.flatnonzero((whose != winner[where]) & (value > 0))
        best[1], origin[1] = 0.0, -1
        kept = rest[np.r_[True, where[rest[1:]] != where[rest[:-1]]]] if len(rest) else rest
        best[1, where[kept]], origin[1, where[kept]] = value[kept], whose[kept]
        if np.array_equal(before, best):
            break
    out: Floats = best[0].copy()
    out[seeds] = np.where(origin[0, seeds] == np.arange(len(seeds)), best[1, seeds], best[0, seeds])
    return out


def own_returns(indptr: Ints, target: Ints, share: Floats, origins: Ints, *, steps: int) -> Floats:
    """How much of a unit of mass placed on each origin comes back to it within ``steps`` steps.

    ``out[i] = Σ_{1 ≤ h ≤ steps} (Tʰ)[oᵢ, oᵢ]`` for the step T of `spread_step`. Only walks that
    can still return are followed, so the cost is that of the origins' near surroundings.

    Args:
        indptr: Shape (n + 1,): half-edges of node x are ``indptr[x]:indptr[x + 1]``.
        target: Half-edges' ends, shape (m,). A half-edge's reverse may be missing only where its
            end has no half-edges at all.
        share: float64, shape (m,).
        origins: Distinct nodes, shape (k,).
        steps: ≥ 0.

    Returns:
        float64, shape (k,).
    """
    size = len(indptr) - 1
    back = np.zeros(len(origins))
    home = np.arange(len(origins)) * size + origins
    # a pair (origin, node) is the number origin · n + node; rings[d]: pairs d steps from home
    rings = [home]
    pairs, mass = home, np.ones(len(origins))
    for step in range(1, steps + 1):
        node = pairs % size
        positions, who = concat_ranges(indptr[node], indptr[node + 1])
        reached = pairs[who] - node[who] + target[positions]
        value = mass[who] * share[positions]
        if 2 * step > steps:  # from here on a walk must be near enough to come home in time
            near = np.sort(np.concatenate(rings[: steps - step + 1]))
            at = np.minimum(np.searchsorted(near, reached), len(near) - 1)
            keep = near[at] == reached
            reached, value = reached[keep], value[keep]
        pairs, group = np.unique(reached, return_inverse=True)
        mass = ordered_sums(group, value, len(pairs))
        if not len(pairs):
            break
        if 2 * step <= steps:
            rings.append(np.setdiff1d(pairs, np.concatenate(rings), assume_unique=True))
        at = np.minimum(np.searchsorted(pairs, home), len(pairs) - 1)
        back += np.where(pairs[at] == home, mass[at], 0.0)
    return back


def personalized_pagerank(
    multiply: Callable[[Floats], Floats],
    strength: Floats,
    restart: Floats,
    *,
    damping: float,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> Floats:
    """Stationary distribution of a walk that restarts at ``restart`` with chance 1 − damping.

    Solves ``p = (1 − d)·v + d·W·D⁻¹·p`` for a symmetric W. Since ``I − d·D^-½·W·D^-½`` is symmetric
    and positive definite, conjugate gradients solve it in about a quarter of the steps of a power
    iteration (error factor .55 a step against .85 at d = .85).

    Args:
        multiply: x → W x for the symmetric matrix W ≥ 0, shape (n, n), in a new array.
        strength: float64, shape (n,): row sums of W; every one > 0. A greater one lets the rest of
            the walk leave for good.
        restart: float64, shape (n,), ≥ 0, sum 1; or shape (n, k), k of them side by side.
        damping: In [0, 1).
        tolerance: Stops when the residual's norm falls to this share of the right side's.
        max_iterations: Steps at most.

    Returns:
        float64, of the shape of ``restart``, ≥ 0, sum 1 within the tolerance (less where walks
        leave). Exactly 0 in components without restart.

    Source: the definition is networkx's ``pagerank``; differs in the solver only. Sums are numpy's
    own, not BLAS', so the result does not depend on the number of threads.
    """
    scale = (1.0 / np.sqrt(strength)).reshape(-1, *[1] * (restart.ndim - 1))
    damped = damping * scale
    right = scale * restart
    solution = right.copy()
    room = np.empty_like(right)  # of every product: as fast again as with new arrays

    def dot(left: Floats, other: Floats) -> Floats:
        product: Floats = np.multiply(left, other, out=room).sum(axis=0)
        return product

    def walked(vector: Floats) -> Floats:
        product = multiply(np.multiply(scale, vector, out=room))
        return np.multiply(product, damped, out=product)

    residual = walked(right)
    direction = residual.copy()
    square = dot(residual, residual)
    enough = tolerance * tolerance * dot(right, right)
    for _ in range(max_iterations):
        if (square <= enough).all():
            break
        image = walked(direction)
        np.subtract(direction, image, out=image)
        # one that is solved exactly has no direction left: 0 / 0 steps on
        step = square / np.fmax(dot(direction, image), _TINY)
        solution += np.multiply(direction, step, out=room)
        residual -= np.multiply(image, step, out=room)
        previous, square = square, dot(residual, residual)
        direction *= square / np.fmax(previous, _TINY)
        direction += residual
    return np.maximum((1.0 - damping) * solution / scale, 0.0)

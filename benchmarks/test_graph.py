"""Proximity in a graph of a million edges, beside scipy on a matrix made beforehand (P8).

The store sees a tenth less than it holds, is given the admitted memories anew with every question,
and must find out itself what is visible; the reference gets the visible subgraph as a finished
matrix. What a mask over the edge columns takes is therefore allowed on top.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from random_graph import DEGREE, RandomGraph, conjugate_gradients

NODES, ADDED = 200_000, 1_000
DAMPING, TOLERANCE, HOPS = 0.85, 1e-10, 3
PAGERANK = f"personalised PageRank, {NODES * DEGREE:,} edges"
NEAR = f"hops, {NODES * DEGREE:,} edges"


@pytest.fixture(scope="module")
def graph():
    made = RandomGraph.of(NODES, damping=DAMPING)
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def matrix(graph):
    return graph.matrix()


@pytest.fixture(scope="module")
def target(graph):
    """The ratio allowed, and on top what one mask over the edges takes."""
    edge_scope, admitted = graph.scope[graph.source], graph.admitted
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        graph.edge_mask(edge_scope, admitted)
        taken.append(time.perf_counter() - start)
    return f"<= 1.5 x + {min(taken) * 1e3:.1f} ms"


def restart_of(graph, size):
    restart = np.zeros(size)
    restart[graph.rng.choice(size, 10, replace=False)] = 0.1
    return restart


@pytest.mark.benchmark(group=PAGERANK)
def test_reference_conjugate_gradients_of_scipy(benchmark, graph, matrix):
    """The same solver to the same accuracy."""
    benchmark.extra_info["reference"] = True
    solve = conjugate_gradients(matrix, damping=DAMPING, tolerance=TOLERANCE)
    restart = restart_of(graph, matrix.shape[0])
    ranks = benchmark.pedantic(solve, args=(restart,), rounds=9, warmup_rounds=1)
    assert ranks.sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.benchmark(group=PAGERANK)
def test_power_iteration_to_the_accuracy_of_networkx(benchmark, graph, matrix):
    """For comparison: |Δ| < n · 1e-6, where `networkx.pagerank` stops."""
    size = matrix.shape[0]
    step = csr_array(matrix.multiply(1.0 / matrix.sum(axis=0)[None, :]))
    restart = restart_of(graph, size)

    def iterate():
        ranks = restart
        while True:
            after = DAMPING * (step @ ranks) + (1.0 - DAMPING) * restart
            if np.abs(after - ranks).sum() < 1e-6:
                return after
            ranks = after

    benchmark.pedantic(iterate, rounds=5, warmup_rounds=1)


@pytest.mark.benchmark(group=PAGERANK)
def test_pagerank_of_the_visible_graph(benchmark, graph, target):
    benchmark.extra_info["target"] = target
    benchmark.pedantic(graph.ask, args=("ppr",), rounds=9, warmup_rounds=1)


@pytest.mark.benchmark(group=NEAR)
def test_reference_dijkstra_of_scipy(benchmark, graph, matrix):
    benchmark.extra_info["reference"] = True
    seeds = graph.rng.choice(matrix.shape[0], 10, replace=False)
    benchmark.pedantic(
        lambda: dijkstra(matrix, indices=seeds, unweighted=True, limit=HOPS, min_only=True),
        rounds=20,
        warmup_rounds=1,
    )


@pytest.mark.benchmark(group=NEAR)
def test_hops_in_the_visible_graph(benchmark, graph, target):
    benchmark.extra_info["target"] = target
    benchmark.pedantic(graph.ask, args=("hops",), rounds=20, warmup_rounds=1)


def after_adding(benchmark, graph, signal, target):
    """The first question after a thousand new edges: they must not mean building all anew."""
    benchmark.extra_info["target"] = target
    snapshots = graph.store._snapshots
    built = snapshots.built
    benchmark.pedantic(
        graph.ask, args=(signal,), setup=lambda: graph.add(ADDED), rounds=9, warmup_rounds=1
    )
    assert snapshots.built == built, "the matrix was built anew"


@pytest.mark.benchmark(group=NEAR)
def test_hops_asked_first_after_adding_1000_edges(benchmark, graph, target):
    after_adding(benchmark, graph, "hops", target)


@pytest.mark.benchmark(group=PAGERANK)
def test_pagerank_asked_first_after_adding_1000_edges(benchmark, graph, target):
    after_adding(benchmark, graph, "ppr", target)

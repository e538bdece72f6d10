"""How time grows with the number of memories and of edges, as two pictures.

    python benchmarks/growth.py docs/figures [--memories 10000 100000 …] [--edges 10000 100000 …]

``recall-growth.svg``: `Memory.recall` over vectors, keywords, graph and activity, at a scope that
shows all, a tenth, a hundredth and a thousandth of the memories; dashed, exact search over all of
them by FAISS on one thread. ``graph-growth.svg``: evidence of the graph store; dashed, scipy on a
finished matrix. Least of twenty questions each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import matplotlib as mpl
import numpy as np
from scipy.sparse.csgraph import dijkstra

import rankblend as rb
from random_graph import DEGREE, RandomGraph, conjugate_gradients

DIMENSIONS = 128  # of all points of the curve: a million vectors of 384 would be 1.5 GB
QUESTIONS = 20
WORDS = [f"w{number}" for number in range(5_000)]
# Who sees what: everything is at the leaves, and a question with reach="subtree" is asked above.
LEAVES = {
    "org:x/a:1/b:1/c:1": 0.001,
    "org:x/a:1/b:1/c:2": 0.009,
    "org:x/a:1/b:2": 0.09,
    "org:x/a:2": 0.9,
}
SHOWN = {
    "100 %": "org:x",
    "10 %": "org:x/a:1",
    "1 %": "org:x/a:1/b:1",
    "0.1 %": "org:x/a:1/b:1/c:1",
}
Curves = dict[str, dict[int, float]]


def least(ask: Callable[..., object], *given: object, **named: object) -> float:
    """Milliseconds of the fastest of twenty calls, after one that is not counted."""
    ask(*given, **named)
    taken = []
    for _ in range(QUESTIONS):
        start = time.perf_counter()
        ask(*given, **named)
        taken.append(time.perf_counter() - start)
    return min(taken) * 1e3


def items(count: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    scopes = rng.choice(list(LEAVES), count, p=list(LEAVES.values())).tolist()
    words = rng.zipf(1.3, (count, 12)) % len(WORDS)
    vectors = rng.normal(size=(count, DIMENSIONS)).astype(np.float32)
    for number, scope in enumerate(scopes):
        yield {
            "id": f"m{number}",
            "scope": scope,
            "vector": vectors[number],
            "text": " ".join(WORDS[word] for word in words[number].tolist()),
            "links": [{"target": f"entity {number % (count // 10)}"}],
        }


def recall_curves(sizes: list[int]) -> Curves:
    curves: Curves = {f"recall, {share} visible": {} for share in SHOWN}
    exact = curves["exact search over all, FAISS"] = {}
    rng = np.random.default_rng(0)

    def embed(count: int) -> np.ndarray:
        return rng.normal(size=(count, DIMENSIONS))

    def ask(memory: rb.Memory, scope: str) -> rb.Recall:
        text = " ".join(rng.choice(WORDS, 3))
        return memory.recall(text, scope=scope, reach="subtree", top=20)

    for size in sizes:
        with rb.Memory.open(
            ":memory:", embedder=lambda texts: embed(len(texts)), allow_subtree=True
        ) as memory:
            memory.remember_many(items(size, rng))
            for share, scope in SHOWN.items():
                curves[f"recall, {share} visible"][size] = least(ask, memory, scope)
        vectors, query = embed(size).astype(np.float32), embed(1).astype(np.float32)
        faiss.omp_set_num_threads(1)  # a single query takes three times as long on two
        exact[size] = least(faiss.knn, query, vectors, 100, faiss.METRIC_INNER_PRODUCT)
        print(size, {name: round(curve[size], 2) for name, curve in curves.items()}, flush=True)
    return curves


def graph_curves(sizes: list[int]) -> Curves:
    signals = ("hops", "activation", "ppr")
    curves: Curves = {name: {} for name in signals}
    ranks = curves["ppr, scipy cg"] = {}
    paths = curves["hops, scipy dijkstra"] = {}
    for size in sizes:
        graph = RandomGraph.of(size // DEGREE)
        for name in signals:
            curves[name][size] = least(graph.ask, name)
        matrix = graph.matrix()
        solve = conjugate_gradients(matrix, damping=0.85, tolerance=1e-10)
        seeds = graph.rng.choice(matrix.shape[0], 10, replace=False)
        restart = np.zeros(matrix.shape[0])
        restart[seeds] = 0.1
        ranks[size] = least(solve, restart)
        paths[size] = least(
            dijkstra, matrix, indices=seeds, unweighted=True, limit=3, min_only=True
        )
        graph.store.close()
        print(size, {name: round(curve[size], 2) for name, curve in curves.items()}, flush=True)
    return curves


def draw(curves: Curves, path: Path, *, along: str) -> None:
    """Both axes logarithmic; a curve of another library, named after a comma, is dashed."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = path.name  # the same picture has the same bytes
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for name, curve in curves.items():
        foreign = any(library in name for library in ("FAISS", "scipy"))
        axes.plot(
            list(curve), list(curve.values()), label=name,
            marker="o", linestyle="--" if foreign else "-",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=along, ylabel="milliseconds")
    for axis, subs in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 2.0, 5.0))):
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(_plain))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _plain(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1.0 else f"{value:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Growth curves.")
    parser.add_argument("folder", type=Path)
    sizes = [10_000, 100_000, 1_000_000]
    parser.add_argument("--memories", type=int, nargs="*", default=sizes)
    parser.add_argument("--edges", type=int, nargs="*", default=sizes)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.edges:
        draw(graph_curves(given.edges), given.folder / "graph-growth.svg", along="edges")
    if given.memories:
        draw(recall_curves(given.memories), given.folder / "recall-growth.svg", along="memories")


if __name__ == "__main__":
    main()

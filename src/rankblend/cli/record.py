"""``rankblend record``: everything profiles could need of a data set, asked once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import counted, errors, output, print_json, progress, say
from rankblend.cli.options import NEW_FOLDER, AsJson, EmbedderChoice, embedder_for, number
from rankblend.experiment.datasets import LOADERS, Dataset, load_dataset
from rankblend.experiment.evaluate import remember_dataset
from rankblend.experiment.recording import record as record_queries
from rankblend.recall import Memory

__all__ = ["record"]

_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


def record(
    source: Annotated[Path, typer.Argument(help="The path of the data set.")],
    dataset: Annotated[str, typer.Option("--dataset", help=f"{', '.join(sorted(LOADERS))}.")],
    out: Annotated[Path, typer.Option("--out", help="The recording to make."), NEW_FOLDER],
    embedder: EmbedderChoice = "auto",
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", help="Record what this preset or .toml needs (all presets)."),
    ] = None,
    depth: Annotated[
        int | None, number("depth", "--depth", "Proposals of each store, as the profiles ask")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask every query of a data set once and keep all signals, absent ones as absent.

    Nothing is downloaded. After Ctrl-C the same command goes on where it was; the file appears
    whole or not at all. Recordings of the same data are the same: queries and memories without a
    date get the latest one there is.
    """
    loaded = load_dataset(dataset, source)
    errors.print(Text(f"{loaded.name}: licence {loaded.licence}", "dim"))
    chosen = embedder_for(embedder, None)
    if chosen is None and embedder == "auto":
        say(
            "wordllama is not installed, so every similarity will be absent; install "
            "rankblend[wordllama] or name an embedder (--embedder none if it is meant)",
            "yellow",
            to=errors,
        )
    now = _latest(loaded)
    with (
        Memory.open(":memory:", embedder=chosen, clock=lambda: now, allow_subtree=True) as memory,
        progress() as bar,
    ):
        writing = bar.add_task("remembering", total=len(loaded.memories))
        remember_dataset(memory, loaded, progress=lambda n: bar.advance(writing, n))
        asking = bar.add_task("asking", total=len(loaded.queries))
        recording = record_queries(
            memory, loaded, out=out, profiles=profile or None, depth=depth, now=now,
            progress=lambda n: bar.advance(asking, n),
        )  # fmt: skip
    if as_json:
        print_json({**recording.manifest.plain(), "query_hash": recording.query_hash})
        return
    say(
        f"{counted(len(recording), 'query', 'queries')} over "
        f"{counted(recording.manifest.memories, 'memory', 'memories')} recorded in {out}"
    )
    for reason, count in recording.manifest.excluded.items():
        if count:
            output.print(Text(f"left out: {count:,} ({reason})", "dim"))


def _latest(dataset: Dataset) -> datetime:
    dates = [memory["at"] for memory in dataset.memories if memory.get("at")]
    dates += [query.now for query in dataset.queries if query.now]
    return max(dates, default=_UNDATED)

"""``rankblend ingest``: memories from JSON lines or from a data set into a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from rankblend.cli.console import errors, output, progress
from rankblend.cli.embedder import HELP, embedder_for
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.datasets import LOADERS, load_dataset
from rankblend.recall import Memory, read_lines, stored_embedder

__all__ = ["ingest"]

_BATCH = 500


def ingest(
    source: Annotated[Path, typer.Argument(help="A .jsonl file, or the path of a data set.")],
    db: Annotated[Path, typer.Option("--db", help="The memory file; created when missing.")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", help=f"Read SOURCE as {', '.join(sorted(LOADERS))}.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", help="Scope of lines that name none.")
    ] = None,
    embedder: Annotated[str, typer.Option("--embedder", help=HELP)] = "auto",
) -> None:
    """Write memories from [b]SOURCE[/b] into a memory file.

    A JSON line has the arguments of [i]remember[/i], e.g.
    {"text": "Ana prefers bank transfer", "scope": "tenant:acme/user:7", "salience": 0.8}.
    Lines written by [i]rankblend export[/i] are read back unchanged. Ids seen before at their scope
    become new revisions, so an interrupted run can be repeated.
    """
    if dataset is not None:
        loaded = load_dataset(dataset, source)
        errors.print(f"{dataset}: licence {loaded.licence}", style="dim")
        memories: Sequence[Mapping[str, Any]] = loaded.memories
        links = [(where, list(joined)) for where, joined in loaded.links.items()]
    else:
        memories, links = _from_lines(source, scope)
    chosen = embedder_for(embedder, stored_embedder(db))
    with Memory.open(db, embedder=chosen) as memory, progress() as bar:
        task = bar.add_task("memories", total=len(memories))
        for batch in _batches(memories):
            memory.remember_many(batch)
            bar.advance(task, len(batch))
        for where, joined in links:
            memory.link_many(joined, scope=where)
        total = len(memory)
    joined_count = sum(len(joined) for _, joined in links)
    output.print(
        f"{len(memories):,} memories"
        + (f" and {joined_count:,} links" if joined_count else "")
        + f" written to {db} ({total:,} in all"
        + (", without vectors)" if chosen is None else ")")
    )


def _from_lines(
    source: Path, scope: str | None
) -> tuple[list[Mapping[str, Any]], list[tuple[Any, list[Mapping[str, Any]]]]]:
    memories, links = read_lines(source)
    if scope is not None:
        memories = [{"scope": scope, **item} for item in memories]
    missing = [i for i, item in enumerate(memories, start=1) if "scope" not in item]
    if missing:
        raise InvalidArgumentError(
            f"{source}: {len(missing)} memories name no scope (the first is number {missing[0]}); "
            "add one to each, or give --scope"
        )
    by_scope: dict[str, list[Mapping[str, Any]]] = {}
    for link in links:
        where = str(link.get("scope") or scope)
        by_scope.setdefault(where, []).append({k: v for k, v in link.items() if k != "scope"})
    return memories, list(by_scope.items())


def _batches(items: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch

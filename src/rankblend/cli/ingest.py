"""``rankblend ingest``: memories from JSON lines or from a data set into a file."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rankblend.cli.console import counted, errors, output, progress
from rankblend.cli.embedder import HELP, embedder_for
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.datasets import LOADERS, load_dataset
from rankblend.recall import Memory, read_lines, stored_embedder
from rankblend.recall.items import read_items

__all__ = ["ingest"]

_BATCH = 500
_SHOWN_PROBLEMS = 20
_ITEM = re.compile(r"items\[(\d+)\]\.?")
Items = Sequence[Mapping[str, Any]]
Links = Sequence[tuple[Any, Items]]


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
    Lines written by [i]rankblend export[/i] are read back unchanged. Everything is checked before
    anything is written. Ids seen before at their scope become new revisions, so an interrupted run
    can be repeated.
    """
    if not source.exists():
        raise InvalidArgumentError(f"{source}: no such file")
    memories: Items
    links: Links
    if dataset is not None:
        loaded = load_dataset(dataset, source)
        errors.print(f"{dataset}: licence {loaded.licence}", style="dim")
        memories, links = loaded.memories, [*loaded.links.items()]
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
    written = counted(len(memories), "memory", "memories")
    if joined_count := sum(len(joined) for _, joined in links):
        written += f" and {counted(joined_count, 'link', 'links')}"
    missing = ", without vectors" if chosen is None else ""
    output.print(Text(f"{written} written to {db} ({total:,} in all{missing})"), soft_wrap=True)


def _from_lines(source: Path, scope: str | None) -> tuple[Items, Links]:
    memories, links = read_lines(source)
    if scope is not None:
        memories = [{"scope": scope, **item} for item in memories]
    missing = [i for i, item in enumerate(memories) if "scope" not in item]
    if missing:
        raise InvalidArgumentError(
            f"{source}:{_line_of(source, missing[0])}: names no scope"
            + (f", nor do {len(missing) - 1:,} more" if len(missing) > 1 else "")
            + "; add one to each, or give --scope"
        )
    _check(source, memories)
    by_scope: dict[str, list[Mapping[str, Any]]] = {}
    for link in links:
        where = str(link.get("scope") or scope)
        by_scope.setdefault(where, []).append({k: v for k, v in link.items() if k != "scope"})
    return memories, [*by_scope.items()]


def _check(source: Path, memories: Items) -> None:
    """Refuse the file as a whole, with the line of every problem, before anything is written.

    Raises:
        InvalidArgumentError: As `Memory.remember_many`, but naming lines.
    """
    problems: list[str] = []
    start = 0
    for batch in _batches(memories):
        try:
            read_items(batch, now=time.time(), named=True)
        except InvalidArgumentError as error:
            for problem in error.problems:
                place = _ITEM.match(problem)
                line = "" if place is None else f":{_line_of(source, start + int(place[1]))}"
                problems.append(f"{source}{line}: {problem[place.end() if place else 0 :]}")
        start += len(batch)
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        raise InvalidArgumentError(
            problems[:_SHOWN_PROBLEMS] + ([f"… and {more:,} more"] if more > 0 else [])
        )


def _line_of(source: Path, position: int) -> int:
    """The number of the line that holds a memory, by its position among the memories from 0."""
    lines = source.read_text(encoding="utf-8").split("\n")
    numbers = (
        number
        for number, line in enumerate(lines, start=1)
        if line.strip() and json.loads(line).get("type", "memory") == "memory"
    )
    return next(number for place, number in enumerate(numbers) if place == position)


def _batches(items: Items) -> Iterator[list[Mapping[str, Any]]]:
    """Runs of memories to write in one transaction; revisions of one memory come one by one."""
    batch: list[Mapping[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for item in items:
        key = (str(item.get("scope")), str(item.get("id")))
        named = item.get("id") is not None
        if len(batch) == _BATCH or (named and key in seen):
            yield batch
            batch, seen = [], set()
        batch.append(item)
        if named:
            seen.add(key)
    if batch:
        yield batch

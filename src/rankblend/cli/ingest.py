"""``rankblend ingest``: memories from JSON lines or from a data set into a file."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rankblend.cli.console import counted, errors, output, progress
from rankblend.cli.embedder import HELP, embedder_for
from rankblend.errors import InvalidArgumentError
from rankblend.experiment.datasets import LOADERS, load_dataset
from rankblend.recall import Memory, read_lines, stored_embedder
from rankblend.recall.items import read_edges, read_items

__all__ = ["ingest"]

_BATCH = 500
_SHOWN_PROBLEMS = 20
_PLACE = re.compile(r"(?:items|links)\[(\d+)\](?:\.|: )")
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
    """The memories and links of a file, all of it checked.

    Raises:
        InvalidArgumentError: As `Memory.remember_many` and `Memory.link_many`, but naming lines.
    """
    memories, links = read_lines(source)
    if scope is not None:
        memories = [{"scope": scope, **item} for item in memories]
        links = [{"scope": scope, **item} for item in links]
    problems = _problems(source, memories, links)
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        raise InvalidArgumentError(
            problems[:_SHOWN_PROBLEMS] + ([f"… and {more:,} more"] if more > 0 else [])
        )
    by_scope: dict[str, list[Mapping[str, Any]]] = {}
    for link in links:
        by_scope.setdefault(str(link["scope"]), []).append(_without_scope(link))
    return memories, [*by_scope.items()]


def _problems(source: Path, memories: Items, links: Items) -> list[str]:
    found: list[tuple[str, int, str]] = []  # kind, position among its kind, problem
    for kind, items in (("memory", memories), ("link", links)):
        nowhere = [position for position, item in enumerate(items) if "scope" not in item]
        for position in nowhere[:1]:
            others = f", nor do {len(nowhere) - 1:,} more" if len(nowhere) > 1 else ""
            found.append((kind, position, f"names no scope{others}; give it one, or --scope"))
    if not found:
        try:
            read_items(memories, now=time.time(), named=True)
        except InvalidArgumentError as error:
            found += [("memory", *_placed(problem)) for problem in error.problems]
        for position, link in enumerate(links):
            try:
                read_edges([_without_scope(link)], link["scope"])
            except InvalidArgumentError as error:
                found += [("link", position, _placed(problem)[1]) for problem in error.problems]
    if not found:
        return []
    lines = _lines(source)
    return [f"{source}:{lines[kind][position]}: {problem}" for kind, position, problem in found]


def _placed(problem: str) -> tuple[int, str]:
    """The position a problem names, from 0, and the problem without it."""
    place = _PLACE.match(problem)
    return (int(place[1]), problem[place.end() :]) if place is not None else (0, problem)


def _lines(source: Path) -> dict[str, list[int]]:
    """The numbers of the lines that hold memories, and of those that hold links."""
    numbers: dict[str, list[int]] = {"memory": [], "link": [], "rankblend": []}
    for number, line in enumerate(source.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            numbers[json.loads(line).get("type", "memory")].append(number)
    return numbers


def _without_scope(link: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in link.items() if name != "scope"}


def _batches(items: Items) -> Iterator[list[Mapping[str, Any]]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch

"""``rankblend ingest``, ``export``, ``reembed``, ``relabel`` and ``compact``: all of a memory file at once."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.console import counted, errors, output, progress, say
from rankblend.cli.options import OUTPUT, Db, EmbedderChoice, NewDb, embedder_for, require_file
from rankblend.cli.reasonlets_shown import open_procedures
from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError, RankblendError
from rankblend.experiment.datasets import LOADERS, load_dataset
from rankblend.recall import Batch, Memory, read_batch, read_edges, read_items, stored_embedder
from rankblend.stores.catalog import Catalog

__all__ = ["compact", "export", "ingest", "reembed", "relabel"]

_SHOWN_PROBLEMS = 20
_STANDARD_INPUT = Path("/dev/stdin")


def ingest(
    source: Annotated[
        Path, typer.Argument(help="A .jsonl file, - for standard input, or a data set.")
    ],
    db: NewDb,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help=f"Read SOURCE as {', '.join(sorted(LOADERS))}.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", help="Scope of lines that name none.")
    ] = None,
    embedder: EmbedderChoice = "auto",
) -> None:
    """Write memories from [b]SOURCE[/b] into a memory file.

    A JSON line has the arguments of [i]remember[/i], e.g.
    {"text": "Ana prefers bank transfer", "scope": "tenant:acme/user:7", "salience": 0.8}.
    Lines written by [i]rankblend export[/i] are read back unchanged. Everything is checked and
    embedded before anything is written, and then all of it is written at once, or nothing. Ids seen
    before at their scope become new revisions.
    """
    batch = _read(_STANDARD_INPUT if source == Path("-") else source, dataset, scope)
    existed = db.exists()
    if not (existed or batch.items or batch.edges or batch.procedures):
        raise InvalidArgumentError(f"{source}: there is nothing in it, so {db} was not made")
    stored = stored_embedder(db)
    restores = batch.embedder is not None and batch.brings_vectors
    if embedder == "auto" and restores and stored in (None, batch.embedder):
        chosen = None  # an export that has all its vectors is moved, whatever made them
    else:
        chosen = embedder_for(embedder, stored)
    try:
        total = _write(batch, db, chosen)
    except BaseException:
        if not existed:
            _discard(db)
        raise
    written = counted(len(batch.items), "memory", "memories")
    if batch.edges:
        written += f" and {counted(len(batch.edges), 'link', 'links')}"
    if batch.procedures:
        written += f" and {counted(len(batch.procedures), 'procedure', 'procedures')}"
    missing = ", without vectors" if chosen is None and not batch.brings_vectors else ""
    say(f"{written} written to {db} ({total:,} in all{missing})")


def export(
    db: Db, out: Annotated[Path, typer.Option("--out", help="The .jsonl to write."), OUTPUT]
) -> None:
    """Write everything in a file as JSON lines: memories, links, procedures and runs."""
    require_file(db)
    with Memory.open(db) as memory:
        count = memory.export(out)
    say(f"{counted(count, 'line', 'lines')} written to {out}", to=errors)


def reembed(db: Db, embedder: EmbedderChoice) -> None:
    """Replace every vector in a file, of memories and procedures, with another embedder's."""
    require_file(db)
    chosen = embedder_for(embedder, None)
    if chosen is None:
        raise InvalidArgumentError("--embedder: expected an embedder, not none")
    with Memory.open(db) as memory:
        count = memory.reembed(chosen)
    written = counted(count, "memory", "memories")
    with open_procedures(db) as kept:
        found = kept.statistics()
    if procedures := found.active + found.pending:
        written += f" and {counted(procedures, 'procedure', 'procedures')}"
    output.print(f"{written} embedded anew")


def relabel(
    name: Annotated[
        str, typer.Argument(help="What the embedder is called, without its dimension.")
    ],
    db: Db,
) -> None:
    """Note another name for the embedder of a file; all vectors stay as they are."""
    require_file(db)
    with Memory.open(db) as memory:
        memory.relabel(name)
    output.print(f"the file notes {stored_embedder(db)} now")


def compact(db: Db) -> None:
    """Rewrite a file without what was erased from it, and give the space back to the disk.

    Exits with 1 while somebody still reads an older state: erased words may then be in the log
    beside the file.
    """
    require_file(db)
    with Catalog.open(db) as catalog:
        done = catalog.compact()
    output.print(f"{done.freed:,} bytes given back")
    if done.waiting:
        errors.print(f"{db} is in use; what was erased may still be in its log. Try again later")
        raise typer.Exit(1)


def _read(source: Path, dataset: str | None, scope: str | None) -> Batch:
    """All memories and links, checked.

    Raises:
        InvalidArgumentError: The first problems, and how many more there are.
    """
    if not source.exists():
        raise InvalidArgumentError(f"{source}: no such file")
    try:
        if dataset is None:
            return read_batch(source, time.time(), scope)
        loaded = load_dataset(dataset, source)
        errors.print(f"{dataset}: licence {loaded.licence}", style="dim")
        edges = [edge for where, links in loaded.links.items() for edge in read_edges(links, where)]
        return Batch(read_items(loaded.memories, now=time.time(), named=True), edges)
    except InvalidArgumentError as error:
        more = len(error.problems) - _SHOWN_PROBLEMS
        if more <= 0:
            raise
        shown = error.problems[:_SHOWN_PROBLEMS]
        raise InvalidArgumentError([*shown, f"… and {more:,} more"]) from None


def _write(batch: Batch, db: Path, embedder: Embedder | None) -> int:
    """Embed and write everything; how many memories the file has then."""
    made = embedder is not None and not batch.stays_as_it_is(embedder)
    missing = sum(item.vector is None for item in batch.items) if made else 0
    with Memory.open(db, embedder=embedder) as memory, progress() as bar:
        task = bar.add_task("embedding", total=missing, visible=missing > 0)

        def embedded(count: int) -> None:
            bar.update(task, completed=count)
            if count == missing:
                bar.update(task, description="writing")

        memory.import_(batch, progress=embedded)
        return len(memory)


def _discard(db: Path) -> None:
    """Take away a file that was made for this run, if nothing was written to it."""
    with suppress(RankblendError, OSError):
        with Memory.open(db) as memory:
            if len(memory):
                return
        for name in (db.name, f"{db.name}-wal", f"{db.name}-shm"):
            db.with_name(name).unlink(missing_ok=True)

"""Opening the procedures of a file, and showing them as tables and as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.table import Table
from rich.text import Text

from rankblend.cli.console import counted, plain_table, visible
from rankblend.cli.options import embedder_for, require_file
from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import (
    Graph,
    Metrics,
    Reasonlet,
    ReasonletMatch,
    ReasonletMemory,
    SqliteReasonletStore,
    SyncReasonletMemory,
)

__all__ = [
    "Identifier",
    "Scope",
    "lineage_table",
    "match_table",
    "open_for_asking",
    "open_procedures",
    "plain_match",
    "plain_procedure",
    "record_text",
    "steps_table",
    "waiting_table",
]


Scope = Annotated[str, typer.Option("--scope", help="Whose procedures: exactly this scope.")]
Identifier = Annotated[
    str, typer.Argument(help="Id of a procedure, as recall and pending show it.")
]


@contextmanager
def open_procedures(db: Path, *, create: bool = False) -> Iterator[SyncReasonletMemory]:
    """The procedures of a file, for everything that embeds nothing.

    Args:
        db: The file.
        create: Make it where there is none.

    Raises:
        InvalidArgumentError: There is no such file.
        StoreError: It cannot be opened.
    """
    if not create:
        require_file(db)
    with SyncReasonletMemory(ReasonletMemory(_never, SqliteReasonletStore.open(db))) as memory:
        yield memory


@contextmanager
def open_for_asking(db: Path, choice: str) -> Iterator[SyncReasonletMemory]:
    """The procedures of a file with an embedder that can ask for them.

    Args:
        db: The file.
        choice: See `rankblend.cli.options.HELP`; ``auto`` is the one noted in the file, or
            wordllama in the length that is stored.

    Raises:
        InvalidArgumentError: There is no such file, or no such embedder.
        StoreError: It cannot be opened.
    """
    require_file(db)
    store = SqliteReasonletStore.open(db)
    try:
        noted, dimension = asyncio.run(_noted(store))
        embedder = _embedder(choice, noted, dimension)
    except BaseException:
        asyncio.run(store.aclose())
        raise
    with SyncReasonletMemory(ReasonletMemory(embedder, store)) as memory:
        yield memory


async def _noted(store: SqliteReasonletStore) -> tuple[str | None, int | None]:
    return await store.embedder(), await store.dimension()


def _check_there(db: Path) -> None:
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")


def _embedder(choice: str, noted: str | None, dimension: int | None) -> Embedder:
    stored = noted or (None if dimension is None else f"wordllama/{dimension}")
    try:
        found = embedder_for(choice, stored)
    except InvalidArgumentError as error:
        if choice != "auto":
            raise
        raise InvalidArgumentError(
            f"the questions in this file have vectors of {dimension:,} numbers, which no built-in "
            "embedder makes; name theirs with --embedder"
        ) from error
    if found is None:
        raise InvalidArgumentError(
            "--embedder: procedures are found by the similarity of questions, so one is needed; "
            "pip install 'rankblend[wordllama]', or name another"
        )
    return found


def _never(texts: Sequence[str], /) -> list[list[float]]:
    """Stands where a memory wants an embedder that no call of the command asks."""
    raise NotImplementedError


def match_table(matches: Sequence[ReasonletMatch]) -> Table:
    """Recalled procedures, best first, each with the id that other commands take below its name."""
    table = plain_table(
        right=("#", "total", "similarity", "success rate", "freshness", "runs", "judged")
    )
    table.add_column("procedure", ratio=1, overflow="ellipsis")
    for rank, match in enumerate(matches, start=1):
        score, evidence = match.score, match.evidence
        # A prior that comes from the parent is marked.
        mark = "*" if evidence.uses_parent_prior else ""
        table.add_row(
            str(rank), f"{score.total:.3f}", f"{score.similarity:.3f}",
            f"{score.success_rate:.3f}{mark}", f"{score.freshness:.3f}", f"{evidence.runs:,}",
            f"{evidence.judged_runs:,}", _named(match.reasonlet),
        )  # fmt: skip
    if any(match.evidence.uses_parent_prior for match in matches):
        table.caption = "* starts from its parent's success rate"
        table.caption_justify = "left"
    return table


def waiting_table(found: Sequence[Reasonlet]) -> Table:
    """Procedures that wait for review."""
    table = plain_table(right=("created", "steps", "runs", "worked"))
    table.add_column("procedure", ratio=1, overflow="ellipsis")
    for made in found:
        table.add_row(
            _day(made.created), str(len(made.graph.nodes)), f"{made.metrics.runs:,}",
            f"{made.metrics.successes:,}", _named(made),
        )  # fmt: skip
    return table


def lineage_table(versions: Sequence[Reasonlet], shown: str) -> Table:
    """All versions of a procedure, with the one that is shown marked."""
    table = plain_table(right=("version", "of", "runs", "worked", "judged"))
    table.add_column("last run")
    table.add_column("status")
    table.add_column("id", no_wrap=True)
    numbers = {made.id: made.version for made in versions}
    for made in versions:
        runs = made.metrics
        table.add_row(
            made.version, numbers.get(made.parent_id or "", ""), f"{runs.runs:,}",
            f"{runs.successes:,}", f"{runs.judged_runs:,}", _day(runs.last_run),
            str(made.status).replace("_", " "), made.id, style="bold" if made.id == shown else "",
        )  # fmt: skip
    return table


def steps_table(graph: Graph) -> Table:
    """The steps in the order written, each with those it leads to."""
    table = plain_table(right=("step",))
    for column in ("type", "tool", "name", "then"):
        table.add_column(column, overflow="fold")
    numbers = {node.id: str(number) for number, node in enumerate(graph.nodes, start=1)}
    after: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        told = f" if {edge.condition}" if edge.condition else ""
        after[edge.source].append(f"{numbers[edge.target]}{told}")
    for node in graph.nodes:
        texts = (node.type, node.tool or "", node.name or "", ", ".join(after[node.id]))
        table.add_row(numbers[node.id], *(Text(visible(_one_line(text))) for text in texts))
    return table


def record_text(made: Reasonlet) -> Text:
    """Name, question, origin and track record."""
    runs = made.metrics
    parts: list[str | tuple[str, str]] = [
        (visible(_one_line(made.name)), "bold"),
        f"\n{visible(_one_line(made.question))}\n" if made.question != made.name else "\n",
        f"version {made.version}, intent {visible(made.intent)}, {str(made.status).replace('_', ' ')}, "
        f"at {made.scope}\n",
        f"from {visible(made.provenance.source)}, created {_day(made.created)}\n",
        f"{counted(runs.runs, 'run', 'runs')}, {runs.successes:,} worked; {runs.judged_runs:,} judged, "
        f"{runs.judged_successes:,} of those worked; last run {_day(runs.last_run)}",
    ]
    return Text.assemble(*parts)


def plain_match(match: ReasonletMatch) -> dict[str, Any]:
    """A match as JSON values."""
    return {
        **plain_procedure(match.reasonlet),
        "score": asdict(match.score),
        "evidence": asdict(match.evidence),
    }


def plain_procedure(made: Reasonlet) -> dict[str, Any]:
    """A procedure as JSON values."""
    origin = made.provenance
    return {
        "id": made.id,
        "version": made.version,
        "family": made.family,
        "parent_id": made.parent_id,
        "scope": str(made.scope),
        "status": str(made.status),
        "name": made.name,
        "intent": made.intent,
        "question": made.question,
        "created": made.created.isoformat(),
        "provenance": {**asdict(origin), "tags": dict(origin.tags)},
        "metrics": _plain_metrics(made.metrics),
        "graph": made.graph.plain(),
    }


def _plain_metrics(metrics: Metrics) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(metrics).items()
    }


def _named(made: Reasonlet) -> Text:
    version = "" if made.version == "1.0" else f" ({made.version})"
    return Text.assemble(f"{visible(_one_line(made.name))}{version}\n", (made.id, "dim"))


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""Opening the procedures of a file, and the options that name them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.embedder import embedder_for
from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import ReasonletMemory, SqliteReasonletStore, SyncReasonletMemory

__all__ = ["AsJson", "Db", "Identifier", "Scope", "open_for_asking", "open_procedures"]

Db = Annotated[Path, typer.Option("--db", help="The file with the procedures.")]
Scope = Annotated[str, typer.Option("--scope", help="Whose procedures: exactly this scope.")]
AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON on standard output.")]
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
        _check_there(db)
    with SyncReasonletMemory(ReasonletMemory(_never, SqliteReasonletStore.open(db))) as memory:
        yield memory


@contextmanager
def open_for_asking(db: Path, choice: str) -> Iterator[SyncReasonletMemory]:
    """The procedures of a file with an embedder that can ask for them.

    Args:
        db: The file.
        choice: See `rankblend.cli.embedder.HELP`; ``auto`` is wordllama in the length that is
            stored.

    Raises:
        InvalidArgumentError: There is no such file, or no such embedder.
        StoreError: It cannot be opened.
    """
    _check_there(db)
    store = SqliteReasonletStore.open(db)
    try:
        embedder = _embedder(choice, asyncio.run(store.dimension()))
    except BaseException:
        asyncio.run(store.aclose())
        raise
    with SyncReasonletMemory(ReasonletMemory(embedder, store)) as memory:
        yield memory


def _check_there(db: Path) -> None:
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}")


def _embedder(choice: str, dimension: int | None) -> Embedder:
    stored = None if dimension is None else f"wordllama/{dimension}"
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

"""Opening the procedures of a file, and the options that name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.embedder import embedder_for
from rankblend.embedders import Embedder
from rankblend.embedders.wordllama import DIMENSIONS
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import ReasonletMemory, SqliteReasonletStore, SyncReasonletMemory
from rankblend.recall import stored_embedder

__all__ = ["AsJson", "Db", "Identifier", "Scope", "open_procedures"]

Db = Annotated[Path, typer.Option("--db", help="The file with the procedures.")]
Scope = Annotated[str, typer.Option("--scope", help="Whose procedures: exactly this scope.")]
AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON on standard output.")]
Identifier = Annotated[str, typer.Argument(help="As shown by `rankblend reasonlets recall`.")]

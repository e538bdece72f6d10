"""The options that commands share, each declared once, and the rule for those that name an output."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from rankblend import embedders
from rankblend.checks import Problems
from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError
from rankblend.files import noting, refuse
from rankblend.limits import LIMITS

__all__ = [
    "NEW_FOLDER",
    "OUTPUT",
    "AsJson",
    "Db",
    "EmbedderChoice",
    "Jobs",
    "LedgerFile",
    "Measure",
    "Measures",
    "NewDb",
    "Profile",
    "Profiles",
    "RecordingFile",
    "ReportFile",
    "Reranked",
    "embedder_for",
    "number",
    "require_file",
    "safe",
]

OUTPUT = object()
"""Marks an option that names a file to write, in a folder that is there."""

NEW_FOLDER = object()
"""Marks one whose folder is made."""

HELP = (
    "auto (the one the file was written with, else wordllama when installed), wordllama, "
    "wordllama:64, wordllama:128, none, onnx:MODEL.onnx:TOKENIZER.json, or http:MODEL@BASE_URL (key from OPENAI_API_KEY)"
)


def number(limit: str, flag: str, told: str) -> Any:
    """An option for a whole number that costs time or memory.

    Its help says the bounds, and they are held before the command begins.

    Args:
        limit: Its name in `LIMITS`.
        flag: Its name on the command line.
        told: Its help.
    """
    bounds = LIMITS[limit]

    def held(value: int | None) -> int | None:
        problems = Problems()
        bounds.hold(problems, flag, value, optional=True)
        problems.raise_if_any()
        return value

    return typer.Option(flag, callback=held, help=f"{told} ({bounds}).")


AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON on standard output.")]
Db = Annotated[Path, typer.Option("--db", help="The memory file.")]
NewDb = Annotated[Path, typer.Option("--db", help="The memory file; created when missing.")]
EmbedderChoice = Annotated[str, typer.Option("--embedder", help=HELP)]
Jobs = Annotated[int, number("n_jobs", "--jobs", "Processes")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Note what is tried here, and correct p for all of it."),
]
Measure = Annotated[str, typer.Option("--measure", help="Which counts, e.g. nDCG@10.")]
Measures = Annotated[
    list[str] | None, typer.Option("--measure", help="E.g. nDCG@10, R@20, RR (repeatable).")
]
Profile = Annotated[str, typer.Option("--profile", help="A preset, or a path to a .toml.")]
Profiles = Annotated[
    list[str] | None,
    typer.Option("--profile", help="A preset or .toml (repeatable; all presets)."),
]
RecordingFile = Annotated[Path, typer.Argument(help="Made by `rankblend record`.")]
ReportFile = Annotated[
    Path | None, typer.Option("--out", help="A report: .html, .md, .tex, .csv or .json."), OUTPUT
]
Reranked = Annotated[
    bool,
    typer.Option("--reranked", help="Let rerank scores serve, as if evidence admitted them."),
]


def safe(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that writes over nothing it reads: refused before anything is touched.

    Raises:
        InvalidArgumentError: By the command; an output lies in no folder, is a folder, is an input
            too, or is anything else that `rankblend.files.refuse` refuses.
    """
    marks = {
        name: [mark for mark in (OUTPUT, NEW_FOLDER) if mark in _metadata(parameter)]
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
    }

    @wraps(command)
    def call(**given: Any) -> Any:
        inputs = [path for name in given if not marks[name] for path in _files(given[name])]
        with noting(inputs):
            for name, value in given.items():
                if value is not None and marks[name]:
                    option = f"--{name.replace('_', '-')}"
                    _check_output(option, value, new_folder=NEW_FOLDER in marks[name])
            return command(**given)

    return call


def _metadata(parameter: inspect.Parameter) -> tuple[object, ...]:
    found: tuple[object, ...] = getattr(parameter.annotation, "__metadata__", ())
    return found


def _files(value: object) -> Iterator[Path]:
    """What an argument names, as far as these are files: profiles may be names of presets."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _files(each)
    elif isinstance(value, str):
        with suppress(OSError, ValueError):  # too long for a name, or a NUL in it
            if Path(value).is_file():
                yield Path(value)


def _check_output(option: str, out: Path, *, new_folder: bool) -> None:
    if out.is_dir() or not (new_folder or out.parent.is_dir()):
        raise InvalidArgumentError(f"{option}: expected a file in an existing folder, got {out}")
    try:
        refuse(out)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{option}: {error}") from None


def require_file(db: Path) -> None:
    """Refuse a memory file that is not there, where none is to be made.

    Raises:
        InvalidArgumentError: There is none.
    """
    if not db.exists():
        raise InvalidArgumentError(f"--db: no such file: {db}; write one with rankblend ingest")


def embedder_for(choice: str, stored: str | None) -> Embedder | None:
    """The embedder for a choice on the command line.

    Args:
        choice: See `HELP`.
        stored: Identity the file was written with, ``name/dimension``, or None for a new file.

    Raises:
        InvalidArgumentError: The choice cannot be read, or ``auto`` cannot guess.
        MissingDependencyError: What the choice needs is not installed.
    """
    kind, _, rest = choice.partition(":")
    if kind == "none":
        return None
    if kind == "auto":
        return _automatic(stored)
    if kind == "wordllama" and not rest:
        return embedders.wordllama()
    if kind == "wordllama" and rest.isascii() and rest.isdigit():
        return embedders.wordllama(int(rest))
    if kind == "onnx" and rest.count(":") == 1:
        model, tokenizer = rest.split(":")
        return embedders.onnx(model, tokenizer)
    if kind == "http" and "@" in rest:
        model, _, base_url = rest.partition("@")
        return embedders.openai(model, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY"))
    raise InvalidArgumentError(f"--embedder: expected {HELP}")


def _automatic(stored: str | None) -> Embedder | None:
    if stored is None:
        return embedders.wordllama() if find_spec("wordllama") is not None else None
    name, _, dimension = stored.rpartition("/")
    if name == "wordllama" and dimension.isascii() and dimension.isdigit():
        with suppress(InvalidArgumentError):  # a dimension this version does not have
            return embedders.wordllama(int(dimension))
    raise InvalidArgumentError(
        f"this file was written with embedder {stored}; name it with --embedder, "
        "or recall without similarity with --embedder none"
    )

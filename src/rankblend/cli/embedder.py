"""Which embedder a command uses: the one a file was written with, or the offline default."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec

from rankblend import embedders
from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError

__all__ = ["HELP", "embedder_for"]

HELP = (
    "auto (the one the file was written with, else wordllama when installed), wordllama, "
    "wordllama:64, wordllama:128, none, onnx:MODEL.onnx:TOKENIZER.json, or http:MODEL@BASE_URL (key from OPENAI_API_KEY)"
)


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
        import os

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

"""The offline static model that comes inside the installed wordllama package."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, MissingDependencyError

_FULL = 256  # the one matrix in the wheel; fewer columns are its leading ones
_DIMENSIONS = (64, 128, 256)
_LONGEST = 32_768
# wordllama pads a batch to its longest text and holds every token's row at once: 64 texts beside
# one of 100,000 tokens would take 6 GB. At about 4 characters a token this budget is 67 MB.
_CHARACTERS_PER_BATCH = 262_144


@frozen
class WordLlamaEmbedder:
    """Averages of static token vectors; made by `wordllama`.

    Attributes:
        dimension: d of the vectors.
        name: ``"wordllama"``.
        model: The configuration inside the package.
    """

    dimension: int = _FULL
    name: str = "wordllama"
    model: str = "l2_supercat"

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Embed the texts; float32, shape (n, d), not unit length.

        A text's vector never depends on the others. Of a text longer than 32,768 characters only
        the beginning is read.
        """
        model = _load(self.dimension)
        cut = [text[:_LONGEST] for text in texts]
        rows = np.empty((len(cut), self.dimension), dtype=np.float32)
        for chosen in _batches([len(text) for text in cut]):
            rows[chosen] = model.embed([cut[position] for position in chosen])
        return rows


def wordllama(dim: int = _FULL) -> WordLlamaEmbedder:
    """An offline embedder of about 30,000 short texts a second, without a neural network.

    How to get it: ``pip install 'rankblend[wordllama]'``; the 256-dimensional model is inside that
    wheel (MIT, 33 MB installed). Nothing is downloaded, now or later. It is loaded at first use and
    shared within the process. Good enough to blend with keywords, weak alone; for better vectors
    see `onnx`.

    Args:
        dim: 256, or 128 or 64 for its leading columns.

    Raises:
        InvalidArgumentError: Another ``dim``.
        MissingDependencyError: wordllama is not installed.
    """
    if dim not in _DIMENSIONS:
        raise InvalidArgumentError(f"dim: expected one of {_DIMENSIONS}, got {dim!r}")
    if importlib.util.find_spec("wordllama") is None:
        raise _missing()
    return WordLlamaEmbedder(dim)


@functools.cache
def _load(dimension: int) -> Any:
    try:
        with _root_logger_kept():
            package = importlib.import_module("wordllama")
    except ImportError:
        raise _missing() from None
    # The package looks for its tokenizer in wordllama/tokenizer/ while the wheel has it in
    # wordllama/tokenizers/; naming the package itself as the cache finds it without the network.
    return package.WordLlama.load(
        dim=_FULL,
        trunc_dim=None if dimension == _FULL else dimension,
        cache_dir=Path(package.__path__[0]),
        disable_download=True,
    )


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    # Importing wordllama calls logging.basicConfig(level=INFO): the application's logging would
    # change because somebody embedded a text.
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions grouped so that padding to the longest of a group stays within the budget."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[position] > _CHARACTERS_PER_BATCH:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _missing() -> MissingDependencyError:
    return MissingDependencyError("wordllama", "wordllama", "the offline static embedder")

